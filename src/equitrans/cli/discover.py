"""equitrans discover: lexical classes of pairs, with the evidence for them."""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from equitrans.cli.arguments import (
    Parser,
    add_columns,
    add_json,
    add_scan_dir,
    add_split_words,
    open_input,
)
from equitrans.cli.check import warn
from equitrans.cli.console import Console
from equitrans.data import (
    Discovery,
    Pair,
    Reading,
    class_to_json,
    discover,
    format_classes,
    glued,
    join_words,
    load_split,
    read_pairs,
)
from equitrans.errors import ConfigError
from equitrans.files import write_atomically
from equitrans.lexical import written

ABOUT = """\
Find the lexical classes of pairs: words that can be exchanged together with their translations.
The exit status is 1 if there are none."""
EXAMPLES = """\
  equitrans discover pairs.tsv
  equitrans discover pairs.tsv --out classes.toml
  equitrans discover --split add_jump --json"""

SHOWN = 10
"""Number of words and pairs that are printed in a list; --json has all."""


def options() -> Parser:
    """The options of equitrans discover."""
    parser = Parser("discover", ABOUT, EXAMPLES)
    parser.add_argument(
        "data", nargs="?", metavar="FILE", help="pairs, TSV or SCAN format; - is standard input"
    )
    parser.add_argument("--split", help="or the training part of this SCAN split")
    add_scan_dir(parser)
    add_columns(parser)
    parser.add_argument("--characters", action="store_true", help="words are single characters")
    add_split_words(parser)
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.2,
        help="largest share of comparisons that contradict a class (default 0.2)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the classes to a TOML file")
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Find classes, print them and write them."""
    parser = options()
    asked = parser.parse(arguments)
    if not 0 <= asked.tolerance < 1:
        parser.error(f"--tolerance is {asked.tolerance}; it must lie in [0, 1)")
    found = discover(_pairs(asked), tolerance=asked.tolerance)
    if asked.out is not None and found.classes:
        write_atomically(asked.out, format_classes(found.classes))
    if asked.json:
        print(json.dumps(_content(found), ensure_ascii=False))
    else:
        _print(found, characters=asked.characters)
    return 0 if found.classes else 1


def _pairs(asked: argparse.Namespace) -> tuple[Pair, ...]:
    if (asked.data is None) == (asked.split is None):
        raise ConfigError("give either a FILE of pairs or --split NAME")
    if asked.columns is not None and asked.split is not None:
        raise ConfigError("--columns chooses columns of a FILE; a split has none")
    if asked.split is not None:
        return load_split(asked.split, asked.scan_dir).train
    file = open_input(asked.data)
    warn(
        Console(stderr=True, quiet=asked.quiet),
        file,
        characters=asked.characters,
        columns=asked.columns,
        split_words=asked.split_words,
    )
    pairs = read_pairs(file, characters=asked.characters, columns=asked.columns)
    return Reading(split=asked.split_words).pairs(pairs)


def _content(found: Discovery) -> dict[str, Any]:
    return {
        "classes": [
            class_to_json(c) | asdict(e) for c, e in zip(found.classes, found.evidence, strict=True)
        ],
        "left_out": found.left_out,
        "misfits": found.misfits,
    }


def _print(found: Discovery, *, characters: bool) -> None:
    console = Console()

    def show(pair: Pair) -> str:
        source, target = (join_words(glued(side), characters=characters) for side in pair)
        return f"{source} → {target}"

    for c, evidence in zip(found.classes, found.evidence, strict=True):
        titles = [name or "source" for name, _ in c.columns[0]]
        titles += [name or "target" for name, _ in c.columns[1]]
        table = Table(*titles, "", title=c.name, title_justify="left", box=None)
        aliases: defaultdict[str, list[str]] = defaultdict(list)
        for spelling, word in c.aliases:
            aliases[word].append(spelling)
        for cells in zip(*(words for side in c.columns for _, words in side), strict=True):
            if any(written(cells[len(c.columns[0]) :])):
                shown = [" ~ ".join([w, *aliases[w]]) if written([w]) else "" for w in cells]
                table.add_row(*shown, evidence.thin.get(cells[0], ""))
        if c.is_open:
            what = "unknown words" if c.pattern is None else f"words like {c.pattern}"
            table.add_row(what, *[""] * len(c.source_forms), "the same")
        console.print(table)
        for note in evidence.notes:
            console.print(f"  {note}")
        text = f"{evidence.confirmed} pairs confirm it, {evidence.contradicted} contradict it"
        if evidence.example is not None:
            one, other = map(show, evidence.example)
            text += f"; for example {one}, and {other}"
        console.print(f"  {text}\n")
    if not found.classes:
        console.print("no classes were found")
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for word, reason in found.left_out.items():
        reasons[reason].append(word)
    if reasons:
        console.print("in no class:")
        for reason, words in reasons.items():
            more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
            console.print(f"  {', '.join(words[:SHOWN])}{more}: {reason}")
    if found.misfits:
        console.print(f"{len(found.misfits)} pairs do not fit the classes, wrong or irregular:")
        for pair in found.misfits[:SHOWN]:
            console.print(f"  {show(pair)}")
