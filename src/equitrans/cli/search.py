"""equitrans search: settings drawn from a space, chosen by validation loss."""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from equitrans.cli.arguments import Parser
from equitrans.cli.console import load_plots
from equitrans.cli.plot import draw_search
from equitrans.cli.work import Work, add_work
from equitrans.data import load_split
from equitrans.errors import ConfigError
from equitrans.experiments import (
    Job,
    Record,
    Records,
    Search,
    SearchPlan,
    Space,
    Trial,
    leading,
    make_search,
    plans as experiments,
)

ABOUT = """\
Look for better settings: a random search as in the paper, or Optuna's TPE. The validation loss
decides; test figures are recorded, and shown when all is over, but choose nothing. A search that
was interrupted goes on where it stopped, and trials that have a record are not run again."""
EXAMPLES = """\
  equitrans search search --scan-dir SCAN --workers 2
  equitrans search search-length --scan-dir SCAN --plot search.png
  equitrans search search-length --sampler tpe --trials 40 --storage sqlite:///search.db
  equitrans search --split add_jump --space space.toml --trials 20"""


def options() -> Parser:
    """Its command line."""
    parser = Parser("search", ABOUT, EXAMPLES)
    known = experiments.search_names()
    parser.add_argument("name", nargs="?", help=f"a search of the project: {', '.join(known)}")
    parser.add_argument("--split", help="or a SCAN split of your choice,")
    parser.add_argument("--space", metavar="FILE", help="with a TOML file that has a table [space]")
    parser.add_argument("--trials", type=int, metavar="N", help="how many in all")
    parser.add_argument("--seed", type=int, help="decides on the draws")
    parser.add_argument("--sampler", choices=["random", "tpe"], default="random")
    parser.add_argument(
        "--storage", metavar="FILE", help="Optuna's journal, or the URL of a database"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw validation against test figures")
    parser.add_argument("--json", action="store_true", help="every trial as a line of JSON")
    add_work(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Try what is left to try, then print what was found."""
    asked = options().parse(arguments)
    plan = _plan(asked.name, asked.split, asked.space)
    if asked.trials is not None:
        plan = replace(plan, trials=asked.trials)
    if asked.seed is not None:
        plan = replace(plan, seed=asked.seed)
    return look(plan, asked)


def look(plan: SearchPlan, asked: argparse.Namespace) -> int:
    """Go through a plan and print what was found."""
    plots = load_plots() if asked.plot is not None else None
    official = asked.scan_dir is not None
    records, work = Records(Path(asked.records)), Work.of(asked)
    _check(plan, official=official)
    runs = Path(asked.runs)
    runs.mkdir(parents=True, exist_ok=True)
    storage = asked.storage or runs / f"{plan.name}-{asked.sampler}.journal"
    with leading(storage):
        search = Search.open(
            storage,
            name=f"{plan.name}-{plan.split}" + ("" if official else "-drawn"),
            space=plan.space,
            trials=plan.trials,
            seed=plan.seed,
            sampler=asked.sampler,
        )
        _try(search, plan, records, work, official=official)
    found = [
        (trial.settings, record)
        for trial, _ in search.finished
        if (record := records.find(plan.job(trial.settings, official=official))) is not None
    ]
    if not found:
        raise ConfigError("no trial came to an end with a validation loss")
    if asked.json:
        for settings, record in found:
            line = {"settings": settings, "valid": record["valid"], "test": record["test"]}
            print(json.dumps(line, ensure_ascii=False))
    else:
        print(make_search(plan, found), end="")
    if plots is not None:
        plots.save_figure(draw_search(plots, plan, found), asked.plot)
    return 1 if work.failed else 0


def _plan(name: str | None, split: str | None, space: str | None) -> SearchPlan:
    if name is not None:
        if split is not None or space is not None:
            raise ConfigError("give the name of a search, or --split and --space, not both")
        return experiments.load_search(name)
    if split is None or space is None:
        raise ConfigError(
            f"give the name of a search ({', '.join(experiments.search_names())}), "
            "or --split NAME and --space FILE"
        )
    return SearchPlan(
        name=Path(space).stem,
        title=f"{space} on {split}",
        split=split,
        trials=20,
        seed=0,
        settings={},
        space=Space.read(Path(space)),
    )


def _check(plan: SearchPlan, *, official: bool) -> None:
    """Find what can never be trained before a search is begun with it."""
    load_split(plan.split)
    for settings in plan.space.draw(plan.trials, seed=plan.seed):
        plan.job(settings, official=official)


def _try(search: Search, plan: SearchPlan, records: Records, work: Work, *, official: bool) -> None:
    """Every trial that is left: those with a record at once, the others by training."""
    waiting: dict[Job, list[Trial]] = {}

    def jobs() -> Iterator[Job]:
        for trial in search.pending():
            job = plan.job(trial.settings, official=official)
            if (record := records.find(job)) is not None:
                search.tell(trial, _value(record))
            else:
                waiting.setdefault(job, []).append(trial)
                if len(waiting[job]) == 1:  # what is drawn twice is trained once
                    yield job

    with work.bar(plan.trials, validation=True) as advance:
        for job, record in work.do(jobs(), records):
            trials = waiting.pop(job)
            if not isinstance(record, str):  # without a record it is offered again next time
                for trial in trials:
                    search.tell(trial, _value(record))
            advance(job, record)


def _value(record: Record) -> float | None:
    """What a search minimises."""
    value: float | None = record["valid"]["loss"] if record["test"] else None
    return value
