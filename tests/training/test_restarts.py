"""A training that does not predict all its validation pairs starts again."""

from dataclasses import replace
from pathlib import Path

import pytest

from equitrans import LexicalClass, Pair, Symmetry, TrainingConfig, TransducerConfig
from equitrans.data import Data, DataConfig, load_data
from equitrans.errors import ConfigError
from equitrans.training import Run, RunConfig
from equitrans.training.learners import start
from equitrans.training.learning import GradientLearning
from equitrans.training.loop import Epoch
from equitrans.training.trained import Trained

VERBS = LexicalClass("verbs", ("walk", "run", "look"), ("WALK", "RUN", "LOOK"))
WORDS = tuple(zip(VERBS.source, VERBS.target, strict=True))
TRAIN = tuple(
    Pair(tuple(f"{word} {often}".split()), (name,) * count)
    for word, name in WORDS
    for often, count in (("", 1), ("twice", 2), ("thrice", 3))
)
CONFIG = TransducerConfig(hidden=8, embedding=4, k=4, d=4)


def learning(
    training: TrainingConfig, valid: tuple[Pair, ...], *, alike: bool = True
) -> GradientLearning:
    symmetry = Symmetry.of([VERBS], TRAIN)
    trained = Trained.new(CONFIG, symmetry, max_length=9, seed=0)
    data = Data(TRAIN, valid, (), (VERBS,), "here", "", alike)
    found = start(trained.model, CONFIG, training, data, seed=0)
    assert isinstance(found, GradientLearning)
    return found


def starts(found: GradientLearning) -> list[int]:
    return [epoch.start for epoch in found if isinstance(epoch, Epoch)]


IMPOSSIBLE = (Pair(("walk", "twice"), ("LOOK", "RUN", "WALK")),)


def test_a_start_that_misses_a_validation_pair_is_followed_by_another() -> None:
    assert (
        starts(learning(TrainingConfig(epochs=3, restarts=2), IMPOSSIBLE))
        == [1] * 3 + [2] * 3 + [3] * 3
    )


def test_a_start_that_predicts_all_validation_pairs_is_the_last() -> None:
    found = learning(TrainingConfig(updates=600, restarts=2), TRAIN[:2])
    assert set(starts(found)) == {1}
    assert found.finished


def test_without_validation_pairs_there_is_one_start() -> None:
    assert set(starts(learning(TrainingConfig(epochs=2, restarts=2), ()))) == {1}


def test_a_time_limit_is_for_all_starts_together() -> None:
    found = learning(TrainingConfig(seconds=0.2, restarts=50), IMPOSSIBLE)
    assert set(starts(found)) == {1}


def test_starts_have_different_weights_and_the_best_of_all_is_kept() -> None:
    found = learning(TrainingConfig(epochs=4, restarts=3), IMPOSSIBLE)
    epochs = [epoch for epoch in found if isinstance(epoch, Epoch)]
    first = [next(e for e in epochs if e.start == i).train_loss for i in (1, 2, 3, 4)]
    assert len(set(first)) == 4
    losses = [e.valid_loss for e in epochs if e.valid_loss is not None]
    assert found.best_step == 1 + losses.index(min(losses))
    assert found.figures.epochs == 16


def test_the_first_start_does_not_depend_on_the_number_of_restarts() -> None:
    once, again = (
        [e for e in learning(TrainingConfig(epochs=3, restarts=n), IMPOSSIBLE) if e.number <= 3]
        for n in (0, 1)
    )
    assert [replace(e, seconds=0.0) for e in once] == [replace(e, seconds=0.0) for e in again]


def test_patience_counts_from_the_beginning_of_a_start() -> None:
    found = learning(
        TrainingConfig(epochs=50, patience=2, restarts=1, learning_rate=1e-6), IMPOSSIBLE
    )
    epochs = starts(found)
    assert epochs.count(2) >= 2


def test_starts_are_reproducible_and_resume_bit_for_bit(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    # two targets of one source: no model predicts all validation pairs
    lines = [f"{' '.join(p.source)}\t{' '.join(p.target)}\n" for p in TRAIN]
    lines += [f"{word} twice\t{name}\n" for word, name in WORDS]
    file.write_text("".join(lines * 2))
    classes = tmp_path / "classes.toml"
    classes.write_text(
        '[[class]]\nname = "verbs"\nsource = ["walk", "run", "look"]\n'
        'target = ["WALK", "RUN", "LOOK"]\n'
    )
    settings = RunConfig(
        data=DataConfig(file=str(file), classes=str(classes), validation=0.5),
        model=CONFIG,
        training=TrainingConfig(epochs=3, restarts=2),
        seed=5,
    )
    data = load_data(settings.data, seed=5)
    whole = Run.create(tmp_path / "whole", settings, data)
    steps = [step.start for step in whole.train(data)]
    assert steps == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    cut = Run.create(tmp_path / "cut", settings, data)
    finished = 0
    for _ in range(20):
        for _ in Run.open(cut.path).train(data):
            finished += 1
            break
        if cut.is_finished:
            break
    assert cut.is_finished
    for name in ("model.safetensors",):
        assert (whole.path / name).read_bytes() == (cut.path / name).read_bytes()
    assert [e["train_loss"] for e in whole.epochs()] == [e["train_loss"] for e in cut.epochs()]


def test_the_longest_pairs_as_validation_pairs_cause_no_restart() -> None:
    found = learning(TrainingConfig(epochs=2, restarts=2), IMPOSSIBLE, alike=False)
    assert set(starts(found)) == {1}


def test_training_starts_again_by_default_only_without_a_budget() -> None:
    assert TrainingConfig().most_starts == 2
    for budget in ({"epochs": 3}, {"updates": 3}, {"seconds": 3.0}):
        assert TrainingConfig(**budget).most_starts == 1
        assert TrainingConfig(**budget, restarts=4).most_starts == 5


def test_a_negative_number_of_restarts_is_refused() -> None:
    with pytest.raises(ConfigError, match="restarts is -1"):
        TrainingConfig(restarts=-1)
