"""Several models on several sets of pairs: one table, with paired differences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from equitrans import notebook
from equitrans.analysis import Report, bootstrap_interval, paired_difference
from equitrans.data import AnyPair, as_pairs
from equitrans.errors import ConfigError
from equitrans.training.trained import Trained

Row = dict[str, Any]
"""Plain values by their names, for JSON or a data frame."""


@dataclass(frozen=True)
class Comparison:
    """The figures of several models on several sets of pairs, and the differences to the first
    model. Percentages have intervals that contain 95 % of 10,000 bootstrap samples of the pairs.
    """

    figures: tuple[Row, ...]
    """A row for each model and set: run, data, pairs, exact_match, low, high, refused, loss."""
    differences: tuple[Row, ...]
    """A row for each other model and set: run, than, data, difference, low, high, gained, lost."""

    @property
    def rows(self) -> list[Row]:
        """One row for each model and set, with its difference to the first model: for a data
        frame. The first model has no difference.
        """
        found = {(row["run"], row["data"]): row for row in self.differences}
        rows = []
        for figure in self.figures:
            other = found.get((figure["run"], figure["data"]), {})
            rows.append(
                figure
                | {
                    "than": other.get("than"),
                    "difference": other.get("difference"),
                    "difference_low": other.get("low"),
                    "difference_high": other.get("high"),
                    "gained": other.get("gained"),
                    "lost": other.get("lost"),
                }
            )
        return rows

    def _repr_html_(self) -> str:
        tables = [rows for rows in (self.figures, self.differences) if rows]
        return "".join(
            notebook.table(
                [name.replace("_", " ") for name in rows[0]], [tuple(row.values()) for row in rows]
            )
            for rows in tables
        )


def compare(
    models: Mapping[str, Trained],
    data: Mapping[str, Iterable[AnyPair]],
    *,
    width: int = 3,
    seed: int = 0,
) -> Comparison:
    """Evaluate every model on every set of pairs, all given by name.

    >>> from equitrans import fit
    >>> pairs = [(f"{v} a {w}", f"{w.upper()} {v}") for v in ("dim", "fix") for w in ("tv", "fan")]
    >>> row = compare({"rules": fit(pairs)}, {"all": pairs}).rows[0]
    >>> row["run"], row["exact_match"], row["pairs"]
    ('rules', 100.0, 4)
    """
    given = {name: tuple(pairs) for name, pairs in data.items()}
    reports = {
        (run, name): trained.evaluate(as_pairs(pairs, characters=trained.characters), width=width)
        for run, trained in models.items()
        for name, pairs in given.items()
    }
    return compared(reports, seed=seed)


def compared(reports: Mapping[tuple[str, str], Report], *, seed: int = 0) -> Comparison:
    """The comparison of reports, given by model and set."""
    if not reports:
        raise ConfigError("there is nothing to compare: give models and pairs")
    first = next(iter(reports))[0]
    sets = dict.fromkeys(name for _, name in reports)
    others = [run for run in dict.fromkeys(run for run, _ in reports) if run != first]
    return Comparison(
        tuple(_figures(run, name, report, seed) for (run, name), report in reports.items()),
        tuple(_difference(run, first, name, reports, seed) for name in sets for run in others),
    )


def _figures(run: str, name: str, report: Report, seed: int) -> Row:
    low, high = bootstrap_interval(report.right, seed=seed)
    return {
        "run": run,
        "data": name,
        "pairs": len(report.pairs),
        "exact_match": _percent(report.exact_match),
        "low": _percent(low),
        "high": _percent(high),
        "refused": report.refused,
        "loss": None if report.loss is None else round(report.loss, 6),
    }


def _difference(
    run: str, first: str, name: str, reports: Mapping[tuple[str, str], Report], seed: int
) -> Row:
    found = paired_difference(reports[run, name].right, reports[first, name].right, seed=seed)
    return {
        "run": run,
        "than": first,
        "data": name,
        "difference": _percent(found.value),
        "low": _percent(found.low),
        "high": _percent(found.high),
        "gained": found.gained,
        "lost": found.lost,
    }


def _percent(share: float) -> float:
    return round(100 * share, 4)
