"""Train LANE with many seeds; write one line of JSON per training as soon as it has ended.

    python bench/lane.py --splits length --seeds 0-1
    python bench/lane.py --splits simple,add_jump,length --seeds 0-5 --jobs 16 --keep lane-runs \
        --seconds 570 --scan-dir SCAN --out lane.jsonl
    python bench/lane.py --splits around_right --seeds 0-10 --set model.baseline=sentence
    python bench/lane.py --add lane.jsonl --records records

Each training is a process with one thread and a run directory. With --keep the directories stay:
the same command continues trainings that --seconds has cut off, and writes the lines of the
finished ones again. Every line has the figures of one training: the lesson it reached, the accuracy
on all validation pairs, whether that is high enough (converged), the exact match on the test set,
the expressions it learned, a curve with a point per epoch, and the record that ``equitrans
reproduce`` would make of it; --add adds these records to a folder.
"""

import argparse
import hashlib
import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from seeds import chosen_settings

from equitrans.experiments import Job, Order, Records, perform
from equitrans.models import Lane, LaneConfig
from equitrans.training import Run, Trained

CURVE = ("number", "lesson", "updates", "reward", "lesson_accuracy", "valid_accuracy", "seconds")
"""Figures of an epoch that a point of the curve has, in this order."""

ROW = "row.json"


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
    parser.add_argument("--add", type=Path, help="do not train: add the records of such a file")
    parser.add_argument("--records", type=Path, help="folder that --add adds to")
    asked = parser.parse_args()
    if asked.add is not None:
        for line in asked.add.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)["record"]
            Records(asked.records).add(Job.of_record(record), record)
        return
    with tempfile.TemporaryDirectory() as temporary:
        _train(asked, list(_orders(asked, asked.keep or Path(temporary))))


def _train(asked: argparse.Namespace, orders: list[Order]) -> None:
    """Train all, or as many as the time allows."""
    end = None if asked.seconds is None else time.monotonic() + asked.seconds
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text("")
    found: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(asked.jobs, maxtasksperchild=1) as pool:
        rows = pool.imap_unordered(measure, orders)
        try:
            for _ in orders:
                row = rows.next(None if end is None else max(0.0, end - time.monotonic()))
                found.append(row)
                if asked.out:
                    with asked.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row, ensure_ascii=False) + "\n")
                shown = ("split", "seed", "converged", "exact_match", "lesson", "updates")
                print(*(f"{name} {row[name]}" for name in shown), flush=True)
        except multiprocessing.TimeoutError:
            pool.terminate()
    for order in orders:
        if not (Path(order.directory) / ROW).is_file():
            print(f"not finished: {Path(order.directory).name}: {_last_line(order)}")
    for split in asked.splits.split(","):
        of_split = [row for row in found if row["split"] == split]
        converged = [row["exact_match"] for row in of_split if row["converged"]]
        print(f"{split}: {len(converged)} of {len(of_split)} converged; exact match {converged}")


def _orders(asked: argparse.Namespace, folder: Path) -> Iterator[Order]:
    """The trainings, all splits of a seed side by side."""
    chosen = chosen_settings(asked.set)
    digest = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:8]
    first, end = map(int, asked.seeds.split("-"))
    official = asked.scan_dir is not None
    for seed in range(first, end):
        for split in asked.splits.split(","):
            job = Job.of(split, {"kind": "lane"} | chosen, seed=seed, width=1, official=official)
            path = (folder / f"{split}-{seed}-{digest}").resolve()
            yield Order(job, str(path), asked.scan_dir)


def _last_line(order: Order) -> str:
    """The last epoch of a run that was cut off."""
    log = Path(order.directory) / "epochs.jsonl"
    lines = log.read_text().splitlines() if log.is_file() else []
    return lines[-1] if lines else "no epoch"


def measure(order: Order) -> dict[str, Any]:
    """Train to the end, from a checkpoint if there is one, and return the figures."""
    kept = Path(order.directory) / ROW
    if kept.is_file():
        row: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return row
    torch.set_num_threads(1)
    record = perform(order)
    if "failed" in record:  # a weight or a loss was NaN or infinite
        seed, split = record["seed"], record["settings"]["split"]
        none = dict.fromkeys(("exact_match", "lesson", "updates"))
        return {"split": split, "seed": seed, "converged": False, **none, "record": record}
    run, model = Run.open(order.directory), Trained.load(order.directory).model
    epochs, data = run.epochs(), run.load_data().read
    assert isinstance(model, Lane)
    assert isinstance(run.config.model, LaneConfig)
    encode = model.symmetry.source.encode
    rules = model.rules([encode(p.source) for p in dict.fromkeys(data.train + data.valid)])
    row = {
        "split": run.config.data.split,
        "seed": run.config.seed,
        "converged": record["valid"]["accuracy"] >= run.config.model.passing,
        "exact_match": record["test"]["exact_match"],
        "refused": record["test"]["refused"],
        "valid_accuracy": record["valid"]["accuracy"],
        "epochs": record["epochs"],
        "updates": record["updates"],
        "lesson": epochs[-1]["lesson"],
        "starts": epochs[-1]["start"],
        "seconds": round(epochs[-1]["seconds"], 2),
        "rules": dict(rules.most_common()),
        "curve": [[_rounded(epoch[name]) for name in CURVE] for epoch in epochs],
        "settings": record["settings"],
        "version": record["version"],
        "machine": record["machine"],
        "origin": data.origin,
        "record": record,
    }
    kept.write_text(json.dumps(row, ensure_ascii=False), encoding="utf-8")
    return row


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
