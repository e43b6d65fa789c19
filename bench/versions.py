"""Check that an older version trains the same weights, bit for bit, on a CPU; exit with status 1 if
it does not.

    git worktree add ../one 97cc497
    git worktree add ../two 6f7be34
    python bench/versions.py starts lowdata search-length --old ../one/src ../two/src \
        --scan-dir SCAN --out records/reliability/versions.json

A table may have records of an older version. For one record of each older commit in every cell of
the experiments, the source tree of that commit and this one train the same settings and seed for
some updates. Each tree runs in a process of its own, with one thread.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
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
    parser.add_argument("--train", action="store_true", help="train the records on standard input")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.train:
        for line in sys.stdin:
            print(weights(json.loads(line), args.updates, args.scan_dir), flush=True)
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


def trained(
    source: Path, records: Iterable[dict[str, Any]], args: argparse.Namespace
) -> Iterator[str]:
    """The weights that a source tree trains for each record."""
    asked = [sys.executable, str(Path(__file__).resolve()), "--train"]
    asked += ["--updates", str(args.updates)]
    asked += ["--scan-dir", str(Path(args.scan_dir).resolve())] if args.scan_dir else []
    lines = [json.dumps({k: record[k] for k in ("settings", "seed")}) for record in records]
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
    settings = record["settings"] | {"training.updates": updates, "training.epochs": None}
    config = Job.of_record(record | {"settings": settings}).config
    config = replace(config, data=replace(config.data, scan_dir=scan_dir))
    data = load_data(config.data, seed=config.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = training.Run.create(Path(folder) / "run", config, data)
        for _ in run.train(data, device="cpu"):
            pass
        found = load_file(Path(folder) / "run" / "model.safetensors")
    digest = sha256()
    for name in sorted(found):
        digest.update(name.encode() + found[name].numpy().tobytes())
    return digest.hexdigest()[:16]


def revision(folder: Path) -> str:
    asked = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
