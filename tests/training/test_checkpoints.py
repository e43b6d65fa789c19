"""Checkpoints: every tensor fits the parameter it belongs to before the optimizer reads it."""

import json
import random
import subprocess
import sys

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from equitrans.data.classes import format_classes
from equitrans.data.pairs import format_tsv
from equitrans.data.scan import CLASSES, load_split
from equitrans.data.source import DataConfig, load_data
from equitrans.errors import EquitransError, RunError
from equitrans.models.configs import TransducerConfig
from equitrans.training import runs
from equitrans.training.config import RunConfig, TrainingConfig
from equitrans.training.runs import Run
from equitrans.training.tensors import pack

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A run that was stopped after two of four epochs."""
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    (tmp_path / "pairs.tsv").write_text(format_tsv(load_split("simple_p1").train[:30]))
    (tmp_path / "classes.toml").write_text(format_classes(CLASSES["both"]))
    settings = RunConfig(
        data=DataConfig(file=str(tmp_path / "pairs.tsv"), classes=str(tmp_path / "classes.toml")),
        model=TransducerConfig(k=4, d=3, embedding=5, hidden=6),
        training=TrainingConfig(epochs=4),
    )
    run = Run.create(tmp_path / "run", settings, load_data(settings.data, seed=0))
    steps = run.train(run.load_data())
    next(steps), next(steps)
    steps.close()
    return run


def change(run, tensors=(), **counters):
    """Write the checkpoint again with other tensors and counters."""
    path = run.path / "state.safetensors"
    with safe_open(path, framework="pt") as file:
        found = json.loads(file.metadata()["counters"])
    content = {k: v for k, v in (load_file(path) | dict(tensors)).items() if v is not None}
    path.write_bytes(pack(content, {"counters": json.dumps(found | counters)}))


def resume(run):
    again = Run.open(run.path)
    again.repair()
    return list(again.train(again.load_data()))


def moment(run, key):
    """The name and value of a moment of the first matrix."""
    found = load_file(run.path / "state.safetensors")
    return next((k, v) for k, v in found.items() if k.endswith(f".{key}") and v.ndim == 2)


def test_the_checkpoint_of_these_tests_is_continued(stopped):
    change(stopped)
    assert [step.number for step in resume(stopped)] == [3, 4]


@pytest.mark.parametrize("key", ["exp_avg", "exp_avg_sq"])
def test_a_single_number_as_a_moment_is_rejected(stopped, key):
    """Fused AdamW would read it as a whole tensor; a process of its own would not survive that."""
    name, value = moment(stopped, key)
    change(stopped, {name: torch.zeros(())})
    done = subprocess.run(
        [sys.executable, "-m", "equitrans.cli.main", "train", "--resume", stopped.path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    shape = "×".join(map(str, value.shape))
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"{name} has shape of a single number; expected {shape}")


def test_a_step_count_is_a_single_number_in_range(stopped):
    for wrong, message in (
        (torch.ones(3), "optimizer.0.step has shape 3; expected of a single number"),
        (torch.tensor(-1.0), "optimizer.0.step is -1.0; expected a whole number"),
        (torch.tensor(0.5), "optimizer.0.step is 0.5; expected a whole number"),
        (torch.tensor(1e30), "optimizer.0.step is 1.*e.30; expected a whole number"),
    ):
        change(stopped, {"optimizer.0.step": wrong})
        with pytest.raises(RunError, match=message):
            resume(stopped)


@pytest.mark.parametrize("prefix", ["model.", "best.", "optimizer."])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_nan_and_infinite_numbers_are_rejected(stopped, prefix, value):
    name = next(
        name
        for name, tensor in load_file(stopped.path / "state.safetensors").items()
        if name.startswith(prefix) and tensor.ndim == 2
    )
    shape = load_file(stopped.path / "state.safetensors")[name].shape
    change(stopped, {name: torch.full(shape, value, dtype=torch.float64)})
    with pytest.raises(RunError, match=f"{name} has NaN or infinite numbers"):
        resume(stopped)


def test_a_second_moment_is_not_negative(stopped):
    name, value = moment(stopped, "exp_avg_sq")
    change(stopped, {name: value - 1})
    with pytest.raises(RunError, match=f"{name} has negative numbers"):
        resume(stopped)


@pytest.mark.parametrize(
    "counters",
    [
        {"epoch": 10**30},
        {"updates": 2**63},
        {"seconds": float("inf")},
        {"epoch": 1, "best_epoch": 2},
        {"best_loss": "x" * 100_000},
    ],
    ids=lambda counters: ",".join(counters),
)
def test_counters_out_of_range_are_rejected(stopped, counters):
    change(stopped, **counters)
    with pytest.raises(RunError, match="is damaged") as refused:
        resume(stopped)
    assert len(str(refused.value)) < 400


def test_a_checkpoint_without_its_best_weights_is_rejected(stopped):
    best = [n for n in load_file(stopped.path / "state.safetensors") if n.startswith("best.")]
    change(stopped, dict.fromkeys(best))
    with pytest.raises(RunError, match=r"best\.\S+ is missing"):
        resume(stopped)


def test_mutated_checkpoints_are_continued_or_rejected(stopped):
    """Numbers, shapes, names and counters change at random; the seed decides."""
    path = stopped.path / "state.safetensors"
    log = stopped.path / "epochs.jsonl"
    usual, lines = path.read_bytes(), log.read_bytes()
    names, draw = sorted(load_file(path)), random.Random(0)
    values = [0.0, -1.0, 1e-45, 1e20, 3e38, float("nan"), float("-inf")]
    shapes = [(), (0,), (1,), (1, 1), (7,), (2, 3, 4)]
    continued, messages = 0, []
    for _ in range(150):
        path.write_bytes(usual)
        log.write_bytes(lines)
        kind = draw.choice(["value", "shape", "missing", "name", "swap", "counter", "bytes"])
        name, other = draw.sample(names, 2)
        found = load_file(path)
        if kind == "value":
            change(stopped, {name: torch.full_like(found[name], draw.choice(values))})
        elif kind == "shape":
            change(stopped, {name: torch.zeros(draw.choice(shapes))})
        elif kind == "missing":
            change(stopped, {name: None})
        elif kind == "name":
            number = draw.choice(["-1", "00", "٣", "9" * 40])
            change(stopped, {f"optimizer.{number}.step": found[name]})
        elif kind == "swap":
            change(stopped, {name: found[other].clone(), other: found[name].clone()})
        elif kind == "counter":
            counter = draw.choice(["epoch", "updates", "seconds", "best_epoch", "best_loss"])
            change(
                stopped, **{counter: draw.choice([-1, 0, 7, 2.5, 1e308, True, None, [], 10**40])}
            )
        else:
            raw = bytearray(usual)
            for _ in range(draw.randint(1, 8)):
                raw[draw.randrange(len(raw))] = draw.randrange(256)
            path.write_bytes(raw)
        try:
            continued += len(resume(stopped)) > 0
        except EquitransError as error:
            messages.append(str(error))
    assert continued
    assert messages
    assert max(map(len, messages)) < 1000
