"""Measure how the learning time of a recursive aligner grows with forms, lengths and rules.

    python bench/recursive.py

On one core; each line is one learning run on pairs drawn with seed 0.
"""

import random
import resource
import sys
import time
from pathlib import Path

import torch

sys.path[:0] = [
    str(Path(__file__).parent.parent / "tests" / folder) for folder in ("fixtures", "oracles")
]

from equitrans import Pair, TransducerConfig, fit
from tongues import Tongue

CHAIN = [("C", "0"), ("S then C", "0 2"), ("S before C", "2 0"), ("( S )", "1")]
CLAUSE = [("P <v> P", "1 0 2"), ("P <v>", "1 0"), ("P <v> twice", "1 0 1 0")]
PHRASE = [("<n>", "0"), ("<j> <n>", "1 0"), ("the <n>", "1"), ("P of <n>", "2 0")]


def tongue(more: int = 0) -> Tongue:
    """Return a language of clauses with additional conjunctions."""
    joins = [(f"S join{i} C", "0 2" if i % 2 else "2 0") for i in range(more)]
    return Tongue("long", {"S": [*CHAIN, *joins], "C": CLAUSE, "P": PHRASE}, longest=30)


def measure(what: str, language: Tongue, pairs: int, shortest: int, longest: int) -> None:
    draw, found = random.Random(0), []
    while len(found) < pairs:
        source, target = language.say(draw, draw.randint(4, 9))
        if shortest <= len(source) <= longest and 0 < len(target) <= 60:
            found.append(Pair(tuple(source), tuple(target)))
    began = time.perf_counter()
    learned = fit(
        found, language.classes, model=TransducerConfig(aligner="recursive")
    ).model.learned
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what:28} {seconds:7.1f} s  {len(learned.grammar):2} rules  "
        f"{len(learned.exceptions)} exceptions  peak {memory:.0f} MiB so far",
        flush=True,
    )


def main() -> None:
    """Measure three series."""
    torch.set_num_threads(1)
    for pairs in (250, 500, 1000, 2000, 4000):
        measure(f"{pairs} pairs, up to 30 words", tongue(), pairs, 1, 30)
    for longest in (10, 15, 20, 25, 30):
        measure(f"500 pairs, {longest - 5}-{longest} words", tongue(), 500, longest - 5, longest)
    for more in (0, 4, 8, 16):
        measure(f"500 pairs, {more} more joins", tongue(more), 500, 1, 15)


if __name__ == "__main__":
    main()
