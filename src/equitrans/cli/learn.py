"""equitrans learn: from a file of pairs to a judged model, in one command."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from equitrans import training
from equitrans.cli.arguments import (
    Parser,
    add_columns,
    add_json,
    add_split_words,
    note,
    open_input,
    set_threads,
)
from equitrans.cli.check import warn
from equitrans.cli.console import Console
from equitrans.data import read_pairs
from equitrans.errors import ConfigError
from equitrans.files import refuse_used, write_atomically

ABOUT = """\
Check a file of pairs, discover its classes, learn rules, and judge them by cross-validation over
forms. The page says what was understood, which held-out pairs are right, refused or wrong, which
pairs no rule explains and why, and which sentences to write next. If pairs are unexplained, a
second model without rules is learned too: DIR/second, for predict --fallback.
Target words such as kitchen.lamp or on(lamp) are read apart if the file suggests it."""
EXAMPLES = """\
  equitrans learn pairs.tsv --out model
  equitrans learn pairs.tsv --out model --folds 5 --json > page.json
  equitrans learn pairs.tsv --out model --second full --suggestions 10
  equitrans predict model "dim the lamp twice" --fallback model/second"""

SECOND = {"quick": None, "full": True, "no": False}


def options() -> Parser:
    """The options of equitrans learn."""
    parser = Parser("learn", ABOUT, EXAMPLES)
    parser.add_argument(
        "data", metavar="FILE", help="pairs, TSV or SCAN format; - is standard input"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="the new model directory")
    parser.add_argument(
        "--folds",
        type=int,
        metavar="N",
        help="number of folds to judge, 0 for none (default: as many of 5 as end within --seconds)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=30.0,
        metavar="S",
        help="CPU time in seconds after which no further fold begins (default 30)",
    )
    parser.add_argument(
        "--second",
        choices=("quick", "full", "no"),
        default="quick",
        help="training of the second model: 500 updates (default), to the end (half a minute for "
        "each fold), or none",
    )
    parser.add_argument(
        "--suggestions", type=int, default=5, metavar="N", help="number of sentences (default 5)"
    )
    add_columns(parser)
    parser.add_argument("--characters", action="store_true", help="words are single characters")
    add_split_words(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    add_json(parser, what="the page")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Learn, write the models and print the page."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.folds is not None and (asked.folds < 0 or asked.folds == 1):
        parser.error(f"--folds is {asked.folds}; it must be 0, or 2 or more")
    if asked.suggestions < 1:
        parser.error(f"--suggestions is {asked.suggestions}; it must be 1 or more")
    if os.path.exists(asked.data) and os.path.abspath(asked.data) == os.path.abspath(asked.out):
        raise ConfigError(f"--out {asked.out} is the file of pairs; choose another directory")
    refuse_used(asked.out)
    file = open_input(asked.data)
    options_ = {"characters": asked.characters, "columns": asked.columns}
    console = Console(stderr=True, quiet=asked.quiet)
    warn(console, file, **options_, split_words=asked.split_words, apart=True)
    pairs = read_pairs(file, **options_)
    set_threads(1)
    from equitrans.cli.progress import watched

    with watched(console) as report:
        study = training.learn(
            pairs,
            folds=asked.folds,
            seconds=asked.seconds,
            second=SECOND[asked.second],
            suggestions=asked.suggestions,
            seed=asked.seed,
            characters=asked.characters,
            split_words=asked.split_words or "auto",
            tell=lambda text: note(asked, text),
            report=report,
        )
    name = Path(asked.out).name
    study.trained.save_pretrained(asked.out, name=name)
    text = study.trained.text
    lines = (f"{text(pair.source)}\t{text(pair.target)}\n" for pair in pairs)
    write_atomically(Path(asked.out) / training.PAIRS, "".join(lines))
    if study.second is not None:
        study.second.save_pretrained(Path(asked.out) / "second", name=f"{name}, second model")
    if asked.json:
        print(json.dumps(study.to_dict() | {"out": asked.out}, ensure_ascii=False))
        return 0
    Console().print(f"{study}\n\n{_use(asked.out, study)}")
    return 0


def _use(out: str, study: "training.Study") -> str:
    """Commands to continue with."""
    fallback = "" if study.second is None else f" --fallback {out}/second"
    lines = [
        "Continue",
        f'  equitrans predict {out} "…"{fallback}',
        f"  equitrans explore {out}   or, for programs: equitrans serve {out}",
    ]
    if study.trained.split is not None:
        lines.insert(1, f"  target words were read apart at {training.signs(study.trained.split)}")
    return "\n".join(lines)
