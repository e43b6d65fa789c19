"""Tilings: right sides under which the parts of a left side yield a target.

A part is a word of a class (it yields its position), a hole with known yields, or a hole with an
unknown yield. The target determines an unknown yield, which is the same at every use of the hole.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from equitrans.models.recursive.chart import Pieces, Target, meet
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Span, constant_word
from equitrans.models.recursive.uses import CHAINS, Operation, Use, count_primitives

Goal = tuple[int, int, Target]
"""A span, given by start and end, and the target it must yield."""

MAX_TILINGS, MAX_TRIES = 16, 200
"""Largest number of right sides for one left side, and of recursive calls to find them."""

ROUNDING = 1e-9
"""Largest error of a sum of bits."""


class Tiling(NamedTuple):
    """A right side, and the goals of its holes with unknown yields."""

    right: tuple[int, ...]
    goals: tuple[Goal, ...]


class Reach:
    """Where the yields of spans may stand in a target; every span is looked up once.

    A target word that can come from one position alone comes from the yield of the hole over it. So
    the yield of a hole has all words of the target that come from its span.
    """

    def __init__(self, target: Target, yields: Mapping[Span, Mapping[str, object]]) -> None:
        self.pieces, self.target, self.yields = Pieces(target), target, yields
        self._certain = {atoms for atoms in target if len(atoms) == 1 and ord(atoms) < CONSTANTS}
        self._fitting: dict[Span, list[list[str]] | None] = {}
        self._unknown: dict[tuple[int, Span], list[Target]] = {}

    def fitting(self, span: Span) -> list[list[str]] | None:
        """For each place of the target, the known yields of a span that may stand there; None if no
        yield of the span is known.
        """
        if span not in self._fitting:
            known = self.yields.get(span)
            self._fitting[span] = None if known is None else self._places(known, self._own(span))
        return self._fitting[span]

    def _places(self, known: Iterable[str], own: set[str]) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in range(len(self.target) + 1)]
        for piece in known:
            if piece and own.issubset(piece):
                for start in self.pieces.starts(piece):
                    found[start].append(piece)
        return found

    def unknown(self, start: int, span: Span) -> list[Target]:
        """The yields that a span without known yields may have at a place, longest first."""
        known = self._unknown.get((start, span))
        if known is None:
            run, certain = _run(self.target, start, span)
            least = max([1 + _first(run, a) for a in self._own(span)], default=1)
            known = [run[:size] for size in _sizes(run, certain) if size >= least]
            self._unknown[start, span] = known
        return known

    def _own(self, span: Span) -> set[str]:
        """The positions of a span that the target must take from it."""
        return {a for a in self._certain if span[0] <= ord(a) < span[1]}


class Budget(NamedTuple):
    """Bits that a right side may take, and those of a place and of a constant."""

    room: float
    place: float = 1.0
    constant: float = 1.0


def tile(
    left: Sequence[int],
    spans: Sequence[Span],
    target: Target,
    yields: Mapping[Span, Mapping[str, object]],
    *,
    right: tuple[int, ...] | None = None,
    longest: int,
    primitives: int = 0,
    budget: Budget | None = None,
    reach: Reach | None = None,
) -> tuple[list[Tiling], int]:
    """The tilings of a target with right sides of up to ``longest`` symbols, up to ``primitives``
    primitives and within the ``budget``, and the number of tries. If ``right`` is given, only that
    right side is tried. ``reach`` is that of the target and the yields.
    """
    reach = reach or Reach(target, yields)
    tiler = _Tiler(left, spans, reach, right, longest, primitives, budget or Budget(longest))
    return tiler.run(), MAX_TRIES - tiler.tries


class _Tiler:
    def __init__(
        self,
        left: Sequence[int],
        spans: Sequence[Span],
        reach: Reach,
        right: tuple[int, ...] | None,
        longest: int,
        primitives: int,
        budget: Budget,
    ) -> None:
        self.left, self.spans, self.reach = left, spans, reach
        self.right, self.longest, self.primitives = right, longest, primitives
        self.pieces, self.target = reach.pieces, reach.target
        self.anchored = any(s != HOLE for s in left)
        self.found: list[Tiling] = []
        self.tries = MAX_TRIES
        # a given right side and primitives are bounded by their numbers alone
        self.counted = right is not None or primitives > 0
        self.place, self.constant = (0.0, 0.0) if self.counted else budget[1:]
        self.room = budget.room + ROUNDING
        self.need = [0.0] * (len(self.target) + 1)

    def run(self) -> list[Tiling]:
        if not self.counted:
            self._fill()
        self._go(0, (), {}, 0.0)
        return self.found

    def _fill(self) -> None:
        """Find for each place of the target the fewest bits of signs that may yield the rest, if
        a hole may yield something else at each of its uses.
        """
        target, need = self.target, self.need
        words: dict[str, float] = {}
        known: list[list[list[str]]] = []
        unknown: list[Span] = []
        for symbol, span in zip(self.left, self.spans, strict=True):
            if symbol != HOLE:
                words[chr(span[0])] = self.place
            elif (fitting := self.reach.fitting(span)) is None:
                unknown.append(span)
            else:
                known.append(fitting)
        for p in range(len(target) - 1, -1, -1):
            rest = min([self._sign(atom, words) for atom in target[p]]) + need[p + 1]
            ends = [need[p + len(piece)] for fitting in known for piece in fitting[p]]
            for span in unknown:
                ends += [need[p + len(piece)] for piece in self.reach.unknown(p, span)]
            need[p] = min([rest, *[end + self.place for end in ends]])

    def _sign(self, atom: str, words: Mapping[str, float]) -> float:
        """Bits of the sign of a word or of a constant; infinite if the left side has none."""
        if ord(atom) >= CONSTANTS:
            return self.constant if self.anchored else math.inf
        return words.get(atom, math.inf)

    def _go(
        self, p: int, right: tuple[int, ...], bound: dict[int, str | Target], bits: float
    ) -> None:
        if bits + self.need[p] > self.room:
            return
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
                self._place(k, p, right, bound, bits)
            if self.anchored:
                for atom in atoms:
                    if (word := constant_word(atom)) is not None:
                        self._go(p + 1, (*right, ~word), bound, bits + self.constant)
        else:
            k = self.right[len(right)]
            if k >= 0:
                self._place(k, p, right, bound, bits)
            elif any(constant_word(atom) == ~k for atom in atoms):
                self._go(p + 1, (*right, k), bound, bits)

    def _owners(self, atoms: str) -> Sequence[int]:
        """The parts whose yield may begin with one of the atoms."""
        if len(atoms) == 1 and (place := ord(atoms)) < CONSTANTS:
            return [k for k, (i, j) in enumerate(self.spans) if i <= place < j]
        return range(len(self.left))

    def _place(
        self,
        number: int,
        p: int,
        right: tuple[int, ...],
        bound: dict[int, str | Target],
        bits: float,
    ) -> None:
        """Continue with a part, or a use of it, at place ``p`` of the target."""
        k = number & 0xFFF
        span = self.spans[k]
        bits += self.place
        if self.left[k] != HOLE:
            if p < len(self.target) and chr(span[0]) in self.target[p]:
                self._go(p + 1, (*right, k), bound, bits)
            return
        if number == k and not self.primitives:
            self._whole(k, p, (*right, k), bound, bits)
            return
        known = (bound[k],) if k in bound else self.reach.yields.get(span)
        for use in self._uses(k, right) if self.right is None else (Use.of(number),):
            after = (*right, use.number)
            for piece in known or ():
                if isinstance(piece, str):
                    words = use.take(piece)
                    if (words or use.operation) and self.pieces.at(words, p):
                        self._go(p + len(words), after, {**bound, k: piece}, bits)
                elif common := _narrowed(piece, use, self.target, p):
                    self._go(p + len(use.take(piece)), after, {**bound, k: common}, bits)
            if known is None and use.operation in (Operation.WHOLE, Operation.REVERSE):
                for run in self.reach.unknown(p, span):
                    self._go(p + len(run), after, {**bound, k: use.take(run)}, bits)

    def _whole(
        self,
        k: int,
        p: int,
        after: tuple[int, ...],
        bound: dict[int, str | Target],
        bits: float,
    ) -> None:
        """Continue with the whole yield of part ``k``, which is by far the most frequent use."""
        known = bound.get(k)
        if known is not None:
            if isinstance(known, str):
                if self.pieces.at(known, p):
                    self._go(p + len(known), after, bound, bits)
            elif common := meet(known, self.target[p : p + len(known)]):
                self._go(p + len(known), after, {**bound, k: common}, bits)
            return
        fitting = self.reach.fitting(self.spans[k])
        if fitting is not None:
            for piece in fitting[p]:
                self._go(p + len(piece), after, {**bound, k: piece}, bits)
            return
        for run in self.reach.unknown(p, self.spans[k]):
            if bits + self.need[p + len(run)] <= self.room:
                self._go(p + len(run), after, {**bound, k: run}, bits)

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


def _first(run: Target, atom: str) -> int:
    """The first place of a target that may be an atom; the number of places if there is none."""
    return next((p for p, atoms in enumerate(run) if atom in atoms), len(run))


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
