"""equitrans orbits: the family of a sentence, and which of its pairs a model cannot tell apart."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from equitrans.analysis import Orbits
from equitrans.cli.arguments import Parser, add_decoding, add_json, add_model, load
from equitrans.cli.console import Console, load_plots
from equitrans.training import Run, Trained

ABOUT = """\
The family of a sentence: all pairs of its form. Under the group it falls into theoretical orbits;
under the model into observed ones, with the same likelihood. With --plot alone, draw what was
recorded through training (equitrans train --orbits SENTENCE)."""
EXAMPLES = """\
  equitrans orbits runs/jump "walk right thrice after run"
  equitrans orbits runs/jump "walk and run" --target "I_WALK I_RUN" --json
  equitrans orbits runs/jump --plot orbits.png"""


def options() -> Parser:
    """Its command line."""
    parser = Parser("orbits", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument("sentence", nargs="?", metavar="SENTENCE", help="words with spaces between")
    parser.add_argument("--target", help="its target; without it, what the model predicts")
    add_json(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the record of training")
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Compute and print, or draw."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.sentence is None and asked.plot is None:
        parser.error("give a sentence, or --plot FILE")
    if asked.plot is not None:
        _draw(asked)
    if asked.sentence is not None:
        trained = load(asked)
        found = trained.orbits(asked.sentence, asked.target)
        if asked.json:
            print(json.dumps(asdict(found), ensure_ascii=False))
        else:
            _print(found, trained)
    return 0


def _print(found: Orbits, trained: Trained) -> None:
    console = Console()
    table = Table("source", "target", "−log p", "theoretical", "observed", box=None)
    number = [
        {i: n for n, orbit in enumerate(kind, start=1) for i in orbit}
        for kind in (found.theoretical, found.observed)
    ]
    for i, (pair, loss) in enumerate(zip(found.family, found.losses, strict=True)):
        table.add_row(
            trained.text(pair.source),
            trained.text(pair.target),
            f"{loss:.6g}",
            *(str(of[i]) for of in number),
        )
    console.print(table)
    observed = f"observed {_sizes(found.observed)}"
    if not trained.model.sharing.classes:
        console.print(f"{len(found.family)} pairs; the model promises no orbits; {observed}")
        return
    console.print(
        f"{len(found.family)} pairs, one orbit with the alignment given (theorem 4); "
        f"in theory under G {_sizes(found.theoretical)}; {observed}"
    )


def _sizes(parts: Sequence[Sequence[int]]) -> str:
    """Orbits by their sizes.

    >>> _sizes([(0, 1), (2, 3), (4,)])
    '2×2 + 1×1'
    """
    return " + ".join(f"{n}×{size}" for size, n in Counter(map(len, parts)).items())


def _draw(asked: argparse.Namespace) -> None:
    plots = load_plots()
    run = Run.open(asked.run)
    figure = plots.draw_orbits(run.orbit_records(), str(run.config.orbits))
    plots.save_figure(figure, asked.plot)
