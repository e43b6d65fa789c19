"""Measure the recursive aligner on SCAN, random commands, wrong pairs and small languages.

    python examples/recursive.py splits --scan-dir DIR
    python examples/recursive.py noise --scan-dir DIR
    python examples/recursive.py draws --plot docs/pictures/recursive-draws.png
    python examples/recursive.py tongues

Classes are discovered in the training pairs, except for draws, where they are given (verbs and
directions), and for small languages, which have their own. Only the drawn pairs are random; their
seeds are printed. Seconds are CPU time.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fixtures"))

from equitrans import Pair, Trained, TransducerConfig, fit, load_split
from equitrans.data import CLASSES, everything
from tongues import TONGUES, spoil

RECURSIVE = TransducerConfig(aligner="recursive")

SPLITS = [
    "simple", "add_jump", "add_turn_left", "around_right", "opposite_right", "right",
    "jump_around_right", "length", *(f"simple_p{p}" for p in (1, 2, 4, 8, 16, 32, 64)),
]  # fmt: skip

SIZES = [10, 20, 30, 50, 75, 100, 200]


def main() -> None:
    """Run one of the four measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["splits", "noise", "draws", "tongues"])
    parser.add_argument("--scan-dir", help="folder of the official SCAN files")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    {"splits": splits, "noise": noise, "draws": draws, "tongues": tongues}[asked.what](asked)


def splits(asked: argparse.Namespace) -> None:
    """Print accuracy, rules, and seconds of learning and evaluation for every split."""
    for name in SPLITS:
        split = load_split(name, asked.scan_dir)
        began = time.process_time()
        trained = fit(split.train, "discover", model=RECURSIVE)
        learned = time.process_time()
        accuracy = trained.score(split.test)
        judged = time.process_time()
        rules = len(trained.model.learned.grammar)
        print(
            f"{name:18} {100 * accuracy:6.2f} %  {rules} rules  "
            f"learned in {learned - began:.1f} s, evaluated in {judged - learned:.1f} s",
            flush=True,
        )


def noise(asked: argparse.Namespace) -> None:
    """Learn Length with some wrong targets."""
    split = load_split("length", asked.scan_dir)
    words = sorted({word for pair in split.train for word in pair.target})
    for share in (0.01, 0.05):
        for seed in range(3):
            draw = random.Random(seed)
            train = list(split.train)
            wrong = set()
            for i in draw.sample(range(len(train)), round(share * len(train))):
                train[i] = Pair(train[i].source, spoil(draw, train[i].target, words))
                wrong.add(train[i])
            began = time.process_time()
            trained = fit(train, "discover", model=RECURSIVE)
            seconds = time.process_time() - began
            listed = {pair for pair, _ in trained.model.learned.exceptions}
            print(
                f"length, {100 * share:.0f} % wrong, seed {seed}: "
                f"{100 * trained.score(split.test):.2f} %; {len(wrong & listed)} of {len(wrong)} "
                f"wrong pairs listed, {len(listed - wrong)} correct pairs listed; "
                f"{len(trained.model.learned.grammar)} rules, {seconds:.1f} s",
                flush=True,
            )


def draws(asked: argparse.Namespace) -> None:
    """Learn from random commands and print the accuracy on all others."""
    commands = everything()
    found: dict[int, list[float]] = {}
    for size in SIZES:
        found[size] = []
        for seed in range(asked.draws):
            train = random.Random(seed).sample(commands, size)
            seen = set(train)
            trained = fit(train, CLASSES["both"], model=RECURSIVE)
            rest = [p for p in commands if p not in seen]
            right = sum(is_right(trained, p) for p in rest)
            found[size].append(100 * right / len(rest))
        row = found[size]
        print(
            f"{size:4} commands: mean {statistics.mean(row):5.1f}, median "
            f"{statistics.median(row):5.1f}, {sum(a == 100 for a in row)} of {len(row)} at 100; "
            + " ".join(f"{a:.1f}" for a in row),
            flush=True,
        )
    if asked.plot is not None:
        plot(found, asked.plot)


def is_right(trained: Trained, pair: Pair) -> bool:
    """Return whether the likeliest alignment gives the target; False if a word is unknown."""
    symmetry = trained.symmetry
    if any(word not in symmetry.source.index for word in pair.source):
        return False
    target = trained.model.translate(symmetry.source.encode(pair.source))
    return target is not None and symmetry.target.decode(target) == pair.target


def plot(found: dict[int, Sequence[float]], path: Path) -> None:
    """Draw every draw as a dot and the mean as a line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.2), layout="constrained")
    panel = figure.subplots()
    for size, row in found.items():
        panel.plot([size] * len(row), row, ".", color="0.6", markersize=4)
    panel.plot(list(found), [statistics.mean(row) for row in found.values()], "o-", color="C0")
    panel.set_xscale("log")
    panel.set_xticks(list(found), [str(size) for size in found])
    panel.set_xlabel("random SCAN commands to learn from")
    panel.set_ylabel("exact match on the others, %")
    figure.savefig(path, dpi=150)


def tongues(asked: argparse.Namespace) -> None:
    """Learn the small languages of the tests, with 0, 1 and 5 % of the pairs wrong."""
    for tongue in TONGUES:
        for share in (0.0, 0.01, 0.05):
            cells = []
            for seed in range(3):
                train, wrong = tongue.pairs(300, seed=seed, wrong=share)
                trained = fit(train, tongue.classes, model=RECURSIVE)
                judge = tongue.judge(train, 100, seed=seed)
                listed = {pair for pair, _ in trained.model.learned.exceptions}
                caught = len(listed & set(wrong))
                cells.append(f"{100 * trained.score(judge):.0f} ({caught}/{len(set(wrong))})")
            print(f"{tongue.name:28} {100 * share:.0f} % wrong: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
