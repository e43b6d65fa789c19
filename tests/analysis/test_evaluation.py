"""Predictions, reports and alignments in words."""

import json
from itertools import pairwise

import pytest
import torch

from equitrans.analysis.evaluation import evaluate, predict
from equitrans.analysis.reports import Prediction, Report, Tally
from equitrans.data.pairs import Pair, as_pairs
from equitrans.errors import DataError
from equitrans.paper.symmetry import LexicalClass
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import fit
from equitrans.training.trained import Trained
from worlds import SYMMETRIES, random_pairs, small

VERBS = LexicalClass("verbs", ("walk", "run", "jump"), ("WALK", "RUN", "JUMP"))
PAIRS = [
    Pair((v, *rest), (a,) * n)
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
    for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
][:-1]


pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def trained():
    torch.set_default_dtype(torch.float32)
    return fit(PAIRS, [VERBS], training=TrainingConfig(updates=300))


def test_a_report_counts_what_is_right_by_length_and_by_template():
    pairs = (Pair(("a",), ("A",)), Pair(("b",), ("B",)), Pair(("a", "c"), ("A", "C")))
    predictions = tuple(Prediction(words, -1.0) for words in (("A",), ("X",), ("A", "C")))
    report = Report(pairs, predictions, (("<l>",), ("<l>",), ("<l>", "c")), loss=None, scored=0)
    assert report.exact_match == 2 / 3
    assert report.by_length() == {1: Tally(1, 2), 2: Tally(1, 1)}
    assert list(report.by_template().items()) == [
        (("<l>",), Tally(1, 2)),
        (("<l>", "c"), Tally(1, 1)),
    ]
    assert report.errors == ((pairs[1], ("X",)),)


def test_predictions_come_in_the_order_asked_for_whatever_their_lengths():
    model = small(SYMMETRIES["verbs"], seed=4)
    sentences = [x for x, _ in random_pairs(21, 20)]
    together = predict(model, sentences, width=2, max_length=8)
    for sentence, expected in zip(sentences, together, strict=True):
        assert predict(model, [sentence], width=2, max_length=8)[0][0].words == expected[0].words


def test_a_pair_with_an_unknown_target_word_is_wrong_and_has_no_loss(trained):
    report = trained.evaluate([Pair(("walk",), ("FLY",)), Pair(("walk",), ("WALK",))])
    assert report.exact_match == 0.5
    assert (report.loss, report.scored) == (trained.evaluate(PAIRS[:1]).loss, 1)


def test_a_report_has_rows_of_plain_values(trained):
    asked = [("jump", "JUMP"), ("blick", "BLICK")]
    first, second = json.loads(json.dumps(trained.evaluate(asked).rows))
    assert (first["source"], first["target"]) == ("jump", "JUMP")
    assert first["right"] == (first["answer"] == "JUMP")
    assert (first["refused"], first["reason"]) == (False, None)
    assert (second["answer"], second["right"], second["refused"]) == (None, False, True)
    assert second["reason"].startswith("unknown word 'blick'")


def test_evaluating_no_pairs_is_an_error(trained):
    with pytest.raises(DataError, match="nothing to evaluate"):
        evaluate(trained.model, [], width=3, max_length=5)


def test_one_string_is_not_a_list_of_sentences(trained):
    with pytest.raises(DataError, match="sentences are 'jump twice'; expected a list"):
        trained.n_best("jump twice", n=1)


def test_a_malformed_pair_is_reported_by_its_position(trained):
    for use in (as_pairs, trained.evaluate):
        with pytest.raises(DataError, match=r"pair 2 is .*; expected a source and a target"):
            use([("walk", "WALK"), ("", "WALK")])


def test_an_alignment_points_at_the_word_that_was_translated(trained):
    alignment = trained.align(Pair(("jump", "thrice"), ("JUMP", "JUMP", "JUMP")))
    assert alignment.source == ("BOS", "jump", "thrice", "EOS")
    assert alignment.target == ("JUMP", "JUMP", "JUMP", "EOS")
    assert [alignment.source[n] for n in alignment.best[:3]] == ["jump"] * 3
    assert all(abs(sum(row) - 1) < 1e-5 for row in alignment.prob)


def test_n_best_lists_are_ranked_and_begin_with_the_prediction(trained):
    (best,) = trained.n_best(["jump twice"], n=4)
    assert len(best) == 4
    assert best[0] == trained.predict(["jump twice"])[0]
    scores = [p.log_prob / (len(p.words) + 1) for p in best if p.finished]
    # a difference up to 1e-5 is a tie, which word numbers decide
    assert all(worse < better + 1e-5 for better, worse in pairwise(scores))
    assert scores[-1] < scores[0]


def test_a_saved_and_loaded_model_is_equal_bit_for_bit(trained, tmp_path):
    trained.save(tmp_path / "model")
    again = Trained.load(tmp_path / "model")
    assert again.symmetry == trained.symmetry
    assert (again.config, again.max_length, again.characters) == (
        trained.config,
        trained.max_length,
        trained.characters,
    )
    for key, value in trained.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[key], value)
    assert again.predict(["jump thrice"]) == trained.predict(["jump thrice"])


def test_training_leaves_the_random_state_of_the_caller_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    fit(PAIRS[:2], [VERBS], training=TrainingConfig(epochs=2))
    assert torch.equal(torch.rand(3), expected)
