"""equitrans tables: experiments that were run before, from their records alone."""

from collections.abc import Sequence
from pathlib import Path

from equitrans import experiments
from equitrans.cli.arguments import Parser
from equitrans.errors import RunError
from equitrans.records import Records
from equitrans.tables import make_search, make_seeds, make_table

ABOUT = """\
Print the tables of experiments in Markdown, from the records that equitrans reproduce has left.
Nothing is trained: a cell without records stays empty."""
EXAMPLES = """\
  equitrans tables table1
  equitrans tables table1 --seeds
  equitrans tables --drawn > results.md"""


def run(arguments: Sequence[str]) -> int:
    """Read and print."""
    parser = Parser("tables", ABOUT, EXAMPLES)
    searches = experiments.search_names()
    known = [*experiments.names(), *searches]
    parser.add_argument("table", nargs="*", metavar="TABLE", help=f"of {', '.join(known)}; or all")
    parser.add_argument("--records", default="records", metavar="DIR", help="folder of records")
    parser.add_argument("--quick", action="store_true", help="of the small versions")
    parser.add_argument("--only", metavar="TEXT", help="systems with this in their names")
    parser.add_argument("--seeds", action="store_true", help="every seed of every cell instead")
    parser.add_argument(
        "--drawn", action="store_true", help="of runs without the official files (no --scan-dir)"
    )
    asked = parser.parse(arguments)
    records = Records(Path(asked.records))
    if not records.directory.is_dir():
        raise RunError(f"{asked.records}: no such folder; equitrans reproduce makes records")
    official = not asked.drawn
    for name in asked.table or known:
        if name in searches:
            plan = experiments.load_search(name)
            print(make_search(plan, plan.found(records, official=official)))
        else:
            experiment = experiments.load(name, quick=asked.quick).restricted(only=asked.only)
            make = make_seeds if asked.seeds else make_table
            print(make(experiment, records, official=official and not experiment.is_drawn(records)))
    return 0
