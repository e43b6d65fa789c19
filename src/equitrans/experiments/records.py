"""One record = one training with its figures, as a small JSON file without weights. Tables and
pictures are made from records alone, so that they can be made again without training.
"""

import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from equitrans.analysis import Report
from equitrans.data import DataConfig, load_data
from equitrans.errors import ConfigError, DataError, DivergenceError, RunError, shown
from equitrans.files import check_format, locked, read_part, write_atomically
from equitrans.models import MODELS, name_of
from equitrans.training import (
    Run,
    RunConfig,
    Settings,
    Trained,
    TrainingConfig,
    default_recipe,
    recipe,
)

Record = dict[str, Any]
Curve = dict[str, list[int | float | None]]
"""Figures of some epochs, by column."""

FORMAT = 1
CURVE = ("number", "updates", "train_loss", "valid_loss", "valid_accuracy")
POINTS = 60
"""A learning curve has at most about so many points."""


@dataclass(frozen=True)
class Job:
    """A training on a split with its evaluation: all that decides the figures.

    ``official`` says whether the pairs come from the official files, in their order; where these
    lie does not matter.
    """

    config: RunConfig
    width: int = 3
    official: bool = False

    @classmethod
    def of(
        cls, split: str, settings: Settings, *, seed: int, width: int = 3, official: bool = False
    ) -> "Job":
        """A job from settings as on the command line of ``equitrans train``.

        >>> job = Job.of("length", {"recipe": "paper", "training.epochs": 9}, seed=3)
        >>> job.name  # doctest: +ELLIPSIS
        'length/transducer-...-3.json'
        """
        settings = dict(settings)
        name = settings.pop("recipe", None) or default_recipe(settings.get("kind", "transducer"))
        merged = recipe(name, split) | settings | {"split": split, "seed": seed}
        return cls(RunConfig.from_settings(merged), width, official)

    @classmethod
    def of_record(cls, record: Record) -> "Job":
        """The job that a record is of."""
        settings = dict(record["settings"])
        width, official = settings.pop("width", 3), settings.pop("official", False)
        return cls(RunConfig.from_settings(settings | {"seed": record["seed"]}), width, official)

    @property
    def settings(self) -> Settings:
        """Everything by its dotted name, the seed aside."""
        here = ("seed", "scan_dir")  # not part of what the record is of
        flat = {name: value for name, value in self.config.settings.items() if name not in here}
        return flat | {"width": self.width, "official": self.official}

    @property
    def unusual(self) -> Settings:
        """The settings that are not what they are if nothing is chosen."""
        usual = replace(self, config=_usual(self.config), width=3, official=False).settings
        return {k: v for k, v in self.settings.items() if v != usual[k]}

    @property
    def description(self) -> str:
        """A job in a few words.

        >>> Job.of("add_jump", {"classes": "verbs", "model.marginal": "max"}, seed=2).description
        'add_jump, transducer, classes verbs, model.marginal max, seed 2'
        """
        parts = [f"{name} {value}" for name, value in self.unusual.items() if name != "official"]
        split, kind = str(self.config.data.split), name_of(self.config.model)
        return ", ".join([split, kind, *parts, f"seed {self.config.seed}"])

    @property
    def name(self) -> str:
        """The file of the job's record, within the folder of all."""
        kind = name_of(self.config.model)
        # what is as usual is left out, so that a setting that comes to exist renames no record
        content = self.unusual | {"split": self.config.data.split}
        text = json.dumps(content, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        return f"{self.config.data.split}/{kind}-{digest}-{self.config.seed}.json"


def _usual(config: RunConfig) -> RunConfig:
    """Settings of the same model with nothing chosen."""
    data = DataConfig(split=config.data.split, file=config.data.file)
    model = MODELS[name_of(config.model)]()
    return RunConfig(data=data, model=model, training=TrainingConfig(), seed=config.seed)


@dataclass(frozen=True)
class Order:
    """A job, and where it is done."""

    job: Job
    directory: str
    """Its run directory, resumed if it exists."""
    scan_dir: str | None = None
    device: str = "cpu"


PATIENCE = 10.0
"""So many seconds are given to a process that has lost its parent to end, before another takes up
its run."""


def claim(directory: Path | str, *, timeout: float = 0.0) -> AbstractContextManager[None]:
    """What keeps a second process from the run directory of a job, there or not."""
    directory = Path(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    return locked(f"{directory}.lock", what=str(directory), timeout=timeout)


def perform(order: Order) -> Record:
    """Train, from where an earlier attempt was interrupted, judge on the test set once, and give
    the record.
    """
    with claim(order.directory, timeout=PATIENCE):
        return _perform(order)


def _perform(order: Order) -> Record:
    job, path = order.job, Path(order.directory)
    config = replace(job.config, data=replace(job.config.data, scan_dir=order.scan_dir))
    if (path / "vocabulary.json").is_file() and (path / "config.json").is_file():
        run = Run.open(path)
        if replace(job, config=run.config).name != job.name:
            raise RunError(f"{path} has other settings than its record; remove it")
        run = replace(run, config=config)  # the official files may have moved since
        data = run.load_data()
    else:
        shutil.rmtree(path, ignore_errors=True)  # what an interrupted creation has left
        data = load_data(config.data, seed=config.seed)
        if job.official and data.origin != "official":
            raise DataError(f"{order.scan_dir} has no files of {config.data.split}")
        run = Run.create(path, config, data)
    record: Record = {"format": FORMAT, "settings": job.settings, "seed": config.seed}
    record |= {"made": datetime.now(UTC).isoformat(timespec="seconds")} | _machine(order.device)
    try:
        for _ in run.train(data, device=order.device):
            pass
    except DivergenceError as error:  # a figure like any other
        # without where its batch was kept, which is this machine's
        return record | {"failed": str(error.__cause__ or error), "test": None}
    trained = Trained.load(path, device=order.device)
    started = time.monotonic()
    report = trained.evaluate(data.test, width=job.width)
    epochs = run.epochs()
    figures = run.figures()
    record |= {
        "parameters": sum(p.numel() for p in trained.model.parameters()),
        "pairs": {"train": len(data.train), "valid": len(data.valid), "test": len(data.test)},
        "seconds": {
            "training": round(epochs[-1]["seconds"], 1),
            "test": round(time.monotonic() - started, 1),
        },
        "epochs": figures.epochs,
        "updates": epochs[-1].get("updates"),
        "best_epoch": figures.best_epoch,
        "valid": {"loss": figures.valid_loss, "accuracy": figures.valid_accuracy},
        "test": _test(report),
        "curve": learning_curve([e for e in epochs if "number" in e]),
    }
    if config.orbits is not None:
        record["orbits"] = [
            {"epoch": r["epoch"], "observed": r["observed"]} for r in run.orbit_records()
        ]
    return record


def _machine(device: str) -> Record:
    from equitrans import __version__

    name = torch.cuda.get_device_name() if device.startswith("cuda") else _processor()
    return {
        "version": {
            "equitrans": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "machine": {"device": name, "cores": os.cpu_count(), "threads": torch.get_num_threads()},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _test(report: Report) -> Record:
    return {
        "exact_match": report.exact_match,
        "right": sum(report.right),
        "pairs": len(report.pairs),
        "refused": report.refused,
        "loss": report.loss,
        "by_length": {str(k): [t.right, t.pairs] for k, t in report.by_length().items()},
    }


def learning_curve(epochs: list[Record]) -> Curve:
    """Some epochs of one or more, evenly, and the last, by column."""
    if not epochs:
        return {name: [] for name in CURVE}
    step = -(-len(epochs) // POINTS)
    chosen = epochs[step - 1 :: step]
    if chosen[-1] is not epochs[-1]:
        chosen.append(epochs[-1])
    return {name: [_short(epoch[name]) for epoch in chosen] for name in CURVE}


def _short(value: int | float | None) -> int | float | None:
    return float(f"{value:.5g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class Records:
    """A folder of records."""

    directory: Path

    def find(self, job: Job) -> Record | None:
        """The record of a job, if there is one made with the same settings."""
        path = self.directory / job.name
        if not path.is_file():
            return None
        record = read_record(path)
        # a default that has changed since keeps its file's name, but makes the record another's
        known = record["settings"]
        same = all(known.get(k, v) == v for k, v in job.settings.items())
        return record if same else None

    def add(self, job: Job, record: Record) -> None:
        """Keep a record."""
        path = self.directory / job.name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _dump(record))

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs without a record, each once."""
        return [job for job in dict.fromkeys(jobs) if self.find(job) is None]


def read_record(path: Path) -> Record:
    """One record."""
    record = read_part(path, expected=None)
    for name in ("settings", "seed", "test"):
        if name not in record:
            raise ConfigError(f"{path} is no record: it has no {name!r}")
    check_format(path, record, FORMAT)
    if not isinstance(record["settings"], dict) or not isinstance(record["test"], dict | None):
        raise ConfigError(f"{path} is damaged: its settings or its figures are of another kind")
    try:
        _check_figures(record)
    except ConfigError as error:
        raise ConfigError(f"{path} is damaged: {error}") from None
    return record


def _check_figures(record: Record) -> None:
    """Refuse what tables and pictures could not be made from."""
    settings, number = record["settings"], int | float
    _expect("seed", record["seed"], int)
    _expect("settings.width", settings.get("width", 3), int)
    _expect("settings.official", settings.get("official", False), bool)
    if record["test"] is None:
        _expect("failed", record.get("failed", ""), str)
        return
    for section, name, kind in (
        ("test", "exact_match", number),
        ("valid", "loss", number | None),
        ("seconds", "training", number),
    ):
        _expect(section, record.get(section), dict)
        _expect(f"{section}.{name}", record[section].get(name, record), kind)
    if not 0 <= record["test"]["exact_match"] <= 1:
        raise ConfigError("its test.exact_match is no share")
    curve: Any = record.get("curve", {})
    _expect("curve", curve, dict)
    for name in CURVE:
        _expect(f"curve.{name}", curve.get(name), list)
        for value in curve[name]:
            _expect(f"curve.{name}", value, number | None)
    if len({len(curve[name]) for name in CURVE}) > 1:
        raise ConfigError("the columns of its curve are of unequal length")
    _expect("orbits", record.get("orbits", []), list)
    for each in record.get("orbits", []):
        _expect("orbits", each, dict)
        _expect("orbits.epoch", each.get("epoch"), int)
        _expect("orbits.observed", each.get("observed"), list)
        for size in each["observed"]:
            _expect("orbits.observed", size, int)


def _expect(name: str, value: Any, kind: Any) -> None:
    wrong = isinstance(value, bool) and kind is not bool
    huge = isinstance(value, int) and abs(value) >= 2**63
    if not isinstance(value, kind) or wrong or huge:
        raise ConfigError(f"its {name} is {'missing' if value is None else shown(value)}")


def _dump(record: Mapping[str, Any]) -> str:
    """JSON with one line for each thing on the first level."""
    lines = (f" {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in record.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
