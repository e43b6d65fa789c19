"""Markdown tables of records, with the published figures beside ours."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, quantiles, stdev

from equitrans.experiments.jobs import Job, Record
from equitrans.experiments.plans import Experiment, SearchPlan
from equitrans.experiments.records import Records, figures
from equitrans.models import LaneConfig
from equitrans.training import Settings

TITLES = {
    "simple": "Simple",
    "add_jump": "Add Jump",
    "around_right": "Around Right",
    "length": "Length",
}
WATCHED = "observed orbits and sharpness of the alignments, from the epoch on"


def title(split: str) -> str:
    """The title of a table column.

    >>> title("add_jump"), title("simple_p16")
    ('Add Jump', '16 %')
    """
    share = split.removeprefix("simple_p")
    return TITLES.get(split) or (split if share == split else f"{share} %")


def make_table(experiment: Experiment, records: Records, *, official: bool) -> str:
    """Mean, standard deviation and number of seeds by system and split, and published figures."""
    found = find_records(experiment, records, official=official)
    lines = []
    for row in experiment.rows:
        if row.published:
            cells = (row.published.get(split) for split in experiment.splits)
            lines.append(
                [f"*{row.name.partition(':')[0]}, published*"]
                + ["" if cell is None else f"*{cell}*" for cell in cells]
            )
        cells_found = [found[row.name, split] for split in experiment.splits]
        if any(cells_found):
            lines.append([row.name, *map(_summary, cells_found)])
    parts = [f"## {experiment.title}"]
    parts.append(markdown(["system", *map(title, experiment.splits)], lines))
    watched = [
        [name, str(record["seed"]), f"{figure:.2f}", _orbit_sizes(record["orbits"])]
        for (name, _), cell in found.items()
        for record, figure in zip(cell, figures(cell), strict=True)
        if "orbits" in record
    ]
    if watched:
        parts.append(markdown(["system", "seed", "exact match", WATCHED], watched))
    converged = _converged(found)
    if converged:
        head = ["system", "split", "converged", "every seed, the converged ones bold"]
        parts.append(markdown([*head, "mean of the converged", "updates"], converged))
    if not official:
        parts.append(
            "Without the official files: Simple and its parts are random draws of our own, which "
            "are not the published ones."
        )
    return "\n\n".join(parts) + "\n"


def make_seeds(experiment: Experiment, records: Records, *, official: bool) -> str:
    """The figures of every seed, one line per system and split."""
    found = find_records(experiment, records, official=official)
    lines = [
        [name, title(split), *_every_seed(cell)] for (name, split), cell in found.items() if cell
    ]
    head = ["system", "split", "every seed", "mean", "median", "worst", "best", "at 100"]
    head += ["−log p, validation", "seconds"]
    origins = _origins(record for cell in found.values() for record in cell)
    return f"## {experiment.title}, every seed\n\n{markdown(head, lines)}\n\n{origins}"


def find_records(
    experiment: Experiment, records: Records, *, official: bool
) -> dict[tuple[str, str], list[Record]]:
    """The records by system and split, in the order of seeds."""
    return {
        (row.name, split): [
            record
            for job in row.jobs(split, official=official)
            if (record := records.find(job)) is not None
        ]
        for row in experiment.rows
        for split in experiment.splits
    }


SHOWN = 10
"""Number of trials in the table of a search, best first."""


def make_search(plan: SearchPlan, found: Sequence[tuple[Settings, Record]]) -> str:
    """The figure of each protocol, the distribution of the test figures, and the trials with the
    lowest validation losses.
    """
    if not found:
        return f"## {plan.title}\n\nNo trials yet: equitrans search {plan.name} makes them.\n"
    ranked = sorted(found, key=lambda each: each[1]["valid"]["loss"])
    names = list(plan.space.settings)
    rows = [
        [f"{record['valid']['loss']:.2g}", f"{figures([record])[0]:.2f}"]
        + [_short(settings[name]) for name in names]
        for settings, record in ranked[:SHOWN]
    ]
    tests = sorted(figures([record for _, record in found]))
    protocols = [
        ["the trial with the lowest validation loss", f"{figures([ranked[0][1]])[0]:.2f}"],
        ["the trial with the best test figure, as in the paper", f"{tests[-1]:.2f}"],
    ]
    if plan.published is not None:
        protocols.append(["*published*", f"*{plan.published}*"])
    shares = quantiles(tests, n=20, method="inclusive") if len(tests) > 1 else tests * 19
    quarters = [f"{tests[0]:.2f}", *(f"{shares[i]:.2f}" for i in (4, 9, 14, 18))]
    parts = [
        f"## {plan.title}",
        f"{len(found)} trials on {title(plan.split)}.",
        markdown(["protocol", "test, %"], protocols),
        "The test figures of all trials:",
        markdown(
            ["worst", "first quarter", "median", "third quarter", "95 %", "best"],
            [[*quarters, f"{tests[-1]:.2f}"]],
        ),
        f"The {len(rows)} trials with the lowest validation losses:",
        markdown(["−log p, validation", "test, %", *names], rows),
    ]
    return "\n\n".join(parts) + "\n"


def _converged(found: Mapping[tuple[str, str], Sequence[Record]]) -> list[list[str]]:
    """The seeds of LANE that predict enough validation pairs, by system and split."""
    rows = []
    for (name, split), cell in found.items():
        ended = [
            r["test"] is not None and r["valid"]["accuracy"] >= model.passing
            for r in cell
            if isinstance(model := Job.of_record(r).config.model, LaneConfig)
        ]
        if not ended:
            continue
        values = figures(cell)
        good = [value for value, end in zip(values, ended, strict=True) if end]
        shown = [
            f"**{value:.2f}**" if end else f"{value:.2f}"
            for value, end in zip(values, ended, strict=True)
        ]
        updates = [r["updates"] for r in cell if r.get("updates")]
        rows.append(
            [
                name,
                title(split),
                f"{len(good)} of {len(cell)}",
                " ".join(shown),
                f"{fmean(good):.2f}" if good else "",
                "–".join(dict.fromkeys(str(end(updates)) for end in (min, max) if updates)),
            ]
        )
    return rows


def _summary(records: Sequence[Record]) -> str:
    """Mean, standard deviation and number of the figures.

    >>> _summary([{"test": {"exact_match": 0.5}}, {"test": {"exact_match": 1.0}}])
    '75.00 ± 35.36 (2)'
    """
    if not records:
        return ""
    values = figures(records)
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{fmean(values):.2f}{spread} ({len(values)})"


def _every_seed(records: list[Record]) -> list[str]:
    values = figures(records)
    seconds = [r["seconds"]["training"] for r in records if r["test"]]
    losses = [r["valid"]["loss"] for r in records if r["test"]]
    by_seed = zip(values, records, strict=True)
    ends = dict.fromkeys(f"{end(seconds):.0f}" for end in (min, max) if seconds)
    return [
        " ".join(f"{v:.2f}" if r["test"] else "failed" for v, r in by_seed),
        *(f"{of(values):.2f}" for of in (fmean, median, min, max)),
        f"{values.count(100.0)} of {len(values)}",
        " ".join("" if loss is None else f"{loss:.4f}" for loss in losses),
        "–".join(ends),
    ]


def _origins(records: Iterable[Record]) -> str:
    """The versions and machines of records, and how many records each has."""
    found = Counter(
        (r["version"]["equitrans"], r["version"]["torch"], r["machine"]["device"])
        for r in records
        if "version" in r and "machine" in r
    )
    return "".join(
        f"- {number} records: version {version}, torch {torch}, {device}\n"
        for (version, torch, device), number in sorted(found.items())
    )


def _orbit_sizes(records: Sequence[Record]) -> str:
    """The sizes of the observed orbits and the sharpness at every epoch where the sizes change, and
    at the last one.

    >>> moments = (0, [2, 2], 0.1), (5, [4], 0.98), (10, [4], 0.99), (15, [4], 1.0)
    >>> _orbit_sizes([{"epoch": e, "observed": o, "sharpness": s} for e, o, s in moments])
    '0: 2+2 (0.10), 5: 4 (0.98), 15: 4 (1.00)'
    """
    changes = [
        record
        for last, record in zip([None, *records], records, strict=False)
        if last is None or last["observed"] != record["observed"] or record is records[-1]
    ]
    return ", ".join(
        f"{record['epoch']}: {'+'.join(map(str, record['observed']))}"
        + (f" ({sharp:.2f})" if (sharp := record.get("sharpness")) is not None else "")
        for record in changes
    )


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
