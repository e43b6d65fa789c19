"""Rules with a second model: one distribution, one search, and the part that answered."""

import json
import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from equitrans import BackoffConfig, LexicalClass, Pair, Trained, TrainingConfig, fit
from equitrans.analysis.evaluation import losses
from equitrans.errors import LearningWarning
from equitrans.models.backoff import least_confidence
from equitrans.training import Estimator

VERBS = LexicalClass("verbs", ("walk", "jump", "look"), ("WALK", "JUMP", "LOOK"))
PAIRS = [
    Pair((v, *more), (a,) * n)
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
    for more, n in (((), 1), (("twice",), 2), (("thrice",), 3))
]
ODD = Pair(("never", "walk", "thrice"), ("NO",))
"""A pair that no other one explains."""
SIZES = {"k": 3, "d": 2, "embedding": 4, "hidden": 6}


def learned(second="transducer", **settings):
    training = TrainingConfig(updates=40)
    config = BackoffConfig(second=second, **SIZES, **settings)
    with pytest.warns(LearningWarning, match="learned rules|predicts only"):
        return fit([*PAIRS, ODD], [VERBS], model=config, training=training)


@pytest.fixture(scope="module", params=["transducer", "attention"])
def trained(request):
    torch.set_default_dtype(torch.float64)
    return learned(request.param)


def confident(trained, value):
    """The model with another confidence."""
    trained.model.confidence.fill_(value)
    return trained


def targets(trained, longest):
    words = trained.symmetry.target.words
    return [t for n in range(longest + 1) for t in product(words, repeat=n)]


def test_a_source_is_derived_or_left_to_the_second_model(trained):
    derives = {
        source: trained.model.derives(trained.symmetry.source.encode(source.split()))
        for source in ("jump", "jump thrice", "twice", "jump jump")
    }
    assert derives == {"jump": True, "jump thrice": True, "twice": False, "jump jump": False}


def test_the_probability_is_the_mixture_of_the_rules_and_the_second_model(trained):
    model, noise = trained.model, trained.grammar.noise
    pair = Pair(("jump", "twice"), ("JUMP", "JUMP"))
    (rules,), (second,), (both,) = (losses(m, [pair]) for m in (model.rules, model.second, model))
    uniform = math.log(noise) - 3 * math.log(len(trained.symmetry.target.words) + 1)
    alone = math.exp(-rules) - math.exp(uniform)
    assert both == pytest.approx(-math.log(alone + noise * math.exp(-second)))
    strange = Pair(("jump", "jump"), ("JUMP", "JUMP"))
    assert losses(model, [strange]) == pytest.approx(losses(model.second, [strange]))


@pytest.mark.parametrize("source", [("jump", "twice"), ("jump", "jump")])
def test_the_probabilities_of_all_targets_sum_to_at_most_one_and_nearly_to_one(trained, source):
    total = sum(
        math.exp(-loss)
        for loss in losses(trained.model, [Pair(source, t) for t in targets(trained, 5)])
    )
    missing = 0.02 if trained.model.derives(trained.symmetry.source.encode(source)) else 0.6
    assert 1 - missing < total <= 1 + 1e-9


@pytest.mark.parametrize("source", ["jump twice", "jump jump", "never jump thrice"])
def test_log_prob_is_the_negative_loss_and_no_shorter_target_is_likelier(trained, source):
    confident(trained, 0.0)
    best = trained.n_best([source], n=3, width=30)[0]
    pairs = [Pair(tuple(source.split()), p.words) for p in best]
    found = losses(trained.model, pairs)
    assert [p.log_prob for p in best] == pytest.approx([-loss for loss in found])
    if trained.model.derives(trained.symmetry.source.encode(source.split())):
        tried = [Pair(pairs[0].source, t) for t in targets(trained, 3)]
        assert min(losses(trained.model, tried)) >= found[0] - 1e-9


def test_the_answer_says_which_part_wrote_it(trained):
    ruled, other = confident(trained, 0.0).predict(["jump thrice", "jump jump"])
    assert (ruled.by, ruled.words) == ("rules", ("JUMP",) * 3)
    assert other.by == "second"
    assert other.margin == pytest.approx(
        other.log_prob + losses(trained.model, [Pair(("jump", "jump"), other.rival)])[0]
    )


def test_an_unsure_second_model_refuses_unless_it_is_asked_leniently(trained):
    ruled, refused = confident(trained, 0.999).predict(["jump thrice", "jump jump"])
    assert ruled.words == ("JUMP",) * 3
    assert refused.refused
    assert "no rule" in refused.reason or "no derivation" in refused.reason
    assert "the best target of the second model has a probability below 1" in refused.reason
    (lenient,) = trained.predict(["jump jump"], lenient=True)
    assert (lenient.by, lenient.remark) == ("second", refused.reason)


def test_alignments_are_those_of_the_part_that_wrote_the_target(trained):
    rules = trained.align(Pair(("jump", "twice"), ("JUMP", "JUMP")))
    assert rules.best == (1, 1, 3)
    assert all(sum(row) == pytest.approx(1) for row in rules.prob)
    second = trained.align(Pair(("jump", "jump"), ("JUMP", "LOOK")))
    alone = replace(trained, model=trained.model.second).align(
        Pair(("jump", "jump"), ("JUMP", "LOOK"))
    )
    assert torch.allclose(torch.tensor(second.prob), torch.tensor(alone.prob))


def test_the_audit_passes_with_an_equivariant_second_model_only(trained):
    confident(trained, 0.0)
    strange = Pair(("jump", "jump"), ("JUMP", "JUMP"))
    passed = trained.audit([*PAIRS, strange]).passed
    assert passed is (trained.config.second == "transducer")
    assert bool(trained.model.sharing.classes) is passed


def test_rules_and_suggestions_are_those_of_the_rule_part(trained):
    assert trained.grammar is trained.model.rules.learned
    assert trained.derive("jump thrice") is not None
    assert trained.suggest(1)


def test_the_directory_keeps_both_parts_and_the_confidence(trained, tmp_path):
    confident(trained, 0.25).save_pretrained(tmp_path / "model")
    again = Trained.from_pretrained(tmp_path / "model")
    assert float(again.model.confidence) == 0.25
    asked = ["jump thrice", "jump jump", "never jump thrice"]
    assert again.predict(asked, lenient=True) == trained.predict(asked, lenient=True)


def test_predict_prints_the_part_that_answered(trained, tmp_path, run):
    confident(trained, 0.0).save(tmp_path / "model")
    asked = (tmp_path / "model", "jump thrice", "jump jump", "--json")
    status, out, err = run("predict", *asked)
    assert status == 0
    assert [json.loads(line)["by"] for line in out.splitlines()] == ["rules", "second"]
    assert "sentence 2: answered by the second model, probability" in err


@pytest.mark.parametrize(
    ("answers", "wrong", "least"),
    [
        ([], 0.1, 0.0),
        ([(0.9, True), (0.5, True)], 0.0, 0.0),
        ([(0.9, False), (0.5, True)], 0.4, 1.0),
        ([(0.9, True), (0.5, False)], 0.0, 0.7),
        ([(0.9, True), (0.5, False), (0.25, True), (0.125, True)], 0.25, 0.0),
    ],
)
def test_the_confidence_keeps_wrong_answers_rare(answers, wrong, least):
    assert least_confidence(answers, wrong) == pytest.approx(least)


def test_training_chooses_the_confidence_by_validation_pairs():
    strict, loose = (learned("attention", wrong=wrong).model for wrong in (0.0, 1.0))
    assert 0 <= float(strict.confidence) <= 1
    assert float(loose.confidence) == 0
    assert float(strict.confidence) > 0


def test_the_estimator_takes_the_settings():
    estimator = Estimator([VERBS], model=BackoffConfig(**SIZES), training=TrainingConfig(updates=5))
    estimator.set_params(model__second="attention")
    assert estimator.fit(*zip(*PAIRS, strict=True)).predict(["jump thrice"]) == [("JUMP",) * 3]
