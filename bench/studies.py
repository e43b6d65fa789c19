"""What the scripts that measure finished runs share: arguments, a JSONL file, and a table of it."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equitrans import __version__
from equitrans.experiments import commit
from equitrans.training import RunConfig

Line = dict[str, Any]


def arguments(doc: str | None, runs: str) -> argparse.ArgumentParser:
    """A parser with RUN..., --out and --show."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, help=runs)
    parser.add_argument("--out", type=Path, help="JSONL file for the figures")
    parser.add_argument("--show", type=Path, help="print the tables of a JSONL file")
    return parser


def print_study(
    asked: argparse.Namespace, measured: Callable[[Path], Line], table: Callable[[list[Line]], str]
) -> None:
    """Print the table of the file to show, or of the runs, which are measured and written."""
    if asked.show:
        lines = [json.loads(line) for line in asked.show.read_text(encoding="utf-8").splitlines()]
    else:
        lines = [measured(path) for path in asked.runs]
    if asked.out:
        asked.out.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    print(table(lines))


def origin(config: RunConfig) -> Line:
    """Settings, seed and version of a run's figures."""
    return {
        "settings": {k: v for k, v in config.settings.items() if k not in ("seed", "scan_dir")},
        "seed": config.seed,
        "version": {"equitrans": __version__, "commit": commit()},
    }
