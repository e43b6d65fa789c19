"""Train what the tables and searches still miss, in many processes at once.

    python bench/fleet.py table1 variants --scan-dir SCAN --jobs 16 --records records
    nvidia-cuda-mps-control -d
    python bench/fleet.py table1 --only "the paper's" --device cuda --jobs 24 --out found.jsonl
    python bench/fleet.py --merge found.jsonl --records records
    python bench/fleet.py table1 --renew --scan-dir SCAN --jobs 16 --records records

With --renew it also repeats trainings whose record is of another version.

This does what ``equitrans reproduce`` does, with three differences. The longest trainings start
first. It needs torch, jaxtyping and safetensors only. It writes each record to one file, which
another machine can merge into its records. On a GPU, many small trainings at once need NVIDIA's
multi-process service (second line): each replays a CUDA graph of small kernels, which fill a part
of the GPU only.
"""

import argparse
import ctypes
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from equitrans import __version__
from equitrans.experiments import (
    Failed,
    Job,
    Lost,
    Order,
    Records,
    load,
    load_search,
    perform,
    run_locally,
    search_names,
)

USUAL_UPDATES = 7500
SCAN_PAIRS = 15000
"""Number of training pairs of a SCAN split, about."""

CUDART = "libcudart.so"
BLOCKING_SYNC = 4
"""``cudaDeviceScheduleBlockingSync`` of the CUDA runtime."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("experiments", nargs="*", help="names of tables and searches")
    parser.add_argument("--only", action="append", help="only systems with one of these texts")
    parser.add_argument("--without", action="append", help="no systems with one of these texts")
    parser.add_argument("--splits", help="only these splits, separated by commas")
    parser.add_argument("--seeds", type=int, help="at most this many seeds per table cell")
    parser.add_argument("--scan-dir", help="folder of the official SCAN files")
    parser.add_argument("--records", type=Path, default=Path("records"), help="folder of records")
    parser.add_argument("--out", type=Path, help="JSONL file for new records")
    parser.add_argument("--merge", type=Path, help="JSONL file to add to the records")
    parser.add_argument("--renew", action="store_true", help="repeat those of other versions")
    parser.add_argument("--runs", type=Path, default=Path("runs/fleet"), help="run directories")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    records = Records(asked.records)
    if asked.merge:
        for line in asked.merge.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            records.add(Job.of_record(record), record)
        return
    jobs = records.missing(wanted(asked), version=__version__ if asked.renew else None)
    jobs.sort(key=n_updates, reverse=True)
    print(f"{len(jobs)} trainings", flush=True)
    orders = (Order(job, str(asked.runs / job.name), asked.scan_dir, asked.device) for job in jobs)
    started = time.monotonic()
    for order, record in run_locally(train, orders, workers=asked.jobs):
        seconds = time.monotonic() - started
        if isinstance(record, Failed | Lost):
            print(f"{seconds:.0f} s: {order.job.description}: {record}", flush=True)
            continue
        if asked.out:
            with asked.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            records.add(order.job, record)
        figure = record["test"] and 100 * record["test"]["exact_match"]
        print(f"{seconds:.0f} s: {order.job.description}: {figure}", flush=True)


def train(order: Order) -> dict[str, Any]:
    """Train and test as an order says. On a GPU the process sleeps while it waits: by default it
    would keep a core busy, and there are more trainings than cores.
    """
    if order.device.startswith("cuda"):
        torch.cuda.is_available()  # loads the CUDA runtime
        loaded = Path("/proc/self/maps").read_text(encoding="utf-8").split()
        ctypes.CDLL(next(name for name in loaded if CUDART in name)).cudaSetDeviceFlags(
            BLOCKING_SYNC
        )
    return perform(order)


def wanted(asked: argparse.Namespace) -> Iterator[Job]:
    """The jobs of the experiments that are asked for."""
    official = asked.scan_dir is not None
    for name in asked.experiments:
        if name in search_names():
            yield from (job for _, job in load_search(name).drawn(official=official))
            continue
        experiment = load(name).restricted(seeds=asked.seeds)
        rows = [
            row
            for row in experiment.rows
            if contains(row.name, asked.only or [""]) and not contains(row.name, asked.without)
        ]
        for job in replace(experiment, rows=tuple(rows)).jobs(official=official):
            if asked.splits is None or job.config.data.split in asked.splits.split(","):
                yield job


def contains(name: str, texts: list[str] | None) -> bool:
    """True if a name contains one of the texts, in any case of letters."""
    return any(text.lower() in name.lower() for text in texts or [])


def n_updates(job: Job) -> float:
    """The number of updates of a job, about; the longest jobs start first."""
    training = job.config.training
    if training.updates is None and training.epochs is None:
        return USUAL_UPDATES
    return training.updates or SCAN_PAIRS * (training.epochs or 0) / training.batch


if __name__ == "__main__":
    main()
