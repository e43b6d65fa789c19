"""Brackets of targets, and the constituents that they show.

A bracketed constituent is a label, an open bracket, what it contains, and a closed bracket:
``eat ( agent = * cat )``. Inside it, a run of translated words without brackets is a constituent
too: ``* cat``. All other words are constants of the constituent that contains them.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

BALANCED = 0.97
"""Smallest share of the targets with brackets in which they are balanced."""

COMMON = 0.1
"""Smallest share of targets that have brackets."""

EVERYWHERE = 0.9
"""Share of bracketed constituents that contain a word which belongs to the brackets."""


LABELLED = 0.1
"""Share of the targets with brackets that begin with one if a label never stands before it."""


class Brackets(NamedTuple):
    """The target words that open and close a constituent, and those that belong to them."""

    open: int
    close: int
    others: frozenset[int]
    labelled: bool
    """Whether a label stands before its bracket, and not after it."""


def find_brackets(targets: Sequence[tuple[int, ...]]) -> Brackets | None:
    """The most frequent words that always balance and nest somewhere; None if there are none."""
    counts = [Counter(target) for target in targets]
    pairs_with = Counter(word for count in counts for word in count)
    sums = Counter[int]()
    for count in counts:
        sums.update(count)
    often = [w for w, n in sums.items() if n > pairs_with[w] >= COMMON * len(targets)]
    candidates = [
        (one, other)
        for one in often
        for other in often
        if one != other and sums[other] >= BALANCED * sums[one] >= BALANCED**2 * sums[other]
    ]
    found = [both for both in candidates if _balance(both, targets)]
    if not found:
        return None
    opening, closing = max(found, key=lambda both: (sums[both[0]], both))
    first = sum(target[:1] == (opening,) for target in targets)
    labelled = first < LABELLED * sum(opening in target for target in targets)
    return Brackets(opening, closing, _everywhere(opening, closing, targets), labelled)


def _balance(both: tuple[int, int], targets: Sequence[tuple[int, ...]]) -> bool:
    """Whether two words balance in most targets that have one of them, and nest in some."""
    opening, closing = both
    right = wrong = nested = 0
    for target in targets:
        depth = deepest = 0
        good = True
        before = None
        for word in target:
            if word == opening:
                depth += 1
                deepest = max(deepest, depth)
            elif word == closing:
                # something stands between brackets
                good = good and depth > 0 and before != opening
                depth -= 1
            before = word
        if deepest or depth:
            good = good and depth == 0
            right, wrong = right + good, wrong + (not good)
            nested += good and deepest > 1
    # words that merely alternate hardly ever nest
    return right >= BALANCED * (right + wrong) and nested >= 0.05 * right > 0


def _everywhere(opening: int, closing: int, targets: Sequence[tuple[int, ...]]) -> frozenset[int]:
    """The words that almost every bracketed constituent contains directly."""
    groups, containing = 0, Counter[int]()
    for target in targets:
        stack: list[set[int]] = []
        for word in target:
            if word == opening:
                stack.append(set())
            elif word == closing:
                if stack:
                    groups += 1
                    containing.update(stack.pop())
            elif stack:
                stack[-1].add(word)
    return frozenset(word for word, n in containing.items() if n >= EVERYWHERE * groups)


@dataclass(eq=False)
class Part:
    """A constituent of a target: words and constituents, in order."""

    items: list["int | Part"] = field(default_factory=list)
    """Places of words in the target, and parts."""
    label: tuple[int, ...] = ()
    """The words before the bracket, or all words of a part without brackets."""
    has_brackets: bool = False
    parent: "Part | None" = None
    original: "Part | None" = None
    """The part whose label this one repeats."""
    places: dict[int, int] = field(default_factory=dict)
    """The source position of each own word that is a translation."""
    span: tuple[int, int] = (0, 0)

    @property
    def children(self) -> list["Part"]:
        """The parts directly inside."""
        return [item for item in self.items if isinstance(item, Part)]

    def walk(self) -> list["Part"]:
        """The part and all parts inside it, outer ones first."""
        found = [self]
        for part in found:
            found += part.children
        return found


def parse_target(
    target: tuple[int, ...], brackets: Brackets, translations: Collection[int]
) -> Part | None:
    """The parts of a target; None if its brackets do not balance."""
    root = Part(has_brackets=True)
    stack, run = [root], list[int]()

    def end_run() -> None:
        if run:
            leaf = Part([*run], tuple(target[m] for m in run), parent=stack[-1])
            stack[-1].items.append(leaf)
            run.clear()

    for m, word in enumerate(target):
        if word == brackets.open:
            if not brackets.labelled:
                end_run()
            elif not run and m and target[m - 1] not in brackets[:2]:
                run.append(stack[-1].items.pop())  # type: ignore[arg-type]
            part = Part([*run, m], tuple(target[k] for k in run), True, stack[-1])
            run.clear()
            stack[-1].items.append(part)
            stack.append(part)
        elif word in translations:
            run.append(m)
            if not brackets.labelled:
                end_run()
        else:
            end_run()
            stack[-1].items.append(m)
            if word == brackets.close:
                if len(stack) == 1:
                    return None
                stack.pop()
    end_run()
    if len(stack) > 1:
        return None
    if len(root.items) == 1 and isinstance(whole := root.items[0], Part):
        whole.parent = None
        return whole
    return root


def align_parts(
    root: Part,
    source: tuple[int, ...],
    target: tuple[int, ...],
    found: dict[int, int],
    translations: Collection[int],
) -> bool:
    """Find the source position of every translated word, the copies, and the span of every part.

    False if a word has no position, or if spans overlap.
    """
    where: dict[int, list[int]] = {}
    for n, word in enumerate(source):
        if word in found:
            where.setdefault(found[word], []).append(n)
    parts = root.walk()
    if not _mark_copies(parts, target, where):
        return False
    owners: dict[int, list[tuple[Part, int]]] = {}
    for part in parts:
        if part.original is None:
            for item in part.items:
                if isinstance(item, int) and target[item] in translations:
                    owners.setdefault(target[item], []).append((part, item))
    if owners.keys() != where.keys():
        return False
    several = []
    for word, places in where.items():
        wanted = owners[word]
        if len(wanted) != len(places):
            return False
        if len(places) == 1:
            part, m = wanted[0]
            part.places[m] = places[0]
        else:
            several.append((wanted, places))
    for wanted, places in several:
        _nearest(wanted, places)
    return _set_spans(parts)


def _mark_copies(parts: list[Part], target: tuple[int, ...], where: dict[int, list[int]]) -> bool:
    """Mark leaves that repeat the label of an earlier part for which the source has one word."""
    same: dict[tuple[int, ...], list[Part]] = {}
    for part in sorted(parts, key=_first_place):
        if part.label:
            same.setdefault(part.label, []).append(part)
    for label, group in same.items():
        given = min((len(where[word]) for word in label if word in where), default=0)
        if len(group) > max(given, 1):
            if given != 1 or any(part.has_brackets for part in group[1:]):
                return not given
            for part in group[1:]:
                part.original = group[0]
    return True


def _first_place(part: Part) -> int:
    first = part.items[0]
    while isinstance(first, Part):
        first = first.items[0]
    return first


def _nearest(wanted: list[tuple[Part, int]], places: list[int]) -> None:
    """Give each own word the free position nearest to the known words of its part, or else of the
    parts around it.
    """
    options = []
    for k, (part, _) in enumerate(wanted):
        anchors = list(part.places.values())
        if not anchors and part.parent is not None:
            anchors = list(part.parent.places.values())
            siblings = part.parent.children
            after = siblings.index(part) + 1
            if after < len(siblings):
                anchors += siblings[after].places.values()
        options += [(sum(abs(p - a) for a in anchors), p, k) for p in places]
    done: set[int] = set()
    taken: set[int] = set()
    for _, p, k in sorted(options):
        if k not in done and p not in taken:
            done.add(k)
            taken.add(p)
            part, m = wanted[k]
            part.places[m] = p


def _set_spans(parts: list[Part]) -> bool:
    """Set the span of every part from the inside out; False if parts overlap or have no words."""
    for part in reversed(parts):
        if part.original is not None:
            continue
        taken = list(part.places.values())
        for child in part.children:
            if child.original is None:
                taken += range(*child.span)
        if not taken or len(taken) > len(set(taken)):
            return False
        part.span = (min(taken), max(taken) + 1)
    return True
