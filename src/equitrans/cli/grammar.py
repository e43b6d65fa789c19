"""equitrans grammar: the rules of a recursive aligner, their support, and derivations."""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from equitrans import models, training
from equitrans.cli.arguments import Parser, add_json, add_model, load, note
from equitrans.cli.console import Console, load_plots
from equitrans.cli.expressions import show_expressions
from equitrans.errors import ConfigError, shown
from equitrans.settings import LONGEST_SENTENCE

ABOUT = """\
Show what a recursive aligner has learned: rules with the number of pairs that use them, pairs that
the rules do not explain, and warnings. Or show the derivation of a sentence; the exit status is 1
if it has none."""
EXAMPLES = """\
  equitrans grammar runs/rules
  equitrans grammar runs/rules --json
  equitrans grammar runs/rules --derive "jump and walk twice"
  equitrans grammar runs/rules --derive "jump and walk twice" --plot tree.png"""

SHOWN = 20
"""Number of unexplained pairs that are printed; --json has all."""

LONGEST_LINE = 500
"""Largest number of characters of an unexplained pair or a warning; --json has all."""

DRAWN = 100
"""Largest number of words in the picture of a derivation."""


def options() -> Parser:
    """The options of equitrans grammar."""
    parser = Parser("grammar", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument("--derive", metavar="SENTENCE", help="show the derivation of a sentence")
    parser.add_argument("--plot", metavar="FILE", help="draw the derivation")
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print the rules, or a derivation."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.plot is not None and asked.derive is None:
        parser.error("--plot draws a derivation; add --derive SENTENCE")
    trained = load(asked)
    if asked.derive is None and isinstance(trained.model, models.Lane):
        return show_expressions(asked.run, trained.model, as_json=asked.json)
    learned = trained.model.learned
    if learned is None and not isinstance(trained.model, models.Lane):
        raise ConfigError(
            f"{asked.run} has no rules; equitrans train --model.aligner recursive learns some"
        )
    if asked.derive is not None:
        return _derive(asked, trained)
    if asked.json:
        print(json.dumps(models.learned_to_json(learned, trained.symmetry), ensure_ascii=False))
    else:
        _print(learned, trained)
    return 0


def _derive(asked: argparse.Namespace, trained: "training.Trained") -> int:
    read = trained.reading.source(trained.words(asked.derive))
    source = tuple(map(read.spell, read.symbols))
    if asked.plot is not None and len(source) > DRAWN:
        raise ConfigError(f"--plot draws at most {DRAWN} words; the sentence has {len(source)}")
    derivation = trained.model.derivation(read.symbols)
    best = trained.predict([source])[0]
    if best.refused:
        note(asked, f"{shown(asked.derive)}: {best.reason}")
    if derivation is None:
        return 1
    nested = _nested(derivation.root, source)
    if asked.json:
        content = {
            "source": asked.derive,
            "target": None if best.refused else trained.text(best.words),
            "log_prob": None if best.refused else best.log_prob,
            "alignments": derivation.alignments,
            "tree": nested,
        }
        # a derivation may be as deep as its sentence is long, and json needs two frames for each
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + 4 * LONGEST_SENTENCE)
        print(json.dumps(content, ensure_ascii=False))
        sys.setrecursionlimit(limit)
    else:
        print(replace(derivation, source=source))
        if not best.refused:
            print(f"→ {trained.text(best.words)}")
    if asked.plot is not None:
        plots = load_plots()
        plots.save_figure(plots.draw_tree(nested), asked.plot)
        note(asked, f"wrote {asked.plot}")
    return 1 if best.refused else 0


def _nested(root: "models.Node", source: Sequence[str]) -> dict[str, Any]:
    """A derivation as nested objects."""
    top: list[dict[str, Any]] = []
    agenda = [(root, top)]
    while agenda:
        node, siblings = agenda.pop()
        children: list[dict[str, Any]] = []
        siblings.append(
            {
                "rule": node.rule,
                "words": list(source[node.start : node.stop]),
                "start": node.start,
                "children": children,
            }
        )
        agenda += [(child, children) for child in reversed(node.children)]
    return top[0]


def _print(learned: "models.Learned", trained: "training.Trained") -> None:
    console = Console()
    console.print(str(replace(learned, warnings=())))
    if learned.exceptions:
        are = "pair is" if len(learned.exceptions) == 1 else "pairs are"
        console.print(f"{len(learned.exceptions)} {are} not explained:")
        for pair, reason in learned.exceptions[:SHOWN]:
            source, target = trained.text(pair.source), trained.text(pair.target)
            console.print(_line(f"  {source} → {target}   ({reason})"))
        if len(learned.exceptions) > SHOWN:
            console.print(f"  and {len(learned.exceptions) - SHOWN} more; --json has all")
    for warning in learned.warnings:
        console.print(_line(f"warning: {warning}"))


def _line(text: str) -> str:
    """A text on one line, cut if it is long."""
    text = re.sub(r"[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]", " ", text)
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} …"
