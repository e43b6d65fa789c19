"""Sentences whose targets would settle the most: questions to the person who knows the language.

The candidates are short sentences that a grammar derives: each rule with each rule in one of its
holes and the shortest constituents in the others, by itself and, if it is no sentence, inside the
shortest sentence around it. A candidate is worth more if rivals of the grammar give it another
target or none, if the weights hardly decide about it, if it needs a combination that no pair needs,
and if few pairs support its rules; and less, the longer it is. What a chosen sentence will settle
counts less for the next.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from equitrans.models.recursive.aligner import Weights, alignments
from equitrans.models.recursive.chart import yield_of
from equitrans.models.recursive.licences import Step, steps
from equitrans.models.recursive.model import RecursiveTransducer
from equitrans.models.recursive.rules import HOLE, Form, Grammar

LONGEST = 12
"""Largest number of words of a suggested sentence."""

NEW, RIVAL, DOUBT = 1.0, 4.0, 2.0
"""Worth of a combination that no pair needs, of a rival with another target, and of a doubt."""


@dataclass(frozen=True)
class Suggestion:
    """A sentence whose target is worth knowing, and why."""

    source: tuple[str, ...]
    reasons: tuple[str, ...]
    worth: float


def suggest(model: RecursiveTransducer, n: int) -> list[Suggestion]:
    """Up to ``n`` sentences that are worth asking for, the best first."""
    grammar = model.aligner.grammar
    rivals = [rival for _, rival in model.learned.rivals]
    pool: dict[Form, _Candidate] = {}
    for each in (grammar, *rivals):
        for form in _forms(each):
            if form not in pool and len(form) <= LONGEST:
                pool[form] = _Candidate.of(model, form, rivals)
    settled: Counter[object] = Counter()
    found = []
    while pool and len(found) < n:
        form = max(pool, key=lambda f: (pool[f].worth(settled), -len(f), f))
        chosen = pool.pop(form)
        worth = chosen.worth(settled)
        if worth <= 0:
            break
        settled.update(chosen.topics)
        found.append(Suggestion(_words(model, form, len(found)), chosen.reasons, round(worth, 3)))
    return found


@dataclass(frozen=True)
class _Candidate:
    """What the target of a form would settle: topics with their worth."""

    form: Form
    topics: dict[object, float]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, model: RecursiveTransducer, form: Form, rivals: list[Grammar]) -> "_Candidate":
        grammar, learned = model.aligner.grammar, model.learned
        topics: dict[object, float] = {}
        reasons: list[str] = []
        tree = model.aligner.tree(form)
        if tree is None:
            topics["nothing", form] = NEW
            reasons.append("the rules do not derive it")
        else:
            for r in {node.rule for node in tree.nodes()}:
                support = learned.support[r] if learned.support else 0
                topics["rule", r] = 1 / (1 + support)
                if support <= 1:
                    reasons.append(f"only {support} pairs support {learned.texts[r]}")
            needed = frozenset[Step]() if learned.licences is None else learned.licences.needed
            new = [step for step in steps(grammar, tree) if step not in needed]
            for step in new:
                topics["step", step] = NEW
            if new:
                reasons.append("no pair combines its rules like this")
            ranked = model.aligner.alignments(form)
            if len(ranked) > 1:
                doubt = 1 - math.exp(ranked[0].log_prob)
                topics["doubt", *sorted(steps(grammar, tree))] = DOUBT * doubt
                if doubt > 0.1:
                    reasons.append("the pairs hardly decide between its derivations")
        said = None if tree is None else yield_of(grammar, tree)
        for number, rival in enumerate(rivals):
            if said not in _yields(rival, form):
                topics["rival", number] = RIVAL
                reasons.append("a grammar of nearly as few bits gives another answer")
        return cls(form, topics, tuple(dict.fromkeys(reasons)))

    def worth(self, settled: Counter[object]) -> float:
        """The worth of what is not settled yet, per word of the sentence and two more."""
        total = sum(worth / (1 + settled[topic]) ** 2 for topic, worth in self.topics.items())
        return total / (len(self.form) + 2)


def _yields(grammar: Grammar, form: Form) -> set[object]:
    """Some yields of a form under a grammar with equal weights."""
    return {a.text for a in alignments(grammar, Weights.zero(grammar, ()), form)}


def _forms(grammar: Grammar) -> Iterator[Form]:
    """The shortest form of each rule, and with each rule in one of its holes."""
    shortest = _shortest(grammar)
    if not shortest:
        return
    least = min(shortest.values(), key=lambda form: (len(form), form))
    for rule in grammar.rules:
        for k in range(max(1, len(rule.holes))):
            for child in shortest.values():
                fillings = iter([child if k == m else least for m in range(len(rule.holes))])
                yield tuple(
                    s
                    for symbol in rule.left
                    for s in (next(fillings) if symbol == HOLE else (symbol,))
                )


def _shortest(grammar: Grammar) -> dict[int, Form]:
    """The shortest form that each rule derives at its root."""
    found: dict[int, Form] = {}
    while True:
        least = min(found.values(), key=lambda form: (len(form), form), default=None)
        new = {
            r: tuple(
                s for symbol in rule.left for s in ((least or ()) if symbol == HOLE else (symbol,))
            )
            for r, rule in enumerate(grammar.rules)
            if r not in found and (least is not None or not rule.holes)
        }
        if not new:
            return found
        found |= new


def _words(model: RecursiveTransducer, form: Form, number: int) -> tuple[str, ...]:
    """A sentence of a form, with different words of each class."""
    symmetry = model.symmetry
    members = {symmetry.source_classes[words[0]]: words for words in symmetry.members[0]}
    single = {c: word for word, c in enumerate(symmetry.source_classes)}
    used: Counter[int] = Counter()
    words = []
    for symbol in form:
        choices = members.get(symbol, (single[symbol],))
        words.append(choices[(number + used[symbol]) % len(choices)])
        used[symbol] += 1
    return symmetry.source.decode(words)
