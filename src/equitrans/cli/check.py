"""equitrans check: mistakes in a file of pairs, with their lines and what to do."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict

from equitrans.cli.arguments import Parser, add_columns, add_json, add_split_words, open_input
from equitrans.cli.console import Console
from equitrans.data import DataConfig, File, Finding, Inspection, inspect_pairs, read_classes
from equitrans.errors import DataError, few

ABOUT = """\
Look for mistakes in a file of pairs before training: a header row, quotation marks, lines that are
not pairs, sources with several targets, words that differ in case or look alike, compound words,
words that occur once, and others. Every finding has its lines and what to do. The exit status is 1
if a finding stops training or makes a model learn something wrong; notes leave it at 0."""
EXAMPLES = """\
  equitrans check pairs.tsv
  equitrans check pairs.tsv --classes classes.toml
  equitrans check pairs.tsv --columns 2,3 --json"""

SHOWN = 8
"""Number of line numbers that are printed; --json has all."""


def options() -> Parser:
    """The options of equitrans check."""
    parser = Parser("check", ABOUT, EXAMPLES)
    parser.add_argument(
        "data", metavar="FILE", help="pairs, TSV or SCAN format; - is standard input"
    )
    parser.add_argument("--classes", metavar="FILE", help="check this TOML file of classes too")
    add_columns(parser)
    parser.add_argument("--characters", action="store_true", help="words are single characters")
    add_split_words(parser)
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Look at a file and print the findings."""
    asked = options().parse(arguments)
    found = inspect_pairs(
        open_input(asked.data),
        characters=asked.characters,
        split_words=asked.split_words,
        columns=asked.columns,
        classes=() if asked.classes is None else read_classes(asked.classes),
    )
    if asked.json:
        print(json.dumps({"file": asked.data} | asdict(found), ensure_ascii=False))
    else:
        _print(asked.data, found)
    return 1 if found.serious else 0


def _print(name: str, found: Inspection) -> None:
    console = Console()
    console.print(
        f"{name}: {found.pairs} pairs, {found.source_words} source words, "
        f"{found.target_words} target words"
    )
    for finding in found.findings:
        console.print(f"{'WRONG' if finding.serious else 'note '}  {finding.message}")
        if finding.lines:
            console.print(f"       {_lines(finding)}")
        console.print(f"       → {finding.advice}")
    if not found.serious:
        console.print("nothing that harms training was found")


def _lines(finding: Finding) -> str:
    """The first line numbers and the number of the others."""
    noun = "line" if len(finding.lines) == 1 else "lines"
    return f"{noun} {few(map(str, finding.lines), SHOWN)}"


def warn_of(console: Console, config: DataConfig) -> None:
    """Print what harms training in the file of some settings."""
    if config.file is not None:
        names = ("characters", "split_words", "columns")
        warn(console, config.file, **{name: getattr(config, name) for name in names})


def warn(
    console: Console,
    file: File,
    *,
    characters: bool,
    columns: str | None,
    split_words: str | None = None,
    apart: bool = False,
) -> None:
    """Print the findings that harm training, and the columns that are ignored, in short; compound
    words only if they are not read apart anyway. Raise DataError if several lines are not pairs;
    the reader reports a single one.
    """
    if isinstance(file, str) and not os.path.isfile(file):
        return  # a pipe can be read once only, and a missing file has a message of its own
    found = inspect_pairs(file, characters=characters, columns=columns, split_words=split_words)
    name = file if isinstance(file, str) else "FILE"
    if found.unreadable > 1:
        first = min(found.serious, key=lambda finding: finding.lines or (math.inf,))
        raise DataError(
            f"{name}:{first.lines[0]}: {first.message} (equitrans check {name} lists all lines)"
        )
    if found.unreadable or not found.pairs:
        return
    told = [
        f.message
        for f in found.findings
        if (f.serious or f.kind == "column") and not (apart and f.sign is not None)
    ]
    for message in told[:2]:
        console.print(f"warning: {message}")
    if told:
        more = f"{len(told) - 2} more; " if len(told) > 2 else ""
        console.print(f"{more}equitrans check {name} shows the lines and what to do")
