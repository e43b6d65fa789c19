"""Best-first search for the fewest bits of new rules that make one pair derivable.

A state is a list of goals (a span and the piece of the target it must yield) and the new rules
assumed so far. A goal that the grammar derives is met. For any other goal the search puts a rule at
its root: a known or assumed rule costs nothing, a new rule costs its bits. The target determines
the right side of the rule. A hole over a span that the grammar cannot derive becomes a goal: the
rest of the target determines its yield.
"""

import heapq
from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from equitrans.models.recursive.bounds import Bounds, Lack, Mentioned
from equitrans.models.recursive.chart import Target, parse
from equitrans.models.recursive.description import PRIMITIVE, Code
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Form, Grammar, Rule, Span, lay
from equitrans.models.recursive.tile import Budget, Goal, Reach, tile

MAX_LAYOUTS = 1500
"""Largest number of left sides of one size tried over a span; short pairs do not reach it."""

MAX_KNOWN_LAYOUTS = 100
"""Largest number of ways to lay one known rule over a span."""

TWO_OPEN_HOLES = 4
"""Left sides of at most this many symbols may have two holes over spans that are not derivable;
larger ones may have one."""

RIVAL, RIVAL_PRIMITIVES = 1.5, 2.0
"""Explanations of at most this multiple of the fewest bits are rivals; other pairs decide. The
second number is for rules with primitives, of which short pairs show little."""

STEP = 1.5
"""Factor by which the bits grow that are added to the bound of an unsuccessful search."""

ROUNDING = 1e-9
"""Largest error of a sum of bits."""

Way = tuple[Rule, tuple[Goal, ...]]
"""A rule at the root of a goal, and the goals of its holes."""


@dataclass(frozen=True)
class Explanation:
    """New rules that make a pair derivable, and their bits."""

    bits: float
    rules: frozenset[Rule]

    def order(self) -> tuple[float, list[Rule]]:
        """The key by which the cheapest comes first."""
        return self.bits, sorted(self.rules)


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
    goal = 0, len(form), target
    if search.is_met(goal):
        return [Explanation(0.0, frozenset())]
    step = code.least(2)
    limit = search.bounds.lack((goal,), ()).bits(code)
    found: dict[frozenset[Rule], float] = {}
    while True:
        limit = min(bound, limit + step)
        step *= STEP
        for e in _within(search, goal, limit, effort, n_best):
            found[e.rules] = e.bits
        if found:
            bound = min(bound, min(found.values()) * search.rival)
        if len(found) >= n_best or limit >= bound or search.work >= effort:
            break
    return sorted((Explanation(b, r) for r, b in found.items()), key=Explanation.order)[:n_best]


def _within(
    search: "_Search", whole: Goal, bound: float, effort: int, n_best: int
) -> list[Explanation]:
    """The ``n_best`` cheapest explanations of at most ``bound`` bits, and some others."""
    order = count()
    heap: list[tuple[float, int, float, tuple[Goal, ...], frozenset[Rule], Lack, int]] = []
    found: list[Explanation] = []
    totals: list[float] = []
    seen: set[tuple[tuple[Goal, ...], frozenset[Rule]]] = set()
    code = search.code

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
        bits = sum([search.price(rule) for rule in new], 0.0)
        state = (tuple(open_), new)
        if bits > bound or state in seen or (search.cautious and len(new) > 1):
            return
        seen.add(state)
        if open_:
            add(bits, *state, search.bounds.lack(open_, new), 0)
        else:
            found.append(Explanation(bits, new))
            insort(totals, bits)
            most = search.rival * bits
            bound = min([bound, most + ROUNDING, *totals[n_best - 1 : n_best]])

    def add(
        bits: float, goals: tuple[Goal, ...], new: frozenset[Rule], lack: Lack, size: int
    ) -> bool:
        """Add a state to the heap if it may lead to an explanation within the bound."""
        rest = lack.bits(code, size)
        if bits + rest > bound + ROUNDING:
            return False
        # known and assumed rules are free, so this is an order and no bound
        others = (len(goals) - (size > 0)) * code.least(2) + (code.least(size) if size else 0.0)
        entry = (bits + max(rest, others), next(order), bits, goals, new, lack, size)
        heapq.heappush(heap, entry)
        return True

    push((whole,), frozenset())
    while heap and search.work < effort:
        _, _, bits, goals, new, lack, size = heapq.heappop(heap)
        goal, others = goals[0], goals[1:]
        if bits + lack.bits(code, size) <= bound + ROUNDING:
            ways = search.fresh(goal, size, bound - bits, new) if size else search.known(goal, new)
            for rule, below in ways:
                push((*below, *others), new if rule in search.grammar else new | {rule})
        larger = search.next_size(goal, size)
        while larger is not None and not add(bits, goals, new, lack, larger):
            larger = search.next_size(goal, larger)
    return found


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
        self.rival = 1.0 if cautious else RIVAL_PRIMITIVES if code.primitives else RIVAL
        self.parse = parse(grammar, form, target, primitives=code.primitives)
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
        # primitives divide a sequence of class words; a hole covers all of it, or all but what the
        # rules of sequences take away
        words = {form[p] for p in places} if code.primitives else set[int]()
        self.sequence = {p for p in range(1, n) if {form[p - 1], form[p]} <= words}
        self.lefts = {rule.left for rule in grammar.rules}
        usable = [rule for _, rule in grammar.usable(form)]
        self.bounds = Bounds(usable, form, target, code, self.parse.spans)
        self.work = 0
        """Number of tries of tilings so far."""
        self._prices: dict[Rule, float] = {}
        self._rules: dict[tuple[Form, tuple[int, ...]], Rule] = {}
        self._reaches: dict[Target, Reach] = {}
        self._met: dict[Goal, bool] = {}
        self._fresh: dict[tuple[Goal, int, Mentioned], tuple[float, list[Way]]] = {}
        self._known: dict[Goal, list[Way]] = {}

    def price(self, rule: Rule) -> float:
        """The bits of a rule."""
        known = self._prices.get(rule)
        if known is None:
            known = self._prices[rule] = self.code.rule(rule)
        return known

    def is_met(self, goal: Goal) -> bool:
        """Whether the grammar derives a goal."""
        known = self._met.get(goal)
        if known is None:
            pieces = self._reach_of(goal[2]).pieces
            known = any(pieces.whole(y) for y in self.parse.yields.get(goal[:2], ()))
            self._met[goal] = known
        return known

    def _reach_of(self, target: Target) -> Reach:
        known = self._reaches.get(target)
        if known is None:
            known = self._reaches[target] = Reach(target, self.parse.yields)
        return known

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

    def known(self, goal: Goal, assumed: frozenset[Rule]) -> Iterator[Way]:
        """The rules of the grammar and the assumed rules that fit at the root of a goal."""
        if goal not in self._known:
            self._known[goal] = list(self._at_root(goal, self.grammar.rules))
        yield from self._known[goal]
        yield from self._at_root(goal, sorted(assumed))

    def _at_root(self, goal: Goal, rules: Iterable[Rule]) -> Iterator[Way]:
        i, j, target = goal
        words, reach = set(self.form[i:j]), self._reach_of(target)
        for rule in rules:
            if len(rule.left) > j - i or not rule.words <= words:
                continue
            for spans in islice(lay(rule.left, self.form, i, j, self.anywhere), MAX_KNOWN_LAYOUTS):
                dropped = self._dropped(rule, spans)
                if dropped is None:
                    continue
                left, right, known = rule.left, rule.right, self.parse.yields
                found, tries = tile(
                    left, spans, target, known, right=right, longest=len(right), reach=reach
                )
                self.work += tries
                for tiling in found:
                    yield rule, (*dropped, *tiling.goals)

    def fresh(self, goal: Goal, size: int, room: float, assumed: Iterable[Rule]) -> list[Way]:
        """New rules of one size at the root of a goal that take at most ``room`` bits, together
        with further rules below them, if some rules are assumed.
        """
        mentioned = self.bounds.mentioned(goal, assumed)
        key = goal, size, mentioned
        known = self._fresh.get(key)
        if known is None or known[0] < room:
            known = self._fresh[key] = room, list(self._new(goal, size, room, mentioned))
        return known[1]

    def _new(self, goal: Goal, size: int, room: float, mentioned: Mentioned) -> Iterator[Way]:
        i, j, target = goal
        code, place = self.code, self.code.least_place(size)
        constant, reach = code.signs(1, 0, 1), self._reach_of(target)
        for left, spans in islice(self._layouts(i, j, size), MAX_LAYOUTS):
            words = size - left.count(HOLE)
            if not words and not (self.juxtapose and size == 2):
                continue
            right, below = self.bounds.layout(goal, left, spans, mentioned)
            free = room - below - code.signs(size + 2, words, 0)
            if right > free:
                continue
            longest = min(len(target), int(free / place))
            spare = int((free - right) / PRIMITIVE) if code.primitives else 0
            found, tries = tile(
                left,
                spans,
                target,
                self.parse.yields,
                longest=longest if spare else len(target),
                primitives=spare,
                budget=Budget(free, place, constant),
                reach=reach,
            )
            self.work += tries
            for tiling in found:
                rule = self._rules.get((left, tiling.right))
                if rule is None:
                    rule = self._rules[left, tiling.right] = Rule(left, tiling.right)
                if self.price(rule) + below > room:
                    continue
                dropped = self._dropped(rule, spans)
                if dropped is not None:
                    yield rule, (*dropped, *tiling.goals)

    def _dropped(self, rule: Rule, spans: tuple[Span, ...]) -> tuple[Goal, ...] | None:
        """Goals for the holes that a right side does not mention; None if one cannot be derived."""
        goals: list[Goal] = []
        for k in rule.holes:
            i, j = spans[k]
            if k in rule.used or (i, j) in self.parse.spans:
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
            before = left[-1] if left and p in self.sequence else None
            if before != HOLE or (HOLE, form[p]) in self.lefts:
                stack.append((p + 1, open_, (*left, form[p]), (*spans, (p, p + 1))))
            if before is not None and (before, HOLE) not in self.lefts:
                continue
            ends = range(p + 1, last + 1) if open_ else derivable[p]
            stack += [
                (q, open_ - (q not in derivable[p]), (*left, HOLE), (*spans, (p, q)))
                for q in reversed(ends)
                if q <= last and (p, q) != (i, j)
            ]
