"""Logs of runs: JSON objects, one per line. They are read line by line, within limits, because the
author of a run directory may be a stranger.
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from equitrans.errors import EquitransError, RunError, shown
from equitrans.settings import from_dict
from equitrans.training.learning import Rules
from equitrans.training.lessons import LessonEpoch
from equitrans.training.loop import Epoch

LARGEST_LOG = 64_000_000
"""Largest size of a log in bytes: about 300,000 epochs."""

LONGEST_LINE = 1_000_000
"""Largest number of bytes of a line; the losses of the largest family need a third."""

LARGEST_COUNT = 2**63
"""Upper bound of the integers in a log."""


def read_log(path: Path, check: Callable[[Any], object]) -> list[dict[str, Any]]:
    """The complete lines of a log; the last line may be partial while a process trains."""
    if (size := path.stat().st_size) > LARGEST_LOG:
        raise RunError(f"{path} has {size} bytes; the limit is {LARGEST_LOG}")
    found = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            found.append(json.loads(line.decode()))
            check(found[-1])
        except RecursionError:
            raise RunError(f"{path} is damaged: line {number}: nested too deeply") from None
        except (EquitransError, ValueError) as error:
            raise RunError(f"{path} is damaged: line {number}: {error}") from None
    return found


def trim_log(path: Path, lines: int) -> None:
    """Remove lines that are newer than the checkpoint: training writes them again."""
    if path.is_file():
        os.truncate(path, sum(map(len, islice(_lines(path), lines))))


def _lines(path: Path) -> Iterator[bytes]:
    """The complete lines of a file; raise RunError at a line that is too long."""
    with path.open("rb") as file:
        number = 0
        while (line := file.readline(LONGEST_LINE + 1)).endswith(b"\n"):
            number += 1
            yield line
        if len(line) > LONGEST_LINE:
            too_long = f"line {number + 1} has more than {LONGEST_LINE} bytes"
            raise RunError(f"{path} is damaged: {too_long}")


def check_step(line: Any) -> None:
    """Raise ConfigError or RunError unless a line is the log of an epoch or of learned rules."""
    kinds = {"rules": Rules, "lesson": LessonEpoch}
    kind = next((k for n, k in kinds.items() if isinstance(line, dict) and n in line), Epoch)
    for name, value in vars(from_dict(kind, line)).items():
        if isinstance(value, int) and not 0 <= value < LARGEST_COUNT:
            raise RunError(f"{name} is {shown(value)}")


def check_orbits(line: Any) -> None:
    """Raise RunError unless a line has an epoch, the sizes of the observed orbits and losses, and
    the sharpness is a probability if there is one: earlier versions wrote none.
    """
    kinds = {"epoch": int, "observed": list, "losses": list}
    for name, kind in kinds.items():
        value = line.get(name) if isinstance(line, dict) else None
        if not isinstance(value, kind):
            raise RunError(f"{name} is {shown(value)}; expected {kind.__name__}")
    for value in (line["epoch"], *line["observed"]):
        if type(value) is not int or not 0 <= value < LARGEST_COUNT:
            raise RunError(f"{shown(value)} is not a count")
    sharpness = line.get("sharpness", 1.0)
    if not isinstance(sharpness, float) or not 0 <= sharpness <= 1:
        raise RunError(f"sharpness is {shown(sharpness)}; expected a number from 0 to 1")
    for value in line["losses"]:
        if not isinstance(value, float) or math.isnan(value):
            raise RunError(f"{shown(value)} is not a loss")
