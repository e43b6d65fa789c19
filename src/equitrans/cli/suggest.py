"""equitrans suggest: sentences whose targets would settle the most."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from equitrans import training
from equitrans.cli.arguments import Parser, add_json, add_model, load, note
from equitrans.cli.console import Console
from equitrans.data import read_pairs
from equitrans.errors import ConfigError

ABOUT = """\
Suggest sentences to translate next, the most useful first: those about which rival grammars
disagree, whose derivation training hardly decides, which combine rules as no pair does, or whose
rules few pairs support. Add their targets to the training pairs and train again. For a model of
equitrans learn, sentences that begin and end as no pair does are left out."""
EXAMPLES = """\
  equitrans suggest runs/rules
  equitrans suggest runs/rules --n 3 --json"""

NOTHING = (
    "no sentence to suggest: among the new sentences that were tried, of 12 words at most, the "
    "rules are sure of each; longer sentences and sentences of other forms were not tried"
)


def options() -> Parser:
    """The options of equitrans suggest."""
    parser = Parser("suggest", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument("--n", type=int, default=10, metavar="N", help="number of sentences")
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print suggested sentences with the reasons."""
    parser = options()
    asked = parser.parse(arguments)
    if asked.n < 1:
        parser.error(f"--n is {asked.n}; it must be 1 or more")
    trained = load(asked)
    if trained.grammar is None:
        raise ConfigError(
            f"{asked.run} has no rules; equitrans train --model.aligner recursive learns some"
        )
    file = Path(asked.run) / training.PAIRS
    if file.is_file():
        pairs = read_pairs(file, characters=trained.characters)
        found = list(training.sentences_to_ask(trained, asked.n, pairs))
    else:
        found = trained.suggest(asked.n)
    if asked.json:
        rows = [asdict(each) | {"source": trained.text(each.source)} for each in found]
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    if not found:
        note(asked, NOTHING)
    console = Console()
    width = max((len(trained.text(each.source)) for each in found), default=0)
    for each in found:
        console.print(f"{trained.text(each.source):{width}}  {'; '.join(each.reasons)}".rstrip())
    return 0
