"""The equivariant translator (§4.2): from a source word to a distribution over target words."""

import math
from abc import ABC, abstractmethod
from itertools import product
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.paper.groups import Action
from equitrans.paper.layers import Stack, uniform
from equitrans.paper.symmetry import Symmetry
from equitrans.paper.vocabulary import EOS, PAD

SMALL = 256
"""Largest number of words of no class with which every batch computes all rows of the table."""


class WordTranslator(nn.Module, ABC):
    """Log p(y | x) of single words: the interface of the paper's translator and of others."""

    actions: tuple[Action, Action]
    """How the group moves source words and target words."""
    is_small: bool = False
    """Whether the same operations run for every batch of one shape."""

    @abstractmethod
    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b y"]:
        """Log p(y | x) of each source word x for all target words; PAD and BOS have −inf."""

    @abstractmethod
    def pairs(
        self, source: Int[Tensor, "b n"], target: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n) of each row."""


class Translator(WordTranslator):
    """Log p(y | x) of single words: G-Embed, tanh, G-Conv, tanh, G-Decode, softmax (§4.2).

    A word is moved by the factor of its own class only, so there is one stack of layers per class
    and the product group is never listed. A word of no class has equal features at all places. A
    source word outside a class sees the mean of the class's ρ. With one class of one column a side
    this is the paper's translator, parameter for parameter.

    The rows of a column are permutations of one row, so the table has one row per *kind*, that is,
    per source column and per word of no class. It is computed once per batch.
    """

    source: Int[Tensor, "4 x"]  # for every source word: its kind, its class, its row in the class
    target: Int[Tensor, "4 y"]  # the same with the row of its ρ, and where its column starts
    columns: Int[Tensor, " p"]  # the words of all target columns
    classes: Int[Tensor, "2 c"]  # for every class: number of rows, and largest orbit of two rows
    member: Int[Tensor, "2 q"]  # the target words of a class, for each of its source columns
    never: Float[Tensor, " y"]  # −inf at PAD and BOS

    def __init__(self, symmetry: Symmetry, *, k: int, d: int, scaled: bool = True) -> None:
        super().__init__()
        self.actions = symmetry.source_action, symmetry.target_action
        # without classes, EOS is a class of one word: the trivial group moves nothing
        (sources, targets), (home, there) = symmetry.members, symmetry.owners
        if not symmetry.classes:
            sources, targets, home, there = [(EOS,)], [(EOS,)], [0], [0]
        kinds = symmetry.kinds or (symmetry.kind,)
        factors = [
            Stack(n, kind=kinds[c], k=k, d=d, columns=(home.count(c), there.count(c)))
            for c, n in {c: len(words) for c, words in zip(home, sources, strict=True)}.items()
        ]
        for factor in factors:
            factor.scale = min(1.0, 4 / factor.n) if scaled else 1.0
        self.factors = nn.ModuleList(factors)
        pairs = product(enumerate(home), zip(there, targets, strict=True))
        own = [(w, s) for (s, c), (b, words) in pairs if b == c for w in words]
        for name, numbers in {
            "source": class_numbers(len(symmetry.source), sources, home, none=-1),
            "target": class_numbers(len(symmetry.target), targets, there, none=-2),
            "columns": [word for words in targets for word in words],
            "classes": [[f.n for f in factors], [len(f.count) - 1 for f in factors]],
            "member": [*zip(*own, strict=True)],
        }.items():
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.long), persistent=False)
        self.omega = uniform(int(self.source[0].max()) + 1 - len(sources), k)
        self.rho = uniform(int(self.target[0].max()) + 1 - len(targets), d)
        self.is_small = len(self.omega) <= SMALL
        never = torch.zeros(len(symmetry.target))
        never[:EOS] = -math.inf
        self.register_buffer("never", never, persistent=False)

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b y"]:
        table, at = self._table(words)
        return table[at].gather(
            -1, self._column(words[..., None], torch.arange(len(self.never), device=words.device))
        )

    def pairs(
        self, source: Int[Tensor, "b n"], target: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m n"]:
        table, at = self._table(source)
        column = self._column(source[:, None], target[:, :, None])
        return entries(table, at[:, None], column)

    def _table(
        self, words: Int[Tensor, "*b"]
    ) -> tuple[Float[Tensor, "kinds y"], Int[Tensor, "*b"]]:
        """The table of log p with one row per kind, and the row number of each given word."""
        factors = cast(list[Stack], list(self.factors))
        omega, at = self._others(words)
        embedded = torch.tanh(omega)
        pooled, own = zip(*(factor() for factor in factors), strict=True)
        fixed = torch.stack([factor.fixed(embedded) for factor in factors]).sum(0)
        means = torch.cat([factor.mean_rho() for factor in factors])
        filters = torch.cat([means, self.rho])[self.target[0]]
        logits = torch.cat([*pooled, fixed]) @ filters.T + self.never
        logits = logits.index_put((self.member[1], self.member[0]), torch.cat(own))
        return torch.log_softmax(logits, dim=1), at

    def _others(self, words: Int[Tensor, "*b"]) -> tuple[Float[Tensor, "r k"], Int[Tensor, "*b"]]:
        """ω of all words of no class if they are few, otherwise of the given ones; row numbers."""
        if self.is_small:
            return self.omega, self.source[0][words]
        n = sum(factor.columns[0] for factor in cast(list[Stack], list(self.factors)))
        every_class = torch.arange(n, device=words.device)
        every_kind = torch.cat([every_class, self.source[0][words].flatten()])
        kinds, at = torch.unique(every_kind, return_inverse=True)
        return self.omega[kinds[n:] - n], at[n:].view(words.shape)

    def _column(self, x: Int[Tensor, "*#b"], y: Int[Tensor, "*#b"]) -> Int[Tensor, "*b"]:
        """The column of (x, y) in the row of x: g⁻¹∘y if g moves the class's first word to x."""
        # words of no class have class −1 in the source and −2 in the target, which never match
        _, c, x_row, _ = self.source[:, x]
        _, y_class, y_row, start = self.target[:, y]
        size, largest = self.classes[:, c]
        moved = torch.minimum((y_row - x_row) % size, largest)  # the symmetric group: same or other
        own = c == y_class
        return torch.where(own, self.columns[torch.where(own, start + moved, 0)], y)


def entries(
    table: Float[Tensor, "r y"], row: Int[Tensor, "b 1 n"], column: Int[Tensor, "b m _"]
) -> Float[Tensor, "b m n"]:
    """``table[row, column]``."""
    entry = row * table.shape[1] + column
    return table.flatten().gather(0, entry.flatten()).view(entry.shape)


def class_numbers(
    size: int, columns: list[tuple[int, ...]], owners: list[int], *, none: int
) -> list[list[int]]:
    """For every word: its kind (columns first, then words of no class), its class or ``none``, its
    row in the class, and the number of words in earlier columns. PAD has the kind of EOS.
    """
    kind, home, row, start = [0] * size, [none] * size, [0] * size, [0] * size
    for k, (c, words) in enumerate(zip(owners, columns, strict=True)):
        before = sum(map(len, columns[:k]))
        for i, word in enumerate(words):
            kind[word], home[word], row[word], start[word] = k, c, i, before
    others = [word for word in range(size) if home[word] < 0 and word != PAD]
    for i, word in enumerate(others, start=len(columns)):
        kind[word] = i
    kind[PAD] = kind[EOS]
    return [kind, home, row, start]
