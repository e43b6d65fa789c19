"""Lower bounds of the bits of rules that are missing in a search for an explanation.

Every word of a goal is mentioned by a rule that fits into the goal's span. If no known rule that
fits there mentions it, a new rule does. The same holds for the constants of the goal's target. A
word that a target word comes from has a place on the right side of its rule.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from equitrans.models.recursive.chart import Target
from equitrans.models.recursive.description import KIND, Code
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Form, Rule, Span, constant
from equitrans.models.recursive.tile import Goal

MOST = 12
"""Largest number of words that are divided among rules in the best way; more words take the bits
of that many, and those of the kinds of the others."""


class Mentioned(NamedTuple):
    """What rules mention that fit into a goal: words and constants, each as a set of bits."""

    words: int
    constants: int
    fits: bool
    """Whether any rule fits."""


NOTHING = Mentioned(0, 0, False)


class Lack(NamedTuple):
    """What the goals of a state have and no rule mentions so far."""

    words: int
    translated: int
    """The number of words that a target word comes from."""
    constants: int
    rules: int
    """The number of new rules that mention the words, at least."""
    alone: bool
    """Whether no assumed rule fits into the first goal."""
    is_new: bool
    """Whether the first goal has no derivable part of several words."""
    span: int
    """The number of words of the first goal."""

    def bits(self, code: Code, size: int = 0) -> float:
        """The fewest bits of further rules that meet the goals; with ``size``, a new rule of that
        many symbols is at the root of the first goal.
        """
        words, translated, written = self.words, self.translated, self.constants
        if size:
            holes = int(size < self.span)
            place, others = 0.0, self.rules - 1
            if holes and self.is_new:
                place = code.least_place(size)
                others = max(others, int(self.alone))
            rules = least_rules(words, translated, others, size, size - holes)
            return place + code.signs(translated + written, max(words, 1), written) + rules
        if words or written:
            rules = least_rules(words, translated, max(self.rules, 1))
            return code.signs(translated + written, words, written) + rules
        return code.least(1) if self.alone else 0.0


@cache
def least_rules(words: int, translated: int, rules: int, size: int = 0, here: int = 0) -> float:
    """The fewest bits of the ends of at least ``rules`` rules, of the kinds of the words that they
    mention, and of the numbers of the places of translated words. With ``size``, there is one rule
    more, with that many symbols on its left side, of which ``here`` may be words.

    >>> least_rules(2, 2, 1) == 4 * KIND + 2, least_rules(2, 2, 2) == 6 * KIND
    (True, True)
    """
    if size:
        return min(
            KIND * (size + 2)
            + (translated - t) * math.log2(size)
            + least_rules(w, t, max(rules, 0))
            for w in range(max(0, words - here), words + 1)
            for t in range(max(0, translated - words + w), min(w, translated) + 1)
        )
    if words > MOST:
        return KIND * (words - MOST) + least_rules(MOST, min(MOST, translated), rules)
    if not words:
        return 2 * KIND * rules
    return min(
        KIND * (w + 2)
        + t * math.log2(w)
        + least_rules(words - w, translated - t, max(rules - 1, 0))
        for w in range(1, words + 1)
        for t in range(max(0, translated - words + w), min(w, translated) + 1)
    )


class _Span(NamedTuple):
    """The words of a span, those that no rule of the grammar mentions that fits there, and the
    constants that such rules write.
    """

    words: int
    lacking: int
    writable: int


class _Content(NamedTuple):
    """The target of a goal, as sets of bits."""

    places: tuple[int, ...]
    """For each position of the form, its word if a target word comes from there, otherwise 0."""
    translated: int
    """The words of these positions."""
    constants: int
    """The constants that rules must write."""
    possible: int
    """The constants that rules may write."""
    mentioned: dict[Rule, Mentioned]
    """What each rule mentions that was asked for."""


class Bounds:
    """The lower bounds for one form and target under the rules of a grammar."""

    def __init__(
        self,
        rules: Sequence[Rule],
        form: Form,
        target: Target,
        code: Code,
        derivable: Collection[Span],
    ) -> None:
        self._rules, self._form, self._code, self._derivable = rules, form, code, derivable
        self._words = {s: 1 << k for k, s in enumerate(dict.fromkeys(form))}
        constants = dict.fromkeys(a for atoms in target for a in atoms if ord(a) >= CONSTANTS)
        self._constants = {a: 1 << k for k, a in enumerate(constants)}
        self._spans: dict[Span, _Span] = {}
        self._contents: dict[Goal, _Content] = {}
        self._new: dict[Span, bool] = {}

    def lack(self, goals: Sequence[Goal], assumed: Iterable[Rule]) -> Lack:
        """What some goals have and neither the grammar nor the assumed rules mention."""
        words = translated = constants = rules = apart = 0
        alone = True
        for number, goal in enumerate(goals):
            content = self._content(goal)
            more = self._mentioned(goal, content, assumed)
            here, lacking, writable = self._span(goal[0], goal[1])
            lacking &= ~more.words
            # goals that share no words have no new rule in common
            rules += lacking > 0 and not here & apart
            apart |= here
            words |= lacking
            translated |= content.translated
            constants |= content.constants & ~writable & ~more.constants
            alone = alone and not (number == 0 and more.fits)
        start, stop, _ = goals[0]
        return Lack(
            words.bit_count(),
            (words & translated).bit_count(),
            constants.bit_count(),
            rules,
            alone,
            self._is_new(start, stop),
            stop - start,
        )

    def _is_new(self, i: int, j: int) -> bool:
        """Whether a span has no derivable part of several words."""
        if (i, j) not in self._new:
            inside = (i <= p and q <= j and q > p + 1 for p, q in self._derivable)
            self._new[i, j] = not any(inside)
        return self._new[i, j]

    def mentioned(self, goal: Goal, rules: Iterable[Rule]) -> Mentioned:
        """What those rules mention that fit into the span and the target of a goal."""
        return self._mentioned(goal, self._content(goal), rules)

    def _mentioned(self, goal: Goal, content: _Content, rules: Iterable[Rule]) -> Mentioned:
        words = constants = 0
        any_fits = False
        known = content.mentioned
        for rule in rules:
            found = known.get(rule)
            if found is None:
                words_, constants_ = self._bits(rule)
                good = not constants_ & ~content.possible
                good = good and fits(rule.left, self._form[goal[0] : goal[1]])
                found = Mentioned(words_, constants_, True) if good else NOTHING
                known[rule] = found
            if found.fits:
                words |= found.words
                constants |= found.constants
                any_fits = True
        return Mentioned(words, constants, True) if any_fits else NOTHING

    def layout(
        self, goal: Goal, left: Sequence[int], spans: Sequence[Span], known: Mentioned
    ) -> tuple[float, float]:
        """For a left side over a goal: the fewest bits of its right side and of constants that are
        written below it, and the fewest bits of the other signs of the rules below it.
        """
        content, code = self._content(goal), self._code
        here = known.words
        for symbol in left:
            if symbol != HOLE:
                here |= self._words[symbol]
        below = translated = writable = places = rules = apart = 0
        another = False
        for symbol, (i, j) in zip(left, spans, strict=True):
            if symbol != HOLE:
                places += content.places[i] > 0
                continue
            words, lacking, written = self._span(i, j)
            lacking &= ~here
            inside = 0
            for place in content.places[i:j]:
                inside |= place
            is_open = j > i + 1 and (i, j) not in self._derivable
            places += inside > 0 or is_open
            another = another or (is_open and not known.fits and j - i < len(left))
            # holes that share no words have no new rule in common
            rules += lacking > 0 and not words & apart
            apart |= words
            below |= lacking
            translated |= inside
            writable |= written
        n = below.bit_count()
        constants = (content.constants & ~known.constants & ~writable).bit_count()
        right = places * code.least_place(len(left)) + code.signs(constants, 0, constants)
        moved = (below & translated).bit_count()
        rest = code.signs(moved, n, 0) + least_rules(n, moved, rules)
        return right, max(rest, code.least(1) if another else 0.0)

    def _content(self, goal: Goal) -> _Content:
        known = self._contents.get(goal)
        if known is None:
            constants = possible = translated = 0
            places = [0] * len(self._form)
            for atoms in goal[2]:
                for a in atoms:
                    possible |= self._constants.get(a, 0)
                if len(atoms) == 1:
                    constants |= self._constants.get(atoms, 0)
                    if (place := ord(atoms)) < CONSTANTS:
                        places[place] = self._words[self._form[place]]
                        translated |= places[place]
            known = _Content(tuple(places), translated, constants, possible, {})
            self._contents[goal] = known
        return known

    def _span(self, i: int, j: int) -> _Span:
        known = self._spans.get((i, j))
        if known is None:
            words = named = written = 0
            for symbol in self._form[i:j]:
                words |= self._words[symbol]
            for rule in self._rules:
                if fits(rule.left, self._form[i:j]):
                    more, constants = self._bits(rule)
                    named |= more
                    written |= constants
            known = self._spans[i, j] = _Span(words, words & ~named, written)
        return known

    def _bits(self, rule: Rule) -> tuple[int, int]:
        """The words and the constants of a rule; all constants that the target lacks are one."""
        words = constants = 0
        for symbol in rule.words:
            words |= self._words.get(symbol, 0)
        for k in rule.right:
            if k < 0:
                constants |= self._constants.get(constant(~k), 1 << len(self._constants))
        return words, constants


def fits(left: Sequence[int], part: Form) -> bool:
    """Whether a left side can be laid over some span of a part of a form, if a hole may cover any
    words.

    >>> fits((5, HOLE, 7), (1, 5, 2, 3, 7)), fits((5, 7), (5, 2, 7))
    (True, False)
    """
    ends = set(range(len(part)))
    for symbol in left:
        if symbol == HOLE:
            ends = set(range(min(ends) + 1, len(part) + 1)) if ends else ends
        else:
            ends = {p + 1 for p in ends if p < len(part) and part[p] == symbol}
    return bool(ends)
