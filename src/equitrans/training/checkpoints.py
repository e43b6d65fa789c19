"""Checkpoints: the state of a learning in one file, so that all its parts are of one epoch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from equitrans.errors import RunError
from equitrans.files import write_atomically
from equitrans.paper import Model
from equitrans.training.learning import Learning
from equitrans.training.loop import TrainState
from equitrans.training.tensors import Header, check_tensors, pack, part, read_header, read_tensors

_COUNTERS: dict[str, type] = {
    "epoch": int,
    "updates": int,
    "seconds": float,
    "best_epoch": int,
    "best_loss": float,
    "finished": bool,
}

_MOMENTS = {"step", "exp_avg", "exp_avg_sq"}
"""The state of Adam and AdamW for each parameter."""


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
        counters = dict.fromkeys(_COUNTERS, 0) | {"seconds": 0.0, "best_loss": 0.0}
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

    def load(self, state: TrainState) -> None:
        """Copy the checkpoint into a new state."""
        header, tensors = self._read(state.model)
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in part(tensors, "optimizer.").items():
            i, _, key = name.partition(".")
            moments.setdefault(int(i), {})[key] = value
        groups = state.optimizer.state_dict()["param_groups"]
        # parameters without a gradient so far, as in a warm start, have no moments
        if any(parts.keys() != _MOMENTS for parts in moments.values()):
            raise RunError(f"{self.path} is damaged: a part of the optimizer's state is missing")
        try:
            state.model.load_state_dict(part(tensors, "model."))
            state.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        except (RuntimeError, ValueError):
            raise RunError(
                f"{self.path} is not a checkpoint of the model that config.json describes"
            ) from None
        state.best = part(tensors, "best.")
        for name, value in _counters(self.path, header).items():
            if name != "finished":
                setattr(state, name, value)

    def _read(self, model: Model) -> tuple[Header, dict[str, Tensor]]:
        """Header and tensors of the file; raise RunError unless they fit the model."""
        header = read_header(self.path)
        weights = {name: tuple(t.shape) for name, t in model.state_dict().items()}
        expected = {f"model.{name}": shape for name, shape in weights.items()}
        if any(name.startswith("best.") for name in header.shapes):
            expected |= {f"best.{name}": shape for name, shape in weights.items()}
        # an optimizer has scalars, and tensors of the shapes of its parameters
        shapes = [tuple(p.shape) for p in model.parameters()]
        for name, found in header.shapes.items():
            kind, _, rest = name.partition(".")
            i = rest.partition(".")[0]
            if kind == "optimizer" and i.isdecimal() and len(i) < 9 and int(i) < len(shapes):
                expected[name] = () if found == () else shapes[int(i)]
        check_tensors(self.path, header, expected)
        return header, read_tensors(self.path)


def _counters(path: Path, header: Header) -> dict[str, Any]:
    """The counters of a checkpoint; raise RunError unless all are there with sensible values."""
    try:
        counters = json.loads(header.metadata["counters"])
        found: dict[str, Any] = {name: counters[name] for name in _COUNTERS}
    except (TypeError, KeyError, ValueError, RecursionError):
        raise RunError(f"{path} is damaged: its counters are missing or not JSON") from None
    for name, kind in _COUNTERS.items():
        least = -1 if name == "best_loss" else 0  # a rounding error can make a loss negative
        if type(found[name]) is not kind or not found[name] >= least:
            raise RunError(f"{path} is damaged: {name} is {found[name]!r}")
    return found
