"""The fewest bits of new rules that make one pair derivable, found by best-first search.

A state is a list of goals (a span and the piece of the target it must yield) and the new rules
assumed so far. A goal that the grammar derives is met; otherwise a rule is put at its root, an old
one or an assumed one for nothing, a new one for its bits. What the rule's right side must be
follows from the target; a hole over a span that the grammar cannot derive becomes a goal, since
the rest of the target says what it must yield.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from equitrans.models.recursive.description import Code
from equitrans.models.recursive.parsing import Pieces, Target, parse
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Form, Grammar, Rule, Span, lay
from equitrans.models.recursive.tile import Goal, tile

LAYOUTS = 1500
"""The most left sides of one size that are laid over a span: a bound on work, which short pairs do
not reach."""

OPEN = 4
"""Left sides of up to so many symbols may have two holes over what cannot be derived yet, larger
ones only one."""


RIVAL = 1.5
"""Explanations of up to so many times the fewest bits are rivals, between which other pairs
decide."""


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

    A cautious explanation is a single rule whose holes stand over what the grammar derives.
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
        if bits + len(open_) > bound or state in seen or (cautious and len(new) > 1):
            return
        seen.add(state)
        if open_:
            heapq.heappush(heap, (bits + len(open_) * code.least(2), next(order), bits, *state, 0))
        else:
            found.append(Explanation(bits, new))
            bound = min(bound, bits if cautious else RIVAL * bits)

    push(((0, len(form), target),), frozenset())
    while heap and search.work < effort:
        priority, _, bits, goals, new, size = heapq.heappop(heap)
        if priority > bound:
            break
        goal, rest = goals[0], goals[1:]
        ways = search.old(goal, new) if size == 0 else search.fresh(goal, size, bound - bits)
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
        # a word of a class may turn out to be a constituent by itself
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
        """How many tries it took to find right sides."""
        self._prices: dict[Rule, float] = {}
        self._old: dict[Goal, list[tuple[Rule, tuple[Goal, ...]]]] = {}

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
        """The rule that makes a word of a class a constituent by itself, where that meets a
        goal.
        """
        i, j, target = goal
        if j == i + 1 and len(target) == 1 and chr(i) in target[0]:
            return Rule((self.form[i],), (0,))
        return None

    def next_size(self, goal: Goal, size: int) -> int | None:
        """The size of left sides to try after one: step by step, and at last the whole span."""
        n = goal[1] - goal[0]
        if size >= n:
            return None
        return size + 1 if size < 9 else n

    def old(self, goal: Goal, assumed: frozenset[Rule]) -> Iterator[tuple[Rule, tuple[Goal, ...]]]:
        """The grammar's own rules, and the assumed ones, at the root of a goal."""
        if goal not in self._old:
            self._old[goal] = list(self._at_root(goal, self.grammar.rules))
        yield from self._old[goal]
        yield from self._at_root(goal, sorted(assumed))

    def _at_root(
        self, goal: Goal, rules: Iterable[Rule]
    ) -> Iterator[tuple[Rule, tuple[Goal, ...]]]:
        i, j, target = goal
        words, yields = set(self.form[i:j]), self.parse.yields
        for rule in rules:
            if len(rule.left) > j - i or not rule.words <= words:
                continue
            for spans in islice(lay(rule.left, self.form, i, j, self.anywhere), 100):
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
        """New rules of one size at the root of a goal."""
        i, j, target = goal
        for left, spans in islice(self._layouts(i, j, size), LAYOUTS):
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
        """What it takes to derive the holes that a right side does not name; None if that cannot
        be said.
        """
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
        """Left sides of a size over a span, with where their symbols lie."""
        form, derivable = self.form, self.derivable

        def go(p: int, k: int, open_: int) -> Iterator[tuple[tuple[int, ...], tuple[Span, ...]]]:
            if k == 0:
                if p == j:
                    yield (), ()
                return
            for q in range(p + 1, j - k + 2) if open_ else derivable[p]:
                if q > j - k + 1 or (p, q) == (i, j):
                    break
                for left, spans in go(q, k - 1, open_ - (q not in derivable[p])):
                    yield (HOLE, *left), ((p, q), *spans)
            for left, spans in go(p + 1, k - 1, open_):
                yield (form[p], *left), ((p, p + 1), *spans)

        return go(i, size, 0 if self.cautious else 2 if size <= OPEN else 1)
