"""LANE behind the interface of all models."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from itertools import product

import pytest
import torch

from equitrans.analysis import losses
from equitrans.data import Pair, Rows, format_tsv, in_order
from equitrans.data.classes import format_classes
from equitrans.models import Lane, LaneConfig
from equitrans.models.baselines.lane.interpreter import VARIABLE, Node
from equitrans.models.baselines.lane.lane import writers
from equitrans.paper import LexicalClass, Symmetry
from equitrans.training import Estimator, Run, Trained
from equitrans.training.config import usual_training

VERBS = LexicalClass("verbs", ("walk", "jump", "run"), ("WALK", "JUMP", "RUN"))
PAIRS = [
    Pair((verb, *rest), (action,) * n)
    for verb, action in zip(VERBS.source, VERBS.target, strict=True)
    for rest, n in (((), 1), (("twice",), 2))
]
MODEL = LaneConfig(size=32, longest=3)

pytestmark = pytest.mark.usefixtures("float32")


TRAIN = """
import sys, torch
from dataclasses import replace
from equitrans import LaneConfig, fit, read_classes, read_pairs
from equitrans.training.config import usual_training

torch.set_num_threads(1)
model = LaneConfig(size=32, longest=3)
pairs = [p for p in read_pairs("pairs.tsv") if p.source != ("jump", "twice")]
training = replace(usual_training(model), epochs=80)
fit(pairs, read_classes("classes.toml"), model=model, training=training).save("model")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """LANE trained on verbs alone and twice, without ``jump twice``: by another process, without
    checks of types at run time, which would take three times as long.
    """
    folder = tmp_path_factory.mktemp("lane")
    (folder / "pairs.tsv").write_text(format_tsv(PAIRS))
    (folder / "classes.toml").write_text(format_classes([VERBS]))
    subprocess.run([sys.executable, "-c", TRAIN], cwd=folder, check=True)
    return folder


@pytest.fixture
def trained(folder) -> Trained:
    return Trained.load(folder / "model")


@pytest.fixture
def random_lane() -> Lane:
    model = Trained.new(MODEL, Symmetry.of([VERBS], PAIRS), max_length=50, seed=3).model
    assert isinstance(model, Lane)
    return model


def test_lane_applies_its_expressions_to_a_word_that_it_has_seen_alone(trained):
    assert trained.score(PAIRS) == 1
    rules = trained.model.rules([trained.symmetry.source.encode(["jump", "twice"])])
    assert rules["jump → JUMP"] == 1


def test_after_success_predictions_commute_with_exchanges_of_verbs(trained):
    """Also word by word: every sentence of two verbs gets the words of its own verbs."""
    audit = trained.audit(PAIRS)
    assert not audit.mismatches
    assert audit.passed
    twice = {pair.source[0]: pair.target for pair in PAIRS if len(pair.source) == 2}
    for verb in VERBS.source:
        assert trained.predict([(verb, "twice")])[0].words == twice[verb]


def test_before_training_predictions_do_not_commute(random_lane):
    audit = Trained(random_lane, MODEL, max_length=50).audit(PAIRS)
    assert audit.mismatches


def test_the_probabilities_of_all_targets_sum_to_one(random_lane):
    words = random_lane.symmetry.target.words
    longest = 5
    targets = [y for n in range(longest + 1) for y in product(words, repeat=n)]
    source = ("jump", "twice")
    total = sum(math.exp(-loss) for loss in losses(random_lane, [Pair(source, y) for y in targets]))
    (hypothesis,) = random_lane.predict(
        next(iter(in_order(Rows.of([Pair(source, ())], random_lane.sharing)))).source,
        max_length=longest,
    )[0]
    left = 0.01 * (len(words) / (len(words) + 1)) ** (longest + 1)  # longer targets
    assert not hypothesis.is_refused
    assert total == pytest.approx(1 - left, abs=1e-6)


def test_the_log_probability_of_a_prediction_is_minus_its_loss(trained):
    for pair in PAIRS:
        (best,) = trained.n_best([pair.source], n=3)[0]
        assert best.words == pair.target
        assert best.log_prob == pytest.approx(-losses(trained.model, [pair])[0], abs=1e-6)
    wrong, longer = (Pair(("walk",), y) for y in (("RUN",), ("RUN", "RUN")))
    of_wrong, of_longer = losses(trained.model, [wrong, longer])
    assert of_wrong == pytest.approx(-math.log(0.01) + 2 * math.log(4), abs=1e-5)
    assert of_longer - of_wrong == pytest.approx(math.log(4), abs=1e-5)


def test_a_sentence_that_stays_open_is_refused(random_lane):
    with torch.no_grad():
        random_lane.composer.checker.weight.zero_()
        random_lane.composer.checker.bias.copy_(torch.tensor([-5.0, 5.0]))
    never = Trained(random_lane, MODEL, max_length=50)
    found = never.predict(["jump", "jump twice", "jump twice twice"])
    assert [p.refused for p in found] == [True, True, False]  # three symbols are abstracted anyway
    assert found[0].reason == "the Composer leaves the sentence open: it has no target"
    assert random_lane.derivation(("jump", "twice")) is None
    assert random_lane.rules([(3,)]) == {}


def test_a_target_beyond_the_limit_is_refused(trained):
    short = replace(trained, max_length=1)
    assert short.predict(["jump"])[0].words == ("JUMP",)
    assert short.predict(["jump twice"])[0].reason == (
        "the target would have 2 words; the limit is 1"
    )


def test_words_of_a_prediction_point_at_the_words_that_wrote_them(trained):
    alignment = trained.align((("jump", "twice"), ("JUMP", "JUMP")))
    assert alignment.source == ("BOS", "jump", "twice", "EOS")
    for row, place in zip(alignment.prob, (1, 1, 3), strict=True):
        assert row[place] == pytest.approx(1)


def test_alignments_are_distributions_and_uniform_for_other_targets(random_lane):
    sources = [("jump", "twice", "walk"), ("twice", "run"), ("walk",)]
    best = Trained(random_lane, MODEL, max_length=200).predict(sources)
    for source, prediction in zip(sources, best, strict=True):
        pairs = [Pair(source, prediction.words), Pair(source, (*prediction.words, "RUN"))]
        for pair, right in zip(pairs, (True, False), strict=True):
            (batch,) = in_order(Rows.of([pair], random_lane.sharing))
            (found,) = random_lane.alignments(batch)
            torch.testing.assert_close(found.sum(1), torch.ones(len(found)))
            assert found[-1, -1] == 1  # EOS
            assert (float(found[0, 0]) == 0) is right  # BOS writes nothing
            assert bool((found[0] == found[0, 0]).all()) is not right


def test_writers_follow_variables_down_to_the_node_that_wrote_a_word():
    nodes = [
        Node((5,), (), 0, 1),
        Node((6,), (), 2, 3),
        Node((VARIABLE, 7, VARIABLE), (0, 1), 0, 3),
    ]
    outputs = [(65, 66), (67,), (~1, 68, ~0, ~1)]
    assert writers(nodes, outputs) == [(1, 0), (2, 1), (0, 0), (0, 1), (1, 0)]


def test_a_derivation_shows_expressions_over_their_words(random_lane):
    derivation = random_lane.derivation(("jump", "twice", "walk"))
    assert derivation is not None
    assert (derivation.root.start, derivation.root.stop) == (0, 3)
    for _, node in derivation.root.walk():
        left, right = (side.split() for side in node.rule.split(" → "))
        assert 1 <= len(left) <= 4
        assert 1 <= len(right) <= 3
        assert sum(symbol in ("x1", "x2") for symbol in left) == len(node.children)
    assert str(derivation).startswith("jump twice walk   [")


def test_a_derivation_of_the_longest_sentence_does_not_exhaust_the_stack(random_lane):
    derivation = random_lane.derivation(("jump", "twice") * 500)
    assert derivation is None or derivation.root.stop == 1000
    found = Trained(random_lane, MODEL, max_length=4010).predict([("jump", "twice") * 500])
    assert len(found) == 1


# --- commands and files


def test_evaluate_predict_audit_and_orbits(run, folder):
    data = ("--data", folder / "pairs.tsv")
    status, out, _ = run("evaluate", folder / "model", *data, "--json")
    report = json.loads(out)
    assert (status, report["exact_match"], report["refused"]) == (0, 1.0, 0)
    status, out, _ = run("predict", folder / "model", "jump twice", "--n-best", 3, "--json")
    assert (status, len(json.loads(out)["n_best"])) == (0, 1)
    assert run("audit", folder / "model", *data)[0] == 0
    _, out, _ = run("orbits", folder / "model", "jump twice", "--json")
    assert json.loads(out)["observed"] == [[0, 1, 2]]


def test_grammar_shows_the_derivation_of_a_sentence(run, folder):
    status, out, _ = run("grammar", folder / "model", "--derive", "jump twice")
    assert status == 0
    assert out.splitlines()[-1] == "→ JUMP JUMP"
    assert "jump   [jump → JUMP]" in out
    status, _, err = run("grammar", folder / "model")
    assert status == 2
    assert "--derive SENTENCE shows those of one sentence" in err


def test_grammar_lists_the_expressions_of_a_run(run, folder, tmp_path):
    data = ("--data", folder / "pairs.tsv", "--classes", folder / "classes.toml")
    status, _, err = run(
        *("train", "--model", "lane", *data),
        *("--model.size", 8, "--training.batch", 64, "--training.epochs", 1),
        *("--out", tmp_path / "run"),
    )
    assert status == 0
    assert "the lessons ended without success; try another seed" in err.replace("\n", " ")
    status, out, _ = run("grammar", tmp_path / "run", "--json")
    found = json.loads(out)
    assert (status, found["pairs"]) == (0, len(PAIRS))
    status, out, _ = run("grammar", tmp_path / "run")
    assert status == 0
    assert out.startswith(f"{len(found['expressions'])} expressions; {found['right']} of 6 ")
    assert len(out.splitlines()) == 1 + len(found["expressions"])
    assert Run.open(tmp_path / "run").is_finished


def test_a_saved_model_is_the_same_model(trained, tmp_path):
    trained.save_pretrained(tmp_path / "shared")
    again = Trained.from_pretrained(tmp_path / "shared")
    assert again.config == MODEL
    assert [p.words for p in again.predict([p.source for p in PAIRS])] == [p.target for p in PAIRS]
    assert "lane" in (tmp_path / "shared" / "README.md").read_text()


def test_the_estimator_trains_lane():
    training = replace(usual_training(MODEL), epochs=1, batch=64)
    estimator = Estimator(model=LaneConfig(size=8, samples=2), training=training)
    x, y = zip(*((" ".join(p.source), " ".join(p.target)) for p in PAIRS), strict=True)
    with pytest.warns(UserWarning, match="try another seed"):
        estimator.fit(list(x), list(y))
    assert 0 <= estimator.score(list(x), list(y)) <= 1
