"""equitrans orbits: pairs of the same form, and which of them a model cannot tell apart."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from equitrans import analysis, training
from equitrans.cli.arguments import Parser, add_decoding, add_json, add_model, load
from equitrans.cli.console import Console, load_plots

ABOUT = """\
Show all pairs of the same form as a sentence, and their orbits: in theory, the pairs that the group
maps to each other; observed, the pairs that have the same likelihood under the model.
With --plot, draw the orbits recorded during training (equitrans train --orbits SENTENCE)."""
EXAMPLES = """\
  equitrans orbits runs/jump "walk right thrice after run"
  equitrans orbits runs/jump "walk and run" --target "I_WALK I_RUN" --json
  equitrans orbits runs/jump --plot orbits.png"""


def options() -> Parser:
    """The options of equitrans orbits."""
    parser = Parser("orbits", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument("sentence", nargs="?", metavar="SENTENCE", help="words separated by spaces")
    parser.add_argument("--target", help="its target (default: the prediction)")
    add_json(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the orbits recorded during training")
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print the orbits of a sentence, draw those of a training, or both."""
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


def _print(found: "analysis.Orbits", trained: "training.Trained") -> None:
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
    """The sizes of orbits with their numbers.

    >>> _sizes([(0, 1), (2, 3), (4,)])
    '2×2 + 1×1'
    """
    return " + ".join(f"{n}×{size}" for size, n in Counter(map(len, parts)).items())


def _draw(asked: argparse.Namespace) -> None:
    plots = load_plots()
    run = training.Run.open(asked.run)
    figure = plots.draw_orbits(run.orbit_records(), str(run.config.orbits))
    plots.save_figure(figure, asked.plot)
