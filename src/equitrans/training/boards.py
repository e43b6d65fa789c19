"""Training figures for TensorBoard; no other module imports it."""

from pathlib import Path
from typing import Any

from equitrans.errors import ConfigError
from equitrans.training.learning import Step

FLUSH_SECONDS = 5
"""Seconds until TensorBoard sees an epoch."""

TAGS = {
    "train_loss": "loss/train",
    "valid_loss": "loss/validation",
    "valid_accuracy": "accuracy/validation",
}
"""The figures that are written, and their names in TensorBoard."""


def load_tensorboard() -> Any:
    """The class ``SummaryWriter``; raise ConfigError if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"TensorBoard files need {missing.name}: pip install 'equitrans[tensorboard]'"
        ) from None
    return SummaryWriter


class Board:
    """Writes losses and accuracy by epoch to an event file in a directory.

    The first epoch added replaces the epochs from its number on that are there already: a run
    that continues from a checkpoint repeats them.
    """

    def __init__(self, directory: Path | str) -> None:
        self._directory, self._open = str(directory), load_tensorboard()
        self._writer: Any = None

    def add(self, step: Step) -> None:
        """Write the figures of a step."""
        figures = vars(step)
        number = figures.get("number", 1)
        if self._writer is None:
            self._writer = self._open(self._directory, purge_step=number, flush_secs=FLUSH_SECONDS)
        for name, tag in TAGS.items():
            if figures.get(name) is not None:
                self._writer.add_scalar(tag, figures[name], number)

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
