"""Training as people follow it: a live line on a terminal, a plain one now and then elsewhere."""

import time
from collections.abc import Iterable

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from equitrans.cli.console import Console
from equitrans.training import Step

EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


def follow(steps: Iterable[Step], console: Console) -> None:
    """Go through the epochs and show how they go."""
    (_live if console.is_terminal else _plain)(steps, console)


def _live(steps: Iterable[Step], console: Console) -> None:
    columns = (
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting", total=None)
        for step in steps:
            progress.update(task, description=str(step), completed=_number(step), total=_of(step))


def _plain(steps: Iterable[Step], console: Console) -> None:
    last, shown = None, 0.0
    for step in steps:
        last = step
        if time.monotonic() - shown > EVERY:
            console.print(str(step))
            last, shown = None, time.monotonic()
    if last is not None:
        console.print(str(last))


def _number(step: Step) -> int:
    """How many steps are done; rules are learned in one."""
    return getattr(step, "number", 1)


def _of(step: Step) -> int | None:
    """How many steps there are, if that is known."""
    return getattr(step, "of", 1)
