"""equitrans audit: is a trained model equivariant, as theorem 3 says?"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from equitrans import analysis, training
from equitrans.cli.arguments import (
    Parser,
    add_decoding,
    add_json,
    add_model,
    add_pairs,
    find_pairs,
    load,
    note,
)
from equitrans.cli.console import Console
from equitrans.data import CLASSES, load_classes
from equitrans.errors import DataError, shown

ABOUT = """\
Measure how equivariant a trained model is, over all group elements and all given pairs.
The exit status is 0 if the deviation is within the tolerance, else 1."""
EXAMPLES = """\
  equitrans audit runs/jump
  equitrans audit runs/mine --data test.tsv --json
  equitrans audit runs/plain --data test.tsv --classes classes.toml"""

SHOWN = 5
"""Number of mismatches that are printed; --json has all."""


def options() -> Parser:
    """The options of equitrans audit."""
    parser = Parser("audit", ABOUT, EXAMPLES)
    add_model(parser)
    add_pairs(parser)
    parser.add_argument(
        "--classes",
        metavar="FILE",
        help="audit under these classes instead of those of the model: "
        "a TOML file, verbs, directions or both",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="largest accepted deviation of log p, relative if |log p| is above 1 (default 1e-5)",
    )
    add_json(parser)
    add_decoding(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Measure the deviation and print it."""
    parser = options()
    asked = parser.parse(arguments)
    if not asked.tolerance > 0:
        parser.error(f"--tolerance is {asked.tolerance}; it must be above 0")
    trained = load(asked)
    pairs = find_pairs(asked, trained)
    reading, symmetry = trained.reading, trained.symmetry
    known = [pair for pair in pairs if analysis.known_pairs(reading.readable([pair]), symmetry)]
    if not known:
        raise DataError("nothing to audit: every pair has an unknown word")
    if len(known) < len(pairs):
        left_out = len(pairs) - len(known)
        note(asked, f"left out {left_out} of {len(pairs)} pairs, which have unknown words")
    classes = trained.symmetry.classes
    if asked.classes is not None:
        classes = load_classes(asked.classes, pairs, CLASSES)
    if not classes:
        raise DataError("the model has no classes; give some with --classes")
    found = trained.audit(known, classes, tolerance=asked.tolerance, width=asked.width)
    if asked.json:
        content = asdict(found) | {"mismatches": len(found.mismatches), "passed": found.passed}
        content["mismatched"] = [asdict(m) for m in found.mismatches]
        content["group"] = repr(found.group)
        print(json.dumps(content, ensure_ascii=False))
    else:
        _print(found, trained)
    return 0 if found.passed else 1


def _print(found: "analysis.Audit", trained: "training.Trained") -> None:
    console = Console()
    what = "powers of generators and random elements" if found.sampled else "elements"
    console.print(
        f"{'equivariant' if found.passed else 'NOT equivariant'} within {found.tolerance:g}: "
        f"{found.pairs} pairs under {found.elements} {what} of {found.group!r}"
    )
    moved = ", ".join(f"{count} by {shown(name)}" for name, count in found.moved.items())
    console.print(f"pairs moved: {moved}")
    console.print(
        f"deviation of log p: {found.max_deviation:.3g} at most, "
        f"{found.mean_deviation:.3g} on average"
    )
    if found.max_deviation > found.tolerance:
        console.print(
            f"worst: {trained.text(found.worst.pair.source)!r}, against "
            f"{trained.text(found.worst.image.source)!r}"
        )
    console.print(
        f"predictions that do not commute: {len(found.mismatches)}, and {found.ties} ties"
    )
    for m in found.mismatches[:SHOWN]:
        console.print(
            f"  {trained.text(m.moved)!r} gives {trained.text(m.predicted)}\n"
            f"    but by {trained.text(m.source)!r} it should give {trained.text(m.expected)}"
        )
