"""Progress of a training or of a list of jobs: a bar on a terminal, plain lines elsewhere."""

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from equitrans import training
from equitrans.cli.console import Console

COUNTS = re.compile(r"(\d+) of (\d+)")
"""How a text about a part of the work tells what share of it is done."""

EVERY = 10.0
"""Seconds between two lines about one training, where there is no terminal."""

Show = Callable[[str, int, int | None], None]
"""A function of a text, the number of steps done, and the number of all steps if it is known."""


def follow(
    start: Callable[[Callable[[str], None]], Iterable["training.Step"]], console: Console
) -> None:
    """Train, and show the figures of the last epoch. ``start`` begins the training; it receives a
    function that shows a text before there are figures.
    """
    with bar(console) as show:
        for step in start(lambda text: show(text, 0, None)):
            # rules are learned in one step
            show(str(step), getattr(step, "number", 1), getattr(step, "of", 1))


@contextmanager
def watched(console: Console) -> Iterator[Callable[[str], None] | None]:
    """Yield a function that shows a text and the share of the work that it names beside a bar on a
    terminal; None elsewhere.
    """
    if not console.is_terminal or console.quiet:
        yield None
        return
    with bar(console) as show:
        yield lambda text: show(text, 0, None)


@contextmanager
def bar(console: Console, jobs: int | None = None) -> Iterator[Show]:
    """Yield a function that shows progress.

    With a number of jobs, every text is printed on a line of its own. Without it, a text replaces
    the text before: beside the bar on a terminal, elsewhere as one line every 10 seconds.
    """
    if not console.is_terminal:
        yield from _lines(console, jobs)
        return
    columns = (
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting" if jobs is None else f"0/{jobs}", total=jobs)

        def show(text: str, done: int, total: int | None) -> None:
            if jobs is not None:
                console.print(text)
                text = f"{done}/{total}"
            elif total is None and (counts := COUNTS.search(text)) is not None:
                done, total = map(int, counts.groups())
            progress.update(task, description=text, completed=done, total=total)

        yield show


def _lines(console: Console, jobs: int | None) -> Iterator[Show]:
    last, shown, begun = None, -math.inf, time.monotonic()

    def show(text: str, done: int, total: int | None) -> None:
        nonlocal last, shown
        # the first figures are printed at once, a text before them after 10 seconds
        before = begun if done == 0 and shown == -math.inf else shown
        if jobs is not None:
            console.print(f"{done} of {total}: {text}")
        elif time.monotonic() - before >= EVERY:
            console.print(text)
            last, shown = None, time.monotonic()
        else:
            last = text

    yield show
    if last is not None:
        console.print(last)
