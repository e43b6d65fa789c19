"""The settings of a run, and the built-in ones by name."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from equitrans.data import DataConfig
from equitrans.errors import ConfigError, nearest
from equitrans.models.transducer import TransducerConfig
from equitrans.training import TrainingConfig

Settings = dict[str, Any]
"""Dotted names and their values, as on the command line."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides how a run ends."""

    data: DataConfig
    model: TransducerConfig = field(default_factory=TransducerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    seed: int = 0


@cache
def _recipes() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads((files("equitrans") / "recipes.toml").read_text(encoding="utf-8"))


def recipe_names() -> list[str]:
    """The names of all recipes."""
    return list(_recipes())


def recipe(name: str, split: str | None) -> Settings:
    """The settings of a recipe for a split, or for data of one's own.

    >>> recipe("paper", "add_jump")["model.hidden"]
    67
    """
    if name not in _recipes():
        raise ConfigError(f"unknown recipe {name!r}{nearest(name, _recipes())}")
    tables = _recipes()[name]
    family = "simple" if split is not None and split.startswith("simple_p") else split
    for candidate in (split, family, "any"):
        if candidate in tables:
            return _flat(tables["all"]) | _flat(tables[candidate])
    raise ConfigError(f"recipe {name!r} has no settings for {split or 'own data'}; it has {', '.join(tables)}")


def _flat(table: dict[str, Any], prefix: str = "") -> Settings:
    """Nested tables to dotted names."""
    out: Settings = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = value
    return out
