"""The paper's experiments as data: one TOML file each, read by ``load`` and ``load_search``.

A table::

    title      what the experiment shows
    splits     its columns
    seeds      number of trainings per row and split, with seeds 0, 1, …; learning rules uses no
               seed, so such a row has one training
    row        name; settings, as on the command line of equitrans train (a row without settings has
               published figures only); published, percent by split; splits and seeds, where they
               differ from those above; more_seeds, the number of seeds of single splits
    row.quick  further settings for the small version; a row without it is not trained there

A search has a title, a split, a number of trials, a seed, settings that all trials share, a space
of the other settings, and the published figure. Its table ``quick`` has the trials and settings of
the small version.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from equitrans.errors import ConfigError, nearest
from equitrans.experiments.jobs import Job, Record
from equitrans.experiments.records import Records
from equitrans.experiments.search import Space
from equitrans.training import Settings

PLACE = files("equitrans") / "experiments"


@dataclass(frozen=True)
class Row:
    """A system, with its published figures in percent by split."""

    name: str
    splits: tuple[str, ...]
    seeds: int
    settings: Settings | None = None
    """None for a system with published figures only."""
    width: int = 3
    published: Mapping[str, float] = field(default_factory=dict)
    more_seeds: Mapping[str, int] = field(default_factory=dict)

    def jobs(self, split: str, *, official: bool) -> list[Job]:
        """The trainings of one table cell, by seed; one training if learning uses no seed."""
        if self.settings is None or split not in self.splits:
            return []
        first = Job.of(split, self.settings, seed=0, width=self.width, official=official)
        seeds = (
            1 if first.config.model.learner == "rules" else self.more_seeds.get(split, self.seeds)
        )
        return [replace(first, config=replace(first.config, seed=n)) for n in range(seeds)]


@dataclass(frozen=True)
class Experiment:
    """A table of systems by splits."""

    name: str
    title: str
    splits: tuple[str, ...]
    rows: tuple[Row, ...]

    def jobs(self, *, official: bool) -> Iterator[Job]:
        """All trainings, seed by seed, so that every cell soon has a figure."""
        cells = [row.jobs(split, official=official) for row in self.rows for split in self.splits]
        for seed in range(max(map(len, cells), default=0)):
            yield from (cell[seed] for cell in cells if seed < len(cell))

    def is_drawn(self, records: Records) -> bool:
        """Whether there are records, but none of runs with the official files."""
        official, drawn = (
            any(records.find(job) is not None for job in self.jobs(official=which))
            for which in (True, False)
        )
        return drawn and not official

    def restricted(self, *, only: str | None = None, seeds: int | None = None) -> "Experiment":
        """The systems with ``only`` in their names, with at most ``seeds`` seeds per cell."""
        rows = [row for row in self.rows if only is None or only.lower() in row.name.lower()]
        if not rows:
            raise ConfigError(f"{self.name} has no system with {only!r} in its name")
        if seeds is not None:
            if seeds < 1:
                raise ConfigError(f"seeds is {seeds}; it must be 1 or more")
            rows = [replace(row, seeds=min(seeds, row.seeds), more_seeds={}) for row in rows]
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True)
class SearchPlan:
    """A search for settings on a split: fixed settings, and a space of the others."""

    name: str
    title: str
    split: str
    trials: int
    seed: int
    settings: Settings
    space: Space
    width: int = 3
    published: float | None = None

    def job(self, found: Settings, *, official: bool) -> Job:
        """The training of one trial. Its seed may be one of the settings."""
        settings = self.settings | found
        seed = settings.pop("seed", 0)
        return Job.of(self.split, settings, seed=seed, width=self.width, official=official)

    def drawn(self, *, official: bool) -> list[tuple[Settings, Job]]:
        """The trials of the random search, as settings and jobs. Two trials may have one job."""
        draws: list[Settings] = self.space.draw(self.trials, seed=self.seed)
        return [(settings, self.job(settings, official=official)) for settings in draws]

    def found(self, records: Records, *, official: bool) -> list[tuple[Settings, Record]]:
        """The trials of the random search whose records have a validation loss."""
        known = [(s, records.find(job)) for s, job in self.drawn(official=official)]
        return [(s, r) for s, r in known if r is not None and validation_loss(r) is not None]


def validation_loss(record: Record) -> float | None:
    """The value that a search minimises; None if training diverged or the model has no loss."""
    loss: float | None = record["valid"]["loss"] if record["test"] else None
    return loss if loss is not None and math.isfinite(loss) else None


def names() -> list[str]:
    """The names of the experiments that are tables."""
    return list(_read("row"))


def search_names() -> list[str]:
    """The names of the searches."""
    return list(_read("space"))


def _read(kind: str) -> dict[str, dict[str, Any]]:
    """The contents of all TOML files with a certain table, by name."""
    found = {}
    for path in PLACE.iterdir():
        if path.name.endswith(".toml"):
            content = tomllib.loads(path.read_text(encoding="utf-8"))
            if kind in content:
                found[path.name.removesuffix(".toml")] = content
    return dict(sorted(found.items()))


def load_search(name: str, *, quick: bool = False) -> SearchPlan:
    """A search by name, in full or in its small version."""
    plans = _read("space")
    if name not in plans:
        raise ConfigError(f"unknown search {name!r}{nearest(name, plans)}")
    content = plans[name]
    space = Space.of(content.pop("space"), origin=f"{name}.toml")
    small = content.pop("quick")
    plan = SearchPlan(name=name, space=space, **content)
    if quick:
        settings = plan.settings | small["settings"]
        plan = replace(plan, name=f"{name}-quick", trials=small["trials"], settings=settings)
    return plan


def load(name: str, *, quick: bool = False) -> Experiment:
    """A table by name, in full or in its small version."""
    tables = _read("row")
    if name not in tables:
        raise ConfigError(f"unknown experiment {name!r}{nearest(name, tables)}")
    content = tables[name]
    small = content.get("quick", {}) if quick else {}
    splits = tuple(small.get("splits", content["splits"]))
    rows = []
    for row in content["row"]:
        settings = row.get("settings")
        if quick and settings is not None:
            settings = settings | row["quick"] if "quick" in row else None
        rows.append(
            Row(
                name=row["name"],
                splits=tuple(row.get("splits", splits)),
                seeds=small.get("seeds", row.get("seeds", content["seeds"])),
                settings=settings and _with_null(settings),
                width=row.get("width", 3),
                published=row.get("published", {}),
                more_seeds={} if quick else row.get("more_seeds", {}),
            )
        )
    return Experiment(name, content["title"], splits, tuple(rows))


def _with_null(settings: Settings) -> Settings:
    """The settings of a TOML table; TOML has no null, so the string "null" stands for it."""
    return {name: None if value == "null" else value for name, value in settings.items()}
