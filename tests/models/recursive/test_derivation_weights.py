"""Forests and the weights trained on them, against a list of all derivations."""

import math
import random
from itertools import product

import pytest
import torch

from equitrans.models.recursive import weights as derivation_weights
from equitrans.models.recursive.chart import yield_of
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.weights import Forest, Packed, fit_weights
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


def test_weights_start_from_smoothed_relative_frequencies(monkeypatch):
    monkeypatch.setattr(derivation_weights, "PULL", 1e9)
    # not (a op a): each hole has one rule; the word stands in two holes
    aligner, _ = fitted([(WIDE, ("\1", "\3", "\1", "\3"))])
    n, smooth = len(TWO), derivation_weights.SMOOTHING
    counts = torch.full((n, 2, n), smooth)
    counts[1, 0, 3] += 1
    counts[3, 0, 0] += 1
    counts[3, 1, 0] += 1
    assert torch.allclose(aligner.child, torch.log(counts / counts.sum(2, keepdim=True)))
    assert torch.allclose(aligner.rule, torch.zeros(n), atol=1e-6)
    assert torch.allclose(aligner.holds, torch.zeros(n, 2, 2), atol=1e-6)


def test_the_derivations_of_a_target_share_its_count(monkeypatch):
    monkeypatch.setattr(derivation_weights, "PULL", 1e9)
    # (not a) twice and not (a twice) have the same yield: half a count each
    aligner, _ = fitted([((NOT, A, TWICE), ("\1", "\1"))])
    smooth = derivation_weights.SMOOTHING
    share = (0.5 + smooth) / (1 + len(TWO) * smooth)
    for rule, child in ((1, 0), (1, 2), (2, 0), (2, 1)):
        assert math.exp(aligner.weights().child[rule][0][child]) == pytest.approx(share)


def counted(observed, monkeypatch, edges):
    """The (rule, child) counted in first holes under a limit of edges, and −log p."""
    monkeypatch.setattr(derivation_weights, "PULL", 1e9)
    monkeypatch.setattr(derivation_weights, "EDGES", edges)
    aligner, left = fitted(observed)
    child = torch.tensor(aligner.weights().child)[:, 0]
    seen = {(r, c) for r, c in (child > child.mean(1, keepdim=True) + 0.1).nonzero().tolist()}
    return seen, left


SHORT, LONG = ((NOT, A), ("\1", "\1")), ((A, OP, A, TWICE), ("\0", "\2"))


def test_the_shortest_forms_are_trained_on_first(monkeypatch):
    both = {(1, 0), (2, 0), (2, 3), (3, 0)}
    assert counted([LONG, SHORT], monkeypatch, 10_000)[0] == both
    seen, left = counted([LONG, SHORT], monkeypatch, 0)
    assert seen == {(1, 0)}
    assert left == pytest.approx(0.0, abs=1e-9)


def test_weights_stay_as_they_are_if_no_target_is_derived():
    aligner = random_aligner(TWO)
    before = aligner.flat().tolist()
    assert fit_weights(aligner, []) == 0.0
    assert fit_weights(aligner, [((NOT, A), ("\1",)), ((OP,), ("\0",))]) == 0.0
    assert aligner.flat().tolist() == before


def some_targets(length, seed):
    """A derivable target for every form of a length that has one."""
    draw = random.Random(seed)
    every = {
        form: sorted({yield_of(RICH, tree) for tree in derivations(RICH, form)})
        for form in product(range(5), repeat=length)
    }
    return [(form, tuple(draw.choice(texts))) for form, texts in every.items() if texts]


def test_training_maximises_the_regularised_likelihood(monkeypatch):
    observed = some_targets(3, seed=0)[::2]
    aligner, left = fitted(observed, RICH)
    with monkeypatch.context() as patch:
        patch.setattr(derivation_weights, "PULL", 1e9)
        start = fitted(observed, RICH)[0].flat().detach()
    forest = Forest(RICH, CLASSES)
    nodes = [(forest.add_under(form, target), forest.add(form)) for form, target in observed]
    packed = Packed(forest)
    under, over = (
        torch.tensor([packed.place[n] for n in side]) for side in zip(*nodes, strict=True)
    )
    flat = aligner.flat().detach().requires_grad_()
    values = packed.values(flat)
    unlikely = (values[over] - values[under]).sum()
    assert left == pytest.approx(float(unlikely.detach()) / len(observed))
    (unlikely + derivation_weights.PULL * ((flat - start) ** 2).sum()).backward()
    assert float(flat.grad.abs().max()) < 1e-4


def test_weights_are_trained_in_double_precision_also_if_stored_in_single():
    observed = some_targets(2, seed=0)
    _, expected = fitted(observed, RICH)
    aligner = random_aligner().float()
    assert fit_weights(aligner, observed) == pytest.approx(expected, abs=1e-12)
    assert aligner.rule.dtype == torch.float32
