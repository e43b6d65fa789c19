"""The settings of a run, and recipes: built-in settings by name. Does not import torch."""

import tomllib
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from equitrans.data import Batching, DataConfig
from equitrans.errors import ConfigError, nearest, shown
from equitrans.models import BackoffConfig, ModelConfig, TransducerConfig, find_model, name_of
from equitrans.settings import check_counts, check_seed, check_settings, from_dict

Settings = dict[str, Any]
"""Settings by the names of the command line: ``{"split": "length", "model.k": 8}``."""


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of gradient descent.

    Args:
        epochs: number of epochs; null for no limit
        passes: passes over the data per epoch; more than one for small data
        seconds: training ends after this time; null for no limit
        updates: number of updates; with neither this nor epochs nor seconds, a hundred updates per
            form, at least 500 and at most 7500
        batching: batches of forms, each with all its pairs and all with equal weight, or batches of
            pairs as in the paper
        batch: number of forms or pairs per batch
        optimizer: Adam, AdamW with decoupled weight decay, or Adadelta
        learning_rate: learning rate at the start
        schedule: a constant rate, or a cosine that ends at a fiftieth of it
        weight_decay: strength of the weight decay
        clip: largest norm of a gradient; null for no limit
        patience: training ends after this many epochs without a better validation loss; null for
            no limit
        restarts: how often training starts again, with new random weights, while its best epoch
            does not predict all random validation pairs; the best epoch of all starts is
            kept. null is once without epochs, updates and seconds, and never with one of them
        lexicon: the translator starts with a lexicon of the training pairs instead of random
            weights; for few pairs

    """

    epochs: int | None = None
    passes: int = 1
    seconds: float | None = None
    updates: int | None = None
    batching: Batching = "forms"
    batch: int = 8
    optimizer: Literal["adam", "adamw", "adadelta"] = "adamw"
    learning_rate: float = 8e-3
    schedule: Literal["constant", "cosine"] = "cosine"
    weight_decay: float = 0.03
    clip: float | None = 1.0
    patience: int | None = None
    restarts: int | None = None
    lexicon: bool = False

    def __post_init__(self) -> None:
        check_settings("training", self)
        check_counts("training", self, "epochs", "passes", "updates", "batch", "patience")
        for name in ("learning_rate", "clip", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"training.{name} is {value}; it must be above 0")
        if self.learning_rate > 1000:
            raise ConfigError(
                f"training.learning_rate is {self.learning_rate}; it must be at most 1000"
            )
        if self.restarts is not None and not 0 <= self.restarts <= 100:
            raise ConfigError(f"training.restarts is {self.restarts}; it must lie in [0, 100]")
        if self.weight_decay < 0:
            raise ConfigError(f"training.weight_decay is {self.weight_decay}; it must be 0 or more")

    @property
    def most_starts(self) -> int:
        """Largest number of starts."""
        if self.restarts is None:
            return 2 if self.epochs is self.updates is self.seconds is None else 1
        return 1 + self.restarts


@dataclass(frozen=True)
class RunConfig:
    """All settings that decide the result of a run."""

    data: DataConfig
    model: ModelConfig = field(default_factory=TransducerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    seed: int = 0
    orbits: str | None = None
    """A source sentence of the data whose orbits are recorded during training."""
    orbits_every: int = 5
    """Number of epochs between two records of the orbits."""

    def __post_init__(self) -> None:
        check_settings("run", self)
        check_seed(self.seed)
        check_counts("run", self, "orbits_every")

    @classmethod
    def from_settings(cls, settings: Settings) -> "RunConfig":
        """The one constructor from plain data: the command line, recipes, records and config.json.

        >>> RunConfig.from_settings({"split": "length", "model.hidden": 32}).model.hidden
        32
        """
        known = {
            "data": {f.name for f in fields(DataConfig)},
            "run": {"kind", "seed", "orbits", "orbits_every"},
        }
        parts: dict[str, Settings] = {"data": {}, "model": {}, "training": {}, "run": {}}
        if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
            raise ConfigError(f"{shown(settings)} is not a table of settings")
        for name, value in settings.items():
            section, dot, rest = name.partition(".")
            if dot and section in ("data", "model", "training"):
                parts[section][rest] = value
            elif name in known["run"] or name in known["data"]:
                parts["run" if name in known["run"] else "data"][name] = value
            else:
                names = known["data"] | known["run"]
                raise ConfigError(f"{shown(name)} is not a setting{nearest(name, names)}")
        kind = find_model(parts["run"].pop("kind", "transducer"))
        parts["run"] |= {
            "data": from_dict(DataConfig, parts["data"], section="data"),
            "model": from_dict(kind, parts["model"], section="model"),
            "training": from_dict(TrainingConfig, parts["training"], section="training"),
        }
        return from_dict(cls, parts["run"], section="run")

    @property
    def settings(self) -> Settings:
        """All settings by their dotted names: the inverse of ``from_settings``."""
        flat: Settings = {"kind": name_of(self.model), "seed": self.seed}
        flat |= {"orbits": self.orbits, "orbits_every": self.orbits_every}
        flat |= asdict(self.data)
        for section in ("model", "training"):
            part = asdict(getattr(self, section))
            flat |= {f"{section}.{name}": value for name, value in part.items()}
        return flat


@cache
def _recipes() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("equitrans.training") / "recipes.toml").read_text(encoding="utf-8"))


def recipe_names() -> list[str]:
    """The names of all recipes; add ``-swapped`` to exchange embedding and hidden size."""
    return list(_recipes())


def default_recipe(kind: str) -> str:
    """The recipe of a model if none is chosen; a baseline has the recipe of its name."""
    find_model(kind)
    return "default" if kind == "transducer" else kind


def usual_training(model: ModelConfig) -> TrainingConfig:
    """The training settings of a model's default recipe on own data; of a model that backs off,
    those of its second model.
    """
    if isinstance(model, BackoffConfig):
        model = model.backing
    settings = recipe(default_recipe(name_of(model)), None)
    parts = {k.removeprefix("training."): v for k, v in settings.items() if "training." in k}
    return from_dict(TrainingConfig, parts)


def recipe(name: str, split: str | None) -> Settings:
    """The settings of a recipe for a split, or (None) for own data.

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
    """Nested tables to dotted names; TOML has no null, so the string "null" stands for it."""
    out: Settings = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = None if value == "null" else value
    return out
