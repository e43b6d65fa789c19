"""equitrans compare: one table of several models on several files of pairs."""

import csv
import io
import json
from collections.abc import Sequence

from equitrans import analysis, training
from equitrans.cli.arguments import Parser, add_columns, add_decoding, add_json, load, note
from equitrans.data import read_pairs
from equitrans.errors import ConfigError

ABOUT = """\
Evaluate several trained models on several files of pairs, and print one table: exact match, refused
sentences, −log p per pair. With two models or more, a second table compares each with the first one
on the same pairs: the difference in percentage points, and how many pairs only one of both
predicts. From and to are the ends of an interval that contains 95 % of 10,000 bootstrap samples of
the pairs."""
EXAMPLES = """\
  equitrans compare runs/rules runs/lstm --data test.tsv
  equitrans compare runs/a runs/b runs/c --data dev.tsv gen.tsv --format latex
  equitrans compare runs/a runs/b --data test.tsv --json > compared.json"""

TITLES = {
    "run": "model",
    "data": "data",
    "pairs": "pairs",
    "exact_match": "exact match, %",
    "refused": "refused",
    "loss": "−log p",
    "than": "than",
    "difference": "difference",
    "low": "from",
    "high": "to",
    "gained": "only this one",
    "lost": "only the other",
}


def options() -> Parser:
    """The options of equitrans compare."""
    parser = Parser("compare", ABOUT, EXAMPLES)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="trained models")
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="pairs, TSV or SCAN format"
    )
    add_columns(parser)
    parser.add_argument(
        "--format",
        choices=("markdown", "csv", "latex", "json"),
        default="markdown",
        help="format of the tables; csv is one table with all columns",
    )
    add_json(parser, what="both tables")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap samples")
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Evaluate every model on every file and print the tables."""
    asked = options().parse(arguments)
    for given, what in ((asked.runs, "model"), (asked.data, "file")):
        if len(set(given)) < len(given):
            raise ConfigError(f"a {what} is given twice: {', '.join(given)}")
    reports: dict[tuple[str, str], analysis.Report] = {}
    for name in asked.runs:
        asked.run = name
        trained = load(asked)
        for file in asked.data:
            note(asked, f"{name} on {file}")
            pairs = read_pairs(file, characters=trained.characters, columns=asked.columns)
            reports[name, file] = trained.evaluate(pairs, width=asked.width)
    found = training.compared(reports, seed=asked.seed)
    if asked.json or asked.format == "json":
        content = {"figures": found.figures, "differences": found.differences}
        print(json.dumps(content, ensure_ascii=False))
    elif asked.format == "csv":
        print(_csv(found.rows if found.differences else found.figures), end="")
    else:
        tables = [rows for rows in (found.figures, found.differences) if rows]
        print(FORMATS[asked.format](tables), end="")
    return 0


def _markdown(tables: Sequence[Sequence["training.Row"]]) -> str:
    parts = []
    for rows in tables:
        lines = [[TITLES[key] for key in rows[0]], ["---"] * len(rows[0])]
        lines += [[_short(value).replace("|", "\\|") for value in row.values()] for row in rows]
        parts.append("".join(f"| {' | '.join(line)} |\n" for line in lines))
    return "\n".join(parts)


def _latex(tables: Sequence[Sequence["training.Row"]]) -> str:
    parts = []
    for rows in tables:
        columns = "".join("l" if isinstance(v, str) else "r" for v in rows[0].values())
        lines = [[TITLES[key].replace("−", "$-$") for key in rows[0]]]
        lines += [[_short(value) for value in row.values()] for row in rows]
        head, *body = (" & ".join(map(_escape, line)) + r" \\" for line in lines)
        inner = "\n".join([r"\toprule", head, r"\midrule", *body, r"\bottomrule"])
        parts.append(f"\\begin{{tabular}}{{{columns}}}\n{inner}\n\\end{{tabular}}\n")
    return "\n".join(parts)


def _escape(text: str) -> str:
    return "".join(f"\\{c}" if c in "%_&#" else c for c in text)


def _csv(rows: Sequence["training.Row"]) -> str:
    """All figures and differences as one table, which other programs read."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _short(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


FORMATS = {"markdown": _markdown, "latex": _latex}
