"""Checkpoints: the state of a learning in one file, so that all its parts are of one epoch."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equitrans.errors import RunError, shown
from equitrans.files import write_atomically
from equitrans.paper import Model
from equitrans.training.learning import Learning
from equitrans.training.tensors import (
    Header,
    check_finite,
    check_tensors,
    pack,
    part,
    read_header,
    read_tensors,
)

_COUNTERS: dict[str, type] = {
    "epoch": int,
    "updates": int,
    "seconds": float,
    "best_epoch": int,
    "best_loss": float,
    "best_accuracy": float,
    "start": int,
    "epochs_before": int,
    "updates_before": int,
    "lesson": int,
    "lesson_epochs": int,
    "finished": bool,
}

_FIRST_START: dict[str, Any] = {
    "best_accuracy": 1.0,
    "start": 1,
    "epochs_before": 0,
    "updates_before": 0,
    "lesson": 0,
    "lesson_epochs": 0,
}
"""Counters that checkpoints of earlier versions lack; no restarts, no lessons."""

_ADAM, _ADADELTA = ("step", "exp_avg", "exp_avg_sq"), ("step", "square_avg", "acc_delta")
"""The state of an optimizer for each parameter: a count, and two tensors of its shape."""

_SQUARES = (".exp_avg_sq", ".square_avg", ".acc_delta")
"""Ends of the names of tensors without negative numbers."""

_MOST = 2**31
"""Upper bound of all counters; settings have the same."""


@dataclass(frozen=True)
class Checkpoint:
    """A file with the current weights, the best weights, the optimizer's state and counters."""

    path: Path

    @property
    def exists(self) -> bool:
        """Whether the file exists."""
        return self.path.is_file()

    @property
    def is_finished(self) -> bool:
        """Whether the learning has finished."""
        return self.exists and bool(_counters(self.path, read_header(self.path))["finished"])

    def save(self, learning: Learning, *, finished: bool) -> None:
        """Replace the checkpoint by the current state of a learning."""
        state = learning.state
        tensors = {f"model.{name}": value for name, value in learning.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in learning.best.items()}
        counters = dict.fromkeys(_COUNTERS, 0) | {"seconds": 0.0, "best_loss": 0.0} | _FIRST_START
        counters |= {"epoch": learning.step, "best_epoch": learning.best_step}
        if state is not None:
            for i, values in state.optimizer.state_dict()["state"].items():
                tensors |= {f"optimizer.{i}.{key}": value for key, value in values.items()}
            counters = {name: getattr(state, name) for name in _COUNTERS if name != "finished"}
        content = json.dumps(counters | {"finished": finished})
        write_atomically(self.path, pack(tensors, {"counters": content}))

    def best(self, model: Model) -> dict[str, Tensor]:
        """The weights of the best epoch; empty before the first epoch."""
        return part(self._read(model)[1], "best.")

    def load(self, learning: Learning) -> None:
        """Continue a new learning, which has a state, from the checkpoint."""
        state = learning.state
        assert state is not None
        header, tensors = self._read(learning.model)
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in part(tensors, "optimizer.").items():
            i, _, key = name.partition(".")
            moments.setdefault(int(i), {})[key] = value
        keys = _ADADELTA if isinstance(state.optimizer, torch.optim.Adadelta) else _ADAM
        if any(found.keys() != set(keys) for found in moments.values()):
            raise RunError(f"{self.path} is damaged: it has the state of another optimizer")
        groups = state.optimizer.state_dict()["param_groups"]
        learning.model.load_state_dict(part(tensors, "model."))
        state.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        for name, value in _counters(self.path, header).items():
            if name != "finished":
                setattr(state, name, value)
        learning.restored(part(tensors, "best."))

    def _read(self, model: Model) -> tuple[Header, dict[str, Tensor]]:
        """Header and tensors of the file; raise RunError unless every tensor fits the model. The
        optimizer's C++ code trusts shapes, so a wrong one must not reach it.
        """
        header = read_header(self.path)
        counters = _counters(self.path, header)
        weights = {name: tuple(t.shape) for name, t in model.state_dict().items()}
        expected = {f"model.{name}": shape for name, shape in weights.items()}
        if counters["best_epoch"] > 0 or any(name.startswith("best.") for name in header.shapes):
            expected |= {f"best.{name}": shape for name, shape in weights.items()}
        # parameters without a gradient so far, as in a warm start, have no moments
        for i, parameter in enumerate(model.parameters()):
            keys = _ADADELTA if f"optimizer.{i}.square_avg" in header.shapes else _ADAM
            names = [f"optimizer.{i}.{key}" for key in keys]
            if any(name in header.shapes for name in names):
                shape = tuple(parameter.shape)
                expected |= zip(names, ((), shape, shape), strict=True)
        check_tensors(self.path, header, expected)
        # the type of the model: a number may be too large for it
        dtype = next(model.parameters()).dtype
        tensors = {name: value.to(dtype) for name, value in read_tensors(self.path).items()}
        check_finite(self.path, tensors)
        for name, value in part(tensors, "optimizer.").items():
            self._check_moment(f"optimizer.{name}", value)
        return header, tensors

    def _check_moment(self, name: str, value: Tensor) -> None:
        """Raise RunError unless a step is a count and a second moment has no negative numbers."""
        if name.endswith(".step"):
            if not (0 <= value < _MOST and value == value.round()):
                found = f"{name} is {float(value)}; expected a whole number from 0 to 2**31"
                raise RunError(f"{self.path} is damaged: {found}")
        elif name.endswith(_SQUARES) and (value < 0).any():
            raise RunError(f"{self.path} is damaged: {name} has negative numbers")


def _counters(path: Path, header: Header) -> dict[str, Any]:
    """The counters of a checkpoint; raise RunError unless all are there with sensible values."""
    try:
        counters = _FIRST_START | json.loads(header.metadata["counters"])
        found: dict[str, Any] = {name: counters[name] for name in _COUNTERS}
    except (TypeError, KeyError, ValueError, RecursionError):
        raise RunError(f"{path} is damaged: its counters are missing or not JSON") from None
    for name, kind in _COUNTERS.items():
        value, is_kind = found[name], type(found[name]) is kind
        least, most = 0.0, float(_MOST)
        if name == "best_loss":  # rounding can make a loss negative; it is infinite before the end
            least, most = -1.0, math.inf  # of the first epoch, and without validation pairs
        if not is_kind or not least <= value <= most:
            raise RunError(f"{path} is damaged: {name} is {shown(value)}")
    for less, total in (
        ("best_epoch", "epoch"),
        ("epochs_before", "epoch"),
        ("updates_before", "updates"),
    ):
        if found[less] > found[total]:
            values = f"{less} is {found[less]}, but {total} is {found[total]}"
            raise RunError(f"{path} is damaged: {values}")
    return found
