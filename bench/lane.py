"""Train LANE with many seeds; write one line of JSON per training as soon as it has ended.

    python bench/lane.py --splits length --seeds 0-1
    python bench/lane.py --splits simple,add_jump,length --seeds 0-5 --jobs 16 --keep lane-runs \
        --seconds 570 --scan-dir SCAN --out lane.jsonl
    python bench/lane.py --splits around_right --seeds 0-10 --set model.samples=40

Each training is a process with one thread and a run directory. With --keep the directories stay:
the same command continues trainings that --seconds has cut off, and writes the lines of the
finished ones again. Every line has the figures of one training: the lesson it reached, the accuracy
on all validation pairs, whether that is high enough (converged), the exact match on the test set,
the expressions it learned, and a curve with a point per epoch.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from provenance import commit

from equitrans import __version__
from equitrans.analysis import evaluate
from equitrans.data import load_data
from equitrans.models import Lane, LaneConfig
from equitrans.training import Run, RunConfig, Trained, recipe

CURVE = ("number", "lesson", "updates", "reward", "lesson_accuracy", "valid_accuracy", "seconds")
"""Figures of an epoch that a point of the curve has, in this order."""

ROW = "row.json"


@dataclass(frozen=True)
class Job:
    """One training: dotted settings with a seed, and its directory."""

    settings: dict[str, Any]
    path: Path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--splits", default="length", help="separated by commas")
    parser.add_argument("--scan-dir", help="folder of the official SCAN files, for Simple")
    parser.add_argument("--seeds", default="0-5", help="first seed, and the one after the last")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--seconds", type=float, help="stop after this time; --keep continues")
    parser.add_argument("--keep", type=Path, help="folder for the run directories")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings")
    parser.add_argument("--out", type=Path, help="JSONL file for the figures")
    asked = parser.parse_args()
    end = None if asked.seconds is None else time.monotonic() + asked.seconds
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text("")
    with tempfile.TemporaryDirectory() as temporary:
        jobs = list(_jobs(asked, asked.keep or Path(temporary)))
        found: list[dict[str, Any]] = []
        with multiprocessing.get_context("spawn").Pool(asked.jobs, maxtasksperchild=1) as pool:
            rows = pool.imap_unordered(measure, jobs)
            try:
                for _ in jobs:
                    row = rows.next(None if end is None else max(0.0, end - time.monotonic()))
                    found.append(row)
                    line = json.dumps(row, ensure_ascii=False)
                    if asked.out:
                        with asked.out.open("a") as file:
                            file.write(f"{line}\n")
                    shown = ("split", "seed", "converged", "exact_match", "lesson", "updates")
                    print(*(f"{name} {row[name]}" for name in shown), flush=True)
            except multiprocessing.TimeoutError:
                pool.terminate()
        finished = {(row["split"], row["seed"]) for row in found}
        for job in jobs:
            if (job.settings["split"], job.settings["seed"]) not in finished:
                print(f"not finished: {job.path.name}: {_last_line(job.path)}")
    for split in asked.splits.split(","):
        rows_ = [row for row in found if row["split"] == split]
        converged = [row["exact_match"] for row in rows_ if row["converged"]]
        print(f"{split}: {len(converged)} of {len(rows_)} converged; exact match {converged}")


def _jobs(asked: argparse.Namespace, folder: Path) -> Any:
    """The trainings, all splits of a seed side by side."""
    chosen = {name: _value(text) for name, _, text in (s.partition("=") for s in asked.set)}
    digest = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:8]
    first, end = map(int, asked.seeds.split("-"))
    for seed in range(first, end):
        for split in asked.splits.split(","):
            settings = recipe("lane", split) | {"split": split, "seed": seed}
            settings |= {"scan_dir": asked.scan_dir} | chosen
            yield Job(settings, folder / f"{split}-{seed}-{digest}")


def _last_line(path: Path) -> str:
    """The last epoch of a run that was cut off."""
    log = path / "epochs.jsonl"
    lines = log.read_text().splitlines() if log.is_file() else []
    return lines[-1] if lines else "no epoch"


def measure(job: Job) -> dict[str, Any]:
    """Train to the end, from a checkpoint if there is one, and return the figures."""
    if (job.path / ROW).is_file():
        row: dict[str, Any] = json.loads((job.path / ROW).read_text())
        return row
    torch.set_num_threads(1)
    config = RunConfig.from_settings(job.settings)
    assert isinstance(config.model, LaneConfig)
    data = load_data(config.data, seed=config.seed)
    is_new = not (job.path / "config.json").is_file()
    run = Run.create(job.path, config, data) if is_new else Run.open(job.path)
    for _ in run.train(data):
        pass
    run.repair()
    epochs = run.epochs()
    best = max(epochs, key=lambda e: e["number"] if e["is_best"] else -1)
    trained = Trained.load(job.path)
    model = trained.model
    assert isinstance(model, Lane)
    report = evaluate(model, data.test, width=1, max_length=trained.max_length)
    encode = trained.symmetry.source.encode
    rules = model.rules([encode(p.source) for p in data.train + data.valid])
    row = {
        "split": config.data.split,
        "seed": config.seed,
        "origin": data.origin,
        "converged": best["valid_accuracy"] >= config.model.passing,
        "exact_match": report.exact_match,
        "right": sum(report.right),
        "pairs": len(report.pairs),
        "refused": report.refused,
        "wrong": [(" ".join(p.source), " ".join(words[:60])) for p, words in report.errors[:3]],
        "test_loss": report.loss,
        "valid_accuracy": best["valid_accuracy"],
        "valid_loss": best["valid_loss"],
        "best_epoch": best["number"],
        "epochs": epochs[-1]["number"],
        "starts": epochs[-1]["start"],
        "updates": epochs[-1]["updates"],
        "lesson": epochs[-1]["lesson"],
        "reward": epochs[-1]["reward"],
        "seconds": round(epochs[-1]["seconds"], 2),
        "rules": dict(rules.most_common()),
        "curve": [[_rounded(epoch[name]) for name in CURVE] for epoch in epochs],
        "settings": {k: v for k, v in config.settings.items() if k not in ("seed", "scan_dir")},
        "version": {
            "equitrans": __version__,
            "commit": commit(),
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "machine": {"cores": os.cpu_count(), "device": "cpu"},
    }
    (job.path / ROW).write_text(json.dumps(row, ensure_ascii=False))
    return row


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


if __name__ == "__main__":
    main()
