"""Compare two records of the same trainings, made with the same settings and seeds.

    git worktree add ../before a19e415
    python bench/repeats.py --before ../before/records --out records/studies/repeats.jsonl
    python bench/repeats.py --show records/studies/repeats.jsonl

Two versions that train the same weights on a CPU (bench/versions.py) can differ on a GPU, as two
trainings of one version may. The table shows how far the test figure of a seed moves, and the mean
over the seeds of a cell.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

from equitrans.experiments import Record, read_records, title
from equitrans.experiments.tables import markdown

HERE = Path(__file__).parent.parent
LARGE = 10
"""Percentage points; the table lists every difference above."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="folder of the earlier records")
    parser.add_argument("--records", type=Path, default=HERE / "records")
    parser.add_argument("--out", type=Path, help="JSONL file for the compared figures")
    parser.add_argument("--show", type=Path, help="print the table of a JSONL file")
    args = parser.parse_args()
    if args.show:
        rows = [json.loads(line) for line in args.show.read_text(encoding="utf-8").splitlines()]
        print(table(rows))
        return
    if not args.before:
        parser.error("--before DIR or --show FILE is needed")
    lines = [json.dumps(row, ensure_ascii=False) for row in compared(args.before, args.records)]
    if args.out:
        args.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(table([json.loads(line) for line in lines]))


def compared(before: Path, after: Path) -> Iterator[dict[str, Any]]:
    """The figures of every training that has a record of its own in both folders."""
    for path in sorted(after.glob("*.jsonl")):
        earlier = {
            name.removeprefix(f"{before}/"): record
            for name, record in read_records(before / path.name).items()
        }
        for full, record in read_records(path).items():
            name = full.removeprefix(f"{after}/")
            other = earlier.get(name)
            if other is None or other["made"] == record["made"]:
                continue
            yield {
                "name": name,
                "split": record["settings"]["split"],
                "marginal": record["settings"]["model.marginal"],
                "seed": record["seed"],
                "before": _figures(other),
                "after": _figures(record),
            }


def _figures(record: Record) -> dict[str, Any]:
    return {
        "exact_match": record["test"]["exact_match"],
        "valid_loss": record["valid"]["loss"],
        "commit": record["version"]["commit"],
        "device": record["machine"]["device"],
        "instructions": record["machine"].get("instructions"),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """A Markdown table with one line per split and marginal."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["split"], row["marginal"]), []).append(row)
    lines = []
    for (split, marginal), group in sorted(groups.items(), key=lambda item: _place(*item[0])):
        moved = sorted(abs(_moved(row)) for row in group)
        means = [abs(fmean(map(_moved, seeds))) for seeds in _cells(group)]
        lines.append(
            [
                title(split),
                marginal,
                str(len(group)),
                f"{median(moved):.2f}",
                f"{moved[-1]:.2f}",
                f"{max(means):.2f}" if means else "",
                ", ".join(_from_to(row) for row in group if abs(_moved(row)) > LARGE),
            ]
        )
    head = ["split", "marginal", "trainings", "median difference", "largest"]
    return markdown([*head, "largest of a mean", f"over {LARGE}"], lines)


def _moved(row: dict[str, Any]) -> float:
    return 100 * (row["after"]["exact_match"] - row["before"]["exact_match"])


def _from_to(row: dict[str, Any]) -> str:
    before, after = (100 * row[time]["exact_match"] for time in ("before", "after"))
    return f"{before:.1f} → {after:.1f}"


def _cells(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The trainings with the same settings, where there are several seeds."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(row["name"].rpartition("-")[0], []).append(row)
    return [cell for cell in cells.values() if len(cell) > 1]


def _place(split: str, marginal: str) -> tuple[int, int]:
    share = split.partition("_p")[2]
    return int(share or 100), ("sum", "max", "annealed").index(marginal)


if __name__ == "__main__":
    main()
