"""equitrans export: a trained model as one directory, or as one Python file."""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

from equitrans import training
from equitrans.cli.arguments import (
    Parser,
    add_decoding,
    add_json,
    add_model,
    add_pairs,
    find_pairs,
    load,
    note,
)
from equitrans.cli.console import Console
from equitrans.errors import ConfigError
from equitrans.files import refuse_used

ABOUT = """\
Write a trained model as one directory: settings, words, classes, rules, weights and a model card
with its figures, as on the Hugging Face hub. The exact match is measured on --data or --split, else
on the test part of the split that the model was trained on. Every command that takes a run takes
this directory too, and Trained.from_pretrained reads it. --standalone writes a rule model as one
Python file that answers without torch and without equitrans."""
EXAMPLES = """\
  equitrans export runs/jump --out jump
  equitrans export runs/mine --data test.tsv --out mine
  equitrans export runs/jump --no-test --out jump --json
  equitrans predict jump "jump twice"
  equitrans export runs/rules --standalone rules.py"""


def options() -> Parser:
    """The options of equitrans export."""
    parser = Parser("export", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument("--out", metavar="DIR", help="the new directory")
    parser.add_argument(
        "--standalone", metavar="FILE", help="write a rule model as one Python file instead"
    )
    add_pairs(parser)
    parser.add_argument("--no-test", action="store_true", help="do not measure the exact match")
    add_json(parser, what="its origin and figures")
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Measure the exact match, write the directory and list its files."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.no_test and (asked.data is not None or asked.split is not None):
        parser.error("give --no-test, or --data or --split, not both")
    if (asked.out is None) == (asked.standalone is None):
        parser.error("give --out DIR or --standalone FILE")
    if asked.standalone is not None:
        return _write_standalone(asked)
    refuse_used(asked.out)
    trained = load(asked)
    test = None if asked.no_test else _find_test(asked, trained)
    trained = training.export(
        asked.run,
        asked.out,
        test=test,
        width=asked.width,
        device=next(trained.model.parameters()).device,
    )
    figures = trained.origin.figures
    if asked.json:
        content = trained.origin.to_json() | {"out": asked.out}
        print(json.dumps(content, ensure_ascii=False))
        return 0
    if figures.exact_match is None:
        note(asked, "the card has no test figures; --data FILE or --split NAME makes some")
    console = Console()
    console.print(f"{asked.out}: {', '.join(sorted(p.name for p in Path(asked.out).iterdir()))}")
    if figures.exact_match is not None:
        console.print(
            f"exact match {100 * figures.exact_match:.2f} % on {figures.test_set} "
            f"({figures.test_right} of {figures.test_pairs})"
        )
    return 0


def _write_standalone(asked: argparse.Namespace) -> int:
    """Write one Python file; the sentences of --data are compared too."""
    trained = load(asked)
    if trained.grammar is None:
        raise ConfigError(
            f"{asked.run} has no rules; equitrans learn and train --model.aligner recursive learn "
            "some"
        )
    pairs = [] if asked.data is None else find_pairs(asked, trained)
    sentences = [pair.source for pair in pairs]
    compared = training.write_standalone(trained, asked.standalone, sentences=sentences)
    size = Path(asked.standalone).stat().st_size
    if asked.json:
        print(json.dumps({"out": asked.standalone, "bytes": size, "compared": compared}))
    else:
        kilobytes = math.ceil(size / 1000)
        same = f"same answers as the model on {compared} sentences"
        Console().print(f"{asked.standalone}: {kilobytes} kB, {same}")
    return 0


def _find_test(asked: argparse.Namespace, trained: "training.Trained") -> "training.TestSet | None":
    """The pairs for the exact match; None without --data, --split and split of its own."""
    if asked.data is not None:
        return training.TestSet(Path(asked.data).name, find_pairs(asked, trained))
    split = asked.split or trained.origin.split
    if split is None:
        return None
    return training.TestSet(f"SCAN {split}, {asked.part} part", find_pairs(asked, trained))
