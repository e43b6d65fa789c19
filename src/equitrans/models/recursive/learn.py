"""Learning of a transducer with a recursive aligner: rules by induction, weights by gradient.

Learning is deterministic. It chooses rules by description length and needs no validation pairs.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import torch
from torch import Tensor

from equitrans.data import Pair
from equitrans.errors import shown
from equitrans.models.recursive.chart import Target, Tree, parse, yield_of
from equitrans.models.recursive.checking import check
from equitrans.models.recursive.decompose import decompose
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.induce import Induction, bits_of, extend_grammar
from equitrans.models.recursive.io import Learned, Names
from equitrans.models.recursive.lbfgs import minimise
from equitrans.models.recursive.model import RecursiveTransducer
from equitrans.models.recursive.observe import Observation, Observations, observe
from equitrans.models.recursive.passes import Report, silent
from equitrans.models.recursive.remembered import induce_once
from equitrans.models.recursive.rules import Form, Rule, constant_word
from equitrans.models.recursive.suggestions import disputed, parts
from equitrans.models.recursive.weights import fit_weights
from equitrans.paper import Model, Symmetry
from equitrans.shards import by_shards

UNCERTAIN = 0.02
"""Mean −log p of a form's alignment; above it the model warns that derivations are uncertain."""

ONE_FORM, FEW_FORMS = 0.3, 10
"""Share of forms that need a rule which no other form uses; above it the model warns, unless it has
seen fewer than ``FEW_FORMS`` forms, because few forms need many rules in any case."""

RIVAL_RULES = 4
"""Largest number of rules of another grammar in a warning."""

OTHERS = 3
"""Largest number of grammars from other starts that are weighed if the best one gets pairs wrong
that it derives: bits of rules do not tell which derivations weights prefer."""

UNEXPLAINED = 0.2
"""Share of pairs without an explanation; above it the model warns."""

STARTS, STUCK = 10, 0.05
"""Largest number of starts of the translator, and the excess of its loss that needs another."""

TRIED = 300
"""Number of pairs that show whether the brackets of targets explain the pairs."""

MOST_TREES = 3000
"""Largest number of derivations from which suggestions are taken."""

OUTSIDE = "rules of this kind may be unable to express the data"


def learn_rules(
    pairs: Iterable[Pair],
    symmetry: Symmetry,
    build: Callable[[Learned], Model],
    report: Report | None = None,
    *,
    quick: bool = False,
) -> RecursiveTransducer:
    """Learn a transducer from pairs; ``build`` creates the model for the induced rules, and
    ``report`` receives a text about each stage. ``quick`` shortens the search for rules.
    """
    pairs, report = list(pairs), report or silent
    report(f"observing: {len(pairs)} pairs")
    seen = observe(pairs, symmetry)
    bracketed = learn_from_brackets(pairs, symmetry, build)
    if bracketed is not None:
        code = Code(seen.symbols, seen.targets, seen.noise)
        grammar = bracketed.aligner.grammar
        fit_translator(bracketed, pairs)
        report(f"checking: {len(pairs)} pairs")
        found = Induction(grammar, code, (), code.rules(grammar.rules))
        bracketed.take(_report(bracketed, pairs, seen, found, 0.0))
        return bracketed.eval()
    induced = induce_once(seen, report, quick=quick)

    def weighed(induced: Induction) -> "_Weighed":
        model = _built(build, Learned(induced.grammar, (), 0))
        report(f"weighing: {len(induced.grammar)} rules")
        derived = _derived(seen, induced)
        observed = [(o.form, o.target) for o in derived]
        fitted = fit_weights(model.aligner, observed, _contradicting(seen, derived))
        model.take(Learned(induced.grammar, (), 0, licences=fitted.licences))
        fit_translator(model, pairs)
        report(f"checking: {len(pairs)} pairs")
        model.take(_report(model, pairs, seen, induced, fitted.uncertainty))
        wrong = {pair for pair, _ in model.learned.exceptions}
        missed = tuple(o for o in derived if not wrong.isdisjoint(o.pairs))
        return _Weighed(model.eval(), induced, bits_of(seen, induced), missed)

    best = weighed(induced)
    for other in induced.others[:OTHERS] if best.missed else ():
        extended = extend_grammar(seen, other, report)
        if bits_of(seen, extended) < best.bits:
            best = min(best, weighed(extended), key=lambda it: it.bits)
    if rules := best.missing_rules():
        whole = replace(best.induced, grammar=best.induced.grammar.plus(rules))
        more = whole.code.rules(whole.grammar.rules) - whole.code.rules(best.induced.grammar.rules)
        rival = weighed(replace(whole, bits=best.induced.bits + more))
        best = min(best, rival, key=lambda it: it.bits)
    return best.model


@dataclass(frozen=True)
class _Weighed:
    """A model with weights, and observations that its grammar derives and that it gets wrong."""

    model: RecursiveTransducer
    induced: Induction
    derivable: float
    """Bits of the rules and of the pairs that they do not derive."""
    missed: tuple[Observation, ...]

    @cached_property
    def bits(self) -> float:
        """Bits of the rules, of pairs that they do not derive, and of those that are wrong."""
        return self.derivable + sum(map(self._cost, self.missed))

    def _cost(self, o: Observation) -> float:
        return o.count * self.induced.code.contradiction(len(o.target))

    def missing_rules(self) -> list[Rule]:
        """Rules for whole forms that are wrong now, where a rule takes fewer bits."""
        rules = {
            o: Rule(o.form, tuple(_place(min(atoms)) for atoms in o.target)) for o in self.missed
        }
        return [rule for o, rule in rules.items() if self.induced.code.rule(rule) < self._cost(o)]


def _place(atom: str) -> int:
    """A place of the right side of a rule for a whole form."""
    word = constant_word(atom)
    return ord(atom) if word is None else ~word


def _built(build: Callable[[Learned], Model], learned: Learned) -> RecursiveTransducer:
    model = build(learned)
    assert isinstance(model, RecursiveTransducer)
    return model


def learn_from_brackets(
    pairs: Sequence[Pair], symmetry: Symmetry, build: Callable[[Learned], Model]
) -> RecursiveTransducer | None:
    """The model that follows from the brackets of the targets; None if they have none, or if it
    does not explain most of the pairs.
    """
    found = decompose(pairs, symmetry)
    if found is None:
        return None
    with torch.random.fork_rng(devices=[]):
        model = _built(build, Learned(found.grammar, (), 0, licences=found.licences))
    model.aligner.load(found.weights(model.aligner))
    sample = pairs[:: -(-len(pairs) // TRIED)]
    right = 0
    for pair in sample:
        words = symmetry.source.encode(pair.source)
        tree = model.aligner.tree(model.form(words))
        text = None if tree is None else yield_of(found.grammar, tree)
        if isinstance(text, str):
            right += symmetry.target.decode(model.read_off(words, text)) == pair.target
    return model if right >= (1 - UNEXPLAINED) * len(sample) else None


def fit_translator(model: RecursiveTransducer, pairs: Iterable[Pair] = ()) -> None:
    """Train the translator on the words of the classes.

    Given the alignments, the likelihood is a product of p(y_m | x_n) over class words. By
    equivariance, training on one row of a class trains all its rows. ``pairs`` tell how often each
    source column has each target column; a column that they lack has the first.
    """
    if not model.symmetry.classes:
        return
    shares = _column_shares(pairs, model.symmetry)
    members = model.symmetry.members
    sources = torch.tensor([members[0][s][0] for s, _ in shares])
    targets = torch.tensor([members[1][t][0] for _, t in shares])
    weights = torch.tensor(list(shares.values()))
    least = -float((weights * weights.log()).sum())
    parameters = list(model.translator.parameters())
    best, found = math.inf, [p.detach().clone() for p in parameters]

    def loss() -> Tensor:
        return -(model.spoken(sources).gather(1, targets[:, None]).squeeze(1) * weights).sum()

    for _ in range(STARTS):
        minimise(loss, parameters, rounds=100)
        if (value := float(loss().detach())) < best:
            best, found = value, [p.detach().clone() for p in parameters]
        if best <= least + STUCK:
            break
        # the words of a large class may be stuck at equal probabilities
        with torch.no_grad():
            for p in parameters:
                p.add_(torch.randn_like(p) * p.std().nan_to_num(0.1))
    with torch.no_grad():
        for p, value_found in zip(parameters, found, strict=True):
            p.copy_(value_found)


def _column_shares(pairs: Iterable[Pair], symmetry: Symmetry) -> dict[tuple[int, int], float]:
    """The share of each target column among the translations of each source column's words."""
    (homes, turned), (owners, others) = symmetry.homes, symmetry.owners
    counts: list[Counter[int]] = [Counter() for _ in owners]
    if len(others) > len(symmetry.classes):
        for pair in pairs:
            at = [homes.get(word) for word in symmetry.source.encode(pair.source)]
            to = [turned.get(word) for word in symmetry.target.encode(pair.target)]
            for x, y in product(filter(None, at), filter(None, to)):
                counts[x.column][y.column] += x[:2] == y[:2]
    for c, count in zip(owners, counts, strict=True):
        if not count.total():
            count[others.index(c)] = 1
    return {
        (s, t): n / count.total() for s, count in enumerate(counts) for t, n in count.items() if n
    }


def _derived(seen: Observations, induced: Induction) -> list[Observation]:
    """For each form, its largest group of agreeing pairs that the grammar derives."""
    lost = set(induced.lost)
    found = {o.form: o for o in seen.all if o not in lost}
    forms = {o.form for o in lost}
    for o in seen.minority:
        wanted = o.form in forms and o.form not in found
        if wanted and parse(induced.grammar, o.form, o.target).root is not None:
            found[o.form] = o
    return list(found.values())


def _contradicting(
    seen: Observations, derived: Iterable[Observation]
) -> list[tuple[Form, Target, float]]:
    """Other targets of the forms that the grammar derives, each with the number of its pairs for
    each pair of the derived target.
    """
    chosen = {o.form: o for o in derived}
    return [
        (o.form, o.target, o.count / chosen[o.form].count)
        for o in seen.minority
        if o.form in chosen and o is not chosen[o.form]
    ]


def _report(
    model: RecursiveTransducer,
    pairs: Sequence[Pair],
    seen: Observations,
    induced: Induction,
    uncertainty: float,
) -> Learned:
    """The rules with their support, the pairs that they do not explain, and the warnings."""
    model.eval()
    distinct = list(dict.fromkeys(pairs))
    grammar, symmetry = induced.grammar, model.symmetry
    same: dict[Form, list[int]] = {}
    for i, pair in enumerate(distinct):
        same.setdefault(model.form(symmetry.source.encode(pair.source)), []).append(i)
    groups = [
        (form, [distinct[i] for i in some], n < MOST_TREES)
        for n, (form, some) in enumerate(same.items())
    ]
    support: Counter[int] = Counter()
    by_form: dict[Form, set[int]] = {}
    trees: dict[Form, Tree | None] = {}
    wrong: dict[int, str] = {}
    checked = by_shards(partial(check, model), groups)
    for (form, some), (tree, rules, reasons) in zip(same.items(), checked, strict=True):
        by_form[form], trees[form] = rules, tree
        support.update(dict.fromkeys(rules, len(some) - len(reasons)))
        wrong |= {some[k]: reason for k, reason in reasons}
    outliers = {o.pair: o.reason for o in seen.outliers}
    exceptions = [(distinct[i], outliers.get(distinct[i], wrong[i])) for i in sorted(wrong)]
    names = Names(symmetry)
    unexplained = len(exceptions) / len(distinct)
    warnings = _warnings(model, by_form, support, unexplained, uncertainty)
    for bits, rival in induced.rivals:
        sentence = disputed(model, rival, by_form)
        if sentence is None:
            continue
        other = [names.rule(r) for r in rival.rules if r not in grammar]
        if len(other) > RIVAL_RULES:
            other[RIVAL_RULES:] = [f"{len(other) - RIVAL_RULES} more"]
        warnings.append(
            f"another grammar takes only {bits:.1f} bits more and does not agree about "
            f"{shown(' '.join(sentence))}: it has {'; '.join(other) or 'fewer rules'}"
        )
    return Learned(
        grammar=grammar,
        licences=model.learned.licences,
        rivals=induced.rivals,
        parts=parts(trees, grammar),
        texts=names.rules(grammar, model.learned.licences),
        support=tuple(support[r] for r in range(len(grammar))),
        pairs=len(distinct),
        exceptions=tuple(exceptions),
        warnings=tuple(dict.fromkeys(warnings)),
        bits=induced.bits,
        noise=min(0.5, (len(exceptions) + 0.5) / (len(distinct) + 1)),
    )


def _warnings(
    model: RecursiveTransducer,
    by_form: dict[Form, set[int]],
    support: Counter[int],
    unexplained: float,
    uncertainty: float,
) -> list[str]:
    """Reasons not to trust the grammar."""
    names, rules = Names(model.symmetry), model.aligner.grammar.rules
    users = Counter(r for used in by_form.values() for r in used)
    alone = sum(any(users[r] == 1 for r in used) for used in by_form.values())
    found = []
    if unexplained > UNEXPLAINED:
        found.append(f"{100 * unexplained:.0f} % of the pairs are not explained: {OUTSIDE}")
    if len(by_form) >= FEW_FORMS and alone > ONE_FORM * len(by_form):
        found.append(
            f"{alone} of {len(by_form)} forms need a rule of their own: the number of rules grows "
            f"with the data, so {OUTSIDE} (for example crossing or reversed word order), and "
            "predictions for longer sentences may be wrong"
        )
    if uncertainty > UNCERTAIN:
        found.append(
            "the rules do not determine which derivation is right "
            f"(−log p {uncertainty:.2f} per form): {OUTSIDE}, and predictions for ambiguous "
            "sentences are guesses"
        )
    for r, rule in enumerate(rules):
        if support[r] <= 1 and r < model.aligner.grammar.parents:
            found.append(f"{'only 1' if support[r] else 'no'} pair supports {names.rule(rule)}")
    return found
