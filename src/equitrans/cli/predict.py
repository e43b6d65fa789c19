"""equitrans predict: the targets of sentences."""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from equitrans import analysis, training
from equitrans.cli.arguments import Parser, add_decoding, add_model, load, note
from equitrans.cli.console import load_plots
from equitrans.data import Pair, decode_lines, numbered_lines, split_words
from equitrans.errors import DataError, shown

ABOUT = """\
Predict the targets of sentences, given as arguments, in a file, or on standard input, one per line.
A sentence is refused if it has an unknown word or no words, or if a recursive aligner cannot derive
it, or only with a combination of rules that no training pair suggests (--lenient answers the last
kind, with a remark). For it the command prints an empty line (null in JSON) and, on standard error,
its line and the reason; the other sentences are answered, and the exit status is 1. --fallback
names a run to ask instead."""
EXAMPLES = """\
  equitrans predict runs/jump "jump twice" "walk left"
  equitrans predict runs/jump < commands.txt > actions.txt
  equitrans predict runs/jump "jump left" --alignments --plot jump.png
  equitrans predict runs/jump "jump twice" --n-best 3 --json
  equitrans predict runs/rules "jump jump" --fallback runs/jump"""

CHUNK = 4096
"""Number of lines predicted together: more is faster, fewer answer a stream sooner. At a terminal,
each line is answered at once."""
DRAWN = 20
"""Largest number of alignments in one picture; --plot keeps no more in memory."""


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
        help="number of targets per sentence, each with log p per word (EOS counts) and p; beam "
        "search ranks by log p per word, a recursive aligner by p (default 1)",
    )
    parser.add_argument(
        "--alignments", action="store_true", help="show the source word of each target word"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help=f"draw the first {DRAWN} alignments as heat maps"
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="answer sentences that combine rules as no training pair suggests, with a remark",
    )
    parser.add_argument("--fallback", metavar="RUN", help="a run for sentences that RUN refuses")
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
    models = [trained]
    if asked.fallback is not None:
        device = next(trained.model.parameters()).device
        models.append(training.Trained.load(asked.fallback, device=device))
    lines = _lines(asked)
    drawn: list[analysis.Alignment] = []
    aligned = refused = 0
    while chunk := list(islice(lines, 1 if _is_typed(asked) else CHUNK)):
        sources = [_words(line, trained) for _, line in chunk]
        answers = _answers(asked, models, sources)
        for (where, _), source, (model, best) in zip(chunk, sources, answers, strict=True):
            alignment = None
            if best[0].refused:
                refused += 1
                note(asked, f"{where}: {best[0].reason}")
            else:
                if not best[0].finished:
                    note(asked, f"{where}: prediction cut off after {model.max_length} words")
                if best[0].by == "second":
                    sure = f"probability {math.exp(best[0].log_prob):.2g}"
                    note(asked, f"{where}: answered by the second model, {sure}")
                if best[0].remark is not None:
                    note(asked, f"{where}: answered, although {best[0].remark}")
                if best[0].doubtful and best[0].rival is not None:
                    rival = shown(model.text(best[0].rival))
                    note(asked, f"{where}: doubtful, margin {best[0].margin:.1f}; or {rival}")
                if asked.alignments or (asked.plot and len(drawn) < DRAWN):
                    alignment = model.align(Pair(source, best[0].words))
                    if asked.plot and len(drawn) < DRAWN:
                        drawn.append(alignment)
                aligned += 1
            by = best[0].by if asked.fallback is None else "model"
            by = by if model is trained else "fallback"
            sys.stdout.write(_format(asked, trained, source, best, alignment, by))
        sys.stdout.flush()
    if drawn:
        plots = load_plots()
        plots.save_figure(plots.draw_alignments(drawn), asked.plot)
        some = f": the first {len(drawn)} of {aligned} alignments" if len(drawn) < aligned else ""
        note(asked, f"wrote {asked.plot}{some}")
    return 1 if refused else 0


def _is_typed(asked: argparse.Namespace) -> bool:
    """Whether a person types the sentences at a terminal."""
    is_stdin = not asked.sentences and asked.file in (None, "-")
    return is_stdin and sys.stdin is not None and sys.stdin.isatty()


def _lines(asked: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The sentences as text, each with its place for messages."""
    if asked.sentences:
        for i, sentence in enumerate(asked.sentences, start=1):
            yield f"sentence {i}", sentence
    elif asked.file not in (None, "-"):
        path = Path(asked.file)
        for i, line in numbered_lines(path):
            yield f"{path}:{i}", line
    else:
        if sys.stdin is None:
            raise DataError("standard input is closed; give sentences or --file")
        if _is_typed(asked):
            note(asked, "reading sentences, one per line; end with Ctrl-D")
        for i, line in decode_lines(sys.stdin.buffer, "line "):
            yield f"line {i}", line


def _words(line: str, trained: "training.Trained") -> tuple[str, ...]:
    """The words of a line; a blank line has none."""
    return split_words(line, characters=trained.characters) if line.strip() else ()


def _answers(
    asked: argparse.Namespace,
    models: Sequence["training.Trained"],
    sources: Sequence[tuple[str, ...]],
) -> list[tuple["training.Trained", list["analysis.Prediction"]]]:
    """For each source, the first model that answers it and its predictions; if none does, the first
    model and its refusal.
    """
    first, *others = models
    options = {"n": asked.n_best, "width": asked.width, "lenient": asked.lenient}
    found = first.n_best(sources, **options)
    answers = [(first, best) for best in found]
    for model in others:
        refused = [i for i, (_, best) in enumerate(answers) if best[0].refused]
        found = model.n_best([sources[i] for i in refused], **options)
        for i, best in zip(refused, found, strict=True):
            if not best[0].refused:
                answers[i] = model, best
    return answers


def _format(
    asked: argparse.Namespace,
    trained: "training.Trained",
    source: tuple[str, ...],
    predictions: list["analysis.Prediction"],
    alignment: "analysis.Alignment | None",
    by: str | None,
) -> str:
    best = predictions[0]
    if asked.json:
        content: dict[str, Any] = {
            "source": trained.text(source),
            "target": None if best.refused else trained.text(best.words),
            "log_prob": None if best.refused else best.log_prob,
            "score": None if best.refused else best.score,
            "finished": best.finished,
            "refused": best.refused,
            "reason": best.reason,
            "margin": None if best.margin is None or math.isinf(best.margin) else best.margin,
            "rival": None if best.rival is None else trained.text(best.rival),
            "doubtful": best.doubtful,
            "remark": best.remark,
        }
        if by is not None:
            content["by"] = None if best.refused else by
        if asked.n_best > 1:
            content["n_best"] = [
                {
                    "target": trained.text(p.words),
                    "log_prob": p.log_prob,
                    "score": p.score,
                    "finished": p.finished,
                }
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
            "\n"
            if p.refused
            else f"  {p.score:.4f}  {math.exp(p.log_prob):.4f}  {trained.text(p.words)}\n"
            for p in predictions
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
