"""Print tables of docs/results.md that need more than the figures of a cell.

python bench/report.py starts          stuck starts with the paper's settings
python bench/report.py length          how many trials of search-length reach which figure
python bench/report.py differences     how far the trainings of differences get
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from equitrans.experiments import (
    Experiment,
    Job,
    Records,
    Row,
    figures,
    load,
    load_search,
    title,
    validation_loss,
)
from equitrans.experiments.tables import markdown

HERE = Path(__file__).parent.parent
RECORDS = Records(HERE / "records")
INDEPENDENT = HERE / "records" / "studies" / "independent-attention.jsonl"
STUCK = 1.0
"""A start is stuck if its lowest validation loss is above this."""

PLATEAU = 776
"""Number of test commands of Length without a phrase that no training command has."""


def main() -> None:
    print({"starts": starts, "length": length, "differences": differences}[sys.argv[1]]())


def starts() -> str:
    """How many starts of each cell are stuck, and what the others reach."""
    rows = []
    for row, split, found in cells(load("starts")):
        if split == "length":
            continue
        good = [r for r in found if (validation_loss(r) or 0) <= STUCK]
        lost = [r for r in found if r not in good]
        reached = sorted(figures(good))
        rows.append(
            [
                row.name,
                title(split),
                f"{len(lost)} of {len(found)}",
                " ".join(f"{figure:.2f}" for figure in sorted(figures(lost))),
                f"{median(reached):.2f}" if reached else "",
                f"{reached[0]:.2f} to {reached[-1]:.2f}" if reached else "",
            ]
        )
    return markdown(["settings", "split", "stuck", "they get", "median", "the others get"], rows)


def length() -> str:
    """How many trials are above, on and below the plateau."""
    plan = load_search("search-length")
    found = [RECORDS.find(job) for _, job in plan.drawn(official=True)]
    trials = [r for r in found if r and r["test"]]
    losses = [validation_loss(r) for r in trials]
    right = [r["test"]["right"] for r in trials]
    values = figures(trials)
    chosen = min(range(len(trials)), key=lambda i: losses[i])
    rows = [
        ["all", len(trials)],
        [f"above the published {plan.published}", above(values, plan.published)],
        ["above 19.80", above(right, PLATEAU)],
        ["exactly 19.80: all commands without the unseen phrase", right.count(PLATEAU)],
        ["below 19.80", len(trials) - above(right, PLATEAU - 1)],
        ["with a validation loss below 0.01", len([x for x in losses if x < 0.01])],
    ]
    best = max(range(len(trials)), key=lambda i: values[i])
    ranks = sorted(losses).index(losses[best]) + 1
    rows += [
        ["figure of the trial with the lowest validation loss", f"{values[chosen]:.2f}"],
        ["rank of the best trial by validation loss", f"{ranks} of {len(trials)}"],
    ]
    return markdown(["trials of search-length", "number"], [[a, str(b)] for a, b in rows])


def above(values: Sequence[float], limit: float) -> int:
    return sum(value > limit for value in values)


def differences() -> str:
    """Test figures beside validation losses, with the training of Joey NMT."""
    rows = [
        line(f"{row.name}, {title(split)}", found[0]["updates"], figures(found), valid(found))
        for row, split, found in cells(load("differences"))
    ]
    groups: dict[int, list[dict[str, Any]]] = {}
    for text in INDEPENDENT.read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        groups.setdefault(record["settings"]["training"]["updates"], []).append(record)
    for updates, group in sorted(groups.items()):
        values = [100 * r["exact_match"] for r in group]
        losses = [min(r["valid"]) for r in group if "valid" in r]
        rows.append(line("LSTM with soft attention of Joey NMT, Length", updates, values, losses))
    return markdown(["trainings", "updates", "median", "every seed", "validation losses"], rows)


def line(name: str, updates: int, values: list[float], losses: list[float]) -> list[str]:
    return [
        name,
        f"{updates:,}",
        f"{median(values):.1f}",
        " ".join(f"{value:.1f}" for value in sorted(values)),
        f"{min(losses):.4f} to {max(losses):.4f}" if losses else "",
    ]


def valid(records: Sequence[dict[str, Any]]) -> list[float]:
    return [loss for loss in map(validation_loss, records) if loss is not None]


def cells(plan: Experiment) -> Iterator[tuple[Row, str, list[dict[str, Any]]]]:
    """The rows, splits and records of an experiment."""
    for row in plan.rows:
        jobs: dict[str, list[Job]] = {}
        for job in replace(plan, rows=(row,)).jobs(official=True):
            jobs.setdefault(str(job.config.data.split), []).append(job)
        for split in plan.splits:
            if found := [r for r in map(RECORDS.find, jobs.get(split, ())) if r]:
                yield row, split, found


if __name__ == "__main__":
    main()
