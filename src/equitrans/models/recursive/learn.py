"""How a transducer with a recursive aligner is learned: rules by induction, weights by gradient.

Nothing is random. Rules are chosen by description length, so no validation pairs are needed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from equitrans.data import Pair
from equitrans.models.recursive.derivations import Tree, text_of
from equitrans.models.recursive.induce import Induced, induce
from equitrans.models.recursive.io import Learned, Names
from equitrans.models.recursive.model import RecursiveTransducer
from equitrans.models.recursive.observe import Observation, Observations, observe
from equitrans.models.recursive.parsing import parse
from equitrans.models.recursive.rules import Form
from equitrans.models.recursive.weights import fit_weights
from equitrans.paper import Model, Symmetry

UNSETTLED = 0.02
"""If −log p of a form's alignment is above this on average, the rules do not settle it."""

ONE_FORM = 0.3
"""If more than this share of the forms needs a rule that no other form uses, rules grow with the
data."""

UNEXPLAINED = 0.2
"""If more than this share of the pairs is not explained, the rules are the wrong kind of rules."""


def learn_rules(
    pairs: Iterable[Pair],
    symmetry: Symmetry,
    build: Callable[[Learned], Model],
) -> RecursiveTransducer:
    """A transducer learned from pairs; ``build`` makes it from the induced rules."""
    pairs = list(pairs)
    seen = observe(pairs, symmetry)
    induced = induce(seen)
    model = build(Learned(induced.grammar, (), 0))
    assert isinstance(model, RecursiveTransducer)
    settled = _settle(seen, induced)
    left = fit_weights(model.aligner, [(o.form, o.target) for o in settled])
    model.fit_translator()
    model.take(_report(model, pairs, seen, induced, left))
    return model.eval()


def _settle(seen: Observations, induced: Induced) -> list[Observation]:
    """For each form the largest group of agreeing pairs that the grammar derives."""
    lost = set(induced.lost)
    found = {o.form: o for o in seen.all if o not in lost}
    forms = {o.form for o in lost}
    for o in seen.minor:
        wanted = o.form in forms and o.form not in found
        if wanted and parse(induced.grammar, o.form, o.target).root is not None:
            found[o.form] = o
    return list(found.values())


def _report(
    model: RecursiveTransducer,
    pairs: Sequence[Pair],
    seen: Observations,
    induced: Induced,
    left: float,
) -> Learned:
    """Which pairs the model explains, with which rules, and what is doubtful about it."""
    model.eval()
    distinct = list(dict.fromkeys(pairs))
    grammar, symmetry = induced.grammar, model.symmetry
    support: Counter[int] = Counter()
    by_form: dict[Form, set[int]] = {}
    texts: dict[Form, str | None] = {}
    exceptions: list[tuple[Pair, str]] = []
    aliens = {e.pair: e.reason for e in seen.exceptions}
    for pair in distinct:
        words = symmetry.source.encode(pair.source)
        form = model.form(words)
        if form not in texts:
            tree = model.aligner.tree(form)
            texts[form] = None if tree is None else text_of(grammar, tree)
            by_form[form] = set() if tree is None else set(_rules(tree))
        text = texts[form]
        if text is None:
            exceptions.append((pair, aliens.get(pair, "no derivation")))
            continue
        said = symmetry.target.decode(model.read_off(words, text))
        if said == pair.target:
            support.update(by_form[form])
        else:
            reason = f"the rules say: {' '.join(said)}"
            exceptions.append((pair, aliens.get(pair, reason)))
    names = Names(symmetry)
    warnings = _doubts(model, by_form, support, len(exceptions) / len(distinct), left)
    for bits, rival in induced.rivals:
        other = [names.rule(r) for r in rival.rules if r not in grammar]
        warnings.append(
            f"another grammar takes only {bits:.1f} bits more: it has "
            + ("; ".join(other) or "fewer rules")
        )
    return Learned(
        grammar=grammar,
        support=tuple(support[r] for r in range(len(grammar))),
        pairs=len(distinct),
        exceptions=tuple(exceptions),
        warnings=tuple(warnings),
        bits=induced.bits,
        noise=min(0.5, (len(exceptions) + 0.5) / (len(distinct) + 1)),
    )


def _doubts(
    model: RecursiveTransducer,
    by_form: dict[Form, set[int]],
    support: Counter[int],
    unexplained: float,
    left: float,
) -> list[str]:
    """What speaks against trusting the grammar."""
    names, rules = Names(model.symmetry), model.aligner.grammar.rules
    users = Counter(r for used in by_form.values() for r in used)
    alone = sum(any(users[r] == 1 for r in used) for used in by_form.values())
    found = []
    if unexplained > UNEXPLAINED:
        found.append(
            f"{100 * unexplained:.0f} % of the pairs are not explained: the data may lie outside "
            "what such rules can say"
        )
    if len(by_form) > 2 and alone > ONE_FORM * len(by_form):
        found.append(
            f"{alone} of {len(by_form)} forms need a rule of their own: rules that grow with the "
            "data are a sign that it lies outside what such rules can say (crossing or reversed "
            "order, say); longer sentences will not be right"
        )
    if left > UNSETTLED:
        found.append(
            f"the rules do not settle which derivation is right (−log p {left:.2f} per form): "
            "the data may lie outside what such rules can say; predictions are guesses"
        )
    for r, rule in enumerate(rules):
        if support[r] <= 1:
            found.append(f"only {support[r]} pair speaks for {names.rule(rule)}")
    return found


def _rules(tree: Tree) -> list[int]:
    return [tree.rule, *(r for child in tree.children for r in _rules(child))]
