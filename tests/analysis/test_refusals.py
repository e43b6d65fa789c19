"""Sentences that a model cannot answer are refused with a reason; the others are answered."""

import math
import time

import pytest
import torch

from equitrans.analysis.evaluation import predict
from equitrans.analysis.reports import Prediction, Report
from equitrans.data.pairs import Pair
from equitrans.errors import DataError, VocabularyError, spelling
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.paper.vocabulary import Vocabulary
from equitrans.training.fitting import fit
from equitrans.training.trained import Trained

VERBS = LexicalClass("verbs", ("walk", "run", "jump"), ("WALK", "RUN", "JUMP"))
PAIRS = [
    (f"{verb} {times}".strip(), " ".join([action] * n))
    for verb, action in zip(VERBS.source, VERBS.target, strict=True)
    for times, n in (("", 1), ("twice", 2), ("thrice", 3))
]

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def rules():
    torch.set_default_dtype(torch.float32)
    return fit(PAIRS, [VERBS], model=TransducerConfig(aligner="recursive"))


def test_a_refused_sentence_leaves_the_others_answered(rules):
    asked = ["jump twice", "toaster twice", "junp", "", "jump jump", "walk"]
    found = rules.predict(asked)
    assert [p.words for p in found] == [("JUMP", "JUMP"), (), (), (), (), ("WALK",)]
    assert [p.refused for p in found] == [False, True, True, True, True, False]
    assert [p.reason for p in found[:4]] == [
        None,
        "unknown word 'toaster'",
        "unknown word 'junp'; did you mean 'jump'?",
        "no words",
    ]
    assert found[4].reason == rules.model.refusal(("jump", "jump"))
    assert [len(best) for best in rules.n_best(asked, n=3)] == [1] * 6
    assert found[1].score == found[1].log_prob == -math.inf


def test_a_sentence_above_the_limit_is_refused_alone(rules):
    long, short = rules.predict(["walk " * 5000, "walk"])
    assert "5000 words" in long.reason
    assert short.words == ("WALK",)


def test_a_model_that_gives_every_target_probability_0_refuses(rules):
    model = Trained.new(TransducerConfig(), rules.symmetry, max_length=3).model
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(math.nan)
    ((found,),) = predict(model, [("walk",)], width=1, max_length=3)
    assert found.refused
    assert found.reason == "no target has a positive probability"


def test_an_evaluation_counts_refusals_by_reason(rules):
    pairs = [("jump twice", "JUMP JUMP"), ("toaster", "T"), ("toaster twice", "T T"), ("hop", "")]
    report = rules.evaluate([*pairs, ("walk", "STROLL")])
    assert report.right == (True, False, False, False, False)
    assert report.refused == 3
    assert report.reasons == {"unknown word 'toaster'": 2, "unknown word 'hop'": 1}
    assert rules.score(pairs) == 0.25
    assert report.scored == 1
    assert report.loss == pytest.approx(rules.evaluate(pairs[:1]).loss)


def test_the_loss_is_none_if_every_pair_has_an_unknown_word(rules):
    report = rules.evaluate([("toaster", "T"), ("walk", "STROLL")])
    assert (report.loss, report.scored, report.exact_match) == (None, 0, 0.0)


def test_a_report_has_a_short_repr(rules):
    report = rules.evaluate(PAIRS * 500 + [("toaster", "T")])
    assert repr(report) == "Report(exact match 99.98 %: 4500 of 4501 pairs, 1 refused)"


def test_a_prediction_that_was_cut_off_is_wrong():
    pair = Pair(("walk",), ("WALK",))
    cut = Prediction(("WALK",), -1.0, finished=False)
    report = Report((pair, pair), (cut, Prediction(("WALK",), -1.0)), (("walk",),) * 2, None, 0)
    assert report.right == (False, True)
    assert report.errors == ((pair, ("WALK",)),)


def test_a_refused_sentence_has_no_family(rules):
    with pytest.raises(DataError, match="'jump jump' has no family"):
        rules.orbits("jump jump")
    with pytest.raises(DataError, match="'toaster' has no family: unknown word 'toaster'"):
        rules.orbits("toaster")
    with pytest.raises(VocabularyError, match="unknown word 'toaster'"):
        rules.orbits("walk toaster", "WALK")
    assert len(rules.orbits("jump walk", "JUMP WALK").family) == 9


def test_a_spelling_is_suggested_for_one_wrong_letter_only():
    known = ("jump", "toasted", "heater", "dim", "lamp", "thrice", "on")
    wrong = ["junp", "jmup", "jupm", "jumpp", "toaster", "thrce", "Dim", "JUMP"]
    right = ["jump", "jump", "jump", "jump", "toasted", "thrice", "dim", "jump"]
    assert [spelling(w, known) for w in wrong] == [f"; did you mean {r!r}?" for r in right]
    assert [spelling(w, known) for w in ("din", "heated up", "in", "", "coaster", "q")] == [""] * 6
    assert spelling("toaster", ("heater", "lamp")) == ""


@pytest.mark.parametrize("hostile", ["many", "alphabet", "long"])
def test_an_unknown_word_is_reported_fast(hostile):
    words = {
        "many": (f"jump{i:06}" for i in range(100_000)),
        "alphabet": ("jump" + chr(0x4E00 + i) + chr(0x5000 + i % 7000) for i in range(20_000)),
        "long": ("a" * 4_000 + str(i) for i in range(2_000)),
    }[hostile]
    vocabulary = Vocabulary(tuple(words))
    asked = ["b" * 5_000, *(f"jump9{i}" for i in range(20)), "walk"]
    with pytest.raises(VocabularyError):
        vocabulary.encode(["first"])  # the letters of the vocabulary are collected once
    start = time.process_time()
    for word in asked:
        with pytest.raises(VocabularyError, match="unknown word"):
            vocabulary.encode([word])
    assert time.process_time() - start < 2


def test_many_unknown_words_are_refused_fast():
    words = tuple(f"word{i}" for i in range(50_000))
    symmetry = Symmetry.of([], [(words, ("A",))])
    trained = Trained.new(TransducerConfig(k=2, d=2, hidden=3), symmetry, max_length=2)
    start = time.process_time()
    found = trained.predict([f"wurd{i}" for i in range(50_000)])
    assert time.process_time() - start < 20
    assert found[7].reason == "unknown word 'wurd7'; did you mean 'word7'?"
    assert found[-1].reason == "unknown word 'wurd49999'"


def test_questions_to_a_character_model_split_strings_into_characters():
    letters = LexicalClass("letters", ("a", "b"), ("A", "B"))
    pairs = [("a", "A"), ("b", "B"), ("a!", "AA"), ("ab", "AB"), ("ba", "BA"), ("b!", "BB")]
    trained = fit(pairs, [letters], model=TransducerConfig(aligner="recursive"), characters=True)
    assert trained.characters
    assert trained.predict(["a!"])[0].words == ("A", "A")
    assert trained.score(pairs) == trained.evaluate(pairs).exact_match == 1
    assert trained.align(("ab", "AB")).target == ("A", "B", "EOS")
    assert trained.audit(pairs).passed
