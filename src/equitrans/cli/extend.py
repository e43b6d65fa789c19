"""equitrans extend: add words to a class of a trained model, without training."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from equitrans import training
from equitrans.cli.arguments import Parser, add_json, add_model, load
from equitrans.cli.console import Console
from equitrans.data import join_words
from equitrans.errors import ConfigError
from equitrans.files import check_visible, normalized, refuse_used

ABOUT = """\
Add words to a class of a trained model, without training. The group of the class becomes the
symmetric group, so a new word behaves exactly like the other words of the class."""
EXAMPLES = """\
  equitrans extend runs/jump --class verbs blick=I_BLICK --out runs/blick
  equitrans extend runs/jump --class directions up=I_UP down=I_DOWN --out runs/updown"""


def options() -> Parser:
    """The options of equitrans extend."""
    parser = Parser("extend", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument(
        "words", nargs="+", metavar="WORD=TARGET", help="a word and its translation"
    )
    parser.add_argument("--class", dest="name", required=True, metavar="NAME", help="the class")
    parser.add_argument("--out", required=True, metavar="RUN", help="directory of the new model")
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Extend and save a model, and print what changed."""
    asked = options().parse(arguments)
    words: dict[str, str] = {}
    for given in map(normalized, asked.words):
        check_visible(given)
        word, _, target = given.partition("=")
        if not word or not target or len(given.split()) != 1:
            raise ConfigError(f"{given!r} is not of the form word=TARGET")
        if word in words:
            raise ConfigError(f"the word {word!r} is given twice")
        words[word] = target
    refuse_used(asked.out)
    trained = load(asked)
    extension = training.extend(trained, asked.name, words)
    extension.trained.save(asked.out)
    (c,) = (c for c in extension.trained.symmetry.classes if c.name == asked.name)
    if asked.json:
        changes = ("symmetrised", "in_class", "diluted")
        content = asdict(c) | {name: getattr(extension, name) for name in changes}
        print(json.dumps(content | {"out": asked.out}, ensure_ascii=False))
        return 0
    console = Console()
    console.print(f"class {c.name!r} is now {join_words(c.source)}: {asked.out}")
    if trained.symmetry.kind == "cyclic":
        console.print(
            f"its group was made symmetric: no p(y | x) of a word changed by more than "
            f"{extension.symmetrised:.2g} (a classmate's translation had at most "
            f"{extension.in_class:.2g})"
        )
    console.print(
        f"the new words take at most {extension.diluted:.2g} from the log p of a target word"
    )
    return 0
