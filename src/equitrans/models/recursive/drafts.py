"""The rules of a pair whose target has constituents with spans in its source.

The words of a constituent lie in one part of the source. Its own translated words and the
constituents inside it become holes; source words without a translation stay as they are. A
constituent that repeats the label of another one from outside has a variable in its place.

A word without a translation may stand for itself in a rule of its own (``a □ → 0``) if that needs
fewer rules and leaves targets as predictable as before.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from equitrans.data import Pair
from equitrans.models.recursive.brackets import Part
from equitrans.models.recursive.rules import HOLE, Form, Rule
from equitrans.models.recursive.uses import VARIABLE, Operation, Use
from equitrans.paper import Symmetry

SAMPLE, ALIKE = 2000, 4
"""Largest number of pairs that decide about words without a translation, and of those pairs that
differ in translated words only."""

RULE, BLUR = 40, 8
"""Bits of a rule, and of a constituent that has not the most frequent rule of its words."""

Side = tuple[Literal["left", "right"], Literal["low", "high"]]
"""Where a word without a translation stands at a constituent, and whether the constituent is the
smallest or the largest one there."""

SIDES: tuple[Side, ...] = (
    ("left", "low"),
    ("left", "high"),
    ("right", "low"),
    ("right", "high"),
)

Key = tuple[tuple[int, ...], tuple[int, ...]]
"""The left and the right side of a rule."""


Choice = tuple[Key, tuple[int, ...]] | None
"""A rule and the words in its holes; None for a pair without rules."""


class Draft(NamedTuple):
    """A rule, and the drafts in its holes."""

    key: Key
    inside: tuple["Draft", ...]

    def walk(self) -> list["Draft"]:
        """The draft and all drafts inside it."""
        found = [self]
        for draft in found:
            found += draft.inside
        return found


class _UnclearError(Exception):
    """A pair has a constituent that no rule can express."""


@dataclass(frozen=True)
class Aligned:
    """A pair whose constituents have spans."""

    pair: Pair
    source: tuple[int, ...]
    target: tuple[int, ...]
    root: Part


class Drafter:
    """Writes the rules of pairs, given where words without a translation stand."""

    def __init__(self, symmetry: Symmetry, found: Mapping[int, int], bracket: int) -> None:
        self.found, self.bracket = found, bracket
        self.classes, self.homes = symmetry.source_classes, symmetry.homes[0]
        self.sides: dict[int, Side] = {}

    def choose_sides(self, aligned: Sequence[Aligned]) -> None:
        """Give words without a translation rules of their own, the most frequent word first."""
        sample = self._sample(aligned)
        having: defaultdict[int, list[Aligned]] = defaultdict(list)
        for one in sample:
            for word in {*one.source} - self.found.keys():
                having[word].append(one)
        counts = self._counts(sample)
        changed = True
        while changed:
            changed = False
            for word, some in sorted(having.items(), key=lambda item: -len(item[1])):
                now, rest = self.sides.get(word), counts - self._counts(some)
                best = _cost(counts)
                for side in SIDES:
                    self.sides[word] = side
                    after = rest + self._counts(some)
                    if (cost := _cost(after)) < best:
                        best, counts, now, changed = cost, after, side, True
                self.sides.pop(word)
                if now is not None:
                    self.sides[word] = now

    def _sample(self, aligned: Iterable[Aligned]) -> list[Aligned]:
        alike: Counter[Form] = Counter()
        found = []
        for one in aligned:
            shape = tuple(HOLE if word in self.found else word for word in one.source)
            alike[shape] += 1
            if alike[shape] <= ALIKE:
                found.append(one)
        return found[:: max(1, -(-len(found) // SAMPLE))]

    def _counts(self, sample: Iterable[Aligned]) -> Counter[Choice]:
        """How often each right side follows a left side with some words in its holes."""
        counts: Counter[Choice] = Counter()
        for one in sample:
            draft = self.draft(one)
            if draft is None:
                counts[None] += 1
                continue
            for node in draft.walk():
                if HOLE in node.key[0]:
                    words = (child.key[0][0] if not child.inside else HOLE for child in node.inside)
                    counts[node.key, tuple(words)] += 1
        return counts

    def draft(self, one: Aligned) -> Draft | None:
        """The rules of a pair; None if its constituents cannot be expressed."""
        try:
            return self._draft(one, one.root, 0, len(one.source))
        except _UnclearError:
            return None

    def _draft(self, one: Aligned, part: Part, start: int, stop: int) -> Draft:
        """The rules of a constituent with some words around it."""
        first, last = part.span
        real = [child for child in part.children if child.original is None]
        begins = any(child.span[0] == first for child in real)
        ends = any(child.span[1] == last for child in real)
        around: list[tuple[bool, int]] = []
        while start < first or stop > last:
            if stop > last and self._wraps("right", one.source[stop - 1], ends):
                stop -= 1
                around.append((False, one.source[stop]))
            elif start < first and self._wraps("left", one.source[start], begins):
                around.append((True, one.source[start]))
                start += 1
            else:
                break
        draft = self._flat(one, part, real, start, stop)
        is_open = Rule(*draft.key).is_open
        for before, word in reversed(around):
            operation = Operation.KEEP if is_open else Operation.WHOLE
            symbol = self.classes[word]
            left = (symbol, HOLE) if before else (HOLE, symbol)
            draft = Draft((left, (Use(int(before), operation).number,)), (draft,))
        return draft

    def _wraps(self, side: str, word: int, smaller: bool) -> bool:
        """Whether a word at one side of a constituent stands there, and not at a smaller one."""
        at = self.sides.get(word)
        return at is not None and at[0] == side and (at[1] == "high" or not smaller)

    def _flat(self, one: Aligned, part: Part, real: Sequence[Part], start: int, stop: int) -> Draft:
        """The rule of a constituent that covers some words."""
        owner: dict[int, int | Part] = {n: m for m, n in part.places.items()}
        windows = {child: list(child.span) for child in real}
        for child in real:
            owner |= dict.fromkeys(range(*child.span), child)
        for child, window in windows.items():
            while window[0] > start and self._joins("left", one, window[0] - 1, owner):
                window[0] -= 1
                owner[window[0]] = child
            while window[1] < stop and self._joins("right", one, window[1], owner):
                owner[window[1]] = child
                window[1] += 1
        left: list[int] = []
        inside: list[Draft] = []
        places: dict[int | Part, int] = {}
        n = start
        while n < stop:
            at = owner.get(n)
            if at is None:
                if one.source[n] in self.found:
                    raise _UnclearError
                left.append(self.classes[one.source[n]])
                n += 1
                continue
            places[at] = len(left)
            left.append(HOLE)
            if isinstance(at, int):
                inside.append(self._word(one.source[n]))
                n += 1
            else:
                inside.append(self._draft(one, at, *windows[at]))
                n = windows[at][1]
        return Draft((tuple(left), self._right(one, part, places)), tuple(inside))

    def _joins(self, side: str, one: Aligned, n: int, owner: Mapping[int, object]) -> bool:
        """Whether the word at a position belongs to its neighbour on the other side."""
        at = self.sides.get(one.source[n])
        return n not in owner and at is not None and at[0] == side

    def _word(self, word: int) -> Draft:
        """The rule of a translated word."""
        right = 0 if word in self.homes else ~self.found[word]
        return Draft(((self.classes[word],), (right,)), ())

    def _right(self, one: Aligned, part: Part, places: Mapping[int | Part, int]) -> tuple[int, ...]:
        variable = _variable(part)

        def own(m: int) -> int:
            return places[m] if m in places else ~one.target[m]

        right: list[int] = []
        for item in part.items:
            if isinstance(item, int):
                right.append(own(item))
            elif item.original is None:
                right.append(self._use(part, item, variable, places))
            elif item.original is part:
                right += [own(m) for m in part.items[: len(part.label)] if isinstance(m, int)]
            elif item.original in places:
                place = places[item.original]
                right.append(Use(place, Operation.HEAD, bracket=self.bracket).number)
            elif item.original is variable:
                right.append(~VARIABLE)
            else:
                raise _UnclearError
        return tuple(right)

    def _use(
        self, part: Part, child: Part, variable: Part | None, places: Mapping[int | Part, int]
    ) -> int:
        """The use of a constituent inside another one."""
        inner = _variable(child)
        if inner is None:
            return places[child]
        if inner is part:
            return Use(places[child], Operation.BIND, bracket=self.bracket).number
        if inner is variable:
            return Use(places[child], Operation.KEEP).number
        if inner in places:
            other = places[inner]
            return Use(places[child], Operation.FILL, other, self.bracket).number
        raise _UnclearError


def _cost(counts: Counter[Choice]) -> int:
    """The number of rules, and what else makes targets hard to predict, in bits: uses of a left
    side and its words with another than the most frequent right side, and pairs without rules.
    """
    rights: defaultdict[tuple[Form, Form, bool], Counter[Form]] = defaultdict(Counter)
    for choice, n in counts.items():
        if choice is not None:
            (left, right), words = choice
            rights[left, words, Rule(left, right).is_open][right] += n
    blurred = sum(count.total() - max(count.values()) for count in rights.values())
    rules = len({choice[0] for choice in counts if choice is not None})
    return RULE * (rules + counts[None]) + BLUR * blurred


def _variable(part: Part) -> Part | None:
    """The constituent outside a part whose label is repeated inside it."""
    inside = part.walk()
    outside = {
        other.original
        for other in inside
        if other.original is not None and other.original not in inside
    }
    if len(outside) > 1:
        raise _UnclearError
    return next(iter(outside), None)
