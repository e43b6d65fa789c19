"""equitrans plot: pictures of records and runs, without training."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equitrans import training
from equitrans.cli.arguments import Parser, refuse_overwrite
from equitrans.cli.console import load_plots
from equitrans.cli.tables import add_reading, is_official, open_records
from equitrans.errors import ConfigError, EquitransError, RunError
from equitrans.experiments import (
    Curve,
    Experiment,
    Job,
    Record,
    Results,
    SearchPlan,
    curve_bands,
    figures,
    find_records,
    learning_curve,
    load_benchmarks,
    plans as experiments,
    read_records,
    title,
)
from equitrans.training import Settings

ABOUT = """\
Draw the learning curves of runs or records, the exact match of records by target length, or the
picture of an experiment from the records that equitrans reproduce has written. A record is given as
DIR/SPLIT/NAME, where NAME may be a pattern such as 'gordon*'. LEGEND=FILE names a run or records in
the legend; files may share a name. Alignments are drawn by equitrans predict --plot."""
EXAMPLES = """\
  equitrans plot curves runs/jump runs/other --out curves.png
  equitrans plot curves 'records/add_jump/gordon*' --out curves.svg
  equitrans plot table1 --out table1.png
  equitrans plot lengths 'records/length/russin*' --out lengths.png
  equitrans plot curves stuck=runs/seed0 others=runs/seed1 others=runs/seed2 --out curves.png
  equitrans plot lowdata --out lowdata.png
  equitrans plot orbits --out orbits.png
  equitrans plot search-length --out search.png
  equitrans plot beyond --out beyond.png"""

MANY = 10
"""Largest number of names in a legend; the plot has this many different colors and dashes."""


def options() -> Parser:
    """The command line of this command."""
    parser = Parser("plot", ABOUT, EXAMPLES)
    known = ["curves", "lengths", *experiments.names(), *experiments.search_names(), "beyond"]
    parser.add_argument("what", choices=known, help="curves, lengths, or an experiment")
    parser.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="runs or records for curves, records for lengths; or LEGEND=FILE",
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the picture to write")
    add_reading(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Draw and save a picture."""
    parser = options()
    asked = parser.parse(arguments)
    refuse_overwrite("--out", asked.out, [str(_named(file)[1]) for file in asked.files])
    plots = load_plots()
    if asked.what in ("curves", "lengths"):
        if not asked.files:
            parser.error(f"{asked.what} need records to draw")
        if asked.what == "curves":
            figure = plots.draw_curves(curves_of(asked.files))
        else:
            figure = plots.draw_lengths(lengths_of(asked.files))
    elif asked.files:
        parser.error(f"{asked.what} is drawn from --records; files are for curves and lengths")
    elif asked.what == "beyond":
        figure = _draw_beyond(plots, asked)
    elif asked.what in experiments.search_names():
        plan = experiments.load_search(asked.what)
        found = plan.found(open_records(asked), official=not asked.drawn)
        figure = draw_search(plots, plan, found)
    else:
        experiment = experiments.load(asked.what).restricted(only=asked.only)
        draw = {"lowdata": _draw_shares, "orbits": _draw_orbits}.get(asked.what, _draw_seeds)
        figure = draw(plots, experiment, asked)
    plots.save_figure(figure, asked.out)
    return 0


def _draw_beyond(plots: Any, asked: argparse.Namespace) -> Any:
    """The curves over the number of pairs of the first benchmark that has some."""
    results = Results(open_records(asked).directory)
    for benchmark in load_benchmarks(only=asked.only):
        *_, test = benchmark.tests
        if bands := curve_bands(benchmark, results, test):
            return plots.draw_bands(bands, {}, unit="", what="random training pairs")
    raise RunError("there are no records of curves; equitrans reproduce beyond makes them")


def draw_search(plots: Any, plan: SearchPlan, found: Sequence[tuple[Settings, Record]]) -> Any:
    """The picture of a search; it marks the trial with the lowest validation loss."""
    if not found:
        raise RunError(f"{plan.name} has no trials yet; equitrans search {plan.name} makes them")
    points = [(r["valid"]["loss"], 100 * r["test"]["exact_match"]) for _, r in found]
    return plots.draw_trials(points, min(points), plan.published)


def _named(file: str) -> tuple[str, Path]:
    """The parts of LEGEND=FILE; the name is empty if there is none."""
    name, sign, path = file.partition("=")
    return (name, Path(path)) if sign and not Path(file).exists() else ("", Path(file))


def curves_of(files: Sequence[str]) -> dict[str, list[Curve]]:
    """Learning curves by their name in the legend."""
    named = map(_named, files)
    found = [(name, *curve) for name, path in named for curve in _read_curves(path)]
    curves: dict[str, list[Curve]] = {}
    labels = _labels([(name, description) for name, description, _ in found])
    for label, (*_, curve) in zip(labels, found, strict=True):
        curves.setdefault(label, []).append(curve)
    if len(curves) > MANY:
        raise ConfigError(
            f"{len(curves)} curves; the limit is {MANY}, but curves may share a name: LEGEND=FILE"
        )
    return curves


def _labels(found: Sequence[tuple[str, str]]) -> list[str]:
    """Names for a legend, from names and descriptions. A description stands in for an empty name
    and leaves out the settings that all such descriptions share.
    """
    short = iter(_differences([description for name, description in found if not name]))
    return [name or next(short) for name, _ in found]


def _differences(names: Sequence[str]) -> list[str]:
    """The names without the settings that all of them share, or all names of the same model.

    A name is a path, or SPLIT, MODEL, SETTING, SETTING ….
    """
    if len(names) <= 1:
        return list(names)
    parts = [name.split(", ") for name in names]
    shared = set.intersection(*map(set, parts))
    kinds = {part[1] for part in parts if len(part) > 1}
    of_kind = {
        kind: set.intersection(*(set(part) for part in parts if kind in part[1:2])) - {kind}
        for kind in kinds
    }
    left = [
        [p for p in part if p not in shared | of_kind.get("".join(part[1:2]), set())]
        for part in parts
    ]
    return [", ".join(part) or "default" for part in left]


def _read_curves(path: Path) -> list[tuple[str, Curve]]:
    """Names and learning curves of a run directory or of records."""
    if path.is_dir():
        if not (epochs := training.Run.open(path).epochs()):
            raise RunError(f"{path} has no learning curve: it has no epoch yet")
        if not (numbered := [epoch for epoch in epochs if "number" in epoch]):
            raise RunError(f"{path} has no learning curve: rules are learned in one step")
        return [(str(path), learning_curve(numbered))]
    curves = []
    for name, record in read_records(path).items():
        if record["test"] is None:
            raise RunError(f"{name} has no learning curve: {record.get('failed')}")
        try:
            curves.append((Job.of_record(record).description, record["curve"]))
        except EquitransError as error:
            raise RunError(f"{name} is damaged: {error}") from None
    if not curves:
        raise RunError(f"{path}: no such run or record")
    return curves


def _found(experiment: Experiment, asked: argparse.Namespace) -> dict[str, dict[str, list[Record]]]:
    """Records by system and split; systems and splits without records are left out."""
    records = open_records(asked)
    official = is_official(experiment, records, asked)
    found: dict[str, dict[str, list[Record]]] = {}
    for (name, split), cell in find_records(experiment, records, official=official).items():
        if cell:
            found.setdefault(name, {})[split] = cell
    if not found:
        raise RunError(
            f"{asked.records} has no records of {experiment.name}; "
            f"equitrans reproduce {experiment.name} makes them"
        )
    return found


def lengths_of(files: Sequence[str]) -> dict[str, dict[int, tuple[int, int]]]:
    """Right and all pairs by target length. Records are summed if they have the same name in the
    legend, or no name and settings that differ in the seed alone.
    """
    found: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    for given, path in map(_named, files):
        if not (records := read_records(path)):
            raise RunError(f"{path}: no such record")
        for name, record in records.items():
            if record["test"] is None:
                continue
            try:
                lengths = {
                    int(n): (int(r), int(p)) for n, (r, p) in record["test"]["by_length"].items()
                }
                system = Job.of_record(record).description.rpartition(", ")[0]
            except (AttributeError, KeyError, TypeError, ValueError, EquitransError) as error:
                raise RunError(f"{name} is damaged: {error!r}") from None
            counts = found.setdefault((given, "" if given else system), {})
            for length, (right, pairs) in lengths.items():
                known = counts.get(length, (0, 0))
                counts[length] = (known[0] + right, known[1] + pairs)
    return dict(zip(_labels(list(found)), found.values(), strict=True))


def _draw_seeds(plots: Any, experiment: Experiment, asked: argparse.Namespace) -> Any:
    cells = {
        name: {title(split): figures(cell) for split, cell in row.items()}
        for name, row in _found(experiment, asked).items()
    }
    published = {
        row.name: {title(split): value for split, value in row.published.items()}
        for row in experiment.rows
    }
    return plots.draw_seeds(cells, published)


def _draw_shares(plots: Any, experiment: Experiment, asked: argparse.Namespace) -> Any:
    share = {split: float(split.removeprefix("simple_p")) for split in experiment.splits}
    bands = {
        name: {share[split]: figures(cell) for split, cell in cells.items()}
        for name, cells in _found(experiment, asked).items()
    }
    published = {
        row.name: {share[split]: value for split, value in row.published.items()}
        for row in experiment.rows
        if row.published
    }
    return plots.draw_bands(bands, published)


def _draw_orbits(plots: Any, experiment: Experiment, asked: argparse.Namespace) -> Any:
    found = _found(experiment, asked)
    watched = [
        (name, record)
        for name, cells in found.items()
        for cell in cells.values()
        for record in cell
        if "orbits" in record
    ]
    if not watched:
        raise RunError(f"all trainings of {', '.join(found)} diverged")
    name, record = watched[0]
    return plots.draw_orbits(record["orbits"], f"{record['settings']['orbits']} ({name})")
