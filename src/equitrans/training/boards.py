"""Epochs to TensorBoard; the only room that knows it."""

import time
from pathlib import Path
from typing import Any

from equitrans.errors import ConfigError
from equitrans.training.learning import Step

FLUSH_SECONDS = 5
"""So long may an epoch take to be seen."""


def load_tensorboard() -> tuple[Any, Any, Any]:
    """The parts of TensorBoard that write, which not every installation has."""
    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer import event_file_writer
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"TensorBoard files need {missing.name}: pip install 'equitrans[tensorboard]'"
        ) from None
    return event_pb2, summary_pb2, event_file_writer


class Board:
    """Losses and accuracy by epoch, as an event file in a directory.

    From the first epoch that is added on, what was written there before is forgotten: a run that
    goes on from its last checkpoint goes through these epochs again.
    """

    def __init__(self, directory: Path | str) -> None:
        event_pb2, summary_pb2, event_file_writer = load_tensorboard()
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._started = False
        self._writer = event_file_writer.EventFileWriter(str(directory), flush_secs=FLUSH_SECONDS)

    def add(self, step: Step) -> None:
        """Write the figures of a step."""
        number = getattr(step, "number", 1)
        if not self._started:
            self._started = True
            self._write(number, session_log=self._start)
        figures = {
            "loss/train": step.train_loss,
            "loss/validation": getattr(step, "valid_loss", None),
            "accuracy/validation": getattr(step, "valid_accuracy", None),
        }
        values = [
            self._summary.Value(tag=tag, simple_value=figure)
            for tag, figure in figures.items()
            if figure is not None
        ]
        self._write(number, summary=self._summary(value=values))

    def _write(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, **content))

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
