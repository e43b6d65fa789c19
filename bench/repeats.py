"""Compare two records of the same trainings, made with the same settings and seeds.

    python bench/repeats.py --version 0.3.0 --out records/studies/repeats.jsonl
    python bench/repeats.py --before avx2 --records default --out records/studies/rounding.jsonl
    python bench/repeats.py --show records/studies/repeats.jsonl
    python bench/repeats.py --show records/studies/starts-again.jsonl --seeds

The first line compares the records of an earlier version, which git has, with those of today; the
second those of two folders. Two versions that train the same weights on a CPU (bench/versions.py)
can differ on a GPU or on another CPU, as two trainings of one version may. The table shows how far
the test figure of a seed moves, and the mean over the seeds of a cell; with --seeds, all figures.
"""

import argparse
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from report import percent

from equitrans.experiments import Record, read_records, title
from equitrans.experiments.tables import markdown

HERE = Path(__file__).parent.parent
LARGE = 10
"""Percentage points; the table counts the differences above and lists the largest of them."""
LISTED = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="folder of the earlier records")
    parser.add_argument("--version", help="version of the earlier records, in the history of git")
    parser.add_argument("--records", type=Path, default=HERE / "records")
    parser.add_argument("--out", type=Path, help="JSONL file for the compared figures")
    parser.add_argument("--show", type=Path, help="print the table of a JSONL file")
    parser.add_argument("--seeds", action="store_true", help="print every figure of every cell")
    args = parser.parse_args()
    shown = every_seed if args.seeds else table
    if args.show:
        rows = [json.loads(line) for line in args.show.read_text(encoding="utf-8").splitlines()]
        print(shown(rows))
        return
    if bool(args.before) == bool(args.version):
        parser.error("give --before DIR, --version VERSION or --show FILE")
    before = of_folder(args.before) if args.before else of_version(args.version)
    lines = [
        json.dumps(row, ensure_ascii=False) for row in compared(before, of_folder(args.records))
    ]
    if args.out:
        args.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(shown([json.loads(line) for line in lines]))


def of_folder(folder: Path) -> dict[str, Record]:
    """The records of a folder by SPLIT/NAME."""
    return {
        full.removeprefix(f"{folder}/"): record
        for path in sorted(folder.glob("*.jsonl"))
        for full, record in read_records(path).items()
    }


def of_version(version: str) -> dict[str, Record]:
    """The last record of each training that this version made, from all commits."""
    found: dict[str, Record] = {}
    for file in _git("ls-files", ":(glob)records/*.jsonl").split():
        split = Path(file).stem
        for commit in reversed(_git("log", "--format=%H", "--", file).split()):
            for line in _git("show", f"{commit}:{file}").splitlines():
                record = json.loads(line)
                if record.get("version", {}).get("equitrans") == version:
                    found[f"{split}/{record['name']}"] = record
    return found


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=HERE, check=True, capture_output=True, text=True
    ).stdout


def compared(before: Mapping[str, Record], after: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """The figures of every transducer with an LSTM that has two records, made at two times."""
    for name, record in after.items():
        other = before.get(name)
        if (
            other is None
            or other["made"] == record["made"]
            or record["settings"].get("model.aligner") != "lstm"
        ):
            continue
        yield {
            "name": name,
            "split": record["settings"]["split"],
            "marginal": record["settings"]["model.marginal"],
            "classes": record["settings"]["classes"],
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
        group.sort(key=lambda row: -abs(_moved(row)))
        means = [abs(fmean(map(_moved, seeds))) for seeds in _cells(group)]
        large = [row for row in group if abs(_moved(row)) > LARGE]
        lines.append(
            [
                title(split),
                marginal,
                str(len(group)),
                f"{median(abs(_moved(row)) for row in group):.2f}",
                f"{max(means):.2f}" if means else "",
                str(len(large)),
                ", ".join(map(_from_to, large[:LISTED])),
            ]
        )
    head = ["split", "marginal", "trainings", "median difference", "largest of a mean"]
    return markdown([*head, f"over {LARGE}", "the largest"], lines)


def every_seed(rows: list[dict[str, Any]]) -> str:
    """A Markdown table with two lines per cell: the figures of all seeds, first and again."""
    lines = []
    for cell in _cells(rows):
        cell.sort(key=lambda row: row["seed"])
        for time in ("before", "after"):
            device, *others = dict.fromkeys(row[time]["device"] for row in cell)
            lines.append(
                [
                    title(cell[0]["split"]),
                    " and ".join([device, *others]),
                    f"{cell[0]['seed']}–{cell[-1]['seed']}",
                    " ".join(percent(100 * row[time]["exact_match"]) for row in cell),
                ]
            )
    return markdown(["split", "machine", "seeds", "exact match, %"], lines)


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


def _place(split: str, marginal: str) -> tuple[int, str, int]:
    share = split.partition("_p")[2]
    return int(share or 100), split, ("sum", "max", "annealed").index(marginal)


if __name__ == "__main__":
    main()
