"""Best-first search for the fewest bits of new rules that make one pair derivable.

A state is a list of goals (a span and the piece of the target it must yield) and the new rules
assumed so far. A goal that the grammar derives is met. For any other goal the search puts a rule at
its root: a known or assumed rule costs nothing, a new rule costs its bits. The target determines
the right side of the rule. A hole over a span that the grammar cannot derive becomes a goal: the
rest of the target determines its yield.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from equitrans.models.recursive.chart import Pieces, Target, parse
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Form, Grammar, Rule, Span, lay
from equitrans.models.recursive.tile import Goal, tile

MAX_LAYOUTS = 1500
"""Largest number of left sides of one size tried over a span; short pairs do not reach it."""

MAX_KNOWN_LAYOUTS = 100
"""Largest number of ways to lay one known rule over a span."""

TWO_OPEN_HOLES = 4
"""Left sides of at most this many symbols may have two holes over spans that are not derivable;
larger ones may have one."""

RIVAL = 1.5
"""Explanations of at most this multiple of the fewest bits are rivals; other pairs decide."""


@dataclass(frozen=True)
class Explanation:
    """New rules that make a pair derivable, and their bits."""

    bits: float
    rules: frozenset[Rule]


def explain(
    grammar: Grammar,
    form: Form,
    target: Target,
    code: Code,
    *,
    bound: float,
    juxtapose: bool = False,
    cautious: bool = False,
    effort: int = 40_000,
    n_best: int = 8,
) -> list[Explanation]:
    """Sets of new rules of at most ``bound`` bits that derive the target, cheapest first.

    A cautious explanation is a single rule whose holes cover derivable spans. The search stops
    after ``effort`` tries of tilings.
    """
    search = _Search(grammar, form, target, code, juxtapose, cautious)
    order = count()
    heap: list[tuple[float, int, float, tuple[Goal, ...], frozenset[Rule], int]] = []
    found: list[Explanation] = []
    seen: set[tuple[tuple[Goal, ...], frozenset[Rule]]] = set()

    def push(goals: tuple[Goal, ...], new: frozenset[Rule]) -> None:
        nonlocal bound
        open_ = []
        for goal in goals:
            if not search.is_met(goal):
                alone = search.alone(goal)
                if alone is None:
                    open_.append(goal)
                else:
                    new |= {alone}
        bits = sum(map(search.price, new), 0.0)
        state = (tuple(open_), new)
        if bits > bound or state in seen or (cautious and len(new) > 1):
            return
        seen.add(state)
        if open_:
            heapq.heappush(heap, (bits + len(open_) * code.least(2), next(order), bits, *state, 0))
        else:
            found.append(Explanation(bits, new))
            bound = min(bound, bits if cautious else RIVAL * bits)

    push(((0, len(form), target),), frozenset())
    while heap and search.work < effort:
        _, _, bits, goals, new, size = heapq.heappop(heap)
        # known and assumed rules are free, so other open goals may cost nothing
        if bits + (code.least(size) if size else 0.0) > bound:
            continue
        goal, rest = goals[0], goals[1:]
        ways = search.known(goal, new) if size == 0 else search.fresh(goal, size, bound - bits)
        for rule, below in ways:
            push((*below, *rest), new if rule in grammar else new | {rule})
        larger = search.next_size(goal, size)
        if larger is not None:
            least = bits + code.least(larger) + len(rest) * code.least(2)
            heapq.heappush(heap, (least, next(order), bits, goals, new, larger))
    return sorted(found, key=lambda e: (e.bits, sorted(e.rules)))[:n_best]


class _Search:
    """The ways to put a rule at the root of a goal."""

    def __init__(
        self,
        grammar: Grammar,
        form: Form,
        target: Target,
        code: Code,
        juxtapose: bool,
        cautious: bool,
    ) -> None:
        self.grammar, self.form, self.code, self.juxtapose = grammar, form, code, juxtapose
        self.cautious = cautious
        self.parse = parse(grammar, form, target)
        n = len(form)
        self.anywhere = [list(range(p + 1, n + 1)) for p in range(n)]
        # a translated class word may become a constituent by itself
        places = {ord(a) for atoms in target for a in atoms if ord(a) < CONSTANTS}
        single = set() if cautious else {form[p] for p in places}
        self.derivable = [
            [
                q
                for q in range(p + 1, n + 1)
                if (p, q) in self.parse.spans or (q == p + 1 and form[p] in single)
            ]
            for p in range(n)
        ]
        self.work = 0
        """Number of tries of tilings so far."""
        self._prices: dict[Rule, float] = {}
        self._known: dict[Goal, list[tuple[Rule, tuple[Goal, ...]]]] = {}

    def price(self, rule: Rule) -> float:
        """The bits of a rule."""
        if rule not in self._prices:
            self._prices[rule] = self.code.rule(rule)
        return self._prices[rule]

    def is_met(self, goal: Goal) -> bool:
        """Whether the grammar derives a goal."""
        pieces = Pieces(goal[2])
        return any(pieces.whole(y) for y in self.parse.yields.get(goal[:2], ()))

    def alone(self, goal: Goal) -> Rule | None:
        """The rule that makes a class word a constituent, if it meets the goal; otherwise None."""
        i, j, target = goal
        if j == i + 1 and len(target) == 1 and chr(i) in target[0]:
            return Rule((self.form[i],), (0,))
        return None

    def next_size(self, goal: Goal, size: int) -> int | None:
        """The size of left sides to try next: one more up to 9, then the whole span."""
        n = goal[1] - goal[0]
        if size >= n:
            return None
        return size + 1 if size < 9 else n

    def known(
        self, goal: Goal, assumed: frozenset[Rule]
    ) -> Iterator[tuple[Rule, tuple[Goal, ...]]]:
        """The rules of the grammar and the assumed rules that fit at the root of a goal."""
        if goal not in self._known:
            self._known[goal] = list(self._at_root(goal, self.grammar.rules))
        yield from self._known[goal]
        yield from self._at_root(goal, sorted(assumed))

    def _at_root(
        self, goal: Goal, rules: Iterable[Rule]
    ) -> Iterator[tuple[Rule, tuple[Goal, ...]]]:
        i, j, target = goal
        words, yields = set(self.form[i:j]), self.parse.yields
        for rule in rules:
            if len(rule.left) > j - i or not rule.words <= words:
                continue
            for spans in islice(lay(rule.left, self.form, i, j, self.anywhere), MAX_KNOWN_LAYOUTS):
                longest = len(rule.right)
                dropped = self._dropped(rule, spans)
                if dropped is None:
                    continue
                found, tries = tile(
                    rule.left, spans, target, yields, right=rule.right, longest=longest
                )
                self.work += tries
                for tiling in found:
                    yield rule, (*dropped, *tiling.goals)

    def fresh(self, goal: Goal, size: int, bound: float) -> Iterator[tuple[Rule, tuple[Goal, ...]]]:
        """New rules of one size that fit at the root of a goal."""
        i, j, target = goal
        for left, spans in islice(self._layouts(i, j, size), MAX_LAYOUTS):
            if left.count(HOLE) == size and not (self.juxtapose and size == 2):
                continue
            room = bound - self.code.left(Rule(left, ()))
            longest = min(len(target), int(room / self.code.least_place(size)))
            found, tries = tile(left, spans, target, self.parse.yields, longest=longest)
            self.work += tries
            for tiling in found:
                rule = Rule(left, tiling.right)
                dropped = self._dropped(rule, spans)
                if dropped is not None:
                    yield rule, (*dropped, *tiling.goals)

    def _dropped(self, rule: Rule, spans: tuple[Span, ...]) -> tuple[Goal, ...] | None:
        """Goals for the holes that a right side does not mention; None if one cannot be derived."""
        goals: list[Goal] = []
        for k in rule.holes:
            i, j = spans[k]
            if k in rule.right or (i, j) in self.parse.spans:
                continue
            if j not in self.derivable[i]:
                return None
            goals.append((i, j, (chr(i),)))
        return tuple(goals)

    def _layouts(
        self, i: int, j: int, size: int
    ) -> Iterator[tuple[tuple[int, ...], tuple[Span, ...]]]:
        """Left sides of a size over a span, with the spans of their symbols."""
        form, derivable = self.form, self.derivable
        most = 0 if self.cautious else 2 if size <= TWO_OPEN_HOLES else 1
        # a stack instead of recursion: a left side may have as many symbols as a sentence has words
        stack: list[tuple[int, int, tuple[int, ...], tuple[Span, ...]]] = [(i, most, (), ())]
        while stack:
            p, open_, left, spans = stack.pop()
            k = size - len(left)
            if k == 0:
                if p == j:
                    yield left, spans
                continue
            if p >= j:
                continue
            last = j - k + 1
            stack.append((p + 1, open_, (*left, form[p]), (*spans, (p, p + 1))))
            ends = range(p + 1, last + 1) if open_ else derivable[p]
            stack += [
                (q, open_ - (q not in derivable[p]), (*left, HOLE), (*spans, (p, q)))
                for q in reversed(ends)
                if q <= last and (p, q) != (i, j)
            ]
