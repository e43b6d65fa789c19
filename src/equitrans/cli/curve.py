"""equitrans curve: exact match over the number of training pairs."""

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from equitrans import training
from equitrans.cli.arguments import (
    Parser,
    add_columns,
    add_split_words,
    note,
    open_input,
    set_threads,
)
from equitrans.cli.check import warn
from equitrans.cli.console import Console, load_plots
from equitrans.data import read_pairs
from equitrans.errors import ConfigError
from equitrans.models import MODELS, find_model

ABOUT = """\
Learn from random samples of a file of pairs, of several sizes and with several seeds, and print
which share of the test pairs each model answers rightly, refuses, or answers wrongly. A larger
sample contains the smaller ones of its seed. Without --data, the pairs that are in no sample are
the test pairs."""
EXAMPLES = """\
  equitrans curve pairs.tsv --data test.tsv --sizes 20,40,80 --seeds 3 --plot curve.png
  equitrans curve pairs.tsv --sizes 50,100 --model transducer
  equitrans curve pairs.tsv --sizes 20,40 --format csv > curve.csv"""


def options() -> Parser:
    """The options of equitrans curve."""
    parser = Parser("curve", ABOUT, EXAMPLES)
    parser.add_argument("pairs", metavar="FILE", help="pairs to learn from, TSV or SCAN format")
    parser.add_argument("--data", metavar="FILE", help="test pairs")
    parser.add_argument(
        "--sizes", required=True, metavar="N,…", help="numbers of pairs, such as 20,40,80"
    )
    parser.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="number of samples per size (default 1)"
    )
    parser.add_argument(
        "--model",
        default="rules",
        choices=["rules", *MODELS],
        help="rules, or a model that gradient descent trains (default rules)",
    )
    add_columns(parser)
    parser.add_argument("--characters", action="store_true", help="words are single characters")
    add_split_words(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the curve")
    parser.add_argument(
        "--format",
        choices=["markdown", "csv", "json"],
        default="markdown",
        help="a table of means, or one row per sample (default markdown)",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Learn, judge, and print the points."""
    parser = options()
    asked = parser.parse(arguments)
    sizes = _sizes(asked.sizes)
    if asked.seeds < 1:
        parser.error(f"--seeds is {asked.seeds}; it must be 1 or more")
    plots = None if asked.plot is None else load_plots()
    reading = {"characters": asked.characters, "columns": asked.columns}
    file = open_input(asked.pairs)
    console = Console(stderr=True, quiet=asked.quiet)
    warn(console, file, **reading, split_words=asked.split_words, apart=True)
    pairs = read_pairs(file, **reading)
    test = None if asked.data is None else read_pairs(asked.data, **reading)
    set_threads(1)
    model = None if asked.model == "rules" else find_model(asked.model)()
    rows = []
    for row in training.curve(
        pairs,
        test,
        sizes=sizes,
        seeds=range(asked.seeds),
        model=model,
        characters=asked.characters,
        split_words=asked.split_words or "auto",
    ):
        rows.append(row)
        note(asked, f"{row['pairs']} pairs, seed {row['seed']}: {row['right']} of {row['test']}")
    _print(asked, rows)
    if plots is not None:
        plots.save_figure(plots.draw_sizes(rows), asked.plot)
        note(asked, f"wrote {asked.plot}")
    return 0


def _sizes(text: str) -> list[int]:
    """The numbers of --sizes."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--sizes is {text!r}; expected numbers such as 20,40,80")
    return [int(part) for part in parts]


def _print(asked: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    if asked.json or asked.format == "json":
        print(json.dumps(rows))
    elif asked.format == "csv":
        writer = csv.DictWriter(sys.stdout, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        print("| pairs | samples | right, % | refused, % | wrong, % | CPU, s |")
        print("| --- | --- | --- | --- | --- | --- |")
        found: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            found[row["pairs"]].append(row)
        for size, some in sorted(found.items()):
            total = sum(row["test"] for row in some)
            shares = [
                f"{100 * sum(row[name] for row in some) / total:.1f}"
                for name in ("right", "refused", "wrong")
            ]
            seconds = sum(row["cpu_seconds"] for row in some) / len(some)
            print(f"| {size} | {len(some)} | {' | '.join(shares)} | {seconds:.1f} |")
