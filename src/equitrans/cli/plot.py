"""equitrans plot: pictures from records and from runs, without training."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equitrans.cli.arguments import Parser
from equitrans.cli.console import load_plots
from equitrans.errors import ConfigError, EquitransError, RunError
from equitrans.experiments import (
    Curve,
    Experiment,
    Job,
    Record,
    Records,
    SearchPlan,
    figures,
    find_records,
    learning_curve,
    plans as experiments,
    read_record,
)
from equitrans.training import Run, Settings

ABOUT = """\
Draw learning curves of some runs or records, or the picture of an experiment from the records that
equitrans reproduce has left. Alignments are drawn by equitrans predict --plot."""
EXAMPLES = """\
  equitrans plot curves runs/jump runs/other --out curves.png
  equitrans plot curves records/add_jump/gordon*.json --out curves.svg
  equitrans plot lowdata --out lowdata.png
  equitrans plot orbits --out orbits.png
  equitrans plot search-length --out search.png"""

MANY = 10
"""So many curves have colors of their own."""


def options() -> Parser:
    """Its command line."""
    parser = Parser("plot", ABOUT, EXAMPLES)
    searches = experiments.search_names()
    known = ["curves", "lowdata", "orbits", *searches]
    parser.add_argument("what", choices=known, help="curves, or an experiment")
    parser.add_argument(
        "files", nargs="*", default=[], metavar="FILE", help="runs or records, for curves"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the picture to write")
    parser.add_argument("--records", default="records", metavar="DIR", help="folder of records")
    parser.add_argument("--only", metavar="TEXT", help="systems with this in their names")
    parser.add_argument(
        "--drawn", action="store_true", help="of runs without the official files (no --scan-dir)"
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    """Read and draw."""
    parser = options()
    asked = parser.parse(arguments)
    plots = load_plots()
    if asked.what == "curves":
        if not asked.files:
            parser.error("curves need runs or records to draw")
        figure = plots.draw_curves(_curves([Path(file) for file in asked.files]))
    elif asked.files:
        parser.error(f"{asked.what} is drawn from records; files are for curves")
    elif asked.what in experiments.search_names():
        plan = experiments.load_search(asked.what)
        found = plan.found(Records(Path(asked.records)), official=not asked.drawn)
        figure = draw_search(plots, plan, found)
    else:
        experiment = experiments.load(asked.what).restricted(only=asked.only)
        draw = _draw_shares if asked.what == "lowdata" else _draw_orbits
        figure = draw(plots, experiment, asked)
    plots.save_figure(figure, asked.out)
    return 0


def draw_search(plots: Any, plan: SearchPlan, found: Sequence[tuple[Settings, Record]]) -> Any:
    """The picture of a search; the trial that validation chooses is marked."""
    if not found:
        raise RunError(f"there are no trials yet; equitrans search {plan.name} makes them")
    points = [(r["valid"]["loss"], 100 * r["test"]["exact_match"]) for _, r in found]
    return plots.draw_trials(points, min(points), plan.published)


def _curves(paths: Sequence[Path]) -> dict[str, Curve]:
    """Learning curves of run directories and of records; of what these are, the names say only
    what not all have in common.
    """
    if len(paths) > MANY:
        raise ConfigError(f"{len(paths)} curves cannot be told apart; {MANY} can")
    found = [_curve(path) for path in paths]
    parts = [set(name.split(", ")) for name, _ in found]
    common = set.intersection(*parts) if len(parts) > 1 else set()
    names = [
        ", ".join(part for part in name.split(", ") if part not in common) for name, _ in found
    ]
    return {name or "default": curve for name, (_, curve) in zip(names, found, strict=True)}


def _curve(path: Path) -> tuple[str, Curve]:
    """The name and the learning curve of a run directory or of a record."""
    if not path.exists():
        raise RunError(f"{path}: no such run or record")
    if path.is_dir():
        if not (epochs := Run.open(path).epochs()):
            raise RunError(f"{path} has no learning curve: it has no epoch yet")
        return str(path), learning_curve(epochs)
    record = read_record(path)
    if record["test"] is None:
        raise RunError(f"{path} has no learning curve: {record.get('failed')}")
    try:
        return Job.of_record(record).description, record["curve"]
    except EquitransError as error:
        raise RunError(f"{path} is damaged: {error}") from None


def _found(
    experiment: Experiment, asked: argparse.Namespace
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Records by system and split, without those that have none."""
    records = Records(Path(asked.records))
    official = not asked.drawn and not experiment.is_drawn(records)
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (name, split), cell in find_records(experiment, records, official=official).items():
        if cell:
            found.setdefault(name, {})[split] = cell
    if not found:
        raise RunError(
            f"{asked.records} has no records of {experiment.name}; "
            f"equitrans reproduce {experiment.name} makes them"
        )
    return found


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
        raise RunError(f"no training of {', '.join(found)} came to its end")
    name, record = watched[0]
    return plots.draw_orbits(record["orbits"], f"{record['settings']['orbits']} ({name})")
