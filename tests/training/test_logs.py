"""Logs of runs: read line by line within limits; a damaged line is named in the message."""

import json
import resource
import subprocess
import sys
import time

import pytest

from equitrans.data.classes import format_classes
from equitrans.data.pairs import format_tsv
from equitrans.data.scan import CLASSES, load_split
from equitrans.data.source import DataConfig, load_data
from equitrans.errors import RunError
from equitrans.models.configs import TransducerConfig
from equitrans.training.config import RunConfig, TrainingConfig
from equitrans.training.runs import Run
from equitrans.training.trained import Trained

pytestmark = pytest.mark.usefixtures("float32")

SENTENCE = "turn left"


@pytest.fixture
def created(tmp_path):
    """A run of two epochs that has not started."""
    pairs = [p for p in load_split("simple").train if len(p.target) <= 2][:40]
    (tmp_path / "pairs.tsv").write_text(format_tsv(pairs))
    (tmp_path / "classes.toml").write_text(format_classes(CLASSES["both"]))
    settings = RunConfig(
        data=DataConfig(file=str(tmp_path / "pairs.tsv"), classes=str(tmp_path / "classes.toml")),
        model=TransducerConfig(k=4, d=3, embedding=5, hidden=6),
        training=TrainingConfig(epochs=2),
        orbits=" ".join(pairs[0].source),
        orbits_every=1,
    )
    return Run.create(tmp_path / "run", settings, load_data(settings.data, seed=0))


@pytest.fixture
def finished(created):
    """A finished run."""
    list(created.train(created.load_data()))
    return created


def test_a_run_has_a_checkpoint_and_weights_after_its_first_epoch(created):
    """So that an interrupt loses no complete epoch of a short training."""
    steps = created.train(created.load_data())
    assert next(steps).number == 1
    steps.close()
    assert Trained.load(created.path)
    again = Run.open(created.path)
    assert [step.number for step in again.train(again.load_data())] == [2]


@pytest.mark.parametrize("name", ["epochs.jsonl", "orbits.jsonl"])
@pytest.mark.parametrize("start", [0, 1])
def test_a_sparse_log_of_a_gigabyte_is_rejected_at_once(finished, name, start):
    log = finished.path / name
    lines = log.read_text().splitlines(keepends=True)[:start]
    log.write_text("".join(lines))
    with log.open("r+b") as file:
        file.truncate(10**9)
    read = finished.epochs if name == "epochs.jsonl" else finished.orbit_records
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(RunError, match=f"{name} has 1000000000 bytes; the limit is"):
        read()
    assert time.process_time() - begun < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_line_of_a_log_has_a_limit(finished):
    (finished.path / "epochs.jsonl").write_bytes(b"[" + b" " * 2_000_000 + b"]\n")
    with pytest.raises(RunError, match=r"epochs.jsonl is damaged: line 1 has more than 1000000"):
        finished.epochs()


def test_resuming_with_a_sparse_log_needs_little_memory(created, monkeypatch):
    steps = created.train(created.load_data())
    next(steps)
    steps.close()
    with (created.path / "epochs.jsonl").open("r+b") as file:
        file.truncate(10**9)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    again = Run.open(created.path)
    assert [step.number for step in again.train(again.load_data())] == [2]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert [epoch["number"] for epoch in again.epochs()] == [1, 2]


EPOCH = {
    "number": 1,
    "of": 2,
    "updates": 3,
    "train_loss": 1.0,
    "valid_loss": 1.0,
    "valid_accuracy": 0.5,
    "is_best": True,
    "seconds": 1.0,
}


@pytest.mark.parametrize(
    "line",
    [
        {"number": 1},
        EPOCH | {"number": 10**400},
        EPOCH | {"updates": 10**400},
        EPOCH | {"seconds": 10**400},
        EPOCH | {"number": -1},
        EPOCH | {"train_loss": float("nan")},
        {"rules": 10**400, "pairs": 1, "explained": 1, "bits": 1.0, "train_loss": 1, "seconds": 1},
        {"rules": 1},
        7,
        "\x1b[31m" * 1000,
    ],
    ids=lambda line: str(line)[:30],
)
def test_a_damaged_line_of_epochs_is_one_clear_error(finished, line, run):
    (finished.path / "epochs.jsonl").write_text(json.dumps(line) + "\n")
    for command in (
        ["plot", "curves", finished.path, "--out", finished.path.parent / "c.png"],
        ["export", finished.path, "--no-test", "--out", finished.path.parent / "e"],
    ):
        status, _, said = run(*command)
        assert status == 2
        assert "epochs.jsonl is damaged: line 1" in said
        assert len(said) < 500
        assert said.strip().isprintable()


@pytest.mark.parametrize(
    "line",
    [
        {"epoch": 1, "observed": [10**400], "losses": []},
        {"epoch": 10**400, "observed": [1], "losses": [1.0]},
        {"epoch": 1, "observed": [1], "losses": [10**400]},
        {"epoch": 1, "observed": [True], "losses": []},
        {"epoch": 1, "observed": [1], "losses": [1.0], "sharpness": 1.5},
        {"epoch": 1, "observed": [1], "losses": [1.0], "sharpness": "1"},
        {"epoch": 1, "observed": ["\x1b" * 10_000], "losses": []},
        [],
    ],
    ids=lambda line: str(line)[:30],
)
def test_a_damaged_line_of_orbits_is_one_clear_error(finished, line):
    (finished.path / "orbits.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(RunError, match=r"orbits.jsonl is damaged: line 1") as refused:
        finished.orbit_records()
    assert len(str(refused.value)) < 500


def test_a_missing_or_empty_log_of_a_finished_run_is_one_clear_error(finished, run):
    log = finished.path / "epochs.jsonl"
    log.write_text("")
    out = finished.path.parent / "out"
    for _ in range(2):
        for command in (
            ["plot", "curves", finished.path, "--out", f"{out}.png"],
            ["export", finished.path, "--no-test", "--out", out],
        ):
            status, _, said = run(*command)
            assert status == 2
            assert len(said.splitlines()) == 1
        log.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("orbits_every", "x"),
        ("orbits", 5),
        ("seed", [1]),
        ("digest", 5),
        ("digest", None),
        ("orbits_every", 0),
    ],
)
def test_a_damaged_setting_of_a_run_is_one_clear_error(finished, name, value):
    path = finished.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(RunError, match=name):
        Run.open(finished.path)


def test_an_interrupt_before_the_end_of_the_first_epoch_says_that_nothing_is_saved(tmp_path):
    program = (
        "import os, signal, sys, torch; from equitrans.cli.main import main\n"
        "from equitrans.training import loop\n"
        "def stop(*_): os.kill(os.getpid(), signal.SIGINT)\n"
        "loop.update = stop\nsys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "train", "--split", "simple_p1", "--out", tmp_path / "r"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    said = done.stderr.splitlines()[-1]
    assert "in the first epoch" in said
    assert f"equitrans train --resume {tmp_path}/r" in said


def test_rules_have_no_learning_curve(tmp_path, run):
    (tmp_path / "p.tsv").write_text("walk twice\tWALK WALK\nwalk\tWALK\njump\tJUMP\n")
    (tmp_path / "c.toml").write_text(
        '[[class]]\nname = "v"\nsource = ["walk", "jump"]\ntarget = ["WALK", "JUMP"]\n'
    )
    files = ["--data", tmp_path / "p.tsv", "--classes", tmp_path / "c.toml", "--quiet"]
    run("train", *files, "--model.aligner", "recursive", "--out", tmp_path / "r")
    status, _, said = run("plot", "curves", tmp_path / "r", "--out", tmp_path / "c.png")
    assert status == 2
    assert "rules are learned in one step" in said
