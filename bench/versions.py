"""Check that an older version trains the same weights, bit for bit, on a CPU; exit with status 1 if
it does not.

    git worktree add ../one 97cc497
    git worktree add ../two 6f7be34
    python bench/versions.py starts lowdata search-length --old ../one/src ../two/src \
        --scan-dir SCAN --out records/reliability/versions.json
    python bench/versions.py starts --first-epoch --old ../one/src --scan-dir SCAN \
        --out records/reliability/first-epochs.json

A table may have records of an older version. For one record of each older commit in every cell of
the experiments, the source tree of that commit and this one train the same settings and seed for
some updates. Each tree runs in a process of its own, with one thread.

A record's commit ends in "-dirty" if files of the package had uncommitted changes. With
--first-epoch, the source tree of the commit, without these changes, trains the settings and seed of
every such record up to the first epoch of its learning curve. The training losses are compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import torch
from safetensors.torch import load_file

from equitrans import __version__, training
from equitrans.data import load_data
from equitrans.experiments import Job, Records, find_records, load, load_search, search_names

HERE = Path(__file__).parent
UPDATES = 200


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("experiments", nargs="*", help="names of tables and searches")
    parser.add_argument("--old", nargs="*", type=Path, default=[], help="older source folders")
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--records", type=Path, default=HERE.parent / "records")
    parser.add_argument("--scan-dir", help="folder of the official SCAN files")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--first-epoch", action="store_true", help="compare losses, as said above")
    parser.add_argument("--train", action="store_true", help="train the records on standard input")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.train:
        for line in sys.stdin:
            record = json.loads(line)
            if args.first_epoch:
                print(first_loss(record, args.scan_dir), flush=True)
            else:
                print(weights(record, args.updates, args.scan_dir), flush=True)
        return 0
    if args.first_epoch:
        compare_losses(args)
        return 0
    from equitrans.experiments.jobs import machine  # which older versions do not have

    records, rows = Records(args.records), []
    found = [r for name in args.experiments for r in older(records, name)]
    for source in args.old:
        commit = revision(source)
        group = [r for r in found if commit.startswith(r["version"]["commit"].partition("-")[0])]
        before, after = (
            trained(tree.resolve(), group, args) for tree in (source, HERE.parent / "src")
        )
        for record, a, b in zip(group, before, after, strict=True):
            name = Job.of_record(record).description
            print(f"{'same' if a == b else 'DIFFERENT'}: {name}", flush=True)
            row = {"commit": commit, "settings": name, "seed": record["seed"]}
            rows.append(row | {"weights": b, "same": a == b})
    different = sum(not row["same"] for row in rows)
    print(f"{len(rows) - different} of {len(rows)} have the same weights after {args.updates}")
    print(f"{len(found) - len(rows)} records are of other commits")
    figures = machine("cpu") | {
        "updates": args.updates,
        "checked": len(rows),
        "different": different,
        "trainings": rows,
    }
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    return int(different > 0)


def older(records: Records, name: str) -> Iterator[dict[str, Any]]:
    """One record of each older commit for every row and split of a table, all of a search."""
    if name in search_names():
        cells = [[records.find(job)] for _, job in load_search(name).drawn(official=True)]
    else:
        cells = find_records(load(name), records, official=True).values()
    for cell in cells:
        found = [r for r in cell if r and r["version"]["equitrans"] != __version__]
        yield from {r["version"].get("commit", ""): r for r in reversed(found)}.values()


def compare_losses(args: argparse.Namespace) -> None:
    """Print and write how far the losses of a commit are from those recorded with changes."""
    from equitrans.experiments.jobs import machine

    records, rows = Records(args.records), []
    cells = [
        [r for r in cell if r and r["version"].get("commit", "").endswith("-dirty")]
        for name in args.experiments
        for cell in find_records(load(name), records, official=True).values()
    ]
    found = [r for cell in cells for r in cell]
    for source in args.old:
        commit = revision(source)
        group = [r for r in found if r["version"]["commit"] == f"{commit}-dirty"]
        for record, line in zip(group, trained(source.resolve(), group, args), strict=True):
            loss, recorded = float(line), record["curve"]["train_loss"][0]
            name = Job.of_record(record).description
            row = {"commit": commit, "settings": name, "seed": record["seed"]}
            rows.append(row | {"recorded": recorded, "trained": loss})
            print(f"{relative(loss, recorded):.2%}: {name}", flush=True)
    seeds = [
        relative(a["curve"]["train_loss"][0], b["curve"]["train_loss"][0])
        for cell in cells
        for a, b in combinations(cell, 2)
    ]
    same = [relative(row["trained"], row["recorded"]) for row in rows]
    figures = machine("cpu") | {
        "records": len(found),
        "checked": len(rows),
        "difference": {"median": median(same), "largest": max(same)},
        "difference_of_two_seeds": {"median": median(seeds), "smallest": min(seeds)},
        "trainings": rows,
    }
    print(json.dumps({k: v for k, v in figures.items() if k != "trainings"}, indent=1))
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


def relative(one: float, other: float) -> float:
    """The difference of two losses as a part of the second."""
    return abs(one - other) / other


def trained(
    source: Path, records: Iterable[dict[str, Any]], args: argparse.Namespace
) -> Iterator[str]:
    """What a source tree prints for each record: a digest of its weights or its first loss."""
    asked = [sys.executable, str(Path(__file__).resolve()), "--train"]
    asked += ["--updates", str(args.updates)]
    asked += ["--first-epoch"] if args.first_epoch else []
    asked += ["--scan-dir", str(Path(args.scan_dir).resolve())] if args.scan_dir else []
    names = ("settings", "seed", "curve")
    lines = [json.dumps({k: record[k] for k in names}) for record in records]
    process = subprocess.Popen(
        asked,
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin:
        for line in lines:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            yield process.stdout.readline().strip()


def weights(record: dict[str, Any], updates: int, scan_dir: str | None) -> str:
    """A digest of the weights after some updates of a record's settings."""
    changed = {"training.updates": updates, "training.epochs": None}
    with train(record, changed, scan_dir) as run:
        found = load_file(run.path / "model.safetensors")
    digest = sha256()
    for name in sorted(found):
        digest.update(name.encode() + found[name].numpy().tobytes())
    return digest.hexdigest()[:16]


def first_loss(record: dict[str, Any], scan_dir: str | None) -> float:
    """The training loss in the first epoch of a record's learning curve. The settings must be such
    that the number of epochs does not change the first ones: a constant rate, no warm start.
    """
    changed = {"training.epochs": record["curve"]["number"][0]}
    with train(record, changed, scan_dir) as run:
        return float(run.epochs()[-1]["train_loss"])


@contextmanager
def train(
    record: dict[str, Any], changed: dict[str, Any], scan_dir: str | None
) -> Iterator[training.Run]:
    """A finished run with a record's settings, some of them changed; removed at the end."""
    config = Job.of_record(record | {"settings": record["settings"] | changed}).config
    config = replace(config, data=replace(config.data, scan_dir=scan_dir))
    data = load_data(config.data, seed=config.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = training.Run.create(Path(folder) / "run", config, data)
        for _ in run.train(data, device="cpu"):
            pass
        yield run


def revision(folder: Path) -> str:
    asked = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
