"""Induction of a grammar from observations, by minimal description length in bits.

Shortest first, each pair that the grammar does not derive is explained by the new rules that save
the most bits over all pairs. If the grammar does not derive the form, a single pair may pay for a
rule (novelty). If it derives another target, a rule needs more pairs than noise would produce
(contradiction). Learning then restarts from the useful rules until the bits stop falling, and rules
that cost more than they save are dropped.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from equitrans.models.recursive.analogy import complete
from equitrans.models.recursive.chart import parse
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.differences import translated_words
from equitrans.models.recursive.fragments import fragments
from equitrans.models.recursive.garbage import collected_rarely
from equitrans.models.recursive.lowering import lowered, raised
from equitrans.models.recursive.memory import Memory, ahead
from equitrans.models.recursive.observe import Observation, Observations
from equitrans.models.recursive.passes import Learner, Report
from equitrans.models.recursive.rules import Grammar, Rule
from equitrans.models.recursive.starts import (
    class_words,
    sequences,
    single_word_rules,
    suggests_juxtaposition,
    variants,
)

SHORT = 100
"""Number of the shortest observations that choose among the starting grammars."""

LONG = 10
"""Median length of the shortest observations from which on fragments are tried first."""

FRAGMENT_STARTS = 3
"""Largest number of grammars of fragments that are tried."""

LOWERED = 2
"""Number of grammars that are tried in which words write what rules wrote."""

UNEXPLAINED = 0.2
"""Share of pairs without an explanation; above it rules are looked for in another way."""

DECLARED = 10.0
"""Bits that primitives cost a grammar, however few there are."""

GIVE_UP = 2.0
"""A start is given up when its rules and exceptions take this multiple of the best bits so far."""

NEAR_TIE = 10.0
"""A grammar that takes fewer than this many bits more than the best is reported as a rival."""

MAX_PASSES = 6
"""Largest number of passes from one start; learning usually ends after two or three."""


@dataclass(frozen=True)
class Induction:
    """The result: a grammar, its code, the observations it does not derive, and its bits."""

    grammar: Grammar
    code: Code
    lost: tuple[Observation, ...]
    bits: float
    rivals: tuple[tuple[float, Grammar], ...] = ()
    """Other grammars of nearly as few bits, each with the bits it takes more."""
    others: tuple["Induction", ...] = ()
    """Results of other starts on the shortest observations, fewest bits first. Bits do not tell
    whether the derivations that weights prefer are the right ones."""


@collected_rarely()
def induce(seen: Observations, report: Report | None = None, *, quick: bool = False) -> Induction:
    """The grammar of fewest bits that was found.

    Rules are looked for in the shortest observations. If none is short, or if the rules of the
    shortest explain too little, rules of fragments are the start.
    """
    short = seen.all[:SHORT]
    nothing_short = bool(short) and statistics.median(len(o.form) for o in short) >= LONG
    starts = _fragment_grammars(seen, report) if nothing_short else []
    induced = _induce_from(seen, short, starts, report, quick=quick)
    if quick or _explains(seen, induced):
        return induced
    others = [] if nothing_short else _fragment_grammars(seen, report)
    known = _derived(short, induced.grammar)
    others = [start for start in others if _derived(short, start) > known]
    if not starts and not others:
        return induced
    rival = _induce_from(seen, short, others, report)
    return min(induced, rival, key=lambda it: bits_of(seen, it))


def _explains(seen: Observations, induced: Induction) -> bool:
    """Whether a grammar derives enough of the observations."""
    lost = sum(o.count for o in induced.lost)
    return lost <= UNEXPLAINED * sum(o.count for o in seen.all)


def _derived(observations: Iterable[Observation], grammar: Grammar) -> int:
    """The number of observations that a grammar derives."""
    return sum(parse(grammar, o.form, o.target).root is not None for o in observations)


def _fragment_grammars(seen: Observations, report: Report | None) -> list[Grammar]:
    """The grammars of fewest bits for fragments of the observations."""
    if not (pieces := fragments(seen.all)):
        return []
    best = _induce_from(replace(seen, all=tuple(pieces)), pieces, (), report, fragmented=True)
    found = [best.grammar, *(other.grammar for other in best.others)]
    return sorted(found, key=lambda it: -_derived(seen.all[:SHORT], it))[:FRAGMENT_STARTS]


def _induce_from(
    seen: Observations,
    short: Sequence[Observation],
    starts: Sequence[Grammar],
    report: Report | None,
    *,
    quick: bool = False,
    fragmented: bool = False,
) -> Induction:
    """The grammar of fewest bits for all observations that was found with the shortest ones.

    The result depends on the start, so several starts are tried on the short observations: the
    empty grammar, drafts in which the words of one class are constituents, and juxtaposition of
    constituents if the rules suggest it. A start that costs several times the bits of another is
    given up. ``quick`` tries two starts: the best draft, and then the words of all classes. If
    ``starts`` are given, no others are tried. Observations that are ``fragmented`` may be several
    constituents, which suggest juxtaposition wrongly.
    """
    code = Code(seen.symbols, seen.targets, seen.noise)
    found: list[Induction] = []
    memory = Memory()

    def try_start(start: Grammar, *, juxtapose: bool = False) -> None:
        limit = GIVE_UP * min((induced.bits for induced in found), default=math.inf)
        learner = Learner(
            short, code, start, juxtapose=juxtapose, limit=limit, report=report, memory=memory
        )
        found.append(_induce(learner))

    def try_variant(start: Grammar, best: Induction) -> Induction:
        """The better one of a result and what follows from a variant, which else is forgotten."""
        try_start(start)
        if found[-1].bits >= best.bits:
            found.pop()
        return min(found, key=lambda induced: induced.bits)

    drafts = [
        _draft(Learner(short, code, Grammar([rule]), report=report, memory=memory))
        for rule in ([] if starts else class_words(short))
    ]
    least = min((bits for bits, _ in drafts), default=0.0)
    for bits, start in sorted(drafts, key=lambda draft: draft[0])[: 1 if quick else None]:
        if bits <= GIVE_UP * least:
            try_start(start)
    for start in starts:
        try_start(start)
    if starts:
        # pieces of constituents may be fragments: they mislead where sentences explain themselves
        try_start(Grammar(class_words(short)))
    if not starts and not (quick and drafts):
        try_start(Grammar())
    best = min(found, key=lambda induced: induced.bits)
    if best.lost and not starts:
        # words that are constituents although no short pair shows it
        try_start(Grammar(translated_words(short)))
        best = min(found, key=lambda induced: induced.bits)
    wrong = sum(o.count for o in best.lost) / max(1, sum(o.count for o in short))
    if wrong > 0:
        # unexplained pairs count as wrong, so wrong pairs become cheaper
        code = replace(code, noise=min(0.5, code.noise + wrong))
        found = []
        try_start(best.grammar)
        best = found[0]
    if quick:
        words = dict.fromkeys((*class_words(short), *single_word_rules(best.grammar)))
        try_start(Grammar(words))
        best = min(found, key=lambda induced: induced.bits)
    tried: set[Rule] = set()
    while not quick and not starts:
        best = min(found, key=lambda induced: induced.bits)
        known = {*best.grammar.rules, *tried}
        rule = next((rule for rule in class_words(short) if rule not in known), None)
        if rule is None:
            break
        tried.add(rule)
        try_start(Grammar([rule, *single_word_rules(best.grammar)]))
    if not (quick or starts or fragmented):
        if suggests_juxtaposition(best.grammar):
            try_start(Grammar(single_word_rules(best.grammar)), juxtapose=True)
            best = min(found, key=lambda induced: induced.bits)
        # words with two forms, between which the rules around them choose
        for start in lowered(best.grammar, best.lost)[:LOWERED]:
            best = try_variant(start, best)
        parses = [memory.parse(best.grammar, o.form, o.target) for o in short]
        steps = {step for parsed in parses for step in parsed.steps}
        for start in raised(best.grammar, steps)[:LOWERED]:
            best = try_variant(start, best)
    settled = fragmented or ((quick or starts) and not best.lost)
    other = None if settled else _with_primitives(short, code, best, report)
    if other is not None:
        found, best = [other], other
    # the order of rules does not matter: two starts often find one grammar
    rivals = {
        frozenset(induced.grammar.rules): (induced.bits - best.bits, induced.grammar)
        for induced in found
        if 0 <= induced.bits - best.bits < NEAR_TIE
    }
    for grammar in variants(best.grammar):
        learner = Learner(short, best.code, grammar, memory=memory)
        more = learner.bits([o for o in short if not learner.parse(o).is_derived]) - best.bits
        if more < NEAR_TIE:
            rivals.setdefault(frozenset(grammar.rules), (max(0.0, more), grammar))
    rivals.pop(frozenset(best.grammar.rules), None)
    others = {
        frozenset(o.grammar.rules): o
        for o in found
        if o is not best and o.bits <= GIVE_UP * best.bits
    }
    others.pop(frozenset(best.grammar.rules), None)
    if len(short) < len(seen.all):
        before, best = best, extend_grammar(seen, best, report)
        # what was added for longer observations is added to a rival too, and then all decide
        added = [rule for rule in best.grammar.rules if rule not in before.grammar]
        least = _bits(seen, best.code, best.grammar) if rivals else 0.0
        extended = [rival.plus(added) for _, rival in rivals.values()]
        rivals = {
            frozenset(rival.rules): (max(0.0, more), rival)
            for rival in extended
            if (more := _bits(seen, best.code, rival) - least) < NEAR_TIE
        }
        rivals.pop(frozenset(best.grammar.rules), None)
    return replace(
        best,
        rivals=tuple(rivals.values()),
        others=tuple(sorted(others.values(), key=lambda induced: induced.bits)),
    )


def _bits(seen: Observations, code: Code, grammar: Grammar) -> float:
    """The description length of all observations with a grammar."""
    learner = Learner(seen.all, code, grammar, memory=ahead(seen.all, grammar, code))
    return learner.bits([o for o in seen.all if not learner.parse(o).is_derived])


def bits_of(seen: Observations, induced: Induction) -> float:
    """Bits of the rules and of the observations that they do not derive, without weights."""
    learner = Learner(seen.all, induced.code, induced.grammar)
    return induced.code.rules(induced.grammar.rules) + learner.loss(induced.lost)


def _with_primitives(
    short: Sequence[Observation], code: Code, plain: Induction, report: Report | None
) -> Induction | None:
    """The best grammar with primitives on sequences of class words.

    None unless it takes clearly fewer bits than a plain grammar, and None without sequences: no
    word stands beside one of its own class.
    """
    translated = {rule.left[0] for rule in class_words(short)}
    if not any(a == b and a in translated for o in short for a, b in pairwise(o.form)):
        return None
    code, memory = replace(code, primitives=True), Memory()
    best = plain
    for at_end in (True, False):
        start = Grammar(sequences(short, at_end))
        limit = GIVE_UP * best.bits
        learner = Learner(short, code, start, limit=limit, report=report, memory=memory)
        found = _induce(learner)
        saved = best.bits - found.bits - (DECLARED if best is plain else 0.0)
        if saved > 0 and any(rule.has_primitives for rule in found.grammar.rules):
            best = found
    return None if best is plain else best


def extend_grammar(
    seen: Observations, induced: Induction, report: Report | None = None
) -> Induction:
    """Extend a grammar of the shortest observations to all observations in one pass."""
    start, code = induced.grammar, induced.code
    learner = Learner(seen.all, code, start, report=report, memory=ahead(seen.all, start, code))
    lost = learner.learn()
    if learner.grammar is not start:
        lost = learner.prune()
    lost = complete(learner, lost)
    bits = code.rules(learner.grammar.rules) + learner.loss(lost)
    return Induction(learner.grammar, code, tuple(lost), bits)


def _induce(learner: Learner) -> Induction:
    """Learn from the start and again from the useful rules while the bits fall; then prune."""
    code = learner.code
    best: tuple[float, Grammar] | None = None
    for _ in range(MAX_PASSES):
        learner.learn()
        bits, useful = learner.review()
        if best is not None and bits >= best[0] - 1e-9:
            break
        best = bits, learner.grammar
        if learner.over_limit or useful == sorted(learner.grammar.rules, key=code.rule):
            break
        learner.grammar = Grammar(useful)
    assert best is not None
    learner.grammar = best[1]
    if code.primitives and best[0] > GIVE_UP * learner.limit:
        return Induction(learner.grammar, code, (), best[0])
    lost = learner.prune()
    lost = complete(learner, learner.reconsider(lost))
    return Induction(learner.grammar, code, tuple(lost), learner.bits(lost))


def _draft(learner: Learner) -> tuple[float, Grammar]:
    """The bits and the useful rules of a draft: each pair gets its cheapest single rule."""
    best: tuple[float, Grammar] | None = None
    for _ in range(MAX_PASSES):
        learner.draft()
        bits, useful = learner.review()
        if best is not None and bits >= best[0] - 1e-9:
            break
        best = bits, Grammar(useful)
        learner.grammar = best[1]
    assert best is not None
    return best
