"""equitrans predict: the targets of sentences."""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from equitrans import analysis, training
from equitrans.cli.arguments import Parser, add_decoding, add_model, load, note
from equitrans.cli.console import load_plots
from equitrans.data import Pair, decode_lines, numbered_lines
from equitrans.errors import DataError, VocabularyError

ABOUT = """\
Predict the targets of sentences, given as arguments, in a file, or on standard input, one per line.
For a sentence that a recursive aligner cannot derive, the command prints an empty line (null in
JSON) and a note on standard error; the exit status is 1. --fallback names a run to ask instead."""
EXAMPLES = """\
  equitrans predict runs/jump "jump twice" "walk left"
  equitrans predict runs/jump < commands.txt > actions.txt
  equitrans predict runs/jump "jump left" --alignments --plot jump.png
  equitrans predict runs/jump "jump twice" --n-best 3 --json
  equitrans predict runs/rules "jump jump" --fallback runs/jump"""

CHUNK = 4096
"""Number of lines predicted together: more is faster, fewer answer a stream sooner."""


def options() -> Parser:
    """The options of equitrans predict."""
    parser = Parser("predict", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument(
        "sentences", nargs="*", default=[], metavar="SENTENCE", help="words separated by spaces"
    )
    parser.add_argument(
        "--file", metavar="FILE", help="sentences, one per line; - is standard input"
    )
    parser.add_argument(
        "--n-best",
        type=int,
        default=1,
        metavar="N",
        help="number of targets per sentence (default 1)",
    )
    parser.add_argument(
        "--alignments", action="store_true", help="show the source word of each target word"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the alignments as heat maps")
    parser.add_argument(
        "--fallback", metavar="RUN", help="a run for sentences without a derivation"
    )
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="one JSON object per sentence")
    style.add_argument("--tsv", action="store_true", help="source, target, log-probability, rank")
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Predict and print."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.sentences and asked.file is not None:
        parser.error("give sentences or --file, not both")
    if asked.n_best < 1:
        parser.error(f"--n-best is {asked.n_best}; it must be 1 or more")
    if asked.tsv and asked.alignments:
        parser.error("--tsv cannot show --alignments; use --json or plain text")
    trained = load(asked)
    fallback = None
    if asked.fallback is not None:
        fallback = training.Trained.load(
            asked.fallback, device=next(trained.model.parameters()).device
        )
    sentences = _sentences(asked, trained)
    drawn: list[analysis.Alignment] = []
    refused = False
    while chunk := list(islice(sentences, CHUNK)):
        best = trained.n_best(chunk, n=asked.n_best, width=asked.width)
        for source, predictions in zip(chunk, best, strict=True):
            chosen = trained
            if predictions[0].refused and fallback is not None:
                chosen = fallback
                (predictions,) = fallback.n_best([source], n=asked.n_best, width=asked.width)
            if predictions[0].refused:
                refused = True
                note(asked, f"{trained.text(source)!r}: no derivation")
            elif not predictions[0].finished:
                limit = chosen.max_length
                note(asked, f"{trained.text(source)!r}: prediction cut off after {limit} words")
            alignment = None
            if (asked.alignments or asked.plot) and not predictions[0].refused:
                alignment = chosen.align(Pair(source, predictions[0].words))
                drawn.append(alignment)
            sys.stdout.write(_format(asked, trained, source, predictions, alignment))
        sys.stdout.flush()
    if asked.plot and drawn:
        plots = load_plots()
        plots.save_figure(plots.draw_alignments(drawn), asked.plot)
        note(asked, f"wrote {asked.plot}")
    return 1 if refused else 0


def _sentences(asked: argparse.Namespace, trained: "training.Trained") -> Iterator[tuple[str, ...]]:
    """The words of each sentence; raise VocabularyError with the line of an unknown word."""
    lines: Iterable[tuple[str, str]]
    if asked.sentences:
        lines = ((f"sentence {i}", s) for i, s in enumerate(asked.sentences, start=1))
    elif asked.file not in (None, "-"):
        path = Path(asked.file)
        lines = ((f"{path}:{i}", line) for i, line in numbered_lines(path))
    else:
        if sys.stdin is None:
            raise DataError("standard input is closed; give sentences or --file")
        if sys.stdin.isatty():
            note(asked, "reading sentences, one per line; end with Ctrl-D")
        lines = ((f"line {i}", line) for i, line in decode_lines(sys.stdin.buffer, "line "))
    for where, line in lines:
        if not line.strip():
            raise DataError(f"{where}: no words; every line must be a sentence")
        words = trained.words(line)
        try:
            trained.symmetry.source.encode(words)
        except VocabularyError as error:
            raise VocabularyError(f"{where}: {error}") from None
        yield words


def _format(
    asked: argparse.Namespace,
    trained: "training.Trained",
    source: tuple[str, ...],
    predictions: list["analysis.Prediction"],
    alignment: "analysis.Alignment | None",
) -> str:
    best = predictions[0]
    if asked.json:
        content: dict[str, Any] = {
            "source": trained.text(source),
            "target": None if best.refused else trained.text(best.words),
            "log_prob": None if best.refused else best.log_prob,
            "finished": best.finished,
        }
        if asked.n_best > 1:
            content["n_best"] = [
                {"target": trained.text(p.words), "log_prob": p.log_prob, "finished": p.finished}
                for p in predictions
                if not p.refused
            ]
        if asked.alignments and alignment is not None:
            content["alignment"] = [
                {"target": word, "source": alignment.source[n], "position": n - 1, "prob": row[n]}
                for word, n, row in zip(
                    alignment.target, alignment.best, alignment.prob, strict=True
                )
            ]
        return json.dumps(content, ensure_ascii=False) + "\n"
    if asked.tsv:
        return "".join(
            f"{trained.text(source)}\t{trained.text(p.words)}\t{p.log_prob:.6g}\t{rank}\n"
            for rank, p in enumerate(predictions, start=1)
        )
    if asked.n_best > 1:
        text = f"{trained.text(source)}\n" + "".join(
            f"  {math.exp(p.log_prob):.4f}  {trained.text(p.words)}\n" for p in predictions
        )
    else:
        text = trained.text(best.words) + "\n"
    return text + (_arrows(alignment) if asked.alignments and alignment is not None else "")


def _arrows(alignment: "analysis.Alignment") -> str:
    """A line per target word: its source word with position and probability."""
    width = max(map(len, alignment.target))
    return "".join(
        f"  {word:{width}} ← {n} {alignment.source[n]}  {row[n]:.3f}\n"
        for word, n, row in zip(alignment.target, alignment.best, alignment.prob, strict=True)
    )
