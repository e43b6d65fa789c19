"""Families and orbits: definitions 3, 8 and 9, and theorem 4."""

import json
from itertools import product

import pytest

from equitrans.analysis.evaluation import losses
from equitrans.analysis.families import (
    family,
    observed_orbits,
    orbits,
    sharpness,
    theoretical_orbits,
)
from equitrans.data.batches import Rows, in_order
from equitrans.data.classes import format_classes
from equitrans.data.pairs import Pair, format_tsv
from equitrans.data.source import DataConfig, load_data
from equitrans.errors import ConfigError, DataError, RunError
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import Symmetry
from equitrans.training import runs
from equitrans.training.config import RunConfig, TrainingConfig
from equitrans.training.fitting import fit
from equitrans.training.runs import Run
from equitrans.training.trained import Trained
from worlds import SYMMETRIES, VERBS, moved, small, symmetry

PAIR = Pair(("walk", "left", "twice", "after", "run"), ("RUN", "LTURN", "WALK", "LTURN", "WALK"))


def test_a_family_is_every_choice_of_class_words_with_their_translations():
    pairs = family(PAIR, SYMMETRIES["verbs"])
    expected = {
        Pair((a, "left", "twice", "after", b), (b.upper(), "LTURN", a.upper(), "LTURN", a.upper()))
        for a, b in product(VERBS.source, VERBS.source)
    }
    assert pairs[0] == PAIR
    assert set(pairs) == expected
    assert len(pairs) == len(expected) == 16


def test_theorem_4_a_family_is_as_large_as_the_product_of_class_sizes():
    assert len(family(PAIR, SYMMETRIES["verbs × turns"])) == 4 * 4 * 2
    assert family(PAIR, SYMMETRIES["no class"]) == [PAIR]


def test_the_alignment_decides_the_family_of_a_pair_with_a_class_word_twice():
    pair = Pair(("walk", "after", "walk"), ("WALK", "WALK"))
    with pytest.raises(DataError, match="a class word twice"):
        family(pair, SYMMETRIES["verbs"])
    crossed = family(pair, SYMMETRIES["verbs"], [2, 0])
    assert Pair(("walk", "after", "run"), ("RUN", "WALK")) in crossed
    straight = family(pair, SYMMETRIES["verbs"], [0, 2])
    assert Pair(("walk", "after", "run"), ("WALK", "RUN")) in straight


def test_a_family_above_the_limit_is_rejected():
    many = Pair(("walk",) * 9, ("WALK",) * 9)
    with pytest.raises(DataError, match="262144 pairs"):
        family(many, SYMMETRIES["verbs"], list(range(9)))


@pytest.mark.parametrize("name", ["verbs", "turns", "verbs × turns", "symmetric verbs"])
def test_definition_8_theoretical_orbits_are_those_of_the_group(name):
    s = SYMMETRIES[name]
    pairs = family(PAIR, s)
    for orbit in theoretical_orbits(pairs, s):
        images = {image for g in s.group for image in moved([pairs[orbit[0]]], g, s)}
        assert {pairs[i] for i in orbit} == images


def test_definition_9_untrained_sixteen_pairs_fall_into_four_orbits_of_four():
    model = small(SYMMETRIES["verbs"])
    found = orbits(model, PAIR, SYMMETRIES["verbs"])
    assert sorted(map(len, found.observed)) == [4, 4, 4, 4]
    assert set(found.observed) == set(found.theoretical)


@pytest.mark.usefixtures("float32")
def test_definition_9_trained_the_pairs_of_a_family_are_one_orbit():
    pairs = [
        Pair((a, "and", b), (a.upper(), b.upper())) for a, b in product(VERBS.source, VERBS.source)
    ]
    untrained = Trained.new(TransducerConfig(), Symmetry.of([VERBS], pairs), max_length=9)
    assert len(untrained.orbits("walk and run", "WALK RUN").observed) == 4
    trained = fit(pairs, [VERBS], training=TrainingConfig(updates=300))
    found = trained.orbits("walk and run")
    assert found.family[0].target == ("WALK", "RUN")
    assert sorted(map(len, found.observed)) == [16]
    assert sorted(map(len, found.theoretical)) == [4, 4, 4, 4]
    assert sharpness(untrained.model, found.family) < 0.8
    assert sharpness(trained.model, found.family) > 0.99


def test_sharpness_is_the_mean_of_the_largest_posteriors_by_brute_force():
    s = SYMMETRIES["verbs"]
    model, pairs = small(s), family(PAIR, s)
    largest = []
    for pair in pairs:
        # p(a_m = n | x, y) is the share of position n in p(y_m | x, y_<m)
        (batch,) = in_order(Rows.of([pair], Symmetry(s.source, s.target)))
        parts = model.parts(batch)
        joint = (parts.aligned[0] + parts.emitted[0]).exp()
        largest += (joint.amax(-1) / joint.sum(-1)).tolist()
    assert sharpness(model, pairs) == pytest.approx(sum(largest) / len(largest), rel=1e-9)
    assert len(largest) == len(pairs) * (len(PAIR.target) + 1)


def test_a_model_without_classes_observes_an_orbit_for_each_pair():
    model = small(SYMMETRIES["no class"])
    found = orbits(model, PAIR, SYMMETRIES["verbs"])
    assert len(found.observed) == 16
    assert len(found.theoretical) == 4


def test_observed_orbits_allow_for_rounding_and_no_more():
    assert observed_orbits([3.0, 1.0, 3.0 + 1e-7, 1.001]) == ((0, 2), (1,), (3,))
    assert observed_orbits([1.0, 1.1], rtol=0.2) == ((0, 1),)


def test_the_losses_of_an_observed_orbit_stay_close_to_its_first():
    assert observed_orbits([1.0, 1.4, 1.8], rtol=0.0, atol=0.5) == ((0, 1), (2,))


def test_a_target_word_without_a_source_word_is_rejected():
    with pytest.raises(DataError, match="'LOOK' does not come from a word of its class"):
        family(Pair(("walk", "after", "run"), ("LOOK", "WALK")), SYMMETRIES["verbs"])


def test_losses_are_those_of_the_pairs_in_their_order():
    s = SYMMETRIES["verbs × turns"]
    model, pairs = small(s), family(PAIR, s)
    alone = [losses(model, [pair])[0] for pair in pairs]
    assert losses(model, pairs) == pytest.approx(alone, rel=1e-12)


def test_no_pairs_have_no_losses():
    assert losses(small(SYMMETRIES["verbs"]), []) == ()


@pytest.fixture
def files(tmp_path):
    """The settings of a family of pairs in a file."""
    (tmp_path / "pairs.tsv").write_text(format_tsv(family(PAIR, SYMMETRIES["verbs"])))
    (tmp_path / "classes.toml").write_text(format_classes([VERBS]))
    return DataConfig(file=str(tmp_path / "pairs.tsv"), classes=str(tmp_path / "classes.toml"))


def run_with_orbits(path, files):
    config = RunConfig(
        data=files,
        model=TransducerConfig(embedding=8, hidden=8),
        training=TrainingConfig(epochs=4),
        orbits=" ".join(PAIR.source),
        orbits_every=2,
    )
    data = load_data(config.data, seed=0)
    return Run.create(path, config, data), data


@pytest.mark.parametrize("seconds", [0.0, 100.0])
def test_training_records_orbits_also_after_an_interruption(tmp_path, files, monkeypatch, seconds):
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", seconds)  # with a checkpoint, and without
    run, data = run_with_orbits(tmp_path / "whole", files)
    list(run.train(data))
    records = run.orbit_records()
    assert [record["epoch"] for record in records] == [0, 2, 4]
    assert records[0]["observed"] == [4, 4, 4, 4]
    assert len(records[0]["losses"]) == 16
    assert all(0 < record["sharpness"] <= 1 for record in records)

    broken, data = run_with_orbits(tmp_path / "broken", files)
    epochs = broken.train(data)
    next(epochs), next(epochs), next(epochs)
    epochs.close()
    list(Run.open(broken.path).train(data))
    assert (broken.path / "orbits.jsonl").read_text() == (run.path / "orbits.jsonl").read_text()
    best = [(path / "model.safetensors").read_bytes() for path in (run.path, broken.path)]
    assert best[0] == best[1]


def test_recording_orbits_of_a_sentence_outside_the_data_is_an_error(tmp_path, files):
    config = RunConfig(data=files, orbits="walk walk walk")
    with pytest.raises(DataError, match="is not in the data"):
        Run.create(tmp_path / "run", config, load_data(config.data, seed=0))
    assert not (tmp_path / "run").exists()


def test_recording_orbits_every_zero_epochs_is_an_error():
    with pytest.raises(ConfigError, match="orbits_every is 0; it must be 1 or more"):
        RunConfig(data=DataConfig(split="length"), orbits_every=0)


def test_a_run_without_a_record_says_how_to_get_one(tmp_path, files):
    config = RunConfig(data=files)
    run = Run.create(tmp_path / "run", config, load_data(config.data, seed=0))
    with pytest.raises(RunError, match="--orbits SENTENCE"):
        run.orbit_records()


def test_orbits_of_a_trained_model_by_its_own_prediction_or_a_target():
    s = symmetry(VERBS)
    trained = Trained.new(TransducerConfig(k=4, d=4, embedding=4, hidden=4), s, max_length=6)
    found = trained.orbits("walk after run", "RUN WALK")
    assert found.family[0] == Pair(("walk", "after", "run"), ("RUN", "WALK"))
    assert len(trained.orbits("walk after walk").family) == 16
    assert json.dumps(found.losses)
