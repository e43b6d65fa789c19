"""equitrans evaluate: the exact match of a trained model, by length and template."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from equitrans import analysis
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
from equitrans.data import join_words, read_column
from equitrans.errors import ConfigError, shown
from equitrans.files import write_atomically

ABOUT = """\
Measure the exact match of a trained model: the share of pairs that it predicts without an error.
A refused sentence, for example one with an unknown word, counts as wrong.
A prediction is tied if another target is equally likely within rounding error.
Without --data or --split, the pairs are the test part of the split that it was trained on."""
EXAMPLES = """\
  equitrans evaluate runs/jump
  equitrans evaluate runs/jump --split length --part train
  equitrans evaluate runs/mine --data test.tsv --json
  equitrans evaluate runs/mine --data test.tsv --errors errors.tsv
  equitrans evaluate runs/mine --data gen.tsv --by-column 3"""

SHOWN = 10
"""Number of templates, reasons of refusals and unknown words that are printed; --json has all
templates and reasons."""


def options() -> Parser:
    """The options of equitrans evaluate."""
    parser = Parser("evaluate", ABOUT, EXAMPLES)
    add_model(parser)
    add_pairs(parser)
    add_json(parser, what="all figures")
    parser.add_argument(
        "--errors", metavar="FILE", help="write source, target and prediction of every error"
    )
    parser.add_argument(
        "--by-column", type=int, metavar="N", help="exact match by the texts of a column of --data"
    )
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Predict, compare and print."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.by_column is not None and asked.data in (None, "-"):
        raise ConfigError("--by-column is the number of a column of --data FILE")
    trained = load(asked)
    pairs = find_pairs(asked, trained)
    kinds: tuple[str, ...] = ()
    if asked.by_column is not None:
        kinds = read_column(asked.data, asked.by_column, columns=asked.columns)
    unknown = analysis.unknown_targets(trained.reading.readable(pairs), trained.symmetry)
    for word, count in list(unknown.items())[:SHOWN]:
        message = f"the model has no target word {shown(word)}"
        note(asked, f"{message}; {count} pairs with it count as wrong")
    if len(unknown) > SHOWN:
        note(asked, f"the model does not know {len(unknown) - SHOWN} other target words either")
    report = trained.evaluate(pairs, width=asked.width)
    if asked.errors is not None:
        rows = ((p.source, p.target, words) for p, words in report.errors)
        lines = ("\t".join(map(trained.text, row)) + "\n" for row in rows)
        write_atomically(asked.errors, "source\ttarget\tpredicted\n" + "".join(lines))
    if asked.json:
        content = _content(report)
        if kinds:
            content["by_column"] = {k: asdict(t) for k, t in report.by(kinds).items()}
        print(json.dumps(content, ensure_ascii=False))
    else:
        _print(report)
        if kinds:
            Console().print(_table(f"column {asked.by_column}", report.by(kinds)))
    return 0


def _content(report: "analysis.Report") -> dict[str, Any]:
    return {
        "exact_match": report.exact_match,
        "pairs": len(report.pairs),
        "right": sum(report.right),
        "refused": report.refused,
        "reasons": report.reasons,
        "tied": report.tied,
        "loss": report.loss,
        "scored": report.scored,
        "by_length": {str(k): asdict(t) for k, t in report.by_length().items()},
        "by_template": {join_words(k): asdict(t) for k, t in report.by_template().items()},
    }


def _print(report: "analysis.Report") -> None:
    console = Console()
    right, pairs = sum(report.right), len(report.pairs)
    loss = "" if report.loss is None else f", −log p {report.loss:.4f} per pair"
    if loss and report.scored < pairs:
        loss += f", of the {report.scored} pairs without unknown words"
    refused = f", {report.refused} refused" if report.refused else ""
    tied = f", {report.tied} tied" if report.tied else ""
    console.print(
        f"exact match {100 * report.exact_match:.2f} % ({right} of {pairs}){refused}{tied}{loss}"
    )
    if report.refused:
        console.print(_refusals(report.reasons))
    console.print(_table("target words", {str(k): t for k, t in report.by_length().items()}))
    worst = {join_words(k): t for k, t in report.by_template().items() if t.right < t.pairs}
    if worst:
        console.print(
            _table(
                f"worst of {len(worst)} templates with errors", dict(list(worst.items())[:SHOWN])
            )
        )


def _refusals(reasons: Mapping[str, int]) -> Table:
    table = Table("refused because", "pairs", box=None)
    for reason, pairs in list(reasons.items())[:SHOWN]:
        table.add_row(reason, str(pairs))
    if len(reasons) > SHOWN:
        rest = sum(list(reasons.values())[SHOWN:])
        table.add_row(f"… and {len(reasons) - SHOWN} other reasons", str(rest))
    return table


def _table(title: str, tallies: Mapping[str, "analysis.Tally"]) -> Table:
    table = Table(title, "exact match", "pairs", box=None)
    for key, tally in tallies.items():
        table.add_row(key, f"{100 * tally.right / tally.pairs:.1f} %", str(tally.pairs))
    return table
