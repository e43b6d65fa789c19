"""equitrans tables: the tables of experiments, from records alone."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equitrans.cli.arguments import Parser, add_json
from equitrans.errors import RunError
from equitrans.experiments import (
    Experiment,
    Record,
    Records,
    Results,
    SearchPlan,
    figures,
    find_records,
    load_benchmarks,
    make_beyond,
    make_search,
    make_seeds,
    make_table,
    plans as experiments,
)
from equitrans.training import Settings

ABOUT = """\
Print the tables of experiments in Markdown, from the records that equitrans reproduce has written.
Nothing is trained: a cell without records stays empty."""
EXAMPLES = """\
  equitrans tables table1
  equitrans tables table1 --seeds
  equitrans tables table1 --json
  equitrans tables --drawn > results.md"""


def options() -> Parser:
    """The command line of this command."""
    parser = Parser("tables", ABOUT, EXAMPLES)
    known = ", ".join([*experiments.names(), *experiments.search_names(), "beyond"])
    parser.add_argument(
        "table",
        nargs="*",
        default=[],
        metavar="TABLE",
        help=f"{known}; all but beyond if none is given",
    )
    parser.add_argument("--quick", action="store_true", help="the small versions")
    parser.add_argument("--seeds", action="store_true", help="the figures of every seed instead")
    add_reading(parser)
    add_json(parser, what="the figures of all seeds")
    return parser


def add_reading(parser: Parser) -> None:
    """Add the options that choose records."""
    parser.add_argument("--records", default="records", metavar="DIR", help="folder of records")
    parser.add_argument("--only", metavar="TEXT", help="only systems with this text in their names")
    parser.add_argument(
        "--drawn", action="store_true", help="runs without the official files (no --scan-dir)"
    )


def open_records(asked: argparse.Namespace) -> Records:
    """Return the records of --records; raise RunError if there is no such folder."""
    if not Path(asked.records).is_dir():
        raise RunError(
            f"{asked.records}: no such folder; the package has no records: those of its authors "
            "are the folder records of the repository (give it as --records DIR), and equitrans "
            "reproduce makes new ones"
        )
    return Records(Path(asked.records))


def is_official(experiment: Experiment, records: Records, asked: argparse.Namespace) -> bool:
    """Whether to show runs with the official files; if there are only others, these are shown."""
    return not asked.drawn and not experiment.is_drawn(records)


def run(arguments: Sequence[str]) -> int:
    """Read records and print tables."""
    asked = options().parse(arguments)
    records = open_records(asked)
    searches = experiments.search_names()
    content = {}
    for name in asked.table or [*experiments.names(), *searches]:
        if name == "beyond":
            results, benchmarks = Results(records.directory), load_benchmarks(only=asked.only)
            content[name] = {each.name: results.of(each.name) for each in benchmarks}
            text = make_beyond(benchmarks, results)
        elif name in searches:
            plan = experiments.load_search(name)
            found = plan.found(records, official=not asked.drawn)
            content[name] = search_content(plan, found)
            text = make_search(plan, found)
        else:
            experiment = experiments.load(name, quick=asked.quick).restricted(only=asked.only)
            official = is_official(experiment, records, asked)
            content[name] = table_content(experiment, records, official=official)
            make = make_seeds if asked.seeds else make_table
            text = make(experiment, records, official=official)
        if not asked.json:
            print(text)
    if asked.json:
        print(json.dumps(content, ensure_ascii=False))
    return 0


def table_content(experiment: Experiment, records: Records, *, official: bool) -> dict[str, Any]:
    """A table as JSON: exact match in percent of every seed, by system and split."""
    found = find_records(experiment, records, official=official)
    rows = {
        row.name: {
            split: {
                "published": row.published.get(split),
                "seeds": [record["seed"] for record in found[row.name, split]],
                "exact_match": figures(found[row.name, split]),
            }
            for split in experiment.splits
        }
        for row in experiment.rows
    }
    return {"title": experiment.title, "official": official, "systems": rows}


def search_content(plan: SearchPlan, found: Sequence[tuple[Settings, Record]]) -> dict[str, Any]:
    """A search as JSON: settings and figures of every trial."""
    trials = [
        {"settings": settings, "valid": record["valid"], "test": record["test"]}
        for settings, record in found
    ]
    return {"title": plan.title, "split": plan.split, "trials": trials}
