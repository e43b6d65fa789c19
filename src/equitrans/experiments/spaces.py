"""What a search may try: for each setting, choices or a range."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equitrans.errors import ConfigError, named, shown
from equitrans.files import read_toml

Choice = bool | int | float | str
LARGEST = 1e300
"""Ranges end before numbers do, so that they have a length."""


@dataclass(frozen=True)
class Range:
    """Real numbers from low to high; with ``log``, their logarithms are drawn evenly."""

    low: float
    high: float
    log: bool = False

    def at(self, share: float) -> float:
        """The number with so much of the range below it, from 0 to 1.

        >>> round(Range(1e-4, 1e-2, log=True).at(0.5), 9)
        0.001
        """
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = low + share * (high - low)
        return min(max(math.exp(value) if self.log else value, self.low), self.high)


@dataclass(frozen=True)
class Space:
    """Dotted names of settings, and what is tried for each."""

    settings: Mapping[str, tuple[Choice, ...] | Range]

    @classmethod
    def of(cls, table: Mapping[str, Any], *, origin: str = "space") -> "Space":
        """From a table: a list of choices, or ``{low = …, high = …, log = true}``, for each name.

        >>> Space.of({"model.k": [4, 6], "training.clip": {"low": 0, "high": 1}}).settings
        {'model.k': (4, 6), 'training.clip': Range(low=0.0, high=1.0, log=False)}
        """
        if not table:
            raise ConfigError(f"{origin} is empty; it needs a setting and its choices")
        return cls({n: _values(f"{origin}: {named(n)}", table[n]) for n in sorted(table)})

    @classmethod
    def read(cls, path: Path | str) -> "Space":
        """From the table ``[space]`` of a TOML file."""
        try:
            content = read_toml(Path(path), ConfigError)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        if not isinstance(content.get("space"), dict):
            raise ConfigError(f"{path} has no table [space]")
        return cls.of(content["space"], origin=str(path))

    def draw(self, trials: int, *, seed: int) -> list[dict[str, Choice]]:
        """So many configurations, each apart from the others; the first ones do not depend on how
        many.
        """
        source = random.Random(seed)
        return [
            {
                name: values.at(source.random())
                if isinstance(values, Range)
                else values[int(source.random() * len(values))]
                for name, values in self.settings.items()
            }
            for _ in range(trials)
        ]


def _values(where: str, found: Any) -> tuple[Choice, ...] | Range:
    if isinstance(found, dict):
        return _range(where, found)
    if not isinstance(found, list) or not found:
        raise ConfigError(f"{where} is {shown(found)}; it must be a list of choices or a range")
    for choice in found:
        if not isinstance(choice, Choice):
            raise ConfigError(f"{where}: {shown(choice)} is neither a number nor a string")
    if len(set(found)) < len(found):
        raise ConfigError(f"{where} is {shown(found)}; each choice must be there once")
    return tuple(found)


def _range(where: str, found: dict[str, Any]) -> Range:
    ends, log = [found.get("low"), found.get("high")], found.get("log", False)
    if found.keys() - {"low", "high", "log"} or not isinstance(log, bool):
        raise ConfigError(
            f"{where} is {shown(found)}; a range is {{low = 1e-4, high = 1e-2, log = true}}, and"
            ' the name of a setting is quoted: "model.k" = [4, 6]'
        )
    for end in ends:
        if isinstance(end, bool) or not isinstance(end, int | float) or not abs(end) <= LARGEST:
            raise ConfigError(f"{where} is {shown(found)}; low and high must be numbers")
    low, high = (float(end) for end in ends if end is not None)
    if not low < high:
        raise ConfigError(f"{where} goes from {low} to {high}; low must be below high")
    if log and low <= 0:
        raise ConfigError(f"{where} goes from {low}, which has no logarithm; low must be above 0")
    return Range(low, high, log)
