"""Finite groups of permutations and their actions on words (§3.1).

A permutation of n points is the tuple of their images, ``p[i] = p∘i``. A group stores generators
only: the symmetric group on a thousand points takes two. Elements are listed on demand.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import factorial

from equitrans.errors import SymmetryError

Permutation = tuple[int, ...]

LARGEST = 100_000
"""Groups with more elements cannot be listed; their generators can be used."""


def identity(n: int) -> Permutation:
    """``()``: every point stays where it is."""
    return tuple(range(n))


def compose(p: Permutation, q: Permutation) -> Permutation:
    """``p∘q``: first q, then p."""
    return tuple(p[i] for i in q)


def cycles(p: Permutation) -> str:
    """Cycle notation, points counted from one as in the paper.

    >>> cycles((2, 3, 0, 1)), cycles((0, 1))
    ('(13)(24)', '()')
    """
    gap = " " if len(p) > 9 else ""
    out = ""
    seen: set[int] = set()
    for start in range(len(p)):
        cycle: list[str] = []
        i = start
        while i not in seen:
            seen.add(i)
            cycle.append(str(i + 1))
            i = p[i]
        out += f"({gap.join(cycle)})" if len(cycle) > 1 else ""
    return out or "()"


@dataclass(frozen=True)
class Group:
    """The group of permutations of ``degree`` points that the generators generate; ``order`` is its
    size. The trivial group has the identity as its generator.

    >>> Group.cyclic(4)
    ⟨(1234)⟩
    >>> [cycles(g) for g in Group.cyclic(4).elements]
    ['()', '(1234)', '(13)(24)', '(1432)']
    >>> Group.cyclic(4) * Group.cyclic(2)
    ⟨(1234), (56)⟩
    >>> (Group.cyclic(4) * Group.cyclic(2)).order, Group.symmetric(20).order
    (8, 2432902008176640000)
    """

    degree: int
    generators: tuple[Permutation, ...]
    order: int

    def __repr__(self) -> str:
        return "⟨" + ", ".join(map(cycles, self.generators)) + "⟩"

    @classmethod
    def trivial(cls, n: int = 1) -> "Group":
        """The identity alone, on n points."""
        return cls(n, (identity(n),), 1)

    @classmethod
    def cyclic(cls, n: int) -> "Group":
        """The cyclic shift group ``⟨(12…n)⟩``."""
        return cls(n, ((*range(1, n), 0),), n) if n > 1 else cls.trivial(n)

    @classmethod
    def symmetric(cls, n: int) -> "Group":
        """All n! permutations, from a swap and a shift."""
        if n < 3:
            return cls.cyclic(n)
        return cls(n, ((1, 0, *range(2, n)), (*range(1, n), 0)), factorial(n))

    @cached_property
    def elements(self) -> tuple[Permutation, ...]:
        """All elements, the identity first."""
        if self.order > LARGEST:
            raise SymmetryError(f"{self!r} has {self.order} elements; use its generators instead")
        found = dict.fromkeys([identity(self.degree)])
        border = list(found)
        while border:
            images = (compose(g, p) for p in border for g in self.generators)
            border = [p for p in dict.fromkeys(images) if p not in found]
            found.update(dict.fromkeys(border))
        return tuple(found)

    def __iter__(self) -> Iterator[Permutation]:
        return iter(self.elements)

    def __mul__(self, other: "Group") -> "Group":
        """The direct product, its points side by side."""
        left, right = identity(self.degree), identity(other.degree)
        generators = (
            *(g + tuple(self.degree + i for i in right) for g in self.generators),
            *(left + tuple(self.degree + i for i in h) for h in other.generators),
        )
        return Group(self.degree + other.degree, generators, self.order * other.order)


@dataclass(frozen=True)
class Action:
    """A group acting on ``size`` words: point i of the group is the word ``places[i]``; all other
    words are fixed.
    """

    group: Group
    places: tuple[int, ...]
    size: int

    @cached_property
    def point(self) -> dict[int, int]:
        """The point of each word that the group moves."""
        return {word: i for i, word in enumerate(self.places)}

    def __call__(self, g: Permutation, sentence: Iterable[int]) -> tuple[int, ...]:
        """``g∘x``, word by word."""
        at = self.point
        return tuple(self.places[g[at[word]]] if word in at else word for word in sentence)
