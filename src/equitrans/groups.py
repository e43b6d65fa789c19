"""Finite groups of permutations (§3.1). Knows nothing of words, and no tensors.

A permutation of n points is the tuple of their images, ``p[i] = p∘i``. A group is kept as
generators, so that the symmetric group of a thousand points costs two permutations; its elements
are listed only when somebody asks, and only when they can be.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial

from equitrans.errors import SymmetryError

Permutation = tuple[int, ...]

LARGEST = 100_000
"""Groups of more elements than this are not listed; work with their generators."""


def identity(n: int) -> Permutation:
    """``()``: every point stays where it is."""
    return tuple(range(n))


def compose(p: Permutation, q: Permutation) -> Permutation:
    """``p∘q``: first q, then p.

    >>> compose((1, 0, 2), (1, 2, 0))
    (0, 2, 1)
    """
    return tuple(p[i] for i in q)


def inverse(p: Permutation) -> Permutation:
    """``p⁻¹``.

    >>> inverse((1, 2, 0))
    (2, 0, 1)
    """
    out = [0] * len(p)
    for i, image in enumerate(p):
        out[image] = i
    return tuple(out)


def cycles(p: Permutation) -> str:
    """Cycle notation, points counted from one as in the paper.

    >>> cycles((2, 3, 0, 1)), cycles((0, 1))
    ('(13)(24)', '()')
    """
    gap = " " if len(p) > 9 else ""
    seen: set[int] = set()
    out = ""
    for start in range(len(p)):
        cycle: list[int] = []
        i = start
        while i not in seen:
            seen.add(i)
            cycle.append(i)
            i = p[i]
        if len(cycle) > 1:
            out += "(" + gap.join(str(i + 1) for i in cycle) + ")"
    return out or "()"


@dataclass(frozen=True)
class Group:
    """The permutations of ``degree`` points that the generators make; there are ``order`` of them.

    There is always a generator: the trivial group's is the identity.

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

    @classmethod
    def of(cls, elements: Iterable[Permutation]) -> "Group":
        """A group given by all of its elements, checked to be one.

        >>> Group.of([(0, 1, 2), (1, 2, 0)])
        Traceback (most recent call last):
        equitrans.errors.SymmetryError: not closed: (123)∘(123) = (132) is missing
        """
        given = list(dict.fromkeys(tuple(p) for p in elements))
        if not given:
            raise SymmetryError("a group has at least one element, the identity")
        degree = len(given[0])
        for p in given:
            if sorted(p) != list(range(degree)):
                raise SymmetryError(f"{p} is not a permutation of the points 0 to {degree - 1}")
        known = set(given)
        for p in given:
            for q in given:
                if (product := compose(p, q)) not in known:
                    message = f"{cycles(p)}∘{cycles(q)} = {cycles(product)}"
                    raise SymmetryError(f"not closed: {message} is missing")
        # a finite closed set of permutations has the identity and all inverses
        return cls(degree, tuple(given), len(given))

    @cached_property
    def elements(self) -> tuple[Permutation, ...]:
        """All elements, the identity first."""
        if self.order > LARGEST:
            raise SymmetryError(f"{self!r} has {self.order} elements; use its generators")
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

    def regular(self) -> tuple[Permutation, ...]:
        """How each generator moves the elements themselves, by multiplication from the left."""
        index = {p: i for i, p in enumerate(self.elements)}
        return tuple(tuple(index[compose(g, p)] for p in self.elements) for g in self.generators)


@dataclass(frozen=True)
class Action:
    """A group acting on ``size`` words: point i of the group is the word ``places[i]``.

    Words that stand at no place are fixed.

    >>> verbs = Action(Group.cyclic(3), places=(5, 3, 4), size=7)
    >>> verbs((1, 2, 0), [5, 6, 4])
    (3, 6, 5)
    """

    group: Group
    places: tuple[int, ...]
    size: int

    @cached_property
    def point(self) -> dict[int, int]:
        """The point at which a moved word stands."""
        return {word: i for i, word in enumerate(self.places)}

    def __call__(self, g: Permutation, sentence: Iterable[int]) -> tuple[int, ...]:
        """``g∘x``, word by word."""
        at = self.point
        return tuple(self.places[g[at[word]]] if word in at else word for word in sentence)

    def image(self, g: Permutation) -> Permutation:
        """G as a permutation of all the words."""
        return self(g, range(self.size))

    @property
    def generators(self) -> tuple[Permutation, ...]:
        """The generators as permutations of all the words."""
        return tuple(self.image(g) for g in self.group.generators)


def orbits(left: Sequence[Permutation], right: Sequence[Permutation]) -> list[list[int]]:
    """The orbit of each pair of points (i, j) when generators move both: row i, column j.

    Two pairs have the same number just if some group element takes one to the other. For a group
    on itself and on a vocabulary this is ``g⁻¹∘x``, since (g, x) and (e, g⁻¹∘x) share an orbit.
    Orbits are numbered in order of first appearance.

    >>> orbits([(1, 2, 0)], [(1, 2, 0)])
    [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    """
    n, m = len(left[0]), len(right[0])
    table = [[-1] * m for _ in range(n)]
    count = 0
    for start in range(n * m):
        i, j = divmod(start, m)
        if table[i][j] >= 0:
            continue
        table[i][j] = count
        border = [(i, j)]
        while border:
            i, j = border.pop()
            for g, h in zip(left, right, strict=True):
                if table[g[i]][h[j]] < 0:
                    table[g[i]][h[j]] = count
                    border.append((g[i], h[j]))
        count += 1
    return table
