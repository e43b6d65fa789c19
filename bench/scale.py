"""Time and memory of discovery and of learning rules, over the number of pairs made from a grammar.

    python bench/scale.py --pairs 1000 10000 100000 --record records/scale.jsonl
    python bench/scale.py --pairs 100000 --profile

Every measurement runs in a process of its own: seconds of CPU time and the peak of its memory.
"""

import argparse
import cProfile
import json
import pstats
import random
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

from equitrans import Pair, TransducerConfig, discover, fit
from equitrans.paper import LexicalClass

NOUNS, VERBS, NAMES, PLACES = (
    tuple(f"{letter}{i}" for i in range(number))
    for letter, number in (("n", 200), ("v", 60), ("p", 100), ("l", 20))
)


def sentences(draw: random.Random) -> Iterator[Pair]:
    """Pairs of a grammar with four classes and eleven rules, without end."""

    def phrase(depth: int) -> tuple[str, str]:
        kind = draw.randrange(4 if depth else 2)
        if kind == 0:
            name = draw.choice(NAMES)
            return name, name.upper()
        noun = draw.choice(NOUNS)
        if kind == 1:
            return f"the {noun}", noun.upper()
        (x, y), place = phrase(depth - 1), draw.choice(PLACES)
        if kind == 2:
            return f"{x} in {place}", f"{place.upper()} {y}"
        other = phrase(0)
        return f"{x} with {other[0]}", f"{y} WITH {other[1]}"

    def clause(depth: int) -> tuple[str, str]:
        verb, (x, y) = draw.choice(VERBS), phrase(depth)
        kind = draw.randrange(3)
        if kind == 0:
            return f"{x} {verb}", f"{verb.upper()} {y}"
        if kind == 1:
            return f"{x} {verb} twice", f"{verb.upper()} {y} {verb.upper()} {y}"
        z, t = phrase(depth)
        return f"{x} {verb} {z}", f"{verb.upper()} {y} {t}"

    while True:
        source, target = clause(draw.choice((0, 0, 1, 2)))
        if draw.random() < 0.3:
            more = clause(draw.choice((0, 1)))
            joined = draw.choice(("and", "after"))
            source = f"{source} {joined} {more[0]}"
            target = f"{target} {more[1]}" if joined == "and" else f"{more[1]} {target}"
        yield Pair(tuple(source.split()), tuple(target.split()))


def made(number: int, seed: int) -> list[Pair]:
    """Return distinct pairs."""
    found: dict[Pair, None] = {}
    for pair in sentences(random.Random(seed)):
        found[pair] = None
        if len(found) == number:
            return list(found)
    raise AssertionError


def classes() -> list[LexicalClass]:
    """Return the classes of the grammar."""
    sides = {"nouns": NOUNS, "verbs": VERBS, "names": NAMES, "places": PLACES}
    return [LexicalClass(n, words, tuple(map(str.upper, words))) for n, words in sides.items()]


def measure(what: str, number: int, seed: int, *, profile: bool) -> dict[str, object]:
    """Measure one step in this process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    pairs = made(number, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    profiler = cProfile.Profile()
    started = time.process_time()
    if profile:
        profiler.enable()
    if what == "discovery":
        found: dict[str, object] = {"classes": len(discover(pairs).classes)}
    else:
        grammar = fit(pairs, classes(), model=TransducerConfig(aligner="recursive")).grammar
        assert grammar is not None
        found = {"rules": grammar.grammar.parents, "unexplained": len(grammar.exceptions)}
    profiler.disable()
    seconds = time.process_time() - started
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "step": what,
        "pairs": number,
        "seed": seed,
        "CPU seconds": round(seconds, 1),
        "peak MiB": round(peak),
        "of which pairs": round(before),
        **found,
    }


def main() -> None:
    """Measure each step at each size, and print or append one JSON line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--steps", nargs="+", default=["discovery", "rules"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="show which functions take the time")
    parser.add_argument("--record", type=Path, help="a file to which lines are appended")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    asked = parser.parse_args()
    for number in asked.pairs:
        for what in asked.steps:
            if asked.here or asked.profile:
                line = json.dumps(measure(what, number, asked.seed, profile=asked.profile))
            else:
                options = ["--pairs", str(number), "--steps", what, "--seed", str(asked.seed)]
                program = [sys.executable, __file__, *options, "--here"]
                done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
                line = done.stdout.strip()
            print(line, flush=True)
            if asked.record is not None:
                with asked.record.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
