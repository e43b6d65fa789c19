"""Tilings: right sides under which the parts of a left side yield a target.

A part is a word of a class (it yields its position), a hole with known yields, or a hole with an
unknown yield. The target determines an unknown yield, which is the same at every use of the hole.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from equitrans.models.recursive.chart import Pieces, Target, meet
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Span, constant_word
from equitrans.models.recursive.uses import CHAINS, Operation, Use, count_primitives

Goal = tuple[int, int, Target]
"""A span, given by start and end, and the target it must yield."""

MAX_TILINGS, MAX_TRIES = 16, 200
"""Largest number of right sides for one left side, and of recursive calls to find them."""


class Tiling(NamedTuple):
    """A right side, and the goals of its holes with unknown yields."""

    right: tuple[int, ...]
    goals: tuple[Goal, ...]


def tile(
    left: Sequence[int],
    spans: Sequence[Span],
    target: Target,
    yields: Mapping[Span, Mapping[str, object]],
    *,
    right: tuple[int, ...] | None = None,
    longest: int,
    primitives: int = 0,
    pieces: Pieces | None = None,
) -> tuple[list[Tiling], int]:
    """The tilings of a target with right sides of up to ``longest`` symbols and ``primitives``
    primitives, and the number of tries. If ``right`` is given, only that right side is tried.
    ``pieces`` are those of the target.
    """
    pieces = pieces or Pieces(target)
    tiler = _Tiler(left, spans, pieces, yields, right, longest, primitives)
    return tiler.run(), MAX_TRIES - tiler.tries


class _Tiler:
    def __init__(
        self,
        left: Sequence[int],
        spans: Sequence[Span],
        pieces: Pieces,
        yields: Mapping[Span, Mapping[str, object]],
        right: tuple[int, ...] | None,
        longest: int,
        primitives: int,
    ) -> None:
        self.left, self.spans, self.yields = left, spans, yields
        self.right, self.longest, self.primitives = right, longest, primitives
        self.pieces, self.target = pieces, pieces.target
        self.anchored = any(s != HOLE for s in left)
        self.found: list[Tiling] = []
        self.tries = MAX_TRIES

    def run(self) -> list[Tiling]:
        self._go(0, (), {})
        return self.found

    def _go(self, p: int, right: tuple[int, ...], bound: dict[int, str | Target]) -> None:
        self.tries -= 1
        if self.tries < 0 or len(self.found) >= MAX_TILINGS:
            return
        if p == len(self.target) and (self.right is None or len(right) == len(self.right)):
            goals = tuple(
                (*self.spans[k], b) for k, b in sorted(bound.items()) if isinstance(b, tuple)
            )
            tiling = Tiling(right, goals)
            if tiling not in self.found:
                self.found.append(tiling)
            return
        if len(right) >= self.longest:
            return
        atoms = self.target[p] if p < len(self.target) else ""
        if self.right is None:
            for k in self._owners(atoms):
                self._place(k, p, right, bound)
            if self.anchored:
                for atom in atoms:
                    if (word := constant_word(atom)) is not None:
                        self._go(p + 1, (*right, ~word), bound)
        else:
            k = self.right[len(right)]
            if k >= 0:
                self._place(k, p, right, bound)
            elif any(constant_word(atom) == ~k for atom in atoms):
                self._go(p + 1, (*right, k), bound)

    def _owners(self, atoms: str) -> Sequence[int]:
        """The parts whose yield may begin with one of the atoms."""
        if len(atoms) == 1 and (place := ord(atoms)) < CONSTANTS:
            return [k for k, (i, j) in enumerate(self.spans) if i <= place < j]
        return range(len(self.left))

    def _place(
        self, number: int, p: int, right: tuple[int, ...], bound: dict[int, str | Target]
    ) -> None:
        """Continue with a part, or a use of it, at place ``p`` of the target."""
        k = number & 0xFFF
        span = self.spans[k]
        if self.left[k] != HOLE:
            if p < len(self.target) and chr(span[0]) in self.target[p]:
                self._go(p + 1, (*right, k), bound)
            return
        known = (bound[k],) if k in bound else self.yields.get(span)
        if number == k and not self.primitives:
            self._whole(k, known, p, right, bound)
            return
        for use in self._uses(k, right) if self.right is None else (Use.of(number),):
            after = (*right, use.number)
            for piece in known or ():
                if isinstance(piece, str):
                    words = use.take(piece)
                    if (words or use.operation) and self.pieces.at(words, p):
                        self._go(p + len(words), after, {**bound, k: piece})
                elif common := _narrowed(piece, use, self.target, p):
                    self._go(p + len(use.take(piece)), after, {**bound, k: common})
            if known is None and use.operation in (Operation.WHOLE, Operation.REVERSE):
                run, certain = _run(self.target, p, span)
                for size in _sizes(run, certain):
                    self._go(p + size, after, {**bound, k: use.take(run[:size])})

    def _whole(
        self,
        k: int,
        known: Iterable[str | Target] | None,
        p: int,
        right: tuple[int, ...],
        bound: dict[int, str | Target],
    ) -> None:
        """Continue with the whole yield of part ``k``, which is by far the most frequent use."""
        after = (*right, k)
        if known is None:
            run, certain = _run(self.target, p, self.spans[k])
            for size in _sizes(run, certain):
                self._go(p + size, after, {**bound, k: run[:size]})
            return
        for piece in known:
            if isinstance(piece, str):
                if piece and self.pieces.at(piece, p):
                    self._go(p + len(piece), after, {**bound, k: piece})
            elif common := meet(piece, self.target[p : p + len(piece)]):
                self._go(p + len(piece), after, {**bound, k: common})

    def _uses(self, k: int, right: tuple[int, ...]) -> Sequence[Use]:
        """The possible uses of part ``k`` after some others."""
        spare = self.primitives and self.primitives - count_primitives(right)
        chains = [Use(k, *chain) for chain in CHAINS] if spare > 0 else []
        return [Use(k), *[use for use in chains if len(use.primitives) <= spare]]


def _narrowed(piece: Target, use: Use, target: Target, p: int) -> Target | None:
    """The yields among those of ``piece`` whose use may stand at a place of the target."""
    found = list(piece)
    places = use.take(range(len(piece)))
    for i, atoms in zip(places, target[p : p + len(places)], strict=False):
        found[i] = "".join(a for a in found[i] if a in atoms)
    return tuple(found) if p + len(places) <= len(target) and all(found) else None


def _run(target: Target, start: int, span: Span) -> tuple[Target, int]:
    """The longest piece of a target from ``start`` that a span may yield, restricted to atoms that
    may come from the span; and how many of its first words can come from nothing else.
    """
    i, j = span
    out: list[str] = []
    certain: int | None = None
    for atoms in target[start:]:
        if certain is None and (len(atoms) > 1 or ord(atoms) >= CONSTANTS):
            certain = len(out)
        if len(atoms) == 1:
            if not (i <= ord(atoms) < j or ord(atoms) >= CONSTANTS):
                break
            out.append(atoms)
        elif own := "".join(a for a in atoms if i <= ord(a) < j or ord(a) >= CONSTANTS):
            out.append(own)
        else:
            break
    return tuple(out), len(out) if certain is None else certain


def _sizes(run: Target, certain: int) -> Sequence[int]:
    """The possible lengths of the yield of a hole at the start of a run, longest first.

    The first ``certain`` words come from the hole alone, so they consist of copies of one piece,
    the last of which may be longer than they are.

    >>> _sizes(("a", "b", "a", "b"), 4), _sizes(("a", "b", "a", "b"), 3)
    ([4, 2], [4, 3, 2])
    """
    n = len(run)
    return [
        size
        for size in range(n, 0, -1)
        if run[size:certain] == run[: max(0, certain - size)] and (certain < n or n % size == 0)
    ]
