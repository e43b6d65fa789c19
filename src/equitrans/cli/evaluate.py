"""equitrans evaluate: how often a trained model is right, and where not."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from equitrans.analysis import Report, Tally, unknown_targets
from equitrans.cli.arguments import Parser, add_decoding, add_json, add_model, load, note
from equitrans.cli.console import Console
from equitrans.data import Pair, join_words, load_split, read_pairs
from equitrans.errors import ConfigError, VocabularyError
from equitrans.files import write_atomically
from equitrans.training import Trained

ABOUT = """\
Judge a trained model by exact match.
Without --data or --split, on the test part of its own split."""
EXAMPLES = """\
  equitrans evaluate runs/jump
  equitrans evaluate runs/jump --split length --part train
  equitrans evaluate runs/mine --data test.tsv --json
  equitrans evaluate runs/mine --data test.tsv --errors errors.tsv"""

SHOWN = 10
"""So many templates are shown, worst first; JSON has all."""


def options() -> Parser:
    """Its command line."""
    parser = Parser("evaluate", ABOUT, EXAMPLES)
    add_model(parser)
    add_pairs(parser)
    add_json(parser, what="all figures")
    parser.add_argument(
        "--errors", metavar="FILE", help="write source, target and prediction of errors"
    )
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Predict, compare, print."""
    parser = options()
    asked = parser.parse(arguments)
    trained = load(asked)
    pairs = find_pairs(asked, trained)
    for word, count in unknown_targets(pairs, trained.symmetry).items():
        note(asked, f"the model has no target word {word!r}; {count} pairs with it count as wrong")
    report = trained.evaluate(pairs, width=asked.width)
    if asked.errors is not None:
        rows = ((p.source, p.target, words) for p, words in report.errors)
        lines = ("\t".join(map(trained.text, row)) + "\n" for row in rows)
        write_atomically(asked.errors, "source\ttarget\tpredicted\n" + "".join(lines))
    if asked.json:
        print(json.dumps(_content(report), ensure_ascii=False))
    else:
        _print(report)
    return 0


def add_pairs(parser: Parser) -> None:
    """Options of commands that judge a model by pairs."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", metavar="FILE", help="pairs, TSV or SCAN format")
    where.add_argument("--split", help="a SCAN split")
    parser.add_argument("--scan-dir", metavar="DIR", help="folder of the official SCAN files")
    parser.add_argument("--part", choices=["train", "test"], default="test", help="of the split")


def find_pairs(asked: argparse.Namespace, trained: Trained) -> tuple[Pair, ...]:
    """The pairs to judge by; an unknown source word is answered with where it stands."""
    if asked.data is not None:
        origin, pairs = asked.data, read_pairs(asked.data, characters=trained.characters)
    else:
        name, scan_dir = asked.split, asked.scan_dir
        if name is None:
            name, scan_dir = trained.origin.split, scan_dir or trained.origin.scan_dir
        if name is None:
            raise ConfigError(
                f"{asked.run} was trained on no split; say with --data FILE what to judge by"
            )
        origin, pairs = name, getattr(load_split(name, scan_dir), asked.part)
    for pair in pairs:
        try:
            trained.symmetry.source.encode(pair.source)
        except VocabularyError as error:
            raise VocabularyError(f"{origin}: {join_words(pair.source)!r}: {error}") from None
    return pairs


def _content(report: Report) -> dict[str, Any]:
    return {
        "exact_match": report.exact_match,
        "pairs": len(report.pairs),
        "right": sum(report.right),
        "refused": report.refused,
        "loss": report.loss,
        "by_length": {str(k): asdict(t) for k, t in report.by_length().items()},
        "by_template": {join_words(k): asdict(t) for k, t in report.by_template().items()},
    }


def _print(report: Report) -> None:
    console = Console()
    loss = "" if report.loss is None else f", −log p {report.loss:.4f} per pair"
    right, pairs = sum(report.right), len(report.pairs)
    refused = f", {report.refused} refused" if report.refused else ""
    console.print(
        f"exact match {100 * report.exact_match:.2f} % ({right} of {pairs}){refused}{loss}"
    )
    console.print(_table("target words", {str(k): t for k, t in report.by_length().items()}))
    worst = {join_words(k): t for k, t in report.by_template().items() if t.right < t.pairs}
    if worst:
        console.print(
            _table(
                f"worst of {len(worst)} templates with errors", dict(list(worst.items())[:SHOWN])
            )
        )


def _table(title: str, tallies: Mapping[str, Tally]) -> Table:
    table = Table(title, "exact match", "pairs", box=None)
    for key, tally in tallies.items():
        table.add_row(key, f"{100 * tally.right / tally.pairs:.1f} %", str(tally.pairs), style=None)
    return table
