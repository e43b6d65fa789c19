"""TensorBoard's own reader finds the figures that were written."""

import sys
from dataclasses import replace

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from equitrans.cli.main import main
from equitrans.errors import ConfigError
from equitrans.training.boards import Board
from equitrans.training.loop import Epoch
from equitrans.training.runs import Run

FIRST = Epoch(
    number=1,
    of=3,
    updates=7,
    train_loss=0.5,
    valid_loss=0.25,
    valid_accuracy=None,
    is_best=True,
    seconds=0.1,
)


def read(directory) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(directory)).Reload()
    tags = events.Tags()["scalars"]
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in tags}


def test_epochs_are_read_back_as_they_were_written(tmp_path):
    with Board(tmp_path) as board:
        board.add(FIRST)
        board.add(replace(FIRST, number=2, train_loss=0.125, valid_accuracy=0.75))
    assert read(tmp_path) == {
        "loss/train": [(1, 0.5), (2, 0.125)],
        "loss/validation": [(1, 0.25), (2, 0.25)],
        "accuracy/validation": [(2, 0.75)],
    }


def test_epochs_repeated_after_a_resume_replace_the_earlier_ones(tmp_path):
    with Board(tmp_path) as board:
        for number in (1, 2, 3):
            board.add(replace(FIRST, number=number, train_loss=float(number)))
    with Board(tmp_path) as board:
        for number in (3, 4):
            board.add(replace(FIRST, number=number, train_loss=float(10 * number)))
    assert read(tmp_path)["loss/train"] == [(1, 1.0), (2, 2.0), (3, 30.0), (4, 40.0)]


def test_a_missing_tensorboard_is_reported_with_the_package_to_install(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if "tensorboard" in name.split(".")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ConfigError, match=r"pip install 'equitrans\[tensorboard\]'"):
        Board(tmp_path)


def test_train_with_tensorboard_writes_every_epoch(tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("walk\tWALK\nwalk twice\tWALK WALK\njump\tJUMP\n")
    run = tmp_path / "run"
    small = ["--model.hidden", "4", "--training.epochs", "6", "--quiet", "--tensorboard"]
    where = ["--data", str(pairs), "--classes", "none", "--out", str(run)]
    assert main(["train", *where, *small]) == 0
    losses = [epoch["train_loss"] for epoch in Run.open(run).epochs()]
    seen = read(run / "tensorboard")["loss/train"]
    assert [step for step, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert [value for _, value in seen] == pytest.approx(losses)
