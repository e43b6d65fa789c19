"""Jobs: one training on a SCAN split and its evaluation, and the function that turns a job into a
record.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from equitrans import analysis, training
from equitrans.data import DataConfig
from equitrans.errors import DataError, DivergenceError, RunError
from equitrans.files import locked
from equitrans.models import MODELS, name_of
from equitrans.training import RunConfig, Settings, TrainingConfig, default_recipe, recipe

Record = dict[str, Any]
"""The settings and figures of one training, as plain JSON."""

Curve = dict[str, list[int | float | None]]
"""Figures of some epochs, by column."""

CURVE = ("number", "updates", "train_loss", "valid_loss", "valid_accuracy")
"""Columns of a learning curve."""

FORMAT = 1
"""Format number of records; records with another number are rejected."""

POINTS = 60
"""Largest number of points of a learning curve, not counting the last epoch."""

CLAIM_SECONDS = 10.0
"""Seconds to wait for the lock of a run directory. A worker whose parent was killed ends and
releases its lock within this time."""


@dataclass(frozen=True)
class Job:
    """All settings that decide the figures of one training and its evaluation.

    ``official`` is True if the pairs are those of the official SCAN files. The folder of these
    files is not part of a job. If it has no file of a split that the package makes by a rule, the
    job uses the rule, which gives the same pairs in another order.
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
        'length/transducer-...-3'
        """
        settings = dict(settings)
        name = settings.pop("recipe", None) or default_recipe(settings.get("kind", "transducer"))
        merged = recipe(name, split) | settings | {"split": split, "seed": seed}
        return cls(RunConfig.from_settings(merged), width, official)

    @classmethod
    def of_record(cls, record: Record) -> "Job":
        """The job of a record."""
        settings = dict(record["settings"])
        width, official = settings.pop("width", 3), settings.pop("official", False)
        return cls(RunConfig.from_settings(settings | {"seed": record["seed"]}), width, official)

    @property
    def settings(self) -> Settings:
        """All settings by their dotted names, except the seed."""
        excluded = ("seed", "scan_dir")
        flat = {name: value for name, value in self.config.settings.items() if name not in excluded}
        return flat | {"width": self.width, "official": self.official}

    @property
    def unusual(self) -> Settings:
        """The settings that differ from their defaults."""
        data = DataConfig(split=self.config.data.split, file=self.config.data.file)
        model = MODELS[name_of(self.config.model)]()
        config = RunConfig(data=data, model=model, training=TrainingConfig(), seed=self.config.seed)
        usual = Job(config).settings
        return {k: v for k, v in self.settings.items() if v != usual[k]}

    @property
    def description(self) -> str:
        """The split, the model, the settings that differ from their defaults, and the seed.

        >>> Job.of("add_jump", {"classes": "verbs", "model.marginal": "max"}, seed=2).description
        'add_jump, transducer, classes verbs, model.marginal max, seed 2'
        """
        parts = [f"{name} {value}" for name, value in self.unusual.items() if name != "official"]
        split, kind = str(self.config.data.split), name_of(self.config.model)
        return ", ".join([split, kind, *parts, f"seed {self.config.seed}"])

    @cached_property
    def name(self) -> str:
        """SPLIT/MODEL-HASH-SEED: the identity of a job, of its record and of its run directory.

        Settings at their defaults are not hashed, so a new setting renames no record.
        """
        content = self.unusual | {"split": self.config.data.split}
        text = json.dumps(content, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        kind = name_of(self.config.model)
        return f"{self.config.data.split}/{kind}-{digest}-{self.config.seed}"


@dataclass(frozen=True)
class Order:
    """A job with the place where it is performed."""

    job: Job
    directory: str
    """Run directory; an existing run is resumed."""
    scan_dir: str | None = None
    device: str = "cpu"


def claim(directory: Path | str, *, timeout: float = 0.0) -> AbstractContextManager[None]:
    """Lock the run directory of a job, whether it exists or not; raise RunError if another process
    holds the lock for ``timeout`` seconds.
    """
    directory = Path(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    return locked(f"{directory}.lock", what=str(directory), timeout=timeout)


def perform(order: Order) -> Record:
    """Train a job or resume its training, evaluate it once on the test set, return its record."""
    with claim(order.directory, timeout=CLAIM_SECONDS):
        return _perform(order)


def _perform(order: Order) -> Record:
    job, path = order.job, Path(order.directory)
    config = replace(job.config, data=replace(job.config.data, scan_dir=order.scan_dir))
    if (path / "vocabulary.json").is_file() and (path / "config.json").is_file():
        run = training.Run.open(path)
        if replace(job, config=run.config).name != job.name:
            raise RunError(f"{path} has other settings than its job; remove this directory")
        run = replace(run, config=config)  # the folder of the official files may have moved
        data = run.load_data()
    else:
        shutil.rmtree(path, ignore_errors=True)  # an interrupted creation
        data = training.load_with_best_classes(config.data, config.model, seed=config.seed)
        if job.official and data.origin not in ("official", "rule"):
            raise DataError(f"{order.scan_dir} has no files of {config.data.split}")
        run = training.Run.create(path, config, data)
    record: Record = {"format": FORMAT, "settings": job.settings, "seed": config.seed}
    record |= {"made": datetime.now(UTC).isoformat(timespec="seconds")} | machine(order.device)
    try:
        for _ in run.train(data, device=order.device):
            pass
    except DivergenceError as error:
        # the cause is the message without the path of the saved batch
        return record | {"failed": str(error.__cause__ or error), "test": None}
    trained = training.Trained.load(path, device=order.device)
    started = time.monotonic()
    report = trained.evaluate(data.test, width=job.width)
    epochs = run.epochs()
    figures = run.figures()
    pairs = len(data.train) + len(data.valid)
    learned = pairs if config.model.learner == "rules" else len(data.train)
    record |= {
        "parameters": sum(p.numel() for p in trained.model.parameters()),
        "pairs": {"train": learned, "valid": pairs - learned, "test": len(data.test)},
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
            {"epoch": r["epoch"], "observed": r["observed"], "sharpness": r.get("sharpness")}
            for r in run.orbit_records()
        ]
    return record


def machine(device: str) -> Record:
    """The versions of the programs, and the machine."""
    import torch

    from equitrans import __version__

    name = torch.cuda.get_device_name() if device.startswith("cuda") else _processor()
    return {
        "version": {
            "equitrans": __version__,
            "commit": commit(),
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "machine": {
            "device": name,
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
        },
    }


def commit() -> str:
    """The commit of the source tree, with a mark if files of the package have changed; new records
    do not count. Where this file is not in a clone of its own project, it is the value of
    EQUITRANS_COMMIT.
    """
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = _git("status", "--porcelain", "--", str(Path(__file__).parent.parent))
        return _git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("EQUITRANS_COMMIT", "")


def _git(*asked: str) -> str:
    here = Path(__file__).parent
    found = subprocess.run(["git", *asked], cwd=here, capture_output=True, text=True, check=True)
    return found.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _test(report: "analysis.Report") -> Record:
    return {
        "exact_match": report.exact_match,
        "right": sum(report.right),
        "pairs": len(report.pairs),
        "refused": report.refused,
        "tied": report.tied,
        "loss": report.loss,
        "by_length": {str(k): [t.right, t.pairs] for k, t in report.by_length().items()},
    }


def learning_curve(epochs: list[Record]) -> Curve:
    """Evenly spaced epochs and the last one, by column."""
    if not epochs:
        return {name: [] for name in CURVE}
    step = -(-len(epochs) // POINTS)
    chosen = epochs[step - 1 :: step]
    if chosen[-1] is not epochs[-1]:
        chosen.append(epochs[-1])
    return {name: [_short(epoch[name]) for epoch in chosen] for name in CURVE}


def _short(value: int | float | None) -> int | float | None:
    return float(f"{value:.5g}") if isinstance(value, float) else value
