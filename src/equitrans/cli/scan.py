"""equitrans scan: the SCAN data set."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from equitrans.cli.arguments import Parser, add_json, add_scan_dir
from equitrans.cli.console import Console
from equitrans.data import (
    CLASSES,
    OFFICIAL,
    RULES,
    download,
    format_classes,
    format_scan,
    format_tsv,
    load_split,
)
from equitrans.files import write_atomically

EXAMPLES = """\
  equitrans scan list
  equitrans scan list --json
  equitrans scan show add_jump --part test --rows 5
  equitrans scan export add_jump --out data/
  equitrans scan download --out scan/"""


def options() -> Parser:
    """The options of equitrans scan."""
    parser = Parser("scan", "List, show, export or download the splits of SCAN.", EXAMPLES)
    parser.add_argument("what", choices=["list", "show", "export", "download"], help="the action")
    parser.add_argument("split", nargs="?", help="name of the split to show or export")
    add_scan_dir(parser)
    parser.add_argument(
        "--part", choices=["train", "test"], default="train", help="part to show (default train)"
    )
    parser.add_argument("--rows", type=int, default=10, help="rows to show; 0 is all (default 10)")
    parser.add_argument(
        "--format", choices=["tsv", "scan"], default="tsv", help="format of the pairs (default tsv)"
    )
    parser.add_argument("--out", metavar="DIR", help="folder for export and download")
    add_json(parser, what="the list")
    parser.add_argument("--url", default=OFFICIAL, help="address to download from")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Do the action."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.what in ("show", "export") and asked.split is None:
        parser.error(f"{asked.what} needs the name of a split; equitrans scan list prints them")
    if asked.what in ("export", "download") and asked.out is None:
        parser.error(f"{asked.what} needs --out DIR")
    if asked.rows < 0:
        parser.error(f"--rows is {asked.rows}; it must be 0 or more")
    if asked.json and asked.what != "list":
        parser.error(f"--json works with list only; {asked.what} has --format")
    {"list": _list, "show": _show, "export": _export, "download": _download}[asked.what](asked)
    return 0


def _list(asked: argparse.Namespace) -> None:
    rows = []
    for name, rule in RULES.items():
        split = load_split(name, asked.scan_dir)
        rows.append((name, len(split.train), len(split.test), split.origin, rule.about))
    if asked.json:
        keys = ("train", "test", "origin", "about")
        print(json.dumps({name: dict(zip(keys, row, strict=True)) for name, *row in rows}))
        return
    table = Table("split", "train", "test", "from", "what is special", box=None)
    for row in rows:
        table.add_row(*map(str, row))
    Console().print(table)


def _show(asked: argparse.Namespace) -> None:
    split = load_split(asked.split, asked.scan_dir)
    pairs = getattr(split, asked.part)
    write = format_tsv if asked.format == "tsv" else format_scan
    sys.stdout.write(write(pairs[: asked.rows or len(pairs)]))


def _export(asked: argparse.Namespace) -> None:
    split = load_split(asked.split, asked.scan_dir)
    folder = Path(asked.out)
    folder.mkdir(parents=True, exist_ok=True)
    for part, pairs in (("train", split.train), ("test", split.test)):
        path = folder / f"{split.name}.{part}.{'tsv' if asked.format == 'tsv' else 'txt'}"
        write_atomically(path, (format_tsv if asked.format == "tsv" else format_scan)(pairs))
        print(path)
    path = folder / "classes.toml"
    write_atomically(path, format_classes(CLASSES["both"]))
    print(path)


def _download(asked: argparse.Namespace) -> None:
    for path in download(Path(asked.out), url=asked.url):
        print(path)
