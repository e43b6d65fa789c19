"""The equivariant translator (§4.2): from a word to a distribution over words."""

import math
from functools import cache
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.symmetry import GroupKind, Symmetry
from equitrans.vocabulary import EOS, PAD

FEW = 256
"""Up to so many classes and words of none, all rows of the table are made for any batch."""

DIRECT = 32
"""Up to this size of a cyclic group a convolution is a product with a moved copy per element."""


class Factor(nn.Module):
    """One class of n words and its factor of the group: the paper's stack on the class's words.

    The weights of G-Embed, G-Conv and G-Decode (eqs. 1–3), one for every orbit: n for the cyclic
    group, *same* and *other* for the symmetric one. All words of the class are its first one moved,
    so only the first is translated.
    """

    count: Float[Tensor, " o"]

    def __init__(self, n: int, *, kind: GroupKind, k: int, d: int) -> None:
        super().__init__()
        self.n = n
        self.symmetric = kind == "symmetric" and n > 2
        orbits = 2 if self.symmetric else n
        self.omega = nn.Parameter(torch.empty(orbits, k).uniform_(-0.5, 0.5))
        self.psi = nn.Parameter(torch.empty(orbits, k, d).uniform_(-0.5, 0.5))
        self.rho = nn.Parameter(torch.empty(orbits, d).uniform_(-0.5, 0.5))
        count = torch.tensor([1.0, n - 1.0]) if self.symmetric else torch.ones(n)
        self.register_buffer("count", count, persistent=False)

    def forward(self) -> tuple[Float[Tensor, " d"], Float[Tensor, " n"]]:
        """``Σ_h φ(h)`` of the class's first word, and its logit for every word of the class."""
        f = torch.tanh(self.omega)
        if self.symmetric:
            phi = torch.tanh(_two_valued(f, self.psi, self.n))
            same, other = _two_valued(phi, self.rho[:, :, None], self.n)[:, 0].unbind()
            own = torch.cat([same[None], other.expand(self.n - 1)])
        else:
            # f(h) = ω(h⁻¹∘x), and h⁻¹ takes the first word x to the place −h
            phi = torch.tanh(cyclic_sum(f, self.psi, sign=-1))
            own = cyclic_sum(phi, self.rho[:, :, None], sign=1)[:, 0]
        return self.count @ phi, own

    def fixed(self, embedded: Float[Tensor, "x k"]) -> Float[Tensor, "x d"]:
        """Σ_h φ(h) of words that the group does not move: their features are the same
        everywhere.
        """
        return torch.tanh(embedded @ torch.tensordot(self.count, self.psi, 1)) * self.n

    def mean_rho(self) -> Float[Tensor, " d"]:
        """ρ of any word of the class as seen by words that this factor does not move."""
        return self.count @ self.rho / self.n


def cyclic_sum(
    f: Float[Tensor, "n k"], psi: Float[Tensor, "n k d"], *, sign: Literal[1, -1]
) -> Float[Tensor, "n d"]:
    """``out(g) = Σ_j f(±g − j) ψ(j)`` on the cyclic group of n elements (eqs. 1 and 3).

    In a large group the sum is a product of Fourier transforms: n log n, not n².
    """
    n = len(f)
    if n <= DIRECT:
        return f[_differences(n, sign, f.device)].flatten(1) @ psi.flatten(0, 1)
    product = torch.einsum("wk,wkd->wd", torch.fft.rfft(f, dim=0), torch.fft.rfft(psi, dim=0))
    return torch.fft.irfft(product if sign == 1 else product.conj(), n=n, dim=0)


@cache
def _differences(n: int, sign: int, device: torch.device) -> Int[Tensor, "n n"]:
    """``±g − j``, made so that it serves for training whoever asks first."""
    with torch.inference_mode(False):
        g = torch.arange(n, device=device)
        return (sign * g[:, None] - g) % n


def _two_valued(
    f: Float[Tensor, "2 k"], psi: Float[Tensor, "2 k d"], n: int
) -> Float[Tensor, "2 d"]:
    """The same sum over n points for the symmetric group: what f and ψ are at *same* and *other* is
    all there is to know.
    """
    (same, other), (here, there) = f.unbind(), psi.unbind()
    at_same = same @ here + (n - 1) * (other @ there)
    at_other = other @ here + same @ there + (n - 2) * (other @ there)
    return torch.stack([at_same, at_other])


class Translator(nn.Module):
    """log p(y | x) for single words: G-Embed, tanh, G-Conv, tanh, G-Decode, softmax (§4.2).

    A word is moved by its own class's factor of the group only, so features live on the factors
    side by side and the product group is never listed: a word of class c has features on factor c,
    a word of no class the same features everywhere on all. Towards words of another class it sees
    the mean of their ρ. With one class this is the paper's translator, parameter for parameter.

    All rows of a class are one row moved, so the table below has one row per class and per word of
    no class, their *kinds*, and is made once per batch.
    """

    kind: Int[Tensor, " x"]
    source_class: Int[Tensor, " x"]
    source_place: Int[Tensor, " x"]
    target_class: Int[Tensor, " y"]
    target_place: Int[Tensor, " y"]
    filter: Int[Tensor, " y"]
    never: Float[Tensor, " y"]
    every_target: Int[Tensor, " y"]
    member: Int[Tensor, " p"]
    member_class: Int[Tensor, " p"]
    start: Int[Tensor, " c"]
    size: Int[Tensor, " c"]

    def __init__(self, symmetry: Symmetry, *, k: int, d: int) -> None:
        super().__init__()
        # without classes EOS is made one of its own: a class of one word moves nothing
        sources, targets = (side or [(EOS,)] for side in symmetry.members)
        n = len(sources)
        self.factors = nn.ModuleList(
            Factor(len(words), kind=symmetry.kind, k=k, d=d) for words in sources
        )
        self.symmetric = symmetry.kind == "symmetric"
        kinds, source_class, source_place = class_numbers(len(symmetry.source), sources, none=-1)
        filters, target_class, target_place = class_numbers(len(symmetry.target), targets, none=-2)
        self.omega = nn.Parameter(torch.empty(max(kinds) + 1 - n, k).uniform_(-0.5, 0.5))
        self.rho = nn.Parameter(torch.empty(max(filters) + 1 - n, d).uniform_(-0.5, 0.5))
        for name, numbers in (
            ("kind", kinds),
            ("source_class", source_class),
            ("source_place", source_place),
            ("target_class", target_class),
            ("target_place", target_place),
            ("filter", filters),
            ("every_target", list(range(len(symmetry.target)))),
            ("member", [word for words in targets for word in words]),
            ("member_class", [c for c, words in enumerate(targets) for _ in words]),
            ("start", [sum(map(len, targets[:c])) for c in range(n)]),
            ("size", [len(words) for words in targets]),
        ):
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.long), persistent=False)
        never = torch.zeros(len(symmetry.target))
        never[:EOS] = -math.inf
        self.register_buffer("never", never, persistent=False)

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b y"]:
        """Log p(y | x) of each source word x for all target words; PAD and BOS are never
        emitted.
        """
        table, at = self._table(words)
        return table[at].gather(-1, self._column(words[..., None], self.every_target))

    def pairs(
        self, source: Int[Tensor, "b n"], target: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n), each one entry of the table."""
        table, at = self._table(source)
        column = self._column(source[:, None], target[:, :, None])
        return entries(table, at[:, None], column)

    def _table(
        self, words: Int[Tensor, "*b"]
    ) -> tuple[Float[Tensor, "kinds y"], Int[Tensor, "*b"]]:
        """A row for every class and for words of no class, and the row of each of some words."""
        factors = cast(list[Factor], list(self.factors))
        omega, at = self._others(words)
        embedded = torch.tanh(omega)
        pooled, own = zip(*(factor() for factor in factors), strict=True)
        fixed = torch.stack([factor.fixed(embedded) for factor in factors]).sum(0)
        means = torch.stack([factor.mean_rho() for factor in factors])
        filters = torch.cat([means, self.rho])[self.filter]
        logits = torch.cat([torch.stack(pooled), fixed]) @ filters.T + self.never
        logits = logits.index_put((self.member_class, self.member), torch.cat(own))
        return torch.log_softmax(logits, dim=1), at

    def _others(self, words: Int[Tensor, "*b"]) -> tuple[Float[Tensor, "r k"], Int[Tensor, "*b"]]:
        """ω of words of no class: of all if they are few, else of those among the words."""
        if self.is_small:
            return self.omega, self.kind[words]
        n = len(self.factors)
        every_class = torch.arange(n, device=words.device)
        every_kind = torch.cat([every_class, self.kind[words].flatten()])
        kinds, at = torch.unique(every_kind, return_inverse=True)
        return self.omega[kinds[n:] - n], at[n:].view(words.shape)

    @property
    def is_small(self) -> bool:
        """Whether the same rows of the table are made for every batch."""
        return len(self.omega) <= FEW

    def _column(self, x: Int[Tensor, "*#b"], y: Int[Tensor, "*#b"]) -> Int[Tensor, "*b"]:
        """Where in its kind's row the entry of x for y stands: at g⁻¹∘y, if g moved the first word
        of the class to x.
        """
        # words of no class have −1 here and −2 there, so that they are never of one class; what is
        # looked up for them as if they were is not taken
        c = self.source_class[x]
        moved = (self.target_place[y] - self.source_place[x]) % self.size[c]
        if self.symmetric:
            moved = moved.clamp(max=1)  # same or other
        return torch.where(c == self.target_class[y], self.member[self.start[c] + moved], y)


def entries(
    table: Float[Tensor, "r y"], row: Int[Tensor, "b 1 n"], column: Int[Tensor, "b m _"]
) -> Float[Tensor, "b m n"]:
    """``table[row, column]``."""
    entry = row * table.shape[1] + column
    return table.flatten().gather(0, entry.flatten()).view(entry.shape)


def class_numbers(
    size: int, classes: list[tuple[int, ...]], *, none: int
) -> tuple[list[int], list[int], list[int]]:
    """For every word: its kind (classes first, then words of no class), its class or none, its
    place in it.

    PAD is of no kind of its own; where padding is looked up it reads that of EOS.
    """
    kind, home, place = [0] * size, [none] * size, [0] * size
    for c, words in enumerate(classes):
        for i, word in enumerate(words):
            kind[word], home[word], place[word] = c, c, i
    others = [word for word in range(size) if home[word] < 0 and word != PAD]
    for i, word in enumerate(others, start=len(classes)):
        kind[word] = i
    kind[PAD] = kind[EOS]
    return kind, home, place
