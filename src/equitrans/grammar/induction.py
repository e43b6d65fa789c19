"""From observations to a grammar, by description length: the fewest bits of rules and exceptions.

Shortest first, a pair that the grammar does not derive is explained by the new rules that save the
most over all pairs. If the grammar has nothing to say of a pair, one pair may pay for a rule
(novelty); if it says something else, only as many pairs can pay for one as wrong pairs would not
make up (contradiction). Then everything is learned again from the rules that proved useful, until
the bits stop falling, and rules that do not pay for themselves are dropped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from equitrans.grammar.description import Code, choice
from equitrans.grammar.explanation import Explanation, explain
from equitrans.grammar.observations import Observation, Observations
from equitrans.grammar.parsing import Parse, parse
from equitrans.grammar.rules import HOLE, Grammar, Rule

SAMPLE = 40
"""So many pairs that are not derived yet judge between explanations."""

EFFORT, FAILURES = 40_000, 8
"""How many tries a pair is worth; a tenth of it after so many pairs in vain."""

TURNS = 6
"""The most often that everything is learned again; it usually ends by itself after two or three."""


@dataclass(frozen=True)
class Induced:
    """A grammar, the code it was chosen by, and the observations it does not derive."""

    grammar: Grammar
    code: Code
    lost: tuple[Observation, ...]
    bits: float
    rivals: tuple[tuple[float, Grammar], ...] = ()
    """Other grammars of nearly as few bits, with their bits."""


def induce(seen: Observations) -> Induced:
    """The grammar of fewest bits that was found."""
    wrong = len(seen.exceptions)
    code = Code(seen.symbols, seen.targets, _noise(wrong, seen.pairs))
    best = _induce(seen.all, code, juxtapose=False)
    noise = _noise(wrong + sum(len(o.pairs) for o in best.lost), seen.pairs)
    if noise > 2 * code.noise or _suggests_juxtaposition(best.grammar):
        code = replace(code, noise=noise)
        best = min(
            (_induce(seen.all, code, juxtapose=flag) for flag in (False, True)),
            key=lambda induced: induced.bits,
        )
    return best


def _noise(wrong: int, pairs: int) -> float:
    """An estimate of the share of wrong pairs that is never 0 and never above a half."""
    return min((wrong + 0.5) / (pairs + 1), 0.5)


def _suggests_juxtaposition(grammar: Grammar) -> bool:
    """Whether two left sides differ by a hole at one end: constituents that stand side by side."""
    lefts = {rule.left for rule in grammar.rules}
    return any(
        (left[0] == HOLE and left[1:] in lefts) or (left[-1] == HOLE and left[:-1] in lefts)
        for left in lefts
        if len(left) > 1
    )


def _induce(observations: Sequence[Observation], code: Code, *, juxtapose: bool) -> Induced:
    learner = _Learner(observations, code, juxtapose)
    best: tuple[float, Grammar] | None = None
    for _ in range(TURNS):
        learner.learn()
        bits, useful = learner.review()
        if best is not None and bits >= best[0] - 1e-9:
            break
        best = bits, learner.grammar
        learner.grammar = Grammar(useful)
    assert best is not None
    learner.grammar = best[1]
    learner.prune()
    lost = tuple(o for o in observations if learner.parse(o).root is None)
    return Induced(learner.grammar, code, lost, learner.bits(lost))


class _Learner:
    """A grammar in the making."""

    def __init__(self, observations: Sequence[Observation], code: Code, juxtapose: bool) -> None:
        self.observations, self.code, self.juxtapose = observations, code, juxtapose
        self.grammar = Grammar()

    def parse(self, o: Observation, grammar: Grammar | None = None) -> Parse:
        return parse(self.grammar if grammar is None else grammar, o.form, o.target)

    def learn(self) -> None:
        """Go over all observations once, then over those that contradict the grammar."""
        self.failures = 0
        contradicting = []
        for at, o in enumerate(self.observations):
            parsed = self.parse(o)
            if parsed.root is not None:
                continue
            if (0, len(o.form)) in parsed.spans:
                contradicting.append(o)
                continue
            self._explain(o, self.observations[at + 1 :])
        for at, o in enumerate(contradicting):
            if self.parse(o).root is None:
                self._explain(o, contradicting[at + 1 :])

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
        if not gains:
            self.failures += 1
            return
        gain, _, best = max(gains, key=lambda item: item[:2])
        if gain > 0:
            self.grammar = self.grammar.plus(sorted(best.rules))
        else:
            self.failures += 1

    def _gain(self, e: Explanation, o: Observation, others: Sequence[Observation]) -> float:
        """Bits that new rules save on an observation and a sample of others, less their own."""
        grammar = self.grammar.plus(e.rules)
        named = [rule.words for rule in e.rules]
        sample = [o]
        for other in others:
            if len(sample) >= SAMPLE:
                break
            if any(words <= set(other.form) for words in named):
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
        bits, against = 0.0, 0
        words = frozenset(s for rule in rules for s in rule.words)
        for o in lost:
            contradicts = (0, len(o.form)) in self.parse(o, grammar).spans
            each = self.code.contradiction if contradicts else self.code.novelty
            bits += len(o.pairs) * each(len(o.target))
            against += len(o.pairs) * contradicts
        if against:
            about = sum(len(o.pairs) for o in self.observations if words <= set(o.form))
            bits -= choice(against, max(about, against))
        return bits

    def review(self) -> tuple[float, list[Rule]]:
        """The bits of it all, and the rules that more than one observation uses, or small ones."""
        used: Counter[int] = Counter()
        lost = []
        for o in self.observations:
            rules = set(self.parse(o).rules())
            used.update(rules)
            if not rules:
                lost.append(o)
        self.grammar_used = used
        useful = [
            rule
            for r, rule in enumerate(self.grammar.rules)
            if used[r] > 1 or (used[r] and len(rule.left) <= 3)
        ]
        return self.bits(lost), sorted(useful, key=self.code.rule)

    def bits(self, lost: Iterable[Observation]) -> float:
        """The description length of grammar and exceptions."""
        exceptions = self.loss(lost, self.grammar, ())
        return self.code.rules(self.grammar.rules) + exceptions

    def prune(self) -> None:
        """Drop rules that cost more than the exceptions they save, the largest first."""
        derived = {o: set(p.rules()) for o in self.observations if (p := self.parse(o)).root}
        users = {
            rule: {o for o, rules in derived.items() if r in rules}
            for r, rule in enumerate(self.grammar.rules)
        }
        order = sorted(self.grammar.rules, key=self.code.rule, reverse=True)
        again = True
        while again:
            again = False
            for rule in order:
                if rule not in self.grammar:
                    continue
                smaller = self.grammar.minus(rule)
                kept, lost = {}, []
                for o in users[rule]:
                    parsed = self.parse(o, smaller)
                    if parsed.root is None:
                        lost.append(o)
                    else:
                        kept[o] = {smaller.rules[r] for r in parsed.rules()}
                price = self.code.rules(self.grammar.rules) - self.code.rules(smaller.rules)
                if self.loss(lost, smaller, [rule]) < price:
                    self.grammar = smaller
                    again = True
                    for o, rules in kept.items():
                        for other in rules:
                            users[other].add(o)
                    for o in lost:
                        for using in users.values():
                            using.discard(o)
