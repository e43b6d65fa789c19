"""Forests and the weights trained on them, against a list of all derivations."""

import math
import random
from itertools import product

import pytest
import torch

from equitrans.models.recursive import weights as derivation_weights
from equitrans.models.recursive.chart import yield_of
from equitrans.models.recursive.forest import Forest, Packed
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.weights import fit_weights
from trees import (
    CLASSES,
    FORMS,
    NOT,
    OP,
    RICH,
    TWICE,
    A,
    B,
    derivations,
    log_sum,
    random_aligner,
    score,
)


def values(aligner, forest):
    """The value of every node."""
    packed = Packed(forest)
    by_place = packed.values(aligner.flat().detach()).tolist()
    return {node: by_place[place] for node, place in packed.place.items()}


def test_a_forest_sums_over_all_derivations_of_every_form_in_it():
    aligner, forest = random_aligner(), Forest(RICH, CLASSES)
    nodes = {form: forest.add(form) for form in FORMS}
    weights, found = aligner.weights(), values(aligner, forest)
    for form, node in nodes.items():
        expected = log_sum(score(RICH, weights, form, t) for t in derivations(RICH, form))
        assert found[node] == pytest.approx(expected, abs=1e-10)


def fitting(form, target):
    """The derivations of a form whose yield fits a target."""
    return [
        tree
        for tree in derivations(RICH, form)
        if len(text := yield_of(RICH, tree)) == len(target)
        and all(a in atoms for a, atoms in zip(text, target, strict=True))
    ]


@pytest.mark.parametrize("first", ["all", "under a target"])
def test_a_forest_under_a_target_sums_over_the_derivations_that_yield_it(first):
    aligner, forest = random_aligner(), Forest(RICH, CLASSES)
    weights, draw = aligner.weights(), random.Random(0)
    nodes = {}
    for form in FORMS[:6]:
        if first == "all":
            forest.add(form)
        for text in sorted({yield_of(RICH, tree) for tree in derivations(RICH, form)}):
            target = tuple("".join(sorted({a, draw.choice(text)})) for a in text)
            for each in {tuple(text), target} - {t for f, t in nodes if f == form}:
                nodes[form, each] = forest.add_under(form, each)
    found = values(aligner, forest)
    for (form, target), node in nodes.items():
        expected = log_sum(score(RICH, weights, form, t) for t in fitting(form, target))
        assert found[node] == pytest.approx(expected, abs=1e-10)


def test_a_dropped_hole_is_summed_over_all_its_derivations():
    # no yield of the second part, of three words, is a piece of the target
    form, target = (B, OP, A, OP, B), ("\0",)
    trees = fitting(form, target)
    assert len({tree.children[-1] for tree in trees if tree.children}) > 2
    aligner, forest = random_aligner(), Forest(RICH, CLASSES)
    under = forest.add_under(form, target)
    expected = log_sum(score(RICH, aligner.weights(), form, t) for t in trees)
    assert values(aligner, forest)[under] == pytest.approx(expected, abs=1e-10)


def test_a_node_has_a_higher_level_than_the_nodes_below():
    forest = Forest(RICH, CLASSES)
    for form in FORMS:
        forest.add_under(form, ("\0",))
        forest.add(form)
    assert all(
        forest.levels[b] < forest.levels[node] for node, _, below in forest.edges for b in below
    )


def test_a_form_is_packed_once_and_so_are_its_parts():
    forest = Forest(RICH, CLASSES)
    whole = forest.add(FORMS[-1])
    size = len(forest.levels), len(forest.edges)
    assert forest.add(FORMS[-1]) == whole
    assert (len(forest.levels), len(forest.edges)) == size
    # a part that is packed already adds only its top node
    assert forest.add(FORMS[-1][-2:]) == size[0]
    assert len(forest.levels) == size[0] + 1


def test_a_form_under_a_target_is_packed_once():
    forest = Forest(RICH, CLASSES)
    under = forest.add_under((A, OP, B, OP, B), ("\0",))
    assert under is not None
    size = len(forest.levels), len(forest.edges)
    assert forest.add_under((A, OP, B, OP, B), ("\0",)) == under
    assert (len(forest.levels), len(forest.edges)) == size


def test_a_form_without_a_derivation_has_no_node():
    forest = Forest(RICH, CLASSES)
    assert forest.add((OP,)) is None
    assert (forest.levels, forest.edges) == ([], [])
    assert forest.add_under((OP,), ("\0",)) is None
    assert forest.add_under((A,), ("\0", "\0", "\0")) is None


# --- weights


TWO = Grammar(
    [
        Rule((A,), (0,)),
        Rule((NOT, HOLE), (1, 1)),
        Rule((HOLE, TWICE), (0,)),
        Rule((HOLE, OP, HOLE), (0, 2)),
        Rule((B,), (0,)),
    ]
)
WIDE = (NOT, A, OP, A)


def fitted(observed, grammar=TWO, seed=0):
    aligner = random_aligner(grammar, seed)
    return aligner, fit_weights(aligner, observed)


def first_yield(aligner, form):
    return aligner.alignments(form)[0].text


def test_the_prior_of_a_weight_is_the_walk_between_places_that_share_rules(monkeypatch):
    monkeypatch.setattr(derivation_weights, "PULL", 1e9)
    # not (a op a), a twice, and b by itself: the word a connects the holes of op and twice
    aligner, found = fitted(
        [(WIDE, ("\1", "\3", "\1", "\3")), ((A, TWICE), ("\0",)), ((B, TWICE), ("\0",))]
    )
    expected = {(-1, 0, 1), (-1, 0, 2), (1, 0, 3), (2, 0, 0), (2, 0, 4), (3, 0, 0), (3, 1, 0)}
    assert found.licences.needed == expected
    lowest = -derivation_weights.UNLICENSED
    child = torch.full((len(TWO), 2, len(TWO)), lowest)
    for r, k, c in expected - {(-1, 0, 1), (-1, 0, 2)}:
        child[r, k, c] = 0.0
    # from a hole of op to the word a, on to one of its three places: b stands in one of them
    child[3, :, 4] = math.log(1 / 3)
    assert torch.allclose(aligner.child, child, atol=1e-4)
    assert torch.allclose(aligner.root, torch.tensor([lowest, 0, 0, lowest, lowest]), atol=1e-4)
    assert torch.allclose(aligner.holds, torch.zeros(len(TWO), 2, 2), atol=1e-6)


def test_derivations_that_are_as_likely_are_all_needed():
    # (not a) twice and not (a twice) have the same yield
    _, found = fitted([((NOT, A, TWICE), ("\1", "\1"))])
    steps = {(-1, 0, 1), (-1, 0, 2), (1, 0, 0), (1, 0, 2), (2, 0, 0), (2, 0, 1)}
    assert found.licences.needed == steps


AFTER, LEFT, RIGHT = 5, 6, 7
ORDERS = Grammar(
    [
        Rule((A,), (0,)),
        Rule((HOLE, OP, HOLE), (0, 2)),
        Rule((HOLE, AFTER, HOLE), (2, 0)),
        Rule((HOLE, LEFT), (~8, 0)),
        Rule((HOLE, RIGHT), (~9, 0)),
    ]
)
GO = chr(0x10000 + 8)


def test_a_derivation_that_others_contradict_is_not_needed():
    # a after (a left) and (a after a) left have the same yield, but a op (a left) has its own
    both = [((A, AFTER, A, LEFT), (GO, "\2", "\0")), ((A, OP, A, LEFT), ("\0", GO, "\2"))]
    _, found = fitted([*both, ((A, LEFT), (GO, "\0"))], ORDERS)
    assert (2, 1, 3) in found.licences.needed
    assert not {(3, 0, 1), (3, 0, 2)} & found.licences.needed


def test_what_was_seen_of_a_rule_decides_about_one_that_looks_alike():
    left = [((A, OP, A, LEFT), ("\0", GO, "\2")), ((A, AFTER, A), ("\2", "\0"))]
    other = chr(0x10000 + 9)
    aligner, _ = fitted([*left, ((A, RIGHT), (other, "\0"))], ORDERS)
    # neither after nor right met left or each other
    first = aligner.alignments((A, OP, A, RIGHT))[0]
    assert first.text == f"\0{other}\2"
    assert first.log_prob > math.log(0.7)


def test_other_targets_of_a_form_make_their_derivations_as_likely_as_their_pairs_are_many():
    form = (NOT, A, OP, B)
    wide, narrow = [
        target for tree in derivations(TWO, form) for target in [tuple(yield_of(TWO, tree))]
    ]
    shares = []
    for share in (0.05, 0.25, 1.0):
        aligner = random_aligner(TWO)
        fit_weights(aligner, [(form, wide)], [(form, narrow, share)])
        p = {a.text: math.exp(a.log_prob) for a in aligner.alignments(form)}
        shares.append(p["".join(narrow)])
    # a rare one counts as noise
    assert shares[0] < 0.02
    assert shares[1:] == pytest.approx([0.2, 0.5], abs=0.05)


def counted(observed, monkeypatch, edges):
    """The (rule, child) needed in first holes under a limit of edges, and −log p."""
    monkeypatch.setattr(derivation_weights, "EDGES", edges)
    aligner, found = fitted(observed)
    child = torch.tensor(aligner.weights().child)[:, 0]
    return {(r, c) for r, c in (child > -0.5).nonzero().tolist()}, found


SHORT, LONG = ((NOT, A), ("\1", "\1")), ((A, OP, A, TWICE), ("\0", "\2"))


def test_the_shortest_forms_are_trained_on_first(monkeypatch):
    seen, found = counted([LONG, SHORT], monkeypatch, 0)
    assert seen == {(1, 0)}
    assert found.uncertainty == pytest.approx(0.0, abs=1e-9)


def test_a_form_beyond_the_limit_has_its_licences(monkeypatch):
    _, found = counted([LONG, SHORT], monkeypatch, 0)
    assert {(-1, 0, 1), (1, 0, 0), (3, 0, 0)} <= found.licences.needed


def test_weights_stay_as_they_are_if_no_target_is_derived():
    aligner = random_aligner(TWO)
    before = aligner.flat().tolist()
    for observed in ([], [((NOT, A), ("\1",)), ((OP,), ("\0",))]):
        found = fit_weights(aligner, observed)
        assert (found.uncertainty, found.licences.needed) == (0.0, frozenset())
    assert aligner.flat().tolist() == before


def some_targets(length, seed):
    """A derivable target for every form of a length that has one."""
    draw = random.Random(seed)
    every = {
        form: sorted({yield_of(RICH, tree) for tree in derivations(RICH, form)})
        for form in product(range(5), repeat=length)
    }
    return [(form, tuple(draw.choice(texts))) for form, texts in every.items() if texts]


def test_the_uncertainty_is_the_mean_surprise_of_the_targets():
    observed = some_targets(3, seed=0)[::2]
    aligner, found = fitted(observed, RICH)
    weights = aligner.weights()
    total = 0.0
    for form, target in observed:
        scores = [score(RICH, weights, form, tree) for tree in derivations(RICH, form)]
        right = [score(RICH, weights, form, tree) for tree in fitting(form, target)]
        total += log_sum(scores) - log_sum(right)
    assert found.uncertainty == pytest.approx(total / len(observed))


def test_training_leaves_less_surprise_the_less_it_is_pulled(monkeypatch):
    observed = some_targets(3, seed=0)[::2]
    left = []
    for pull in (1e9, 1.0, 0.05):
        monkeypatch.setattr(derivation_weights, "PULL", pull)
        left.append(fitted(observed, RICH)[1].uncertainty)
    assert left[0] > left[1] > left[2]


def test_weights_are_trained_in_double_precision_also_if_stored_in_single():
    observed = some_targets(2, seed=0)
    _, expected = fitted(observed, RICH)
    aligner = random_aligner().float()
    found = fit_weights(aligner, observed)
    assert found.uncertainty == pytest.approx(expected.uncertainty, abs=1e-12)
    assert aligner.rule.dtype == torch.float32
