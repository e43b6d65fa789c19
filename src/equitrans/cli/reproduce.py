"""equitrans reproduce: an experiment of the paper, from its description to its table."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from equitrans.cli.arguments import Parser, add_json
from equitrans.cli.console import Console
from equitrans.cli.progress import bar
from equitrans.cli.search import search
from equitrans.cli.tables import table_content
from equitrans.cli.work import Work, add_work
from equitrans.errors import DataError
from equitrans.experiments import (
    Records,
    Results,
    load_benchmarks,
    make_beyond,
    make_seeds,
    make_table,
    perform_training,
    plans as experiments,
)

ABOUT = """\
Run an experiment of the paper, or the benchmarks beyond SCAN, and print our figures beside the
published ones. Every training
leaves a record. A training that has a record is not repeated, and an interrupted training
continues from its last checkpoint."""
EXAMPLES = """\
  equitrans reproduce table1 --quick
  equitrans reproduce variants --scan-dir SCAN --workers 2
  equitrans reproduce table1 --only "both classes" --seeds 2
  equitrans reproduce lowdata --scan-dir SCAN --ray local
  equitrans reproduce beyond --data-dir DIR --only cogs"""


def options() -> Parser:
    """The command line of this command."""
    parser = Parser("reproduce", ABOUT, EXAMPLES)
    searches = experiments.search_names()
    known = [*experiments.names(), *searches, "beyond"]
    parser.add_argument("table", choices=known, help="the experiment")
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folder with cogs, pcfg, geo and mlc, for beyond"
    )
    parser.add_argument("--quick", action="store_true", help="a small version that takes minutes")
    parser.add_argument("--only", metavar="TEXT", help="only systems with this text in their names")
    parser.add_argument("--seeds", type=int, metavar="N", help="at most N seeds per table cell")
    add_work(parser)
    add_json(parser, what="the figures of all seeds")
    parser.set_defaults(sampler="random", storage=None, plot=None)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Train the jobs without a record, then print the table."""
    asked = options().parse(arguments)
    if asked.table == "beyond":
        return _beyond(asked)
    if asked.table in experiments.search_names():
        return search(experiments.load_search(asked.table, quick=asked.quick), asked)
    experiment = experiments.load(asked.table, quick=asked.quick)
    experiment = experiment.restricted(only=asked.only, seeds=asked.seeds)
    official = asked.scan_dir is not None
    records, work = Records(Path(asked.records)), Work(asked)
    work.finish(records.missing(experiment.jobs(official=official)), records)
    if asked.json:
        print(json.dumps(table_content(experiment, records, official=official), ensure_ascii=False))
    else:
        print(make_table(experiment, records, official=official))
        print(make_seeds(experiment, records, official=official), end="")
    return 1 if work.failed else 0


def _beyond(asked: argparse.Namespace) -> int:
    """Perform the trainings on other benchmarks that have no record, then print their tables."""
    benchmarks = load_benchmarks(only=asked.only, seeds=asked.seeds, quick=asked.quick)
    results = Results(Path(asked.records))
    missing = [
        (benchmark, training)
        for benchmark in benchmarks
        for training in benchmark.trainings
        if training.title not in results.of(benchmark.name)
    ]
    if missing and (asked.data_dir is None or not Path(asked.data_dir).is_dir()):
        raise DataError(
            f"--data-dir is {asked.data_dir}; expected a folder with the files of the benchmarks"
        )
    with bar(Console(stderr=True, quiet=asked.quiet), len(missing)) as show:
        for done, (benchmark, training) in enumerate(missing, start=1):
            record = perform_training(training, benchmark, Path(asked.data_dir))
            results.add(benchmark.name, record)
            said = "; ".join(
                f"{test} {t['right']}/{t['pairs']}" for test, t in record["tests"].items()
            )
            show(f"{training.title}: {said} in {record['seconds']:.0f} s", done, len(missing))
    if asked.json:
        print(json.dumps({b.name: results.of(b.name) for b in benchmarks}, ensure_ascii=False))
    else:
        print(make_beyond(benchmarks, results))
    return 0
