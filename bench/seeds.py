"""Train a recipe with many seeds; write one line of JSON per training as soon as it has ended.

    python bench/seeds.py --splits add_jump --seeds 0-5
    python bench/seeds.py --splits simple,add_jump,around_right --seeds 100-132 --jobs 16 \
        --scan-dir SCAN --out records/seeds.jsonl
    python bench/seeds.py --splits add_jump --form "turn <directions>" --seeds 60-70 --jobs 16 \
        --set model.dropout=0.2
    python bench/seeds.py --device cuda --set training.batch=64 training.updates=2500
    python bench/seeds.py --show records/studies/seeds.jsonl

Each training has one thread and ends with validation and the choice of the best epoch; the clock
stops there. It is then tested once. With --form, all pairs of one form of the training set are held
out and are the test set: this is how settings are chosen without test data.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from equitrans import __version__
from equitrans.analysis import evaluate, losses
from equitrans.data import Data, hold_out, load_data
from equitrans.experiments import Job, commit, title
from equitrans.paper import Symmetry
from equitrans.training import RunConfig, Trained, recipe
from equitrans.training.learners import start


@dataclass(frozen=True)
class Training:
    """One training: dotted settings with a seed, and the form that is held out."""

    settings: dict[str, Any]
    form: str | None
    device: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--splits", default="add_jump", help="separated by commas")
    parser.add_argument("--scan-dir", help="folder of the official SCAN files, for Simple")
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--seeds", default="0-5", help="first seed, and the one after the last")
    parser.add_argument("--form", help='hold out a form of the training set: "turn <directions>"')
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings")
    parser.add_argument("--out", type=Path, help="JSONL file for the figures")
    parser.add_argument("--show", type=Path, help="print the table of a JSONL file, train nothing")
    asked = parser.parse_args()
    if asked.show:
        print(table([json.loads(line) for line in asked.show.read_text().splitlines()]), end="")
        return
    chosen = chosen_settings(asked.set)
    first, end = map(int, asked.seeds.split("-"))
    jobs = [
        Training(
            recipe(asked.recipe, split)
            | {"split": split, "scan_dir": asked.scan_dir, "seed": seed}
            | chosen,
            asked.form,
            asked.device,
        )
        for seed in range(first, end)
        for split in asked.splits.split(",")
    ]
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text("")
    found = []
    with multiprocessing.get_context("spawn").Pool(asked.jobs) as pool:
        for row in pool.imap_unordered(measure, jobs):
            found.append(row)
            line = json.dumps(row)
            print(line, flush=True)
            if asked.out:
                with asked.out.open("a") as file:
                    file.write(f"{line}\n")
    print(table(found), end="")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table with one line per split, held-out form and settings."""
    lines = [
        "| split | settings | seeds | at 100.0 | worst | highest loss | median s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        job = Job.of_record({"settings": row["settings"], "seed": row["seed"]})
        unusual = ", ".join(f"{name} {value}" for name, value in job.unusual.items()) or "default"
        held = f" without `{row['form']}`" if row["form"] else ""
        groups.setdefault((f"{title(row['split'])}{held}", unusual), []).append(row)
    for (split, settings), group in groups.items():
        seeds = [row["seed"] for row in group]
        cells = [
            split,
            settings,
            f"{min(seeds)}–{max(seeds)}",
            f"{sum(row['exact_match'] == 1 for row in group)} of {len(group)}",
            f"{100 * min(row['exact_match'] for row in group):.2f}",
            f"{max(row['test_loss'] for row in group):.4f}",
            f"{statistics.median(row['seconds'] for row in group):.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def measure(job: Training) -> dict[str, Any]:
    """Train once and return the figures."""
    torch.set_num_threads(1)
    config = RunConfig.from_settings(job.settings)
    data = load_data(config.data, seed=config.seed)
    if job.form is not None:
        data = _without(data, job.form, config)
    started, busy = time.perf_counter(), time.process_time()
    symmetry = Symmetry.of(data.classes, data.train + data.valid, config.model.group)
    trained = Trained.new(config.model, symmetry, max_length=200, seed=config.seed)
    learning = start(
        trained.model, config.model, config.training, data, seed=config.seed, device=job.device
    )
    *_, last = learning
    model = learning.best_model()
    if job.device != "cpu":
        torch.cuda.synchronize()
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    report = evaluate(model, data.test, width=1, max_length=200)
    wrong = [(" ".join(p.source), " ".join(words[:60])) for p, words in report.errors[:3]]
    state = learning.state
    return {
        "split": config.data.split,
        "seed": config.seed,
        "form": job.form,
        "origin": data.origin,
        "exact_match": report.exact_match,
        "right": sum(report.right),
        "pairs": len(report.pairs),
        "tied": report.tied,
        "wrong": wrong,
        "test_loss": max(losses(model, data.test)) if job.form else report.loss,
        "valid_loss": None if state is None else state.best_loss,
        "valid_accuracy": None if state is None else state.best_accuracy,
        "starts": None if state is None else state.start,
        "updates": None if state is None else state.updates,
        "train_loss": last.train_loss,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(busy, 2),
        "settings": {k: v for k, v in config.settings.items() if k not in ("seed", "scan_dir")},
        "version": {
            "equitrans": __version__,
            "commit": commit(),
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "machine": {"cores": os.cpu_count(), "device": job.device},
    }


def _without(data: Data, form: str, config: RunConfig) -> Data:
    """The data without the pairs of a form, which become the test set."""
    symmetry = Symmetry.of(data.classes, data.train + data.valid)
    pairs = data.train + data.valid
    is_held = {p: " ".join(symmetry.template(p.source)) == form for p in pairs}
    held = tuple(p for p, held in is_held.items() if held)
    if not held:
        raise SystemExit(f"no training pair has the form {form!r}")
    rest = [p for p in pairs if not is_held[p]]
    train, valid = hold_out(
        rest, fraction=config.data.validation, how=config.data.hold_out, seed=config.seed
    )
    return replace(data, train=train, valid=valid, test=held)


def chosen_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Settings from texts NAME=VALUE; a value that is no JSON is a string."""
    return {name: _value(text) for name, _, text in (s.partition("=") for s in texts)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


if __name__ == "__main__":
    main()
