"""equitrans search: settings drawn from a space, chosen by validation loss."""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from equitrans.cli.arguments import Parser, note
from equitrans.cli.console import load_plots
from equitrans.cli.plot import draw_search
from equitrans.cli.tables import search_content
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
    validation_loss,
)
from equitrans.training import Settings

ABOUT = """\
Search for better settings: at random, as in the paper, or with Optuna's TPE. The validation loss
chooses; test figures are recorded and printed at the end, but choose nothing. An interrupted search
continues when the same command is given again. A trial that has a record is not repeated."""
EXAMPLES = """\
  equitrans search search --scan-dir SCAN --workers 2
  equitrans search search-length --scan-dir SCAN --plot search.png
  equitrans search search-length --sampler tpe --trials 40 --storage sqlite:///search.db
  equitrans search --split add_jump --space space.toml --trials 20"""


def options() -> Parser:
    """The command line of this command."""
    parser = Parser("search", ABOUT, EXAMPLES)
    known = ", ".join(experiments.search_names())
    parser.add_argument("name", nargs="?", help=f"a search of this project: {known}")
    parser.add_argument("--split", help="SCAN split of a search of your own (with --space)")
    parser.add_argument("--space", metavar="FILE", help="TOML file: [space], [settings]")
    parser.add_argument("--trials", type=int, metavar="N", help="total number of trials")
    parser.add_argument("--seed", type=int, help="seed of the sampler")
    samplers = ["random", "tpe"]
    parser.add_argument("--sampler", choices=samplers, default="random", help="default random")
    parser.add_argument(
        "--storage", metavar="FILE", help="journal file or database URL of Optuna, for tpe"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw test figures over validation losses")
    parser.add_argument("--json", action="store_true", help="print each trial as a line of JSON")
    add_work(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Run the trials that are left, then print the result."""
    asked = options().parse(arguments)
    plan = _plan(asked.name, asked.split, asked.space)
    if asked.trials is not None:
        plan = replace(plan, trials=asked.trials)
    if asked.seed is not None:
        plan = replace(plan, seed=asked.seed)
    return search(plan, asked)


def search(plan: SearchPlan, asked: argparse.Namespace) -> int:
    """Run a search and print its result; return the exit status."""
    plots = load_plots() if asked.plot is not None else None
    official = asked.scan_dir is not None
    records, work = Records(Path(asked.records)), Work(asked)
    load_split(plan.split)  # raises DataError for an unknown split
    drawn = plan.drawn(official=official)  # raises ConfigError for an invalid setting
    if asked.sampler == "tpe":
        found = _search_with_tpe(plan, records, work, asked.storage, official=official)
    else:
        if asked.storage is not None:
            note(asked, "--storage is for --sampler tpe; a random search continues from records")
        work.finish(records.missing(job for _, job in drawn), records, validation=True)
        found = plan.found(records, official=official)
    if not found:
        raise ConfigError("no trial ended with a validation loss")
    if asked.json:
        for trial in search_content(plan, found)["trials"]:
            print(json.dumps(trial, ensure_ascii=False))
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


def _search_with_tpe(
    plan: SearchPlan, records: Records, work: Work, storage: str | None, *, official: bool
) -> list[tuple[Settings, Record]]:
    """Run the trials that TPE chooses; return those with a validation loss."""
    work.runs.mkdir(parents=True, exist_ok=True)
    place = storage or work.runs / f"{plan.name}-tpe.journal"
    waiting: dict[Job, list[Trial]] = {}
    with leading(place):
        name = f"{plan.name}-{plan.split}" + ("" if official else "-drawn")
        search = Search.open(place, name=name, space=plan.space, trials=plan.trials, seed=plan.seed)

        def jobs() -> Iterator[Job]:
            for trial in search.pending():
                job = plan.job(trial.settings, official=official)
                if (record := records.find(job)) is not None:
                    search.tell(trial, validation_loss(record))
                else:
                    waiting.setdefault(job, []).append(trial)
                    if len(waiting[job]) == 1:  # a job that is chosen twice is trained once
                        yield job

        for job, record in work.do(jobs(), records, total=plan.trials, validation=True):
            trials = waiting.pop(job)
            if record is not None:  # a trial without a record is offered again next time
                for trial in trials:
                    search.tell(trial, validation_loss(record))
    known = [
        (trial.settings, records.find(plan.job(trial.settings, official=official)))
        for trial, _ in search.finished
    ]
    return [(settings, record) for settings, record in known if record is not None]
