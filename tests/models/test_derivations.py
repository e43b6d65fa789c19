"""Scores and yields of derivations, against a list of all of them."""

import math

import pytest

from equitrans.models.recursive import aligner as recursive_aligner
from equitrans.models.recursive.derivations import (
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
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from trees import (
    CLASSES,
    FORMS,
    NOT,
    OP,
    RICH,
    RULES,
    TWICE,
    A,
    B,
    derivations,
    log_sum,
    random_aligner,
    score,
)

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


def test_what_is_kept_sums_to_one_though_rules_at_the_root_have_more_yields():
    grammar, weights = copies(range(1, KEPT + 5), [0.0] * (KEPT + 4))
    found = alignments(grammar, weights, (A,))
    assert [len(a.text) for a in found] == list(range(1, KEPT + 1))
    assert [math.exp(a.log_prob) for a in found] == pytest.approx([1 / KEPT] * KEPT)


def test_among_equally_likely_yields_the_first_in_order_are_kept():
    counts = range(KEPT + 4, 0, -1)
    assert lengths(*copies(counts, [0.0] * len(counts))) == list(range(1, KEPT + 1))


# --- what is remembered


def test_alignments_are_worked_out_once_until_the_weights_change():
    aligner = random_aligner()
    before = aligner.alignments(FORMS[3])
    assert aligner.alignments(FORMS[3]) is before
    aligner.load_state_dict(random_aligner(seed=1).state_dict())
    assert aligner.alignments(FORMS[3]) != before


def test_forms_are_remembered_up_to_a_number(monkeypatch):
    monkeypatch.setattr(recursive_aligner, "REMEMBERED", 2)
    aligner = random_aligner()
    first, second = (aligner.alignments(form) for form in FORMS[:2])
    assert aligner.alignments(FORMS[0]) is first
    assert aligner.alignments(FORMS[1]) is second
    aligner.alignments(FORMS[2])
    again = aligner.alignments(FORMS[0])
    assert again is not first
    assert again == first
