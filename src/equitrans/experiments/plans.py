"""The paper's experiments as data: a TOML file each, read by ``load``::

    title      what the experiment shows
    splits     its columns
    seeds      how many trainings there are for each row and split, from seed 0 on
    row        name; settings, as on the command line of equitrans train (without them it only
               has figures that were published); published, percent by split; and where they
               differ from the above, splits and seeds
    row.quick  settings on top of these for the small version; without it nothing is trained there

A search has a split, a number of trials, a seed, settings that all trials share, a space that the
others come from, and the published figure for it; quick has other trials and settings for the small
version.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from equitrans.errors import ConfigError, nearest
from equitrans.experiments.records import Job, Record, Records
from equitrans.experiments.spaces import Space
from equitrans.training import Settings

PLACE = files("equitrans") / "experiments"


@dataclass(frozen=True)
class Row:
    """A system, and the figures that were published for it, in percent by split."""

    name: str
    splits: tuple[str, ...]
    seeds: int
    settings: Settings | None = None
    """None if there are published figures only."""
    width: int = 3
    published: Mapping[str, float] = field(default_factory=dict)

    def jobs(self, split: str, *, official: bool) -> list[Job]:
        """The trainings of one cell."""
        if self.settings is None or split not in self.splits:
            return []
        return [
            Job.of(split, self.settings, seed=seed, width=self.width, official=official)
            for seed in range(self.seeds)
        ]


@dataclass(frozen=True)
class Experiment:
    """Systems by splits."""

    name: str
    title: str
    splits: tuple[str, ...]
    rows: tuple[Row, ...]

    def jobs(self, *, official: bool) -> Iterator[Job]:
        """All trainings: first the first seed of every cell, so that there is soon something to
        see.
        """
        cells = [row.jobs(split, official=official) for row in self.rows for split in self.splits]
        for seed in range(max(map(len, cells), default=0)):
            yield from (cell[seed] for cell in cells if seed < len(cell))

    def is_drawn(self, records: Records) -> bool:
        """Whether all its records are of runs without the official files."""
        official, drawn = (
            any(records.find(job) is not None for job in self.jobs(official=which))
            for which in (True, False)
        )
        return drawn and not official

    def restricted(self, *, only: str | None = None, seeds: int | None = None) -> "Experiment":
        """Some of its systems, with fewer seeds."""
        rows = [row for row in self.rows if only is None or only.lower() in row.name.lower()]
        if not rows:
            raise ConfigError(f"{self.name} has no system with {only!r} in its name")
        if seeds is not None:
            if seeds < 1:
                raise ConfigError(f"seeds is {seeds}; it must be 1 or more")
            rows = [replace(row, seeds=min(seeds, row.seeds)) for row in rows]
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True)
class SearchPlan:
    """A split, what is given, and what is looked for."""

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
        """The training of one trial; its own seed may be among what is looked for."""
        settings = self.settings | found
        seed = settings.pop("seed", 0)
        return Job.of(self.split, settings, seed=seed, width=self.width, official=official)

    def found(self, records: Records, *, official: bool) -> list[tuple[Settings, Record]]:
        """The trials of a random search that have a validation loss, without making any."""
        drawn = self.space.draw(self.trials, seed=self.seed)
        jobs = [self.job(settings, official=official) for settings in drawn]
        known = zip(drawn, map(records.find, jobs), strict=True)
        return [(settings, r) for settings, r in known if r is not None and r["test"] is not None]


def names() -> list[str]:
    """The experiments that are tables."""
    return list(_read("row"))


def search_names() -> list[str]:
    """The searches."""
    return list(_read("space"))


def _read(kind: str) -> dict[str, dict[str, Any]]:
    """All descriptions that have a certain table."""
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
    """An experiment by name, in full or in its small version."""
    tables = _read("row")
    if name not in tables:
        raise ConfigError(f"unknown experiment {name!r}{nearest(name, tables)}")
    content = tables[name]
    splits = tuple(content["splits"])
    small = content.get("quick", {}) if quick else {}
    splits = tuple(small.get("splits", splits))
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
                settings=settings,
                width=row.get("width", 3),
                published=row.get("published", {}),
            )
        )
    return Experiment(name, content["title"], splits, tuple(rows))


def figures(records: list[dict[str, Any]]) -> list[float]:
    """Exact match in percent, seed by seed; a run that broke down has none right."""
    return [100 * r["test"]["exact_match"] if r["test"] else 0.0 for r in records]
