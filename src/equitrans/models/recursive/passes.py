"""A grammar in the making: what one pass over the observations does to it, and what it costs."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from equitrans.models.recursive.description import Code, choice
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.parsing import Parse, parse
from equitrans.models.recursive.rules import Grammar, Rule
from equitrans.models.recursive.search import Explanation, explain

SAMPLE = 40
"""So many pairs that are not derived yet judge between explanations."""

EFFORT, FAILURES = 30_000, 5
"""How many tries a pair is worth; a tenth of it after so many pairs in vain."""

DRAFT = 3_000
"""How many tries a pair is worth in a draft."""

RECONSIDERED = 8
"""So many explanations that were not taken are looked at again in the end."""


class Learner:
    """A grammar in the making."""

    def __init__(
        self,
        observations: Sequence[Observation],
        code: Code,
        start: Grammar,
        *,
        juxtapose: bool = False,
        limit: float = math.inf,
    ) -> None:
        self.observations, self.code, self.juxtapose = observations, code, juxtapose
        self.grammar, self.limit = start, limit
        self.spent = 0.0
        """Bits of the rules that one pass added and of the pairs that it could not explain; above
        the limit it is given up."""
        self.failures = 0
        self.rejected: Counter[frozenset[Rule]] = Counter()
        """Explanations that were found and not taken, and how often."""

    def parse(self, o: Observation, grammar: Grammar | None = None) -> Parse:
        return parse(self.grammar if grammar is None else grammar, o.form, o.target)

    def learn(self) -> list[Observation]:
        """Go over all observations once, then over those that contradict the grammar; gives those
        that are not derived after it.
        """
        missed: list[Observation] = []
        contradicting = []
        self.spent = 0.0
        for at, o in enumerate(self.observations):
            if self.hopeless:
                return missed
            parsed = self.parse(o)
            if parsed.root is not None:
                continue
            missed.append(o)
            if (0, len(o.form)) in parsed.spans:
                contradicting.append(o)
                continue
            self._explain(o, self.observations[at + 1 :])
        for at, o in enumerate(contradicting):
            if self.parse(o).root is None:
                self._explain(o, contradicting[at + 1 :])
        return [o for o in missed if self.parse(o).root is None]

    @property
    def hopeless(self) -> bool:
        """Whether a pass was given up."""
        return self.spent > self.limit

    def draft(self) -> None:
        """Go over all observations once and add the cheapest rule that makes each derivable from
        what is known, whether it pays or not: large rules at first, in which small ones show.
        """
        for o in self.observations:
            if self.parse(o).root is None:
                whole = Rule(o.form, tuple(0 for _ in o.target))
                found = explain(
                    self.grammar,
                    o.form,
                    o.target,
                    self.code,
                    bound=self.code.rule(whole),
                    cautious=True,
                    effort=DRAFT,
                    n_best=1,
                )
                self.grammar = self.grammar.plus(r for e in found for r in sorted(e.rules))

    def _explain(self, o: Observation, others: Sequence[Observation]) -> None:
        """Add the rules that explain an observation and save the most over others as well."""
        bound = 3 * self.code.novelty(len(o.target)) + 40
        effort = EFFORT if self.failures < FAILURES else EFFORT // 10
        found = explain(
            self.grammar,
            o.form,
            o.target,
            self.code,
            bound=bound,
            juxtapose=self.juxtapose,
            effort=effort,
        )
        gains = [(self._gain(e, o, others), -e.bits, e) for e in found]
        gain, _, best = max(gains, key=lambda item: item[:2], default=(0.0, 0.0, None))
        self.rejected.update(e.rules for e in found if e is not best)
        if best is not None and gain > 0:
            self.grammar = self.grammar.plus(sorted(best.rules))
            self.spent += best.bits
        else:
            self.failures += 1
            self.spent += o.count * self.code.novelty(len(o.target))

    def _gain(self, e: Explanation, o: Observation, others: Sequence[Observation]) -> float:
        """Bits that new rules save on an observation and a sample of others, less their own."""
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
            if self.parse(other, grammar).root is not None
            and (other is o or self.parse(other).root is None)
        ]
        price = self.code.rules((*self.grammar.rules, *e.rules)) - self.code.rules(
            self.grammar.rules
        )
        return self.loss(saved, self.grammar, e.rules) - price

    def loss(self, lost: Iterable[Observation], grammar: Grammar, rules: Iterable[Rule]) -> float:
        """Bits of pairs that a grammar without some rules does not derive."""
        bill = _Bill(self, rules)
        for o in lost:
            bill.add(o, self.parse(o, grammar))
        return bill.bits

    def reconsider(self, lost: list[Observation]) -> list[Observation]:
        """Take explanations after all if other rules become needless by them."""
        bits = self.bits(lost)
        small = [
            rules
            for rules in self.rejected
            if all(len(rule.left) <= 3 for rule in rules) and not rules <= set(self.grammar.rules)
        ]
        for rules in sorted(small, key=lambda r: (-self.rejected[r], sorted(r)))[:RECONSIDERED]:
            before = self.grammar
            self.grammar = before.plus(sorted(rules))
            after = self.prune(keep=rules)
            if (fewer := self.bits(after)) < bits - 1e-9:
                bits, lost = fewer, after
            else:
                self.grammar = before
        return lost

    def review(self) -> tuple[float, list[Rule]]:
        """The bits of it all, and the rules that more than one observation uses, or small ones."""
        used: Counter[int] = Counter()
        lost = []
        for o in self.observations:
            rules = set(self.parse(o).rules())
            used.update(rules)
            if not rules:
                lost.append(o)
        useful = [
            rule
            for r, rule in enumerate(self.grammar.rules)
            if used[r] > 1 or (used[r] and len(rule.left) <= 3)
        ]
        return self.bits(lost), sorted(useful, key=self.code.rule)

    def bits(self, lost: Iterable[Observation]) -> float:
        """The description length of it all: rules, exceptions, and weights.

        A rule that could stand in some hole and does not must be kept from it by a weight, and a
        weight learned from n forms is known to ½ log n bits.
        """
        exceptions = self.loss(lost, self.grammar, ())
        weights = len(self.misfits()) * 0.5 * math.log2(len(self.observations) + 1)
        return self.code.rules(self.grammar.rules) + exceptions + weights

    def misfits(self) -> set[tuple[int, int, int]]:
        """The (rule, hole, child) of derivations of the observed forms that no derivation of an
        observed target has.
        """
        possible: set[tuple[int, int, int]] = set()
        actual: set[tuple[int, int, int]] = set()
        rules = self.grammar.rules
        for o in self.observations:
            parsed = self.parse(o)
            if parsed.root is None:
                continue
            analyses = self.grammar.analyses(o.form)
            agenda, seen = [(0, len(o.form))], set()
            while agenda:
                for r, spans in analyses[agenda.pop()]:
                    for k in rules[r].holes:
                        possible.update((r, k, child) for child, _ in analyses[spans[k]])
                        if spans[k] not in seen:
                            seen.add(spans[k])
                            agenda.append(spans[k])
            for span, text in parsed.steps():
                _, r, spans, kids = parsed.yields[span][text]
                actual.update(
                    (r, k, parsed.yields[spans[k]][kid][1])
                    for k, kid in zip(rules[r].used, kids, strict=True)
                )
        return {slot for slot in possible - actual if slot[1] in rules[slot[0]].used}

    def prune(self, keep: frozenset[Rule] = frozenset()) -> list[Observation]:
        """Drop rules that cost more than the exceptions they save, the largest first; gives the
        observations that are not derived then. Some rules are kept in any case.
        """
        derived = {
            o: set(p.rules()) for o in self.observations if (p := self.parse(o)).root is not None
        }
        users = {
            rule: {o for o, rules in derived.items() if r in rules}
            for r, rule in enumerate(self.grammar.rules)
        }
        order = sorted(self.grammar.rules, key=self.code.rule, reverse=True)
        again = True
        while again:
            again = False
            for rule in order:
                if rule not in self.grammar or rule in keep:
                    continue
                smaller = self.grammar.minus(rule)
                price = self.code.rules(self.grammar.rules) - self.code.rules(smaller.rules)
                kept, lost, bill = {}, [], _Bill(self, [rule])
                for o in sorted(users[rule], key=lambda o: len(o.form)):
                    parsed = self.parse(o, smaller)
                    if parsed.root is not None:
                        kept[o] = {smaller.rules[r] for r in parsed.rules()}
                        continue
                    lost.append(o)
                    bill.add(o, parsed)
                    if bill.bits >= price:
                        break
                if bill.bits < price:
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


class _Bill:
    """The bits of pairs that are not derived for want of some rules, as they are found."""

    def __init__(self, learner: Learner, rules: Iterable[Rule]) -> None:
        words = frozenset(s for rule in rules for s in rule.words)
        self._code = learner.code
        self._about = sum(o.count for o in learner.observations if words <= o.symbols)
        self._sum, self._against = 0.0, 0

    def add(self, o: Observation, parsed: Parse) -> None:
        """One more; if the grammar derives the form, it says something else of it."""
        contradicts = (0, len(o.form)) in parsed.spans
        each = self._code.contradiction if contradicts else self._code.novelty
        self._sum += o.count * each(len(o.target))
        self._against += o.count * contradicts

    @property
    def bits(self) -> float:
        """The bill so far, less the bits of telling uses of the rules from those of others."""
        return self._sum - choice(self._against, max(self._about, self._against))
