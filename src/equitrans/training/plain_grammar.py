"""The chart of a rule model without torch: this module imports the standard library alone.

It follows equitrans.models.recursive.aligner, and tests compare the answers. See plain.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, product

HOLE, CONSTANTS = -1, 0x10000
KEPT, FAINT, UNSUPPORTED = 16, 14.0, 0.5
MOST_JOINS, MOST_CHARACTERS, MOST_ANALYSES = 1_000_000, 50_000_000, 500_000
LONGEST_PREDICTION = 4010
TAKEN = {
    5: slice(None, None, -1),
    6: slice(0, 1),
    7: slice(-1, None),
    8: slice(1, None),
    9: slice(0, -1),
}
"""The words that each primitive takes of the yield of a part."""


class PlainGrammar:
    """The rules with their weights and licences."""

    def __init__(self, state: dict) -> None:  # type: ignore[type-arg]
        self.rules = [(tuple(left), tuple(right)) for left, right in state["rules"]]
        self.holes = [[k for k, s in enumerate(left) if s == HOLE] for left, _ in self.rules]
        self.words = [frozenset(left) - {HOLE} for left, _ in self.rules]
        self.weights = state["weights"]
        self.classes = state["classes"]
        licences = state["licences"]
        self.licences = licences and {(r, k): frozenset(rules) for r, k, rules in licences}
        self.lost = frozenset(map(tuple, state["lost"]))
        self.rivals = [(each["odds"], _unweighted(each["rules"])) for each in state["rivals"]]
        self._own = _unweighted(state["rules"]) if self.rivals else None

    def doubt(self, form: tuple[int, ...]) -> float:
        """The probability that a form has another target than those of its derivations."""
        if self.lost and not self._speaks_for(form):
            return UNSUPPORTED
        if self._own is None:
            return 0.0
        own = {text for text, _ in self._own.alignments(form)}
        if not own or len(own) >= KEPT:
            return 0.0
        odds: float = sum(
            odds for odds, rival in self.rivals if {t for t, _ in rival.alignments(form)} - own
        )
        return odds / (1 + odds)

    def _speaks_for(self, form: tuple[int, ...]) -> bool:
        """Whether a form has a licensed derivation without a combination that lost."""
        found: dict[tuple[int, int], set[int]] = {}
        for span, ways in self._analyses(form).items():
            found[span] = here = set()
            for r, spans in ways:
                holes = enumerate(self.holes[r])
                if r not in here and all(self._holds((r, k), found[spans[p]]) for k, p in holes):
                    here.add(r)
        return self._holds((-1, 0), found.get((0, len(form)), set()))

    def _holds(self, place: tuple[int, int], rules: set[int]) -> bool:
        accepted = (self.licences or {}).get(place, ())
        return any(r in accepted and (*place, r) not in self.lost for r in rules)

    def alignments(self, form: tuple[int, ...]) -> list[tuple[str | int, float]]:
        """The yields of a form with their log-probabilities, best first; empty if there are none or
        too many.
        """
        analyses = self._analyses(form)
        chart: dict[tuple[int, int], dict[int, dict[str | int, float]]] = {}
        fillings: dict[object, dict[str | int, float]] = {}
        joins = 0
        characters = 0
        for span, ways in analyses.items():
            here: dict[int, dict[str | int, float]] = {}
            for r, spans in ways:
                holes = []
                for k, place in enumerate(self.holes[r]):
                    inner = spans[place]
                    key = (r, k, inner)
                    if key not in fillings:
                        filled = self._hole(r, k, form[inner[0] : inner[1]], chart[inner])
                        fillings[key] = filled
                        characters += _size(filled)
                    holes.append(fillings[key])
                joins += math.prod(map(len, holes))
                if joins > MOST_JOINS or characters > MOST_CHARACTERS:
                    return []
                total = here.setdefault(r, {})
                weight = self.weights["rule"][r]
                for yields in product(*(scores.items() for scores in holes)):
                    text = self._join(r, spans, [text for text, _ in yields])
                    score = weight + sum([score for _, score in yields])
                    total[text] = _add(total[text], score) if text in total else score
            chart[span] = {r: _pruned(total) for r, total in here.items()}
            characters += sum(map(_size, chart[span].values()))
        whole: dict[str | int, float] = {}
        for r, scores in chart.get((0, len(form)), {}).items():
            if self.licences is None or r in self.licences.get((-1, 0), ()):
                for text, score in scores.items():
                    score += self.weights["root"][r]
                    whole[text] = _add(whole[text], score) if text in whole else score
        if not whole:
            return []
        ranked = _ranked(whole)
        best = ranked[0][1]
        log_total = best + math.log(math.fsum([math.exp(score - best) for _, score in ranked]))
        return [(text, score - log_total) for text, score in ranked]

    def _hole(
        self, r: int, k: int, part: tuple[int, ...], below: dict[int, dict[str | int, float]]
    ) -> dict[str | int, float]:
        """The yields of a part in a hole of a rule."""
        weights = zip(self.classes, self.weights["holds"][r][k], strict=True)
        held = math.fsum([w for c, w in weights if c in part])
        children = self.weights["child"][r][k]
        accepted = None if self.licences is None else self.licences.get((r, k), ())
        merged: dict[str | int, float] = {}
        for child, scores in below.items():
            if accepted is None or child in accepted:
                more = held + children[child]
                for text, score in scores.items():
                    score += more
                    merged[text] = _add(merged[text], score) if text in merged else score
        return _pruned(merged)

    def _join(
        self, r: int, spans: tuple[tuple[int, int], ...], yields: list[str | int]
    ) -> str | int:
        """The yield of a rule, or its length if it is too long."""
        below = dict(zip(self.holes[r], yields, strict=True))
        parts = [
            chr(CONSTANTS + ~k)
            if k < 0
            else below[k & 0xFFF]
            if k & 0xFFF in below
            else chr(spans[k][0])
            for k in self.rules[r][1]
        ]
        if all(isinstance(part, str) for part in parts):
            for n, k in enumerate(self.rules[r][1]):
                for operation in (k >> 16, k >> 12 & 0xF) if k > 0xFFF else ():
                    parts[n] = str(parts[n])[TAKEN[operation]] if operation else parts[n]
        length = sum([part if isinstance(part, int) else len(part) for part in parts])
        return length if length > LONGEST_PREDICTION else "".join(map(str, parts))

    def _analyses(self, form: tuple[int, ...]) -> dict:  # type: ignore[type-arg]
        """For every derivable span: each rule at its root, with the spans of the rule's symbols."""
        n, left, words = len(form), MOST_ANALYSES, set(form)
        rules = [
            (r, side)
            for r, (side, _) in enumerate(self.rules)
            if len(side) <= n and self.words[r] <= words
        ]
        found = {}
        ends: list[list[int]] = [[] for _ in range(n)]
        for j in range(1, n + 1):
            for i in range(j - 1, -1, -1):
                ways = (
                    (r, spans)
                    for r, side in rules
                    if len(side) <= j - i
                    and (side[0] == form[i] or (side[0] == HOLE and ends[i]))
                    and side[-1] in (form[j - 1], HOLE)
                    for spans in _lay(side, form, i, j, ends)
                )
                known = list(islice(ways, left + 1))
                left -= len(known)
                if left < 0:
                    return {}
                if known:
                    ends[i].append(j)
                    found[i, j] = known
        return found


def _unweighted(rules: list) -> PlainGrammar:  # type: ignore[type-arg]
    """The rules with equal weights and without licences."""
    most = max([1, *(left.count(HOLE) for left, _ in rules)])
    zeros = [[[0.0] * len(rules) for _ in range(most)] for _ in rules]
    weights = {"rule": [0.0] * len(rules), "root": [0.0] * len(rules), "child": zeros}
    weights["holds"] = [[[] for _ in range(most)] for _ in rules]
    state = {"rules": rules, "weights": weights, "classes": [], "licences": None}
    return PlainGrammar(state | {"lost": [], "rivals": []})


def _lay(
    side: tuple[int, ...], form: tuple[int, ...], i: int, j: int, ends: list[list[int]]
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every way to lay the symbols of a left side over ``form[i:j]``."""
    m = len(side)
    stack: list[tuple[int, int, tuple[tuple[int, int], ...]]] = [(0, i, ())]
    while stack:
        k, p, spans = stack.pop()
        symbol = side[k]
        if symbol != HOLE:
            if form[p] != symbol:
                continue
            if k == m - 1:
                if p + 1 == j:
                    yield (*spans, (p, j))
            elif p + 1 < j:
                stack.append((k + 1, p + 1, (*spans, (p, p + 1))))
        elif k == m - 1:
            if j in ends[p] and (p, j) != (i, j):
                yield (*spans, (p, j))
        else:
            following, limit = side[k + 1], j - (m - k - 1)
            stack += [
                (k + 1, q, (*spans, (p, q)))
                for q in reversed(ends[p])
                if q <= limit and following in (HOLE, form[q])
            ]


def _add(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def _size(scores: dict[str | int, float]) -> int:
    return sum([len(text) for text in scores if isinstance(text, str)])


def _pruned(total: dict[str | int, float]) -> dict[str | int, float]:
    if len(total) > 1:
        best = max(total.values())
        total = {text: score for text, score in total.items() if score > best - FAINT}
        total = dict(_ranked(total)) if len(total) > KEPT else total
    return total


def _ranked(scores: dict[str | int, float]) -> list[tuple[str | int, float]]:
    order = sorted(scores.items(), key=lambda it: (-it[1], isinstance(it[0], int), it[0]))
    return order[:KEPT]
