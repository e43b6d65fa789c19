"""Time and memory of discovery and of learning rules, over the number of pairs made from a grammar.

    python bench/scale.py --pairs 1000 10000 100000 --record records/scale.jsonl
    python bench/scale.py --pairs 100000 --steps rules --workers 2
    python bench/scale.py --pairs 100000 --steps rules --ray local
    python bench/scale.py --pairs 100000 --profile

Every measurement runs in a process of its own: seconds of CPU time and the peak of its memory. With
workers, their CPU time is counted too; ``grammar`` is the same if rules and their support are.
"""

import argparse
import cProfile
import hashlib
import json
import pstats
import random
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from equitrans import Pair, TransducerConfig, discover, fit
from equitrans.experiments import spread_locally, spread_on_ray
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


@contextmanager
def divided(workers: int, ray: str | None) -> Iterator[None]:
    """Divide the work between processes or on Ray."""
    if ray is not None:
        with spread_on_ray(None if ray == "local" else ray):
            yield
    elif workers > 1:
        with spread_locally(workers):
            yield
    else:
        yield


def measure(
    what: str, number: int, seed: int, workers: int, ray: str | None, *, profile: bool
) -> dict[str, object]:
    """Measure one step in this process and its workers."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    pairs = made(number, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    profiler = cProfile.Profile()
    started, clock = time.process_time(), time.monotonic()
    if profile:
        profiler.enable()
    if what == "discovery":
        found: dict[str, object] = {"classes": len(discover(pairs).classes)}
    else:
        with divided(workers, ray):
            grammar = fit(pairs, classes(), model=TransducerConfig(aligner="recursive")).grammar
        assert grammar is not None
        text = json.dumps([grammar.texts, grammar.support, grammar.bits])
        found = {
            "rules": grammar.grammar.parents,
            "unexplained": len(grammar.exceptions),
            "grammar": hashlib.sha256(text.encode()).hexdigest()[:8],
        }
    profiler.disable()
    seconds = time.process_time() - started
    if workers > 1 or ray is not None:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        found |= {"workers": ray or workers, "wall": round(time.monotonic() - clock, 1)}
        found["workers' CPU seconds"] = round(used.ru_utime + used.ru_stime, 1)
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
    parser.add_argument("--workers", type=int, default=1, help="processes that learn rules")
    parser.add_argument("--ray", metavar="ADDRESS", help="a Ray cluster; 'local' starts one")
    parser.add_argument("--profile", action="store_true", help="show which functions take the time")
    parser.add_argument("--record", type=Path, help="a file to which lines are appended")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    asked = parser.parse_args()
    for number in asked.pairs:
        for what in asked.steps:
            if asked.here or asked.profile:
                how = asked.seed, asked.workers, asked.ray
                line = json.dumps(measure(what, number, *how, profile=asked.profile))
            else:
                options = ["--pairs", str(number), "--steps", what, "--seed", str(asked.seed)]
                options += ["--workers", str(asked.workers)]
                options += [] if asked.ray is None else ["--ray", asked.ray]
                program = [sys.executable, __file__, *options, "--here"]
                done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
                line = done.stdout.strip()
            print(line, flush=True)
            if asked.record is not None:
                with asked.record.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
