"""equitrans tables: experiments that were run before, from their records alone."""

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
    SearchPlan,
    figures,
    find_records,
    make_search,
    make_seeds,
    make_table,
    plans as experiments,
)
from equitrans.training import Settings

ABOUT = """\
Print the tables of experiments in Markdown, from the records that equitrans reproduce has left.
Nothing is trained: a cell without records stays empty."""
EXAMPLES = """\
  equitrans tables table1
  equitrans tables table1 --seeds
  equitrans tables table1 --json
  equitrans tables --drawn > results.md"""


def options() -> Parser:
    """Its command line."""
    parser = Parser("tables", ABOUT, EXAMPLES)
    searches = experiments.search_names()
    known = [*experiments.names(), *searches]
    parser.add_argument(
        "table", nargs="*", default=[], metavar="TABLE", help=f"of {', '.join(known)}; or all"
    )
    parser.add_argument("--records", default="records", metavar="DIR", help="folder of records")
    parser.add_argument("--quick", action="store_true", help="of the small versions")
    parser.add_argument("--only", metavar="TEXT", help="systems with this in their names")
    parser.add_argument("--seeds", action="store_true", help="every seed of every cell instead")
    parser.add_argument(
        "--drawn", action="store_true", help="of runs without the official files (no --scan-dir)"
    )
    add_json(parser, what="the figures of all seeds")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Read and print."""
    asked = options().parse(arguments)
    records = Records(Path(asked.records))
    if not records.directory.is_dir():
        raise RunError(f"{asked.records}: no such folder; equitrans reproduce makes records")
    searches = experiments.search_names()
    content = {}
    for name in asked.table or [*experiments.names(), *searches]:
        if name in searches:
            plan = experiments.load_search(name)
            found = plan.found(records, official=not asked.drawn)
            content[name] = search_content(plan, found)
            text = make_search(plan, found)
        else:
            experiment = experiments.load(name, quick=asked.quick).restricted(only=asked.only)
            official = not asked.drawn and not experiment.is_drawn(records)
            content[name] = table_content(experiment, records, official=official)
            make = make_seeds if asked.seeds else make_table
            text = make(experiment, records, official=official)
        if not asked.json:
            print(text)
    if asked.json:
        print(json.dumps(content, ensure_ascii=False))
    return 0


def table_content(experiment: Experiment, records: Records, *, official: bool) -> dict[str, Any]:
    """A table as data: the exact match of every seed, in percent, by system and split."""
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
    """A search as data: settings and figures of every trial."""
    trials = [
        {"settings": settings, "valid": record["valid"], "test": record["test"]}
        for settings, record in found
    ]
    return {"title": plan.title, "split": plan.split, "trials": trials}
