"""equitrans certify: what is proven about a model, what is measured, and what is neither."""

import json
from collections.abc import Sequence

from equitrans import training
from equitrans.cli.arguments import Parser, add_columns, add_json, add_model, load, set_threads
from equitrans.data import read_pairs
from equitrans.errors import ConfigError

ABOUT = """\
Print a certificate of a model: what is proven for all sentences (equivariance, unknown words, types
of rules), what is measured on test pairs, and what is neither, with the SHA-256 hashes of all
files. Proven statements are tried on the test pairs too. The exit status is 1 if a check fails, so
that continuous integration can run it."""
EXAMPLES = """\
  equitrans certify model --data test.tsv > certificate.md
  equitrans certify model --data test.tsv --least-right 0.95 --most-wrong 0.01
  equitrans certify model --data test.tsv --json > certificate.json"""


def options() -> Parser:
    """The options of equitrans certify."""
    parser = Parser("certify", ABOUT, EXAMPLES)
    add_model(parser)
    parser.add_argument(
        "--data", required=True, metavar="FILE", help="test pairs, TSV or SCAN format"
    )
    add_columns(parser)
    parser.add_argument(
        "--least-right",
        type=float,
        metavar="SHARE",
        help="smallest accepted share of right answers, from 0 to 1",
    )
    parser.add_argument(
        "--most-wrong",
        type=float,
        metavar="SHARE",
        help="largest accepted share of wrong answers, from 0 to 1; a refusal is not wrong",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="largest accepted deviation of log p, relative if |log p| is above 1 (default 1e-5)",
    )
    add_json(parser, what="the certificate")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print a certificate."""
    parser = options()
    asked = parser.parse(arguments)
    for name in ("least_right", "most_wrong"):
        share = getattr(asked, name)
        if share is not None and not 0 <= share <= 1:
            parser.error(f"--{name.replace('_', '-')} is {share}; it must be from 0 to 1")
    if not asked.tolerance > 0:
        parser.error(f"--tolerance is {asked.tolerance}; it must be above 0")
    if asked.data == "-":
        raise ConfigError("--data must be a file, because its hash is part of the certificate")
    trained = load(asked)
    pairs = read_pairs(asked.data, characters=trained.characters, columns=asked.columns)
    set_threads(1)
    found = training.certify(
        asked.run,
        asked.data,
        pairs,
        least_right=asked.least_right,
        most_wrong=asked.most_wrong,
        tolerance=asked.tolerance,
    )
    if asked.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        print(found.to_markdown(), end="")
    return 0 if found.passed else 1
