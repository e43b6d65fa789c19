"""Grammars whose holes are typed: only rules that a place accepts are laid over it.

Rules with many holes and few words have too many analyses to list. Which rules a place accepts is
known here before a form is analysed, so that few analyses remain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from equitrans.models.recursive.licences import Licences, Place
from equitrans.models.recursive.rules import (
    HOLE,
    MOST_ANALYSES,
    Analysis,
    Form,
    Grammar,
    Rule,
    Span,
)


@dataclass(frozen=True)
class WalkedLicences(Licences):
    """Licences by the walk alone: a place accepts the rules of all places with which it shares one.

    >>> rules = Grammar(Rule((word,), (0,)) for word in range(4))
    >>> steps = frozenset({(9, 0, 0), (9, 0, 1), (9, 1, 1), (9, 1, 2), (9, 2, 3)})
    >>> [sorted(WalkedLicences(rules, steps).accepted[9, k]) for k in range(3)]
    [[0, 1, 2], [0, 1, 2], [3]]
    """

    @cached_property
    def accepted(self) -> dict[Place, frozenset[int]]:
        places: dict[int, list[Place]] = {}
        for place, rules in self.rules_of.items():
            for rule in rules:
                places.setdefault(rule, []).append(place)
        return {
            place: frozenset[int]().union(
                *(self.rules_of[p] for p in {p for rule in rules for p in places[rule]})
            )
            for place, rules in self.rules_of.items()
        }


class TypedGrammar(Grammar):
    """A grammar that analyses forms with the rules that each place accepts.

    Rules with holes come first. A rule that is a single hole may cover a single word.
    """

    def __init__(self, rules: Iterable[Rule], accepted: Mapping[Place, Iterable[int]]) -> None:
        super().__init__(rules)
        self._masks = {place: sum(1 << r for r in found) for place, found in accepted.items()}
        self._words: dict[int, list[int]] = {}
        self._single: list[tuple[int, int]] = []
        self._longer: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        for r, rule in enumerate(self.rules):
            masks = iter([self._masks.get((r, k), 0) for k in range(len(rule.holes))])
            accepts = tuple(next(masks) if s == HOLE else 0 for s in rule.left)
            if rule.left == (HOLE,):
                self._single.append((r, accepts[0]))
            elif len(rule.left) == 1:
                self._words.setdefault(rule.left[0], []).append(r)
            else:
                self._longer.append((r, rule.left, accepts))

    @cached_property
    def parents(self) -> int:
        """The number of rules with holes."""
        return sum(bool(rule.holes) for rule in self.rules)

    def _analyses(self, form: Form) -> dict[Span, tuple[Analysis, ...]] | None:
        n, symbols = len(form), {*form}
        usable = [
            (r, left, accepts)
            for r, left, accepts in self._longer
            if len(left) <= n and self.rules[r].words <= symbols
        ]
        by_hole = [rule for rule in usable if rule[1][0] == HOLE]
        by_word: dict[int, list[tuple[int, tuple[int, ...], tuple[int, ...]]]] = {}
        for rule in usable:
            if rule[1][0] != HOLE:
                by_word.setdefault(rule[1][0], []).append(rule)
        found: dict[Span, list[Analysis]] = {}
        ends: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
        left_over = MOST_ANALYSES
        for i in range(n - 1, -1, -1):
            # partial analyses that start at i, by where they end
            open_: list[list[tuple[int, tuple[int, ...], tuple[int, ...], tuple[Span, ...]]]]
            open_ = [[] for _ in range(n + 1)]
            first: tuple[Span, ...] = ((i, i + 1),)
            for r, left, accepts in by_word.get(form[i], ()):
                open_[i + 1].append((r, left, accepts, first))
            done: list[list[Analysis]] = [[] for _ in range(n + 1)]
            words = [(r, first) for r in self._words.get(form[i], ())]
            mask = sum(1 << r for r, _ in words)
            done[i + 1] = words + [(r, first) for r, accepts in self._single if mask & accepts]
            for j in range(i + 1, n + 1):
                here = done[j]
                if here:
                    found[i, j] = here
                    left_over -= len(here)
                    if left_over < 0:
                        return None
                    mask = 0
                    for r, _ in here:
                        mask |= 1 << r
                    ends[i].append((j, mask))
                    whole = ((i, j),)
                    if j < n:
                        open_[j] += [
                            (r, left, accepts, whole)
                            for r, left, accepts in by_hole
                            if mask & accepts[0]
                        ]
                if j == n:
                    break
                for r, left, accepts, spans in open_[j]:
                    k = len(spans)
                    last = k + 1 == len(left)
                    if left[k] != HOLE:
                        if left[k] == form[j]:
                            if last:
                                done[j + 1].append((r, (*spans, (j, j + 1))))
                            else:
                                open_[j + 1].append((r, left, accepts, (*spans, (j, j + 1))))
                        continue
                    for end, inner in ends[j]:
                        if inner & accepts[k]:
                            if last:
                                done[end].append((r, (*spans, (j, end))))
                            else:
                                open_[end].append((r, left, accepts, (*spans, (j, end))))
        return {
            span: tuple(found[span]) for span in sorted(found, key=lambda span: span[1] - span[0])
        }
