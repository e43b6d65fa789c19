"""Benchmarks other than SCAN: trainings on files of the user, their records and their table.

``beyond.toml`` describes the benchmarks. A benchmark whose files have a ``*`` in their names has
several parts, which are learned and judged by themselves; their names are their kinds.
"""

import json
import random
import time
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from equitrans import training
from equitrans.data import Pair, read_classes, read_column, read_pairs
from equitrans.errors import ConfigError, DataError, LearningWarning
from equitrans.experiments.jobs import Record, machine
from equitrans.experiments.plans import PLACE
from equitrans.experiments.tables import markdown
from equitrans.files import locked, read_text, write_atomically
from equitrans.training import RunConfig, Settings, default_recipe, recipe

Rows = Sequence[tuple[Pair, str]]
"""Pairs, each with its kind."""


@dataclass(frozen=True)
class Training:
    """One training of a benchmark; its seed also draws its sample."""

    benchmark: str
    name: str
    settings: Settings
    seed: int = 0
    sample: int | None = None
    without: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    spoiled: float = 0.0
    every: int = 1
    is_point: bool = False
    """Whether it is a point of a curve."""

    @property
    def title(self) -> str:
        """The name of the training with its size and seed: the name of its record."""
        size = "" if self.sample is None or not self.is_point else f", {self.sample} pairs"
        return f"{self.benchmark}: {self.name}{size}, seed {self.seed}"

    @property
    def config(self) -> RunConfig:
        """The settings of model and training."""
        settings = dict(self.settings)
        name = settings.pop("recipe", None) or default_recipe(settings.get("kind", "transducer"))
        merged = recipe(name, None) | settings | {"file": "train.tsv", "seed": self.seed}
        return RunConfig.from_settings(merged)

    def chosen(self, rows: Rows) -> list[Pair]:
        """The pairs to learn from."""
        draw = random.Random(self.seed)
        kept = [pair for pair, kind in rows if not kind.startswith(self.without or ("\n",))]
        if self.sample is not None:
            single = [pair for pair, kind in rows if self.always and kind.startswith(self.always)]
            kept = [*draw.sample(kept, min(self.sample, len(kept))), *single]
        words = sorted({word for pair in kept for word in pair.target})
        for i, pair in enumerate(kept):
            if draw.random() < self.spoiled:
                target = list(pair.target)
                target[draw.randrange(len(target))] = draw.choice(words)
                kept[i] = Pair(pair.source, tuple(target))
        return kept


@dataclass(frozen=True)
class Benchmark:
    """Training and test files, and the trainings on them."""

    name: str
    title: str
    train: str
    tests: Mapping[str, str]
    trainings: tuple[Training, ...]
    published: tuple[Mapping[str, Any], ...] = ()
    kinds: int | None = None

    def parts(self, folder: Path) -> Iterator[tuple[Rows, dict[str, Rows]]]:
        """The training pairs and the test pairs of each part."""
        found = sorted(folder.glob(self.train))
        if not found:
            raise DataError(f"{folder / self.train}: no such file")
        start, _, end = self.train.partition("*")
        for path in found:
            part = str(path.relative_to(folder)).removeprefix(start).removesuffix(end)
            tests = {
                name: self._rows(folder / file.replace("*", part), part)
                for name, file in self.tests.items()
            }
            yield self._rows(path, part), tests

    def _rows(self, path: Path, part: str) -> Rows:
        pairs = read_pairs(path)
        kinds = [part] * len(pairs) if self.kinds is None else read_column(path, self.kinds)
        return list(zip(pairs, kinds, strict=True))


def load_benchmarks(
    *, only: str | None = None, seeds: int | None = None, quick: bool = False
) -> list[Benchmark]:
    """The benchmarks with the trainings that have ``only`` in their titles; ``quick`` leaves out
    curves and judges each tenth sentence.
    """
    content = tomllib.loads((PLACE / "beyond.toml").read_text(encoding="utf-8"))
    found = []
    for table in content["benchmark"]:
        rows = table.pop("training")
        trainings = [
            each
            for row in rows
            for each in _expanded(table["name"], row, seeds)
            if only is None or only.lower() in each.title.lower()
        ]
        if quick:
            trainings = [replace(each, every=10) for each in trainings if not each.is_point]
        if trainings:
            found.append(Benchmark(**table, trainings=tuple(trainings)))
    if not found:
        raise ConfigError(f"beyond has no training with {only!r} in its title")
    return found


def _expanded(benchmark: str, row: dict[str, Any], seeds: int | None) -> Iterator[Training]:
    """The trainings of a row: one for each seed and each point of its curve."""
    row = dict(row)
    number, sizes = row.pop("seeds", 1), row.pop("curve", [None])
    for name in ("without", "always"):
        row[name] = tuple(row.get(name, ()))
    for seed in range(number if seeds is None else min(number, seeds)):
        for size in sizes:
            each = Training(benchmark, seed=seed, **row)
            yield each if size is None else replace(each, sample=size, is_point=True)


def perform_training(asked: Training, benchmark: Benchmark, folder: Path) -> Record:
    """Learn from the files of a folder, judge the models, and return the record."""
    seconds, rules, learned = 0.0, 0, 0
    tests: dict[str, dict[str, Any]] = {}
    for rows, judged in benchmark.parts(folder):
        pairs = asked.chosen(rows)
        started = time.process_time()
        trained = _fitted(asked, pairs, folder)
        seconds += time.process_time() - started
        learned += len(pairs)
        rules += 0 if trained.grammar is None else trained.grammar.grammar.parents
        for name, all_rows in judged.items():
            _judge(trained, all_rows[:: asked.every], tests.setdefault(name, {}))
    return {
        "name": asked.title,
        "settings": dict(asked.settings),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine("cpu"),
        "pairs": learned,
        "every": asked.every,
        "seconds": round(seconds, 1),
        "rules": rules,
        "tests": tests,
    }


def _fitted(asked: Training, pairs: Sequence[Pair], folder: Path) -> "training.Trained":
    config = asked.config
    classes: Any = config.data.classes
    if classes not in ("discover", "none"):
        classes = read_classes(folder / str(classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        return training.fit(
            pairs,
            () if classes == "none" else classes,
            model=config.model,
            training=config.training,
            seed=asked.seed,
        )


def _judge(trained: "training.Trained", rows: Rows, tally: dict[str, Any]) -> None:
    """Add the answers to test pairs to a tally."""
    for name, empty in (("right", 0), ("refused", 0), ("pairs", 0), ("second", 0), ("kinds", {})):
        tally.setdefault(name, empty)
    answers = trained.predict([pair.source for pair, _ in rows])
    for (pair, kind), answer in zip(rows, answers, strict=True):
        right = not answer.refused and answer.gives(pair.target)
        counts = tally["kinds"].setdefault(kind, [0, 0])
        counts[0] += right
        counts[1] += 1
        tally["right"] += right
        tally["refused"] += answer.refused
        tally["second"] += answer.by == "second"
        tally["pairs"] += 1


@dataclass(frozen=True)
class Results:
    """The records of benchmarks: ``beyond/NAME.jsonl`` in a folder of records."""

    directory: Path

    def of(self, benchmark: str) -> dict[str, Record]:
        """The records of a benchmark by name."""
        path = self._path(benchmark)
        if not path.is_file():
            return {}
        lines = read_text(path, ConfigError).splitlines()
        try:
            records = [json.loads(line) for line in lines if line.strip()]
            return {record["name"]: record for record in records}
        except (ValueError, KeyError, TypeError) as wrong:
            raise ConfigError(f"{path} is damaged: {wrong!r}") from None

    def add(self, benchmark: str, record: Record) -> None:
        """Write a record; it replaces an earlier one of the same name."""
        path = self._path(benchmark)
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(f"{path}.lock", what=str(path), timeout=60.0):
            records = self.of(benchmark) | {record["name"]: record}
            lines = [json.dumps(records[name], ensure_ascii=False) for name in sorted(records)]
            write_atomically(path, "\n".join([*lines, ""]))

    def _path(self, benchmark: str) -> Path:
        return self.directory / "beyond" / f"{benchmark}.jsonl"


def make_beyond(benchmarks: Iterable[Benchmark], results: Results) -> str:
    """One table for each benchmark: figures of all trainings but curves, and published ones."""
    parts = ["## Figures"]
    for benchmark in benchmarks:
        records = results.of(benchmark.name)
        groups: dict[str, list[Record]] = {}
        for each in benchmark.trainings:
            if not each.is_point and each.title in records:
                groups.setdefault(each.name, []).append(records[each.title])
        if not groups:
            continue
        lines = [_line(name, group, benchmark.tests) for name, group in groups.items()]
        for row in benchmark.published:
            cells = [row["figures"].get(test) for test in benchmark.tests]
            figures = ["" if cell is None else f"*{cell}*" for cell in cells]
            lines.append([f"*published: {row['name']}*", "", "", "", *figures])
        head = ["training", "pairs", "CPU seconds", "rules", *benchmark.tests]
        parts += [f"### {benchmark.title}", markdown(head, lines)]
        if below := _below(groups):
            parts.append(markdown(["training", "test", "kinds below 100"], below))
    legend = "A cell is exact match in percent, with wrong and refused sentences in brackets"
    return "\n\n".join([*parts, f"{legend}; with several seeds, means and the figures of each."])


def _line(name: str, group: Sequence[Record], tests: Iterable[str]) -> list[str]:
    first = group[0]
    rules = f"{fmean(r['rules'] for r in group):.0f}" if first["rules"] else ""
    seconds = f"{fmean(r['seconds'] for r in group):.0f}"
    cells = [_cell([r["tests"][test] for r in group]) for test in tests]
    return [name, f"{first['pairs']:,}", seconds, rules, *cells]


def _cell(tallies: Sequence[Mapping[str, Any]]) -> str:
    """Exact match, wrong and refused.

    >>> _cell([{"right": 3, "refused": 1, "pairs": 6}])
    '50.00 (2 wrong, 1 refused)'
    """
    shares = [100 * t["right"] / t["pairs"] for t in tallies]
    wrong = fmean(t["pairs"] - t["right"] - t["refused"] for t in tallies)
    refused = fmean(t["refused"] for t in tallies)
    each = "; " + ", ".join(f"{share:.1f}" for share in shares) if len(shares) > 1 else ""
    return f"{fmean(shares):.2f} ({wrong:.3g} wrong, {refused:.3g} refused{each})"


def _below(groups: Mapping[str, Sequence[Record]]) -> list[list[str]]:
    """The kinds that are not right in all sentences, for tests of several kinds."""
    found = []
    for name, group in groups.items():
        for test, tally in group[0]["tests"].items():
            kinds = tally["kinds"].items()
            below = [f"{kind} {right}/{pairs}" for kind, (right, pairs) in kinds if right < pairs]
            if len(kinds) > 1 and below:
                found.append([name, test, ", ".join(below)])
    return found


def curve_bands(
    benchmark: Benchmark, results: Results, test: str
) -> dict[str, dict[float, list[float]]]:
    """Exact match in percent on a test, by training and number of random pairs."""
    bands: dict[str, dict[float, list[float]]] = {}
    records = results.of(benchmark.name)
    for each in benchmark.trainings:
        if each.is_point and each.sample is not None and each.title in records:
            tally = records[each.title]["tests"][test]
            share = 100 * tally["right"] / tally["pairs"]
            bands.setdefault(each.name, {}).setdefault(each.sample, []).append(share)
    return bands
