"""Training as people follow it: a live line on a terminal, a plain one now and then elsewhere."""

import time
from collections.abc import Iterable

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from equitrans.cli.console import Console
from equitrans.training import Epoch

EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


def follow(epochs: Iterable[Epoch], console: Console) -> None:
    """Go through the epochs and show how they go."""
    (_live if console.is_terminal else _plain)(epochs, console)


def _live(epochs: Iterable[Epoch], console: Console) -> None:
    columns = (
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting", total=None)
        for epoch in epochs:
            progress.update(
                task, description=describe(epoch), total=epoch.of, completed=epoch.number
            )


def _plain(epochs: Iterable[Epoch], console: Console) -> None:
    last, shown = None, 0.0
    for epoch in epochs:
        last = epoch
        if time.monotonic() - shown > EVERY:
            console.print(describe(epoch))
            last, shown = None, time.monotonic()
    if last is not None:
        console.print(describe(last))


def describe(epoch: Epoch) -> str:
    """One epoch in a line.

    >>> describe(Epoch(3, 10, 30, 1.25, 0.5, 0.75, True, 2.0))
    'epoch 3 of 10: loss 1.2500, validation 0.5000, accuracy 75.0 %, best so far'
    """
    of = "" if epoch.of is None else f" of {epoch.of}"
    text = f"epoch {epoch.number}{of}: loss {epoch.train_loss:.4f}"
    if epoch.valid_loss is not None and epoch.valid_accuracy is not None:
        text += f", validation {epoch.valid_loss:.4f}, accuracy {100 * epoch.valid_accuracy:.1f} %"
    return text + (", best so far" if epoch.is_best else "")
