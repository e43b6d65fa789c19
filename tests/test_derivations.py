"""Derivations one by one: what scores, yields, packed forests and trained weights must agree with.

Every derivation of a form is listed, and all that the charts sum up is summed up over the list.
"""

import math
import random
from itertools import combinations, product

import pytest
import torch

from equitrans.grammar.derivations import (
    FAINT,
    KEPT,
    Tree,
    Weights,
    alignments,
    best_tree,
    held,
    most_holes,
    text_of,
)
from equitrans.grammar.forests import Forest
from equitrans.grammar.rules import HOLE, Grammar, Rule
from equitrans.models import derivation_weights, recursive_aligner
from equitrans.models.derivation_weights import Packed, fit_weights
from equitrans.models.recursive_aligner import RecursiveAligner

A, B, OP, TWICE, NOT = range(5)
CLASSES = (B, A)
RULES = (
    Rule((A,), (0,)),
    Rule((B,), (0,)),
    Rule((A,), (0, 0)),
    Rule((HOLE, OP, HOLE), (2, 0)),
    Rule((HOLE, TWICE), (0, 0)),
    Rule((NOT, HOLE), (~7, 1)),
    Rule((HOLE, HOLE), (0, 1)),
    Rule((HOLE, OP, HOLE), (0,)),  # what stands in its second hole is dropped
    Rule((HOLE, OP, B), (0,)),
)
RICH = Grammar(RULES)
FORMS = (
    (A,),
    (B, A),
    (A, OP, B),
    (NOT, A, TWICE),
    (A, B, A),
    (B, OP, A, TWICE),
    (A, OP, B, OP, B),
    (B, B, OP, B, A),
)


def derivations(grammar, form, i=0, j=None):
    """Every derivation of a span."""
    j = len(form) if j is None else j
    found = []
    for r, rule in enumerate(grammar.rules):
        for cuts in combinations(range(i + 1, j), len(rule.left) - 1):
            ends = (i, *cuts, j)
            spans = tuple((ends[k], ends[k + 1]) for k in range(len(rule.left)))
            if all(
                s == HOLE or form[p:q] == (s,) for s, (p, q) in zip(rule.left, spans, strict=True)
            ):
                below = [derivations(grammar, form, *spans[hole]) for hole in rule.holes]
                found += [Tree(r, spans, kids) for kids in product(*below)]
    return found


def score(grammar, weights, form, tree):
    """The sum of the weights of a derivation's rules, of who is in whose hole, and of classes."""
    total = weights.rule[tree.rule]
    for k, (hole, child) in enumerate(
        zip(grammar.rules[tree.rule].holes, tree.children, strict=True)
    ):
        total += weights.child[tree.rule][k][child.rule] + score(grammar, weights, form, child)
        start, stop = tree.spans[hole]
        for c, symbol in enumerate(weights.classes):
            if symbol in form[start:stop]:
                total += weights.holds[tree.rule][k][c]
    return total


def random_aligner(grammar=RICH, seed=0):
    aligner = RecursiveAligner(grammar, CLASSES)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in aligner.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return aligner


def log_sum(scores):
    return math.log(math.fsum(map(math.exp, scores)))


# --- scores and yields


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_probability_of_an_alignment_is_the_share_of_its_derivations(form):
    weights = random_aligner().weights()
    by_text = {}
    for tree in derivations(RICH, form):
        by_text.setdefault(text_of(RICH, tree), []).append(score(RICH, weights, form, tree))
    total = log_sum(s for scores in by_text.values() for s in scores)
    expected = {text: log_sum(scores) - total for text, scores in by_text.items()}
    found = alignments(RICH, weights, form)
    assert len(expected) <= KEPT
    assert {a.text: a.log_prob for a in found} == pytest.approx(expected, abs=1e-4)
    assert [a.log_prob for a in found] == sorted((a.log_prob for a in found), reverse=True)


def test_without_weights_every_derivation_is_as_likely_as_any_other():
    form = (A, OP, B, TWICE)
    trees = derivations(RICH, form)
    # not that all have the same number of rules
    assert len({str(tree).count("rule=") for tree in trees}) > 1
    texts = [text_of(RICH, tree) for tree in trees]
    for a in alignments(RICH, Weights.zero(RICH, CLASSES), form):
        assert math.exp(a.log_prob) == pytest.approx(texts.count(a.text) / len(texts))


def test_alignments_that_are_as_likely_come_in_the_order_of_their_yields():
    grammar = Grammar([Rule((A, B), (1, 0)), Rule((A, B), (0, 1))])
    found = alignments(grammar, Weights.zero(grammar, ()), (A, B))
    assert [a.text for a in found] == ["\0\1", "\1\0"]


def test_a_class_weighs_in_a_hole_as_often_as_it_is_there_which_is_once():
    weights = Weights.zero(RICH, CLASSES)
    weights.holds[3][1][:] = [0.25, 8.0]
    form = (A, A, B, TWICE, B)
    assert held(weights, form, 3, 1, (2, 5)) == 0.25
    assert held(weights, form, 3, 1, (0, 2)) == 8.0
    assert held(weights, form, 3, 1, (0, 5)) == 8.25
    assert held(weights, form, 3, 1, (3, 4)) == 0.0
    assert held(weights, form, 3, 0, (0, 5)) == 0.0


def test_weights_for_other_classes_are_refused():
    weights = Weights.zero(RICH, CLASSES)
    other = Weights(weights.rule, weights.child, weights.holds, (*CLASSES, OP))
    with pytest.raises(ValueError, match="shorter"):
        held(other, (A, B), 3, 0, (0, 1))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_best_tree_is_the_derivation_with_the_highest_score(form, seed):
    weights = random_aligner(seed=seed).weights()
    scores = {tree: score(RICH, weights, form, tree) for tree in derivations(RICH, form)}
    assert best_tree(RICH, weights, form) == max(scores, key=lambda tree: scores[tree])


def test_of_equally_good_derivations_the_best_tree_takes_the_first_rules():
    grammar = Grammar([Rule((A,), (0,)), Rule((A,), (0, 0)), Rule((NOT, HOLE), (1,))])
    zero = Weights.zero(grammar, ())
    leaf = Tree(0, ((1, 2),), ())
    assert best_tree(grammar, zero, (NOT, A)) == Tree(2, ((0, 1), (1, 2)), (leaf,))
    assert best_tree(grammar, zero, (A,)) == Tree(0, ((0, 1),), ())


def test_of_equally_good_ways_to_lay_a_rule_the_best_tree_takes_the_first():
    grammar = Grammar([Rule((A,), (0,)), Rule((HOLE, HOLE), (0, 1))])
    tree = best_tree(grammar, Weights.zero(grammar, ()), (A, A, A))
    assert tree is not None
    assert tree.spans == ((0, 1), (1, 3))


def test_what_has_no_derivation_has_no_alignment_and_no_tree():
    zero = Weights.zero(RICH, CLASSES)
    assert alignments(RICH, zero, (OP, A)) == []
    assert best_tree(RICH, zero, (OP, A)) is None


def test_a_grammar_has_room_for_one_hole_even_if_it_has_none():
    assert most_holes(Grammar()) == 1
    assert most_holes(Grammar(RULES[:3])) == 1
    assert most_holes(RICH) == 2


# --- what is kept


def copies(counts, scores):
    """A grammar that says a word so and so often, under another rule, and the weights of that."""
    grammar = Grammar([*(Rule((A,), (0,) * n) for n in counts), Rule((NOT, HOLE), (1,))])
    weights = Weights.zero(grammar, ())
    weights.rule[: len(counts)] = scores
    return grammar, weights


def lengths(grammar, weights):
    return [len(a.text) for a in alignments(grammar, weights, (NOT, A))]


def test_a_yield_is_forgotten_when_it_is_as_faint_as_the_limit():
    assert lengths(*copies((1, 2), [0.0, -FAINT])) == [1]
    assert lengths(*copies((1, 2), [0.0, -FAINT + 0.01])) == [1, 2]
    assert lengths(*copies((1, 2, 3), [-FAINT, 0.0, -1.0])) == [2, 3]


def test_the_likeliest_yields_are_kept_up_to_a_number():
    counts = range(KEPT + 4, 0, -1)
    # the more copies, the likelier
    grammar, weights = copies(counts, [n / 10 for n in counts])
    assert lengths(grammar, weights) == list(counts)[:KEPT]
    assert lengths(*copies(counts[:KEPT], [0.0] * KEPT)) == sorted(counts[:KEPT])


def test_among_equally_likely_yields_the_first_in_order_are_kept():
    counts = range(KEPT + 4, 0, -1)
    assert lengths(*copies(counts, [0.0] * len(counts))) == list(range(1, KEPT + 1))


# --- forests


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
    """The derivations of a form whose yield a target allows."""
    return [
        tree
        for tree in derivations(RICH, form)
        if len(text := text_of(RICH, tree)) == len(target)
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
        for text in sorted({text_of(RICH, tree) for tree in derivations(RICH, form)}):
            target = tuple("".join(sorted({a, draw.choice(text)})) for a in text)
            for each in {tuple(text), target} - {t for f, t in nodes if f == form}:
                nodes[form, each] = forest.add_under(form, each)
    found = values(aligner, forest)
    for (form, target), node in nodes.items():
        expected = log_sum(score(RICH, weights, form, t) for t in fitting(form, target))
        assert found[node] == pytest.approx(expected, abs=1e-10)


def test_what_a_rule_drops_is_summed_over_whatever_the_target():
    # the second part, of three words, yields nothing that the target has
    form, target = (B, OP, A, OP, B), ("\0",)
    trees = fitting(form, target)
    assert len({tree.children[-1] for tree in trees if tree.children}) > 2
    aligner, forest = random_aligner(), Forest(RICH, CLASSES)
    under = forest.add_under(form, target)
    expected = log_sum(score(RICH, aligner.weights(), form, t) for t in trees)
    assert values(aligner, forest)[under] == pytest.approx(expected, abs=1e-10)


def test_nodes_stand_above_the_nodes_of_their_edges():
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
    # of a part nothing is new but the node over its rules
    assert forest.add(FORMS[-1][-2:]) == size[0]
    assert len(forest.levels) == size[0] + 1


def test_a_form_without_a_derivation_is_a_node_without_edges():
    forest = Forest(RICH, CLASSES)
    node = forest.add((OP,))
    assert (forest.levels, forest.edges) == ([1], [])
    assert node == 0
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


def test_weights_stay_at_the_counts_when_they_are_pulled_hard(monkeypatch):
    monkeypatch.setattr(derivation_weights, "PULL", 1e9)
    # not (a op a): each rule stands once in the hole that it stands in, the word in two
    aligner, _ = fitted([(WIDE, ("\1", "\3", "\1", "\3"))])
    n, smooth = len(TWO), derivation_weights.SMOOTHING
    counts = torch.full((n, 2, n), smooth)
    counts[1, 0, 3] += 1
    counts[3, 0, 0] += 1
    counts[3, 1, 0] += 1
    assert torch.allclose(aligner.child, torch.log(counts / counts.sum(2, keepdim=True)))
    assert torch.allclose(aligner.rule, torch.zeros(n), atol=1e-6)
    assert torch.allclose(aligner.holds, torch.zeros(n, 2, 2), atol=1e-6)


def test_derivations_of_a_target_share_its_count(monkeypatch):
    monkeypatch.setattr(derivation_weights, "PULL", 1e9)
    # (not a) twice and not (a twice), alike in what they yield: half a count each
    aligner, _ = fitted([((NOT, A, TWICE), ("\1", "\1"))])
    smooth = derivation_weights.SMOOTHING
    share = (0.5 + smooth) / (1 + len(TWO) * smooth)
    for rule, child in ((1, 0), (1, 2), (2, 0), (2, 1)):
        assert math.exp(aligner.weights().child[rule][0][child]) == pytest.approx(share)


def counted(observed, monkeypatch, edges):
    """The (rule, child) that are counted in a first hole when training has room for so many edges,
    and −log p.
    """
    monkeypatch.setattr(derivation_weights, "PULL", 1e9)
    monkeypatch.setattr(derivation_weights, "EDGES", edges)
    aligner, left = fitted(observed)
    child = torch.tensor(aligner.weights().child)[:, 0]
    seen = {(r, c) for r, c in (child > child.mean(1, keepdim=True) + 0.1).nonzero().tolist()}
    return seen, left


def edges_of(*observed):
    forest = Forest(TWO, CLASSES)
    for form, target in observed:
        forest.add_under(form, target)
        forest.add(form)
    return len(forest.edges)


SHORT, LONG = ((NOT, A), ("\1", "\1")), ((A, OP, A, TWICE), ("\0", "\2"))


def test_the_shortest_forms_are_trained_on_first(monkeypatch):
    both = {(1, 0), (2, 0), (2, 3), (3, 0)}
    assert counted([LONG, SHORT], monkeypatch, 10_000)[0] == both
    seen, left = counted([LONG, SHORT], monkeypatch, 0)
    assert seen == {(1, 0)}
    assert left == pytest.approx(0.0, abs=1e-9)


def test_forms_are_added_until_there_are_more_edges_than_the_limit(monkeypatch):
    limit = edges_of(SHORT)
    assert len(counted([LONG, SHORT], monkeypatch, limit)[0]) > 1
    assert len(counted([LONG, SHORT], monkeypatch, limit - 1)[0]) == 1


def test_forms_of_one_length_are_trained_on_in_their_order(monkeypatch):
    other = ((NOT, B), ("\1", "\1"))
    assert counted([other, SHORT], monkeypatch, 0)[0] == {(1, 0)}


def test_nothing_is_trained_where_no_target_is_derived():
    aligner = random_aligner(TWO)
    before = aligner.flat().tolist()
    assert fit_weights(aligner, []) == 0.0
    assert fit_weights(aligner, [((NOT, A), ("\1",)), ((OP,), ("\0",))]) == 0.0
    assert aligner.flat().tolist() == before
