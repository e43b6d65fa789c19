"""Print tables of docs/results.md that need more than the figures of a cell.

python bench/report.py starts          which starts with the paper's settings are stuck
python bench/report.py alternatives    the same for the other settings that the paper prints
python bench/report.py epochs          the same with twice the epochs
python bench/report.py length          what the trials of search-length reach
python bench/report.py differences     how far the trainings of differences get
python bench/report.py restarts        how many trainings of variants needed a second start
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import correlation, fmean, median, stdev
from typing import Any

import independent

from equitrans.data import load_split
from equitrans.data.scan import VERBS
from equitrans.experiments import (
    Experiment,
    Records,
    Row,
    figures,
    find_records,
    load,
    load_search,
    title,
    validation_loss,
)
from equitrans.experiments.tables import markdown

HERE = Path(__file__).parent.parent
RECORDS = Records(HERE / "records")
INDEPENDENT = HERE / "records" / "studies" / "independent-attention.jsonl"
STUCK = 2.0
"""A start is stuck if its loss per training pair, in nats, never falls below this."""

UPDATES = 7500
"""Updates of a training of the default recipe with one start."""


def main() -> None:
    tables = {t.__name__: t for t in (starts, alternatives, epochs, length, differences, restarts)}
    print(tables[sys.argv[1]]())


def starts() -> str:
    """How many starts of each cell are stuck, and what the others reach."""
    return stuck_starts(load("starts"))


def alternatives() -> str:
    """The same for the other settings that the paper prints for the sum."""
    return stuck_starts(load("alternatives"))


def epochs() -> str:
    """The same for starts with twice the epochs."""
    return stuck_starts(load("epochs"))


def stuck_starts(experiment: Experiment) -> str:
    rows = []
    for row, split, found in cells(experiment):
        lost = [r for r in found if min(r["curve"]["train_loss"]) > STUCK]
        good = [r for r in found if r not in lost]
        late = sum(r["best_epoch"] > r["epochs"] - 5 for r in found)
        published = row.published.get(split)
        rows.append(
            [
                row.name,
                title(split),
                str(published or ""),
                f"{len(lost)} of {len(found)}",
                listed(figures(lost)),
                listed(figures(good)),
                f"{late} of {len(found)}",
            ]
        )
    head = ["settings", "split", "published", "stuck", "they get", "the others get"]
    return markdown([*head, "best epoch in the last five"], rows)


def length() -> str:
    """What the trials reach by classes and marginal, and whether validation orders them."""
    plan = load_search("search-length")
    found = [RECORDS.find(job) for _, job in plan.drawn(official=True)]
    trials = [r for r in found if r and r["test"]]
    split = load_split("length")
    seen = [pair for pair in split.test if not has_unseen_phrase(pair.source)]
    lengths = [len(pair.target) for pair in seen]
    groups = {
        (classes, marginal): [
            r
            for r in trials
            if (r["settings"]["classes"], r["settings"]["model.marginal"]) == (classes, marginal)
        ]
        for classes in ("verbs", "both")
        for marginal in ("sum", "max", "annealed")
    }
    rows = [
        [
            f"{classes}, {marginal}",
            str(len(group)),
            f"{median(figures(group)):.2f}",
            f"{max(figures(group)):.2f}",
            str(sum(r["test"]["right"] == len(seen) for r in group)),
            str(sum(r["test"]["right"] > len(seen) for r in group)),
            str(sum(has_phrases_right(r, lengths) for r in group)),
        ]
        for (classes, marginal), group in groups.items()
    ]
    plateau = f"{100 * len(seen) / len(split.test):.2f}"
    head = ["classes, marginal", "trials", "median", "best", f"exactly {plateau}"]
    parts = [markdown([*head, f"above {plateau}", "with unseen phrases right"], rows)]
    steps = {
        "two classes": lambda s: s["classes"] == "both",
        "weight decay 0.3": lambda s: s["training.weight_decay"] == 0.3,
        "hidden size 96": lambda s: s["model.hidden"] == 96,
        "6,000 updates or more": lambda s: s["training.updates"] >= 6000,
        "rate 0.008 or 0.016": lambda s: s["training.learning_rate"] >= 0.008,
    }
    rows, left = [], trials
    for n, holds in enumerate(steps.values(), start=1):
        left = [r for r in left if holds(r["settings"])]
        above = sum(r["test"]["right"] > len(seen) for r in left)
        name = ", ".join(list(steps)[:n])
        rows.append([name, str(len(left)), f"{median(figures(left)):.2f}", str(above)])
    parts.append(markdown(["trials with", "number", "median", f"above {plateau}"], rows))
    longest = [
        record
        for _, name, group in cells(load("variants"))
        for record in group
        if name == "length" and record["settings"]["hold_out"] == "longest"
    ]
    rows = [
        ranked("trials, a random tenth for validation", trials, float("inf")),
        ranked("trials, a random tenth for validation", trials, 0.01),
        ranked("trials, a random tenth for validation", trials, 0.0001),
        ranked("trainings of Appendix A, the longest tenth", longest, float("inf")),
        ranked("trainings of Appendix A, the longest tenth", longest, 0.01),
    ]
    head = ["trainings", "number", "rank correlation of a low loss and a high test figure"]
    return "\n\n".join([*parts, markdown(head, rows)])


def ranked(name: str, records: Sequence[dict[str, Any]], limit: float) -> list[str]:
    """How well the validation loss orders the test figures of the records with a lower loss."""
    pairs = [
        (loss, figure)
        for record, figure in zip(records, figures(records), strict=True)
        if (loss := validation_loss(record)) is not None and loss < limit
    ]
    order = correlation(ranks([-loss for loss, _ in pairs]), ranks([each for _, each in pairs]))
    below = "" if limit == float("inf") else f", loss below {limit}"
    return [f"{name}{below}", str(len(pairs)), f"{order:.2f}"]


def has_unseen_phrase(source: Sequence[str]) -> bool:
    text = f" {' '.join(source)} "
    return any(f" {v} around {d} thrice " in text for v in VERBS.source for d in ("left", "right"))


def has_phrases_right(record: dict[str, Any], lengths: Sequence[int]) -> bool:
    """True if more commands of a target length are right than there are without the phrase."""
    by_length = record["test"]["by_length"].items()
    return any(right > lengths.count(int(number)) for number, (right, _) in by_length)


def ranks(values: Sequence[float]) -> list[float]:
    """The mean rank of each value among all.

    >>> ranks([7, 5, 7])
    [1.5, 0.0, 1.5]
    """
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) - 1) / 2 for v in values]


def differences() -> str:
    """Test figures beside validation losses, with the training of Joey NMT."""
    rows: list[list[str]] = []
    for row, split, found in cells(load("differences")):
        if published := row.published.get(split):
            name = row.name.partition(":")[0]
            rows.append([f"*{name}, {title(split)}, published*", "", f"*{published}*", "", ""])
        losses = [loss for loss in map(validation_loss, found) if loss is not None]
        name = f"{row.name}, {title(split)}"
        rows.append(line(name, found[0]["updates"], figures(found), losses))
    for name, group in independent.groups(INDEPENDENT).items():
        updates = group[0]["settings"]["training"]["updates"]
        values = [100 * r["exact_match"] for r in group]
        losses = [min(r["valid"]) for r in group if "valid" in r]
        changes = name.partition(", ")[2]
        model = f"LSTM with soft attention of Joey NMT{changes and ': ' + changes}, Length"
        rows.append(line(model, updates, values, losses))
    return markdown(["training", "updates", "mean", "every seed", "validation losses"], rows)


def line(name: str, updates: int, values: list[float], losses: list[float]) -> list[str]:
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    ends = dict.fromkeys(f"{loss:.2g}" for loss in (min(losses), max(losses))) if losses else ()
    return [name, f"{updates:,}", f"{fmean(values):.1f}{spread}", listed(values), " to ".join(ends)]


def listed(values: list[float]) -> str:
    return " ".join(map(percent, sorted(values)))


def percent(value: float) -> str:
    """A percentage with one decimal; nothing below 100 is shown as 100.0.

    >>> percent(100), percent(99.99)
    ('100.0', '99.9')
    """
    return f"{value if value == 100 else min(value, 99.9):.1f}"


def restarts() -> str:
    """How many trainings of each cell of variants needed a second start."""
    plan = load("variants")
    rows = {row.name: [row.name] for row in plan.rows}
    for row, _, found in cells(plan):
        again = sum(r["updates"] > (r["settings"]["training.updates"] or UPDATES) for r in found)
        rows[row.name].append(f"{again} of {len(found)}")
    return markdown(["system", *map(title, plan.splits)], list(rows.values()))


def cells(plan: Experiment) -> Iterator[tuple[Row, str, list[dict[str, Any]]]]:
    """The rows, splits and records of an experiment, without empty cells."""
    found = find_records(plan, RECORDS, official=True)
    for row in plan.rows:
        for split in plan.splits:
            if cell := found[row.name, split]:
                yield row, split, cell


if __name__ == "__main__":
    main()
