"""Sentences whose targets would settle the most: questions to the person who knows the language.

The candidates are parts of training sentences that begin and end as some training sentence does, so
most of them are sentences, licensed combinations of two rules, and rules with a word in a hole if
another rule has that word where its like has a hole (``turn around left`` and ``□ around left``
suggest ``turn left``). A candidate is worth more if
rivals of the grammar give it another target or none, if the rules do not derive it or hardly decide
about it, if it needs a combination that no pair needs, and if few pairs support its rules; and
less, the longer it is. What a chosen sentence will settle counts less for the next.
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from equitrans.lexical import is_filler
from equitrans.models.recursive.chart import Tree, yield_of
from equitrans.models.recursive.doubts import yields
from equitrans.models.recursive.licences import Licences, Step, steps
from equitrans.models.recursive.model import RecursiveTransducer
from equitrans.models.recursive.rules import HOLE, Form, Grammar

LONGEST, MOST = 12, 300
"""Largest number of words of a suggested sentence, and of candidates."""

SHORT, ALIKE = 4, 0.6
"""Sentences of at most this many words are candidates also with a symbol replaced by one that has
at least this share of its neighbours."""

COMBINED = 0.3
"""Share of the worth of a combination of rules: it may be no sentence."""

NEW, UNKNOWN, RIVAL, DOUBT = 0.3, 2.0, 4.0, 2.0
"""Worth of a combination that no pair needs, of a sentence without a derivation, of a rival with
another target, and of a doubt."""


@dataclass(frozen=True)
class Suggestion:
    """A sentence whose target is worth knowing, and why."""

    source: tuple[str, ...]
    reasons: tuple[str, ...]
    worth: float


def parts(forms: Mapping[Form, Tree | None], grammar: Grammar) -> tuple[Form, ...]:
    """Parts of forms, given with their derivations, that may be sentences: they begin and end as
    some form does, and are constituents or stand between words that join constituents. Some have a
    symbol replaced by one that has the same neighbours. None is a form itself; the shortest come
    first. If most forms have no derivation, all that begin and end like forms may be parts.

    >>> parts(dict.fromkeys([(1, 2), (1, 2, 3, 1, 2, 4), (1, 4)]), Grammar())
    ((1, 2, 4), (1, 2, 3, 1, 2))
    """
    known = dict.fromkeys(sorted(forms, key=lambda form: (len(form), form)))
    firsts, lasts = {form[0] for form in known}, {form[-1] for form in known}
    lefts = [rule.left for rule in grammar.rules if len(rule.left) == 3]
    joining = {word for first, word, last in lefts if first == last == HOLE}
    found: dict[Form, None] = {}
    others: dict[Form, None] = {}
    for form in known:
        tree = forms[form]
        nodes = set() if tree is None else {node.span for node in tree.nodes()}
        edges = {k for k, symbol in enumerate(form) if symbol in joining}
        for i in [i for i, symbol in enumerate(form) if symbol in firsts]:
            for j in range(i + 1, min(i + LONGEST, len(form)) + 1):
                if form[j - 1] in lasts and form[i:j] not in known:
                    apart = i - 1 in {-1, *edges} and j in {len(form), *edges}
                    (found if (i, j) in nodes or apart else others)[form[i:j]] = None
        if len(found) + len(others) > 4 * MOST:
            break
    if not found and 2 * sum(tree is None for tree in forms.values()) > len(forms):
        found = others
    alike = _alike(known)
    for form in [form for form in (*known, *found) if len(form) <= SHORT]:
        for i, symbol in enumerate(form):
            for other in alike[symbol]:
                new = (*form[:i], other, *form[i + 1 :])
                if new not in known:
                    found[new] = None
    return tuple(sorted(found, key=lambda form: (len(form), form))[:MOST])


def _alike(forms: Iterable[Form]) -> dict[int, list[int]]:
    """For each symbol, the other symbols that have most of its neighbours on both sides."""
    sides: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})
    for form in forms:
        for before, symbol, after in zip((-1, *form), form, (*form[1:], -1), strict=False):
            sides[0].setdefault(symbol, set()).add(before)
            sides[1].setdefault(symbol, set()).add(after)
    return {
        one: [
            other
            for other in sides[0]
            if other != one
            and all(
                len(side[one] & side[other]) >= ALIKE * len(side[one] | side[other])
                for side in sides
            )
        ]
        for one in sides[0]
    }


def suggest(model: RecursiveTransducer, n: int) -> list[Suggestion]:
    """Up to ``n`` sentences that are worth asking for, the best first."""
    rivals = [rival for _, rival in model.learned.rivals]
    shares = {
        form: COMBINED
        for form in _combinations(model.aligner.grammar)
        if len(form) <= LONGEST and model.aligner.is_licensed(form)
    }
    if model.learned.licences is not None:
        for form, share in _analogies(model.learned.licences):
            shares[form] = max(share, shares.get(form, 0.0))
    shares |= dict.fromkeys(model.learned.parts, 1.0)
    pool = {form: _Candidate.of(model, form, rivals, share) for form, share in shares.items()}
    pool = {form: each for form, each in pool.items() if each.reasons}
    settled: Counter[Hashable] = Counter()
    found: list[Suggestion] = []
    while pool and len(found) < n:
        form = max(pool, key=lambda f: (pool[f].worth(settled), -len(f), f))
        chosen = pool.pop(form)
        worth = chosen.worth(settled)
        settled.update(list(chosen.topics))
        words = _words(model, form, len(found))
        if words is not None:
            found.append(Suggestion(words, chosen.reasons, round(worth, 3)))
    return found


def disputed(
    model: RecursiveTransducer, rival: Grammar, forms: Iterable[Form]
) -> tuple[str, ...] | None:
    """A short sentence that the rules derive and for which a rival has no derivation with the same
    target; None if there is none among some forms and the combinations of two rules.
    """
    shortest = sorted({*forms, *_combinations(model.aligner.grammar)}, key=lambda f: (len(f), f))
    for form in shortest[:MOST]:
        tree = model.aligner.tree(form) if model.aligner.is_licensed(form) else None
        if tree and yield_of(model.aligner.grammar, tree) not in yields(rival, form):
            return _words(model, form, 0)
    return None


@dataclass(frozen=True)
class _Candidate:
    """What the target of a form would settle: topics with their worth."""

    form: Form
    topics: dict[Hashable, float]
    reasons: tuple[str, ...]
    share: float
    """Share of the worth, because the form may be no sentence."""

    @classmethod
    def of(
        cls, model: RecursiveTransducer, form: Form, rivals: list[Grammar], share: float
    ) -> "_Candidate":
        grammar, learned = model.aligner.grammar, model.learned
        topics: dict[Hashable, float] = {}
        reasons: list[str] = []
        tree = model.aligner.tree(form)
        if tree is None:
            topics["nothing", form] = UNKNOWN
            reasons.append("the rules do not derive it")
        else:
            for r in {node.rule for node in tree.nodes()}:
                support = learned.support[r] if learned.support else 0
                topics["rule", r] = 1 / (1 + support)
                if support <= 1:
                    few = "only 1 pair supports" if support else "no pair supports"
                    reasons.append(f"{few} {learned.texts[r]}")
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
            if said not in yields(rival, form):
                topics["rival", number] = RIVAL
                reasons.append("a grammar of nearly as few bits gives another answer")
        return cls(form, topics, tuple(dict.fromkeys(reasons)), share)

    def worth(self, settled: Counter[Hashable]) -> float:
        """The worth of what is not settled yet, per word of the sentence and two more."""
        total = sum(worth / (1 + settled[topic]) ** 2 for topic, worth in self.topics.items())
        return self.share * total / (len(self.form) + 2)


def _combinations(grammar: Grammar) -> Iterator[Form]:
    """The shortest form of each rule with each rule in one of its holes; none if single words have
    rules, because there are too many.
    """
    if grammar.parents < len(grammar):
        return
    shortest = _shortest(grammar)
    least = min(shortest.values(), key=lambda form: (len(form), form), default=())
    for r in shortest:
        rule = grammar.rules[r]
        for k in range(len(rule.holes)):
            for child in shortest.values():
                fillings = [child if k == m else least for m in range(len(rule.holes))]
                yield _filled(rule.left, fillings)


def _analogies(licences: Licences) -> Iterator[tuple[Form, float]]:
    """Rules with a word in a hole that stands in another rule where a rule like that has a hole;
    each with the share of the rules in the two holes that stand in both.
    """
    grammar = licences.grammar
    if grammar.parents < len(grammar):
        return
    shortest = _shortest(grammar)
    least = min(shortest.values(), key=lambda form: (len(form), form), default=())
    lefts = {rule.left: r for r, rule in enumerate(grammar.rules)}
    for rule in grammar.rules:
        for p, word in enumerate(rule.left):
            like = lefts.get((*rule.left[:p], HOLE, *rule.left[p + 1 :]))
            if word == HOLE or like is None:
                continue
            here = licences.rules_of.get((like, grammar.rules[like].holes.index(p)), frozenset())
            for r, other in enumerate(grammar.rules):
                for k in range(len(other.holes)):
                    there = licences.rules_of.get((r, k), frozenset())
                    if here & there:
                        fillings = [(word,) if k == m else least for m in range(len(other.holes))]
                        share = len(here & there) / len(here | there)
                        yield _filled(other.left, fillings), share


def _shortest(grammar: Grammar) -> dict[int, Form]:
    """The shortest form of each rule that has one."""
    shortest: dict[int, Form] = {}
    while len(shortest) < len(grammar):
        least = min(shortest.values(), key=lambda form: (len(form), form), default=None)
        new = {
            r: _filled(rule.left, [least or ()] * len(rule.holes))
            for r, rule in enumerate(grammar.rules)
            if r not in shortest and (least is not None or not rule.holes)
        }
        if not new:
            break
        shortest |= new
    return shortest


def _filled(left: Sequence[int], fillings: Iterable[Form]) -> Form:
    """A left side with forms in its holes."""
    forms = iter(fillings)
    return tuple(s for symbol in left for s in (next(forms) if symbol == HOLE else (symbol,)))


def _words(model: RecursiveTransducer, form: Form, number: int) -> tuple[str, ...] | None:
    """A sentence of a form, with different words of each class; not one that the rules do not
    explain, if there is another, because two pairs of a form can pay for a rule. None if a class
    has neither words that pairs have nor a pattern that numbers match.
    """
    symmetry = model.symmetry
    numbers: dict[str, str] = {}
    for c in symmetry.classes:
        if c.pattern is not None:
            fitting = [f"{n}" for n in range(5, 500, 5) if re.fullmatch(c.pattern, f"{n}")]
            numbers |= dict(zip(filter(is_filler, c.source), fitting, strict=False))
    index = symmetry.source.index
    fillers = {index[word] for word in index if is_filler(word) and word not in numbers}
    members = {
        symmetry.source_classes[words[0]]: [word for word in words if word not in fillers]
        for words in symmetry.members[0]
    }
    single = {c: word for word, c in enumerate(symmetry.source_classes)}
    choices = [members.get(symbol, [single[symbol]]) for symbol in form]
    if not all(choices):
        return None
    unexplained = {pair.source for pair, _ in model.learned.exceptions}
    for shift in range(max(map(len, choices))):
        used: Counter[int] = Counter()
        words = []
        for symbol, possible in zip(form, choices, strict=True):
            words.append(possible[(number + shift + used[symbol]) % len(possible)])
            used[symbol] += 1
        sentence = tuple(numbers.get(word, word) for word in symmetry.source.decode(words))
        if sentence not in unexplained:
            break
    return sentence
