"""equitrans extend: add words to a class of a trained model, without training."""

import json
from collections.abc import Sequence

from equitrans import analysis, training
from equitrans.cli.arguments import Parser, add_json, add_model, load
from equitrans.cli.console import Console
from equitrans.data import class_to_json, join_words
from equitrans.errors import ConfigError
from equitrans.files import check_visible, normalized, refuse_used

ABOUT = """\
Add words to a class of a trained model, without training. The group of the class becomes the
symmetric group, so a new word behaves exactly like the other words of the class. The forms of a
class with several columns are separated by /, in the order of the columns: dog/dogs=DOG."""
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
        word, _, target = (" ".join(part.split()) for part in given.partition("="))
        if not word or not target:
            raise ConfigError(f"{given!r} is not of the form word=TARGET")
        if word in words:
            raise ConfigError(f"the word {word!r} is given twice")
        words[word] = target
    refuse_used(asked.out)
    trained = load(asked)
    extension = training.extend(trained, asked.name, _rows(words, trained, asked.name))
    extension.trained.save(asked.out)
    (c,) = (c for c in extension.trained.symmetry.classes if c.name == asked.name)
    if asked.json:
        changes = ("symmetrised", "in_class", "diluted")
        content = class_to_json(c) | {name: getattr(extension, name) for name in changes}
        print(json.dumps(content | {"out": asked.out}, ensure_ascii=False))
        return 0
    console = Console()
    lexemes = join_words(source[0] for source, _ in c.rows)
    console.print(f"class {c.name!r} is now {lexemes}: {asked.out}")
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


def _rows(
    words: dict[str, str], trained: "training.Trained", name: str
) -> "dict[analysis.Cells, analysis.Cells]":
    """Words as rows; in a class with several columns, / separates the forms of a word."""
    for c in trained.symmetry.classes:
        if c.name == name and (c.source_forms or c.target_forms):
            source, target = (len(columns) > 1 for columns in c.columns)
            return {
                tuple(w.split("/")) if source else w: tuple(t.split("/")) if target else t
                for w, t in words.items()
            }
    return dict(words.items())
