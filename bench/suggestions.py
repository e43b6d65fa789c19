"""Measure how many SCAN commands rules need if each next command is suggested or random.

    python bench/suggestions.py --draws 20

Each draw starts with random commands and adds one at a time: in one series the first suggestion
that is a command, in the other a random command. One JSON line per draw has the number of commands
at which a sample of all commands is right for the first time. A suggestion that is no command
counts as a question, but adds nothing.
"""

import argparse
import json
import os
import random
import statistics
import time
import warnings
from collections.abc import Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from equitrans import Pair, Trained, TransducerConfig, fit
from equitrans.data import CLASSES, everything

MOST, SAMPLE = 120, 400
"""Largest number of commands, and number of test commands."""


def main() -> None:
    """Run the draws and print their rows, then the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--start", type=int, default=20, help="number of first commands")
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = [series(seed, asked.start) for seed in range(asked.first, asked.first + asked.draws)]
    for kind in ("suggested", "random"):
        print(kind, "median", statistics.median(row[kind] for row in rows))


def series(seed: int, start: int) -> dict[str, int]:
    """The numbers of commands that suggested and random commands need."""
    draw = random.Random(seed)
    commands = list(everything())
    order = draw.sample(commands, MOST)
    test = draw.sample(commands, SAMPLE)
    began = time.process_time()
    row = {"seed": seed, "suggested": asked_for(order[:start], commands, test)}
    row["random"] = next(
        (n for n in range(start, MOST, 5) if is_right(learn(order[:n]), test)), MOST
    )
    row["seconds"] = round(time.process_time() - began)
    print(json.dumps(row), flush=True)
    return row


def asked_for(pairs: list[Pair], commands: Sequence[Pair], test: Sequence[Pair]) -> int:
    """The number of pairs and questions after which all test commands are right."""
    answers = {pair.source: pair for pair in commands}
    pairs, refused = list(pairs), set()
    while len(pairs) + len(refused) < MOST:
        trained = learn(pairs)
        if is_right(trained, test):
            break
        known = {pair.source for pair in pairs} | refused
        found = [s.source for s in trained.suggest(20) if s.source not in known]
        if not found:
            return MOST
        if found[0] in answers:
            pairs.append(answers[found[0]])
        else:
            refused.add(found[0])
    return len(pairs) + len(refused)


def learn(pairs: Sequence[Pair]) -> Trained:
    """Rules for the verbs and directions of SCAN."""
    return fit(pairs, CLASSES["both"], model=TransducerConfig(aligner="recursive"))


def is_right(trained: Trained, test: Sequence[Pair]) -> bool:
    """Whether all test commands are right; the first wrong one ends the test."""
    for at in range(0, len(test), 50):
        part = test[at : at + 50]
        answers = trained.predict([pair.source for pair in part])
        if any(a.refused or a.words != p.target for a, p in zip(answers, part, strict=True)):
            return False
    return True


if __name__ == "__main__":
    main()
