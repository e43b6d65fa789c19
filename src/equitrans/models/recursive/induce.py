"""From observations to a grammar, by description length: the fewest bits of rules and exceptions.

Shortest first, a pair that the grammar does not derive is explained by the new rules that save the
most over all pairs. If the grammar has nothing to say of a pair, one pair may pay for a rule
(novelty); if it says something else, only as many pairs can pay for one as wrong pairs would not
make up (contradiction). Then everything is learned again from the rules that proved useful, until
the bits stop falling, and rules that do not pay for themselves are dropped.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from equitrans.models.recursive.description import Code
from equitrans.models.recursive.observe import Observation, Observations
from equitrans.models.recursive.passes import Learner
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Grammar, Rule

SHORT = 100
"""So many of the shortest observations decide where learning begins."""

HOPELESS = 2.0
"""A beginning is given up once the rules it adds and the pairs it cannot explain take so many times
the bits of the best grammar so far."""

NEAR = 10.0
"""A grammar that takes up to so many bits more is a near-tie."""

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
    observations: nothing, the words of some class being constituents by themselves, and drafts from
    there; and constituents may stand side by side if the rules suggest it. A beginning that leads
    nowhere is given up once it has cost several times what another took.
    """
    short = seen.all[:SHORT]
    code = Code(seen.symbols, seen.targets, _noise(seen.strays, seen.count))
    found: list[Induced] = []

    def begin(start: Grammar, *, juxtapose: bool = False) -> None:
        limit = HOPELESS * min((induced.bits for induced in found), default=math.inf)
        found.append(_induce(short, code, start, juxtapose=juxtapose, limit=limit))

    drafts = [_draft(short, code, Grammar([rule])) for rule in _alone(short)]
    least = min((bits for bits, _ in drafts), default=0.0)
    for bits, start in sorted(drafts, key=lambda draft: draft[0]):
        if bits <= HOPELESS * least:
            begin(start)
    begin(Grammar())
    best = min(found, key=lambda induced: induced.bits)
    wrong = sum(o.count for o in best.lost) / max(1, sum(o.count for o in short))
    if wrong > 0:
        # what no rule explains is counted among the wrong pairs, and they become cheaper
        code = replace(code, noise=min(0.5, code.noise + wrong))
        found = []
        begin(best.grammar)
    tried: set[Rule] = set()
    while True:
        best = min(found, key=lambda induced: induced.bits)
        alone = [rule for rule in _alone(short) if rule not in best.grammar and rule not in tried]
        if not alone:
            break
        tried.add(alone[0])
        begin(Grammar([alone[0], *_bases(best.grammar)]))
    if _suggests_juxtaposition(best.grammar):
        begin(Grammar(_bases(best.grammar)), juxtapose=True)
        best = min(found, key=lambda induced: induced.bits)
    rivals = {
        induced.grammar.rules: (induced.bits - best.bits, induced.grammar)
        for induced in found
        if 0 <= induced.bits - best.bits < NEAR
        and set(induced.grammar.rules) != set(best.grammar.rules)
    }
    if len(short) < len(seen.all):
        best = _extend(seen.all, code, best.grammar)
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
    return min((wrong + 0.1) / (pairs + 1), 0.5)


def _suggests_juxtaposition(grammar: Grammar) -> bool:
    """Whether two left sides differ by a hole at one end: constituents that stand side by side."""
    lefts = {rule.left for rule in grammar.rules}
    return any(
        (left[0] == HOLE and left[1:] in lefts) or (left[-1] == HOLE and left[:-1] in lefts)
        for left in lefts
        if len(left) > 1
    )


def _extend(observations: Sequence[Observation], code: Code, start: Grammar) -> Induced:
    """Go over all observations once with a grammar that most of them fit."""
    learner = Learner(observations, code, start)
    lost = learner.learn()
    if learner.grammar is not start:
        lost = learner.prune()
    bits = code.rules(learner.grammar.rules) + learner.loss(lost, learner.grammar, ())
    return Induced(learner.grammar, code, tuple(lost), bits)


def _induce(
    observations: Sequence[Observation],
    code: Code,
    start: Grammar,
    *,
    juxtapose: bool,
    limit: float,
) -> Induced:
    """Learn over and over, from where ``start`` stands, while the bits fall; then prune."""
    learner = Learner(observations, code, start, juxtapose=juxtapose, limit=limit)
    best: tuple[float, Grammar] | None = None
    for _ in range(TURNS):
        learner.learn()
        bits, useful = learner.review()
        if best is not None and bits >= best[0] - 1e-9:
            break
        best = bits, learner.grammar
        if learner.hopeless or useful == sorted(learner.grammar.rules, key=code.rule):
            break
        learner.grammar = Grammar(useful)
    assert best is not None
    learner.grammar = best[1]
    lost = learner.prune()
    lost = learner.reconsider(lost)
    return Induced(learner.grammar, code, tuple(lost), learner.bits(lost))


def _draft(
    observations: Sequence[Observation], code: Code, start: Grammar
) -> tuple[float, Grammar]:
    """A beginning: the rules that prove useful when each pair gets the cheapest single rule, and
    the bits that they take.
    """
    learner = Learner(observations, code, start)
    best: tuple[float, Grammar] | None = None
    for _ in range(TURNS):
        learner.draft()
        bits, useful = learner.review()
        if best is not None and bits >= best[0] - 1e-9:
            break
        best = bits, Grammar(useful)
        learner.grammar = best[1]
    assert best is not None
    return best
