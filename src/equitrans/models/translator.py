"""The equivariant translator (§4.2): from a word to a distribution over words."""

import math
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.glayers import GConv, GDecode, GEmbed
from equitrans.groups import Group
from equitrans.symmetry import Symmetry
from equitrans.vocabulary import EOS, PAD


class Factor(nn.Module):
    """One class and its factor of the group: the paper's stack on the words of the class."""

    def __init__(self, group: Group, *, k: int, d: int) -> None:
        super().__init__()
        moves = group.generators
        self.embed = GEmbed(moves, moves, k=k)
        self.conv = GConv(moves, k=k, d=d)
        self.decode = GDecode(moves, moves, d=d)

    def forward(self) -> Float[Tensor, "g d"]:
        """φ of the class's first word; any other word's is the same, moved."""
        first = torch.zeros(1, dtype=torch.long, device=self.embed.omega.device)
        return torch.tanh(self.conv(torch.tanh(self.embed(first))))[0]

    def fixed(self, embedded: Float[Tensor, "x k"]) -> Float[Tensor, "x d"]:
        """Σ_h φ(h) of words that the group does not move: their features are the same
        everywhere.
        """
        phi = torch.tanh(embedded @ self.conv.psi[self.conv.shared[0]].sum(0))
        return phi * len(self.conv.shared)

    def mean_rho(self) -> Float[Tensor, " d"]:
        """ρ of any word of the class as seen by words that this factor does not move."""
        return self.decode.rho[self.decode.shared[:, 0]].mean(0)


class Translator(nn.Module):
    """log p(y | x) for single words: G-Embed, tanh, G-Conv, tanh, G-Decode, softmax (§4.2).

    A word is moved by its own class's factor of the group only, so features live on the factors
    side by side and the product group is never listed: a word of class c has features on factor c,
    a word of no class the same features everywhere on all. Towards words of another class it sees
    the mean of their ρ. With one class this is the paper's translator, parameter for parameter.

    All rows of a class are one row moved, so the table below has one row per class and per word of
    no class.
    """

    row: Int[Tensor, " x"]
    source_class: Int[Tensor, " x"]
    source_place: Int[Tensor, " x"]
    target_class: Int[Tensor, " y"]
    target_place: Int[Tensor, " y"]
    filter: Int[Tensor, " y"]
    member: Int[Tensor, " p"]
    member_class: Int[Tensor, " p"]
    start: Int[Tensor, " c"]
    size: Int[Tensor, " c"]

    def __init__(self, symmetry: Symmetry, *, k: int, d: int) -> None:
        super().__init__()
        # without classes EOS is made one of its own: a class of one word moves nothing
        sources, targets = (side or [(EOS,)] for side in symmetry.members)
        self.factors = nn.ModuleList(
            Factor(group, k=k, d=d) for group in symmetry.factors or [Group.trivial()]
        )
        self.symmetric = symmetry.kind == "symmetric"
        row, source_class, source_place = class_numbers(len(symmetry.source), sources, none=-1)
        filters, target_class, target_place = class_numbers(len(symmetry.target), targets, none=-2)
        n = len(sources)
        self.omega = nn.Parameter(torch.empty(max(row) + 1 - n, k).uniform_(-0.5, 0.5))
        self.rho = nn.Parameter(torch.empty(max(filters) + 1 - n, d).uniform_(-0.5, 0.5))
        for name, numbers in (
            ("row", row),
            ("source_class", source_class),
            ("source_place", source_place),
            ("target_class", target_class),
            ("target_place", target_place),
            ("filter", filters),
            ("member", [word for words in targets for word in words]),
            ("member_class", [c for c, words in enumerate(targets) for _ in words]),
            ("start", [sum(map(len, targets[:c])) for c in range(n)]),
            ("size", [len(words) for words in targets]),
        ):
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.long), persistent=False)

    def forward(self, words: Int[Tensor, " x"]) -> Float[Tensor, "x y"]:
        """Rows of the table of log-probabilities; PAD and BOS are never emitted."""
        factors = cast(list[Factor], list(self.factors))
        n = len(factors)
        every_class = torch.arange(n, device=words.device)
        rows, at = torch.unique(torch.cat([every_class, self.row[words]]), return_inverse=True)
        phis = [factor() for factor in factors]
        embedded = torch.tanh(self.omega[rows[n:] - n])
        fixed = torch.stack([factor.fixed(embedded) for factor in factors]).sum(0)
        pooled = torch.cat([torch.stack([phi.sum(0) for phi in phis]), fixed])
        means = torch.stack([factor.mean_rho() for factor in factors])
        logits = pooled @ torch.cat([means, self.rho])[self.filter].T
        own = torch.cat([f.decode(phi) for f, phi in zip(factors, phis, strict=True)])
        logits = logits.index_put((self.member_class, self.member), own)
        logits = torch.cat([logits.new_full((len(rows), EOS), -math.inf), logits[:, EOS:]], dim=1)
        return torch.log_softmax(logits, dim=1)[at[n:]].gather(1, self._columns(words))

    def _columns(self, words: Int[Tensor, " x"]) -> Int[Tensor, "x y"]:
        """Where in its class's row the entry for each target word stands: at g⁻¹∘y, if g moved the
        first word of the class to x.
        """
        kind, y = self.source_class[words], torch.arange(len(self.filter), device=words.device)
        moved = (self.target_place - self.source_place[words, None]) % self.size[kind, None]
        if self.symmetric:
            moved = moved.clamp(max=1)  # same or other
        # the remainder lies beyond the class for words of another one, whose columns are not used
        column = self.member[(self.start[kind, None] + moved).clamp(max=len(self.member) - 1)]
        return torch.where(kind[:, None] == self.target_class, column, y)


def class_numbers(
    size: int, classes: list[tuple[int, ...]], *, none: int
) -> tuple[list[int], list[int], list[int]]:
    """For every word: its row (classes first, then words of no class), its class or none, its
    place in it.

    PAD has no row of its own; where padding is looked up it reads that of EOS.
    """
    row, kind, place = [0] * size, [none] * size, [0] * size
    for c, words in enumerate(classes):
        for i, word in enumerate(words):
            row[word], kind[word], place[word] = c, c, i
    others = [word for word in range(size) if kind[word] < 0 and word != PAD]
    for i, word in enumerate(others, start=len(classes)):
        row[word] = i
    row[PAD] = row[EOS]
    return row, kind, place
