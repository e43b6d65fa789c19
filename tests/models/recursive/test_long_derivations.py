"""Derivations that are deep, yield long targets, or are very many: time and memory are bounded."""

import time
import tracemalloc

import pytest

from equitrans.analysis.evaluation import predict
from equitrans.data.pairs import Pair
from equitrans.models.recursive import aligner as recursive_aligner, rules as recursive_rules
from equitrans.models.recursive.chart import yield_of
from equitrans.models.recursive.rules import HOLE, Rule
from worlds import SOURCE, TARGET, VERBS, small_recursive, symmetry, unshared

WORLD = symmetry(VERBS)
(GO,) = TARGET.encode(("go",))


def word(text):
    return WORLD.source_classes[SOURCE.index[text]]


VERB, AND, TWICE, AFTER, LEFT = map(word, ("walk", "and", "twice", "after", "left"))
RULES = (
    Rule((VERB,), (0,)),
    Rule((HOLE, TWICE), (0, 0)),
    Rule((HOLE, AND, HOLE), (0, 2)),
    Rule((HOLE, AFTER), (0,)),
    Rule((HOLE, LEFT, HOLE), (2,)),  # drops its first hole
)


def model_of(rules=RULES):
    return small_recursive(WORLD, rules, noise=0.05)


def doubled(times):
    return ("walk", *["twice"] * times)


def predicted(model, source, *, max_length=4010, n_best=1):
    (best,) = predict(model, [source], width=1, max_length=max_length, n_best=n_best)
    return best


@pytest.mark.parametrize("n_best", [1, 5])
def test_a_prediction_that_is_too_long_is_refused_and_not_built(n_best):
    model = model_of()
    model.aligner.alignments((VERB,))
    tracemalloc.start()
    begun = time.thread_time()
    (best,) = predicted(model, doubled(40), n_best=n_best)
    seconds, (_, peak) = time.thread_time() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert best.words == ()
    assert best.is_refused
    assert seconds < 2
    assert peak < 5e6
    reason = "the target would have 1099511627776 words; the limit is 4010"
    assert model.refusal(doubled(40), max_length=4010) == reason


def test_the_limit_of_the_model_is_the_limit_of_its_predictions():
    model = model_of()
    assert len(predicted(model, doubled(4), max_length=16)[0].words) == 16
    assert predicted(model, doubled(5), max_length=16)[0].is_refused
    reason = "the target would have 32 words; the limit is 16"
    assert model.refusal(doubled(5), max_length=16) == reason


def test_alternatives_that_are_too_long_are_left_out():
    double = Rule((HOLE, AFTER), (0, 0))
    model = model_of([*RULES[:2], RULES[3], double])
    source = (*doubled(3), "after")
    assert sorted(len(p.words) for p in predicted(model, source, n_best=9)) == [8, 16]
    short = predicted(model, source, max_length=8, n_best=9)
    assert len(short) == 1
    assert short[0].is_refused or len(short[0].words) == 8


def test_a_long_part_that_its_rule_drops_does_not_count():
    model = model_of()
    (best,) = predicted(model, (*doubled(40), "left", "jump"))
    assert len(best.words) == 1
    tree = model.aligner.tree(model.form(SOURCE.encode((*doubled(40), "left", "jump"))))
    assert yield_of(model.aligner.grammar, tree) == chr(42)


def test_the_likelihood_of_a_pair_with_a_long_derivation_is_that_of_noise():
    model = model_of()
    batch = unshared([Pair(doubled(40), ("WALK",))], WORLD)
    noise = 0.05 * (1 / 12) ** 2
    assert float(model.loss(batch).detach().neg().exp()[0]) == pytest.approx(noise)
    assert model.alignments(batch).shape == (1, 2, 43)
    assert model.parts(batch).aligned.shape == (1, 2, 43)


# --- deep derivations


DEEP = ("walk", *["after"] * 999)


def test_a_derivation_a_thousand_deep_is_predicted_and_shown():
    model = model_of()
    (best,) = predicted(model, DEEP)
    assert len(best.words) == 1
    derivation = model.derivation(DEEP)
    nodes = list(derivation.root.walk())
    assert [depth for depth, _ in nodes] == list(range(1000))
    assert nodes[-1][1].rule == "<verbs> → 0"
    assert str(derivation).count("\n") == 999
    batch = unshared([Pair(DEEP, ("WALK",))], WORLD)
    assert model.loss(batch).isfinite().all()
    assert float(model.alignments(batch)[0, 0, 1]) == pytest.approx(1.0)
    assert model.parts(batch).aligned.shape == (1, 2, 1002)


def test_the_origins_of_a_deep_derivation_with_constants_are_found():
    model = model_of([RULES[0], Rule((HOLE, AFTER), (0, ~GO))])
    (best,) = predicted(model, DEEP)
    assert len(best.words) == 1000
    batch = unshared([Pair(DEEP, best.words)], WORLD)
    prob = model.alignments(batch)[0]
    assert prob.argmax(1).tolist() == [*range(1, 1001), 1001]


def test_a_left_side_of_a_thousand_symbols_is_laid():
    model = model_of([Rule((VERB,), (0,)), Rule((HOLE, *[AFTER] * 999), (0,))])
    assert len(predicted(model, DEEP)[0].words) == 1
    holes = Rule((HOLE,) * 500, (0,))
    assert len(predicted(model_of([RULES[0], holes]), ("walk",) * 500)[0].words) == 1


# --- very many derivations


CHAIN = ("walk", *["and", "walk"] * 30)


def test_a_sentence_with_too_many_analyses_is_refused(monkeypatch):
    monkeypatch.setattr(recursive_rules, "MOST_ANALYSES", 1000)
    model = model_of()
    assert predicted(model, CHAIN)[0].is_refused
    assert model.derivation(CHAIN) is None
    assert model.refusal(CHAIN) == "the sentence has too many derivations"
    assert len(predicted(model, CHAIN[:21])[0].words) == 11


def test_a_part_whose_analyses_were_cut_short_is_not_cached(monkeypatch):
    model, form = model_of(), model_of().form(SOURCE.encode(CHAIN[:9]))
    with monkeypatch.context() as patch:
        patch.setattr(recursive_rules, "MOST_ANALYSES", 20)
        assert model.aligner.grammar.analyses(form) == {}
    assert model.aligner.grammar.analyses(form) == model_of().aligner.grammar.analyses(form)


@pytest.mark.parametrize("limit", ["MOST_JOINS", "MOST_CHARACTERS"])
def test_a_sentence_with_too_many_yields_is_refused(limit, monkeypatch):
    monkeypatch.setattr(recursive_aligner, limit, 10)
    model = model_of()
    assert predicted(model, CHAIN[:9])[0].is_refused
    assert model.refusal(CHAIN[:9]) == "the sentence has too many derivations"
