"""Where models of Around Right are wrong, and from which word a turn comes.

    equitrans train --split around_right --recipe paper --training.epochs 50 --seed 0 --out runs/0
    python bench/turns.py runs/0 --out records/studies/turns.jsonl
    python bench/turns.py --show records/studies/turns.jsonl

Training has ``around left`` only. If both parts of a command have it, the data do not say from
which ``left`` a turn comes. The first table counts the wrong test commands by their directions, and
those of them in which only turns are wrong. The second has the share of turns that come from the
direction of the other part: the mean of p(a | x, y) over training pairs with two ``around left``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import correlation, fmean
from typing import Any

from report import percent, ranks
from studies import arguments, origin, print_study

from equitrans.data import Pair, load_split
from equitrans.data.scan import interpret
from equitrans.experiments.tables import markdown
from equitrans.training import Run, Trained

SPLIT = "around_right"
TURNS = {"I_TURN_LEFT": "I_TURN", "I_TURN_RIGHT": "I_TURN"}
KINDS = (
    "`around left` and `around right`",
    "`around right` twice",
    "`around right` and another `left`",
    "the others",
)


def main() -> None:
    asked = arguments(__doc__, runs="finished runs of Around Right").parse_args()
    print_study(asked, measured, tables)


def measured(path: Path) -> dict[str, Any]:
    """The errors and the alignments of a run."""
    config, trained, split = Run.open(path).config, Trained.load(path), load_split(SPLIT)
    if config.data.split != SPLIT:
        raise SystemExit(f"{path} is a run of {config.data.split}; expected {SPLIT}")
    report = trained.evaluate(split.test)
    wrong = {pair.source: words for pair, words in report.errors}
    commands: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for pair in split.test:
        counts = commands[kind_of(pair)]
        counts["commands"] += 1
        if (found := wrong.get(pair.source)) is not None:
            counts["wrong"] += 1
            counts["turns"] += without_directions(found) == without_directions(pair.target)
    twice = [pair for pair in split.train if pair.source.count("around") == 2]
    return origin(config) | {
        "exact_match": report.exact_match,
        "commands": commands,
        "pairs": len(twice),
        "from_other_part": fmean(share for pair in twice for share in from_other(trained, pair)),
    }


def kind_of(pair: Pair) -> str:
    """One of ``KINDS``, by the directions of a command with ``around right``."""
    source = pair.source
    if source.count("around") == 2:
        return KINDS[0] if "left" in source else KINDS[1]
    return KINDS[2] if "left" in source else KINDS[3]


def without_directions(words: tuple[str, ...]) -> tuple[str, ...]:
    """Actions without the direction of turns.

    >>> without_directions(("I_TURN_LEFT", "I_WALK"))
    ('I_TURN', 'I_WALK')
    """
    return tuple(TURNS.get(word, word) for word in words)


def from_other(trained: Trained, pair: Pair) -> Iterator[float]:
    """For each turn, the probability that it comes from a direction of the other part."""
    (conjunction,) = [n for n, word in enumerate(pair.source) if word in ("and", "after")]
    parts = [range(conjunction), range(conjunction + 1, len(pair.source))]
    if pair.source[conjunction] == "after":
        parts.reverse()
    first, second = parts
    length = len(interpret(tuple(pair.source[n] for n in first)))
    alignment = trained.align(pair)
    start = alignment.source.index(pair.source[0])  # BOS stands before it
    for m, word in enumerate(pair.target):
        if word in TURNS:
            other = second if m < length else first
            yield sum(
                alignment.prob[m][start + n] for n in other if pair.source[n] in ("left", "right")
            )


def tables(rows: list[dict[str, Any]]) -> str:
    """Both tables, in Markdown; each line is the sum or the mean over the seeds of one setting."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(name_of(row), []).append(row)
    errors, shares = [], []
    for name, group in groups.items():
        for kind in KINDS:
            sums = Counter[str]()
            for row in group:
                sums.update(row["commands"][kind])
            errors.append([name, kind, *(str(sums[c]) for c in ("commands", "wrong", "turns"))])
        wrong = [1 - row["exact_match"] for row in group]
        turned = [row["from_other_part"] for row in group]
        shares.append(
            [
                name,
                " ".join(str(row["seed"]) for row in group),
                " ".join(percent(100 * row["exact_match"]) for row in group),
                " ".join(f"{100 * row['from_other_part']:.1f}" for row in group),
                f"{correlation(ranks(wrong), ranks(turned)):.2f}" if any(wrong) else "",
            ]
        )
    head = ["settings", "test commands with", "commands", "wrong", "wrong in turns only"]
    parts = [markdown(head, errors)]
    head = ["settings", "seeds", "exact match, %", "turns from the other part, %"]
    parts.append(markdown([*head, "rank correlation of errors and such turns"], shares))
    return "\n\n".join(parts)


def name_of(row: dict[str, Any]) -> str:
    """A name for the settings of a run; a run that has no command right has one of its own."""
    name = "our settings" if row["settings"]["model.warm_start"] else "the paper's settings"
    return name if row["exact_match"] else f"{name}, nothing right"


if __name__ == "__main__":
    main()
