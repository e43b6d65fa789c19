"""From observations to a grammar, by description length: the fewest bits of rules and exceptions.

Shortest first, a pair that the grammar does not derive is explained by the new rules that save the
most over all pairs. If the grammar has nothing to say of a pair, one pair may pay for a rule
(novelty); if it says something else, only as many pairs can pay for one as wrong pairs would not
make up (contradiction). Then everything is learned again from the rules that proved useful, until
the bits stop falling, and rules that do not pay for themselves are dropped.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from equitrans.grammar.description import Code, choice
from equitrans.grammar.explanation import Explanation, explain
from equitrans.grammar.observations import Observation, Observations
from equitrans.grammar.parsing import Parse, parse
from equitrans.grammar.rules import CONSTANTS, HOLE, Grammar, Rule

SAMPLE = 40
"""So many pairs that are not derived yet judge between explanations."""

EFFORT, FAILURES = 40_000, 8
"""How many tries a pair is worth; a tenth of it after so many pairs in vain."""

SHORT = 100
"""So many of the shortest observations decide where learning begins."""

NEAR = 10.0
"""A grammar that takes up to so many bits more is a near-tie."""

RECONSIDERED = 8
"""So many explanations that were not taken are looked at again in the end."""

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
    """The grammar of fewest bits that was found.

    Where learning ends depends on where it begins, so several beginnings are tried on the shortest
    observations: nothing, and the words of some class being constituents by themselves; and
    constituents may stand side by side if the rules suggest it.
    """
    short = seen.all[:SHORT]
    code = Code(seen.symbols, seen.targets, _noise(seen.strays, seen.count))
    found = [_induce(short, code, Grammar())]
    wrong = sum(o.count for o in found[0].lost) / max(1, sum(o.count for o in short))
    if wrong > 0:
        # what no rule explains is counted among the wrong pairs, and they become cheaper
        code = replace(code, noise=min(0.5, code.noise + wrong))
        found = [_induce(short, code, found[0].grammar)]
    tried: set[Rule] = set()
    while True:
        best = min(found, key=lambda induced: induced.bits)
        alone = [rule for rule in _alone(short) if rule not in best.grammar and rule not in tried]
        if not alone:
            break
        tried.add(alone[0])
        found.append(_induce(short, code, Grammar([alone[0], *_bases(best.grammar)])))
    if _suggests_juxtaposition(best.grammar):
        found.append(_induce(short, code, Grammar(_bases(best.grammar)), juxtapose=True))
        best = min(found, key=lambda induced: induced.bits)
    rivals = {
        induced.grammar.rules: (induced.bits - best.bits, induced.grammar)
        for induced in found
        if 0 <= induced.bits - best.bits < NEAR
        and set(induced.grammar.rules) != set(best.grammar.rules)
    }
    if len(short) < len(seen.all):
        best = _induce(seen.all, code, best.grammar)
    return replace(best, rivals=tuple(rivals.values()))


def _alone(observations: Iterable[Observation]) -> list[Rule]:
    """For every class whose words are translated: the rule that makes it a constituent."""
    places = {
        o.form[ord(atom)]
        for o in observations
        for atoms in o.target
        for atom in atoms
        if ord(atom) < CONSTANTS
    }
    return [Rule((symbol,), (0,)) for symbol in sorted(places)]


def _bases(grammar: Grammar) -> list[Rule]:
    """The rules of a grammar that make single words constituents."""
    return [rule for rule in grammar.rules if len(rule.left) == 1]


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


def _induce(
    observations: Sequence[Observation], code: Code, start: Grammar, *, juxtapose: bool = False
) -> Induced:
    """Learn over and over, from where ``start`` stands, while the bits fall; then prune."""
    learner = _Learner(observations, code, juxtapose)
    learner.grammar = start
    best: tuple[float, Grammar] | None = None
    for _ in range(TURNS):
        learner.learn()
        bits, useful = learner.review()
        if best is not None and bits >= best[0] - 1e-9:
            break
        best = bits, learner.grammar
        if useful == sorted(learner.grammar.rules, key=code.rule):
            break
        learner.grammar = Grammar(useful)
    assert best is not None
    learner.grammar = best[1]
    lost = learner.prune()
    lost = learner.reconsider(lost)
    return Induced(learner.grammar, code, tuple(lost), learner.bits(lost))


class _Learner:
    """A grammar in the making."""

    def __init__(self, observations: Sequence[Observation], code: Code, juxtapose: bool) -> None:
        self.observations, self.code, self.juxtapose = observations, code, juxtapose
        self.grammar = Grammar()
        self.rejected: Counter[frozenset[Rule]] = Counter()
        """Explanations that were found and not taken, and how often."""

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
        self.rejected.update(e.rules for e in found if e is not best)
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
            bits += o.count * each(len(o.target))
            against += o.count * contradicts
        if against:
            about = sum(o.count for o in self.observations if words <= set(o.form))
            bits -= choice(against, max(about, against))
        return bits

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
        self.grammar_used = used
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
                        del derived[o]
                        for using in users.values():
                            using.discard(o)
        return [o for o in self.observations if o not in derived]
