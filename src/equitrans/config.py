"""The settings of a run, and the built-in ones by name."""

import tomllib
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any

from equitrans.data import DataConfig
from equitrans.errors import ConfigError, nearest, shown
from equitrans.models.catalog import ModelConfig, find_model, name_of
from equitrans.models.transducer import TransducerConfig
from equitrans.settings import check_seed, from_dict
from equitrans.training import TrainingConfig

Settings = dict[str, Any]
"""Dotted names and their values, as on the command line."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides how a run ends."""

    data: DataConfig
    model: ModelConfig = field(default_factory=TransducerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    seed: int = 0
    orbits: str | None = None
    """A source sentence of the data whose orbits are recorded through training."""
    orbits_every: int = 5
    """So many epochs lie between two records."""

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.orbits_every < 1:
            raise ConfigError(f"orbits_every is {shown(self.orbits_every)}; it must be 1 or more")


def run_config(settings: Settings) -> RunConfig:
    """Settings as on the command line, those of a recipe included, as one value.

    >>> run_config({"split": "length", "model.hidden": 32}).model.hidden
    32
    """
    names = {f.name for f in fields(DataConfig)} | {"kind", "seed", "orbits", "orbits_every"}
    parts: dict[str, Settings] = {"data": {}, "model": {}, "training": {}, "run": {}}
    for name, value in settings.items():
        section, dot, field_name = name.partition(".")
        if dot and section in ("model", "training"):
            parts[section][field_name] = value
        elif name in names:
            parts["run" if name in ("kind", "seed", "orbits", "orbits_every") else "data"][name] = (
                value
            )
        else:
            raise ConfigError(f"{shown(name)} is not a setting{nearest(name, names)}")
    kind = parts["run"].pop("kind", "transducer")
    parts["run"] |= {
        "data": from_dict(DataConfig, parts["data"], section="data"),
        "model": from_dict(find_model(kind), parts["model"], section="model"),
        "training": from_dict(TrainingConfig, parts["training"], section="training"),
    }
    return from_dict(RunConfig, parts["run"], section="run")


@cache
def _recipes() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("equitrans") / "recipes.toml").read_text(encoding="utf-8"))


def recipe_names() -> list[str]:
    """The names of all recipes; each of the paper's also has a swapped form."""
    return list(_recipes())


def default_recipe(kind: str) -> str:
    """The recipe of a model without a choice: for a baseline the one of its name."""
    find_model(kind)
    return "default" if kind == "transducer" else kind


def usual_training(model: ModelConfig) -> TrainingConfig:
    """How a model is trained on data of one's own if nothing is said."""
    settings = recipe(default_recipe(name_of(model)), None)
    parts = {k.removeprefix("training."): v for k, v in settings.items() if "training." in k}
    return from_dict(TrainingConfig, parts)


def recipe(name: str, split: str | None) -> Settings:
    """The settings of a recipe for a split, or for data of one's own.

    >>> recipe("paper", "add_jump")["model.hidden"]
    67
    >>> recipe("paper-swapped", "add_jump")["model.hidden"]
    223
    >>> recipe("default", "length")
    {'kind': 'transducer', 'hold_out': 'longest'}
    """
    swapped = name.endswith("-swapped")
    recipes = _recipes()
    if name.removesuffix("-swapped") not in recipes:
        raise ConfigError(f"unknown recipe {name!r}{nearest(name, recipes)}")
    tables = recipes[name.removesuffix("-swapped")]
    candidates = ["any"] if split is None else [split, split.partition("_p")[0], "scan"]
    found = next((candidate for candidate in candidates if candidate in tables), None)
    if found is None:
        known = ", ".join(key for key in tables if key not in ("all", "like", "model"))
        raise ConfigError(f"recipe {name!r} is for {known}, not for {split or 'own data'}")
    if isinstance(tables[found], str):
        return recipe(tables[found], split)
    parent = recipes.get(tables.get("like", ""), {})
    settings: Settings = {"kind": tables.get("model", parent.get("model", "transducer"))}
    for table in (parent.get("all", {}), tables.get("all", {}), tables[found]):
        settings |= _flat(table)
    if swapped:
        pair = ("model.embedding", "model.hidden")
        settings |= {
            a: settings[b] for a, b in zip(pair, reversed(pair), strict=True) if b in settings
        }
    return settings


def _flat(table: dict[str, Any], prefix: str = "") -> Settings:
    """Nested tables to dotted names; TOML has no null, so it is spelled out."""
    out: Settings = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = None if value == "null" else value
    return out
