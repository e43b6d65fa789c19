"""Passes over the observations that add rules to a grammar or drop them, by their bits."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from equitrans.models.recursive.bounds import fits
from equitrans.models.recursive.description import Code, choice
from equitrans.models.recursive.memory import Memory, Parsed, possible_steps
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.rules import Grammar, Rule
from equitrans.models.recursive.search import Explanation, explain

SAMPLE = 40
"""Largest number of observations that decide between explanations."""

EFFORT, FAILURES = 10_000, 5
"""Tries per observation; a tenth of that after ``FAILURES`` observations without a result."""

RIVALS = 8
"""Largest number of explanations of an observation that are compared."""

WITH_PRIMITIVES = 3
"""How many times as many explanations are compared and reconsidered if rules may have primitives.
"""

DRAFT_EFFORT = 3_000
"""Tries per observation in a draft."""

REPORTED = 100
"""Number of observations between two reports of progress."""

RECONSIDERED = 8
"""Largest number of rejected explanations that are tried again after pruning."""


Report = Callable[[str], None]
"""A function of a line of text about the progress of learning."""


def silent(text: str) -> None:
    """Report nothing."""


class Learner:
    """Learns a grammar from observations, starting from a given grammar."""

    def __init__(
        self,
        observations: Sequence[Observation],
        code: Code,
        start: Grammar,
        *,
        juxtapose: bool = False,
        limit: float = math.inf,
        report: Report | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.observations, self.code, self.juxtapose = observations, code, juxtapose
        self.report, self._memory = report or silent, memory
        self.grammar, self.limit = start, limit
        self.spent = 0.0
        """Bits of the rules that this pass added, of the choices that they leave, and of the pairs
        that it could not explain. The pass stops above ``limit``."""
        self.failures = 0
        self._times = WITH_PRIMITIVES if code.primitives else 1
        self.rejected: Counter[frozenset[Rule]] = Counter()
        """Explanations that were found but not used, with the number of times."""

    def parse(self, o: Observation, grammar: Grammar | None = None) -> Parsed:
        find = Parsed.of if self._memory is None else self._memory.parse
        grammar = self.grammar if grammar is None else grammar
        return find(grammar, o.form, o.target, primitives=self.code.primitives)

    def explain(self, o: Observation, **options: Any) -> list[Explanation]:
        """Sets of new rules that derive an observation, cheapest first."""
        find = explain if self._memory is None else self._memory.explain
        return find(self.grammar, o.form, o.target, self.code, **options)

    def learn(self) -> list[Observation]:
        """Explain all observations once, contradictions of the grammar last; return the
        observations that are still not derived.
        """
        missed: list[Observation] = []
        contradicting = []
        self.spent = 0.0
        for at, o in enumerate(self.observations):
            if self.over_limit:
                return missed
            if at % REPORTED == 0:
                self.report(f"searching: {self._counts(at)}")
            parsed = self.parse(o)
            if parsed.is_derived:
                continue
            missed.append(o)
            if parsed.derives_form:
                contradicting.append(o)
                continue
            self._explain(o, self.observations[at + 1 :])
            self.report(f"searching: {self._counts(at + 1)}")
        for at, o in enumerate(contradicting):
            if not self.parse(o).is_derived:
                self._explain(o, contradicting[at + 1 :])
        return [o for o in missed if not self.parse(o).is_derived]

    def _counts(self, done: int) -> str:
        return f"{done} of {len(self.observations)} forms, {len(self.grammar)} rules"

    @property
    def over_limit(self) -> bool:
        """Whether the pass spent more bits than its limit."""
        return self.spent > self.limit

    def draft(self) -> None:
        """Add for each observation the cheapest single rule that makes it derivable, even if the
        rule saves no bits. The first rules are large and later rules are parts of them.
        """
        for at, o in enumerate(self.observations):
            if not self.parse(o).is_derived:
                self.report(f"drafting: {self._counts(at)}")
                whole = Rule(o.form, tuple(0 for _ in o.target))
                bound = self.code.rule(whole)
                found = self.explain(o, bound=bound, cautious=True, effort=DRAFT_EFFORT, n_best=1)
                self.grammar = self.grammar.plus(r for e in found for r in sorted(e.rules))

    def _explain(self, o: Observation, others: Sequence[Observation]) -> None:
        """Add the rules that explain an observation and save the most bits on it and others."""
        bound = 3 * self.code.novelty(len(o.target)) + 40
        effort = EFFORT if self.failures < FAILURES else EFFORT // 10
        n_best = RIVALS * self._times
        found = self.explain(o, bound=bound, juxtapose=self.juxtapose, effort=effort, n_best=n_best)
        gains = [(self._gain(e, o, others), -e.bits, e) for e in found]
        gain, _, best = max(gains, key=lambda item: item[:2], default=(0.0, 0.0, None))
        self.rejected.update(e.rules for e in found if e is not best)
        if best is not None and gain > 0:
            before = self.grammar
            self.grammar = before.plus(sorted(best.rules))
            self.spent += best.bits + self._choice(best.rules, before, self.grammar)
        else:
            self.failures += 1
            self.spent += o.count * self.code.novelty(len(o.target))

    def _gain(self, e: Explanation, o: Observation, others: Sequence[Observation]) -> float:
        """Bits that new rules save on an observation and a sample of others, minus their own."""
        grammar = self.grammar.plus(e.rules)
        named = [rule.words for rule in e.rules]
        sample = [o]
        for other in others:
            if len(sample) >= SAMPLE:
                break
            if any(words <= other.symbols for words in named):
                sample.append(other)
        saved = [
            other
            for other in sample
            if other is o
            or (
                any(fits(rule.left, other.form) for rule in e.rules)
                and not self.parse(other).is_derived
                and self.parse(other, grammar).is_derived
            )
        ]
        price = self.code.rules((*self.grammar.rules, *e.rules)) - self.code.rules(
            self.grammar.rules
        )
        cost = self.cost(saved, self.grammar, e.rules)
        return cost.bits - cost.choice - price - self._choice(e.rules, self.grammar, grammar)

    def _choice(self, rules: Iterable[Rule], before: Grammar, after: Grammar) -> float:
        """Bits of the choice between yields that rules add to the observations, estimated from a
        sample; 0 if rules have no primitives.
        """
        if not self.code.primitives:
            return 0.0
        words = [rule.words for rule in rules]
        having = [o for o in self.observations if any(some <= o.symbols for some in words)]
        sample = having[:: -(-len(having) // SAMPLE)] if having else []
        added = [
            o.count * (new.choice - self.parse(o, before).choice)
            for o in sample
            if (new := self.parse(o, after)).is_derived
        ]
        return sum(added) * len(having) / max(1, len(sample))

    def loss(self, lost: Iterable[Observation]) -> float:
        """Bits of observations that the grammar does not derive."""
        return self.cost(lost, self.grammar, ()).bits

    def cost(
        self, lost: Iterable[Observation], grammar: Grammar, rules: Iterable[Rule]
    ) -> "ExceptionCost":
        """The cost of observations that a grammar without ``rules`` does not derive."""
        cost = ExceptionCost(self, rules)
        for o in lost:
            cost.add(o, self.parse(o, grammar))
        return cost

    def reconsider(self, lost: list[Observation]) -> list[Observation]:
        """Use rejected explanations that make other rules unnecessary; return the observations
        that are not derived.
        """
        bits = self.bits(lost)
        small = [
            rules
            for rules in self.rejected
            if all(len(rule.left) <= 3 for rule in rules) and not rules <= set(self.grammar.rules)
        ]
        most = RECONSIDERED * self._times
        for rules in sorted(small, key=lambda r: (-self.rejected[r], sorted(r)))[:most]:
            before = self.grammar
            self.grammar = before.plus(sorted(rules))
            after = self.prune(keep=rules)
            if (fewer := self.bits(after)) < bits - 1e-9:
                bits, lost = fewer, after
            else:
                self.grammar = before
        return lost

    def review(self) -> tuple[float, list[Rule]]:
        """The description length, and the rules used by several observations or small and used
        once, cheapest first.
        """
        used: Counter[Rule] = Counter()
        lost = []
        for o in self.observations:
            rules = self.parse(o).rules
            used.update(rules)
            if not rules:
                lost.append(o)
        useful = [
            rule
            for rule in self.grammar.rules
            if used[rule] > 1 or (used[rule] and len(rule.left) <= 3)
        ]
        return self.bits(lost), sorted(useful, key=self.code.rule)

    def bits(self, lost: Iterable[Observation]) -> float:
        """The description length: rules, exceptions and weights.

        A rule that could stand in a hole and never does needs a weight that excludes it. A weight
        learned from n forms takes ½ log n bits.
        """
        exceptions = self.loss(lost)
        weights = len(self.misfits()) * 0.5 * math.log2(len(self.observations) + 1)
        choices = sum(o.count * self.parse(o).choice for o in self.observations)
        return self.code.rules(self.grammar.rules) + exceptions + weights + choices

    def misfits(self) -> set[tuple[Rule, int, Rule]]:
        """The (rule, hole, child) that occur in derivations of the observed forms, but in no
        derivation of an observed target.
        """
        possible: set[tuple[Rule, int, Rule]] = set()
        actual: set[tuple[Rule, int, Rule]] = set()
        find = possible_steps if self._memory is None else self._memory.steps
        for o in self.observations:
            parsed = self.parse(o)
            if parsed.is_derived:
                actual |= parsed.steps
                possible |= find(self.grammar, o.form)
        return possible - actual

    def prune(self, keep: frozenset[Rule] = frozenset()) -> list[Observation]:
        """Drop rules that cost more bits than the exceptions they save, the largest first, except
        those in ``keep``; return the observations that are not derived.
        """
        derived = {o: p.rules for o in self.observations if (p := self.parse(o)).is_derived}
        users = {
            rule: {o for o, rules in derived.items() if rule in rules}
            for rule in self.grammar.rules
        }
        order = sorted(self.grammar.rules, key=self.code.rule, reverse=True)
        again = True
        while again:
            again = False
            for rule in order:
                if rule not in self.grammar or rule in keep:
                    continue
                self.report(f"pruning: {len(self.grammar)} rules")
                smaller = self.grammar.minus(rule)
                price = self.code.rules(self.grammar.rules) - self.code.rules(smaller.rules)
                price += self._choice([rule], smaller, self.grammar)
                kept, lost, cost = {}, [], ExceptionCost(self, [rule])
                for o in sorted(users[rule], key=lambda o: len(o.form)):
                    parsed = self.parse(o, smaller)
                    if parsed.is_derived:
                        kept[o] = parsed.rules
                        continue
                    lost.append(o)
                    cost.add(o, parsed)
                    if cost.bits - cost.choice >= price:
                        break
                if cost.bits - cost.choice < price:
                    self.grammar = smaller
                    again = True
                    for o, rules in kept.items():
                        for other in rules:
                            users[other].add(o)
                    for o in lost:
                        del derived[o]
                        for using in users.values():
                            using.discard(o)
        return [o for o in self.observations if o not in derived]


class ExceptionCost:
    """Bits of the observations that are not derived without some rules.

    If they contradict the grammar, the rules give their forms a second derivation. The choice
    between the two is a cost of the rules.
    """

    def __init__(self, learner: Learner, rules: Iterable[Rule]) -> None:
        words = frozenset(s for rule in rules for s in rule.words)
        self._code = learner.code
        self._relevant = sum(o.count for o in learner.observations if words <= o.symbols)
        self.bits, self._contradicting = 0.0, 0

    def add(self, o: Observation, parsed: Parsed) -> None:
        """Count an observation; it is a contradiction if the grammar derives its form."""
        contradicts = parsed.derives_form
        each = self._code.contradiction if contradicts else self._code.novelty
        self.bits += o.count * each(len(o.target))
        self._contradicting += o.count * contradicts

    @property
    def choice(self) -> float:
        """Bits that tell which pairs with the rules' words contradict."""
        return choice(self._contradicting, max(self._relevant, self._contradicting))
