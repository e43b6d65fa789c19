"""Measure accuracy and speed of the discovery of classes: the figures of docs/discover.md.

python bench/discovery.py [--scan-dir SCAN]
"""

import argparse
import random
import time

from rich.console import Console
from rich.table import Table

from equitrans.data import (
    DIRECTIONS,
    RULES,
    VERBS,
    Discovery,
    Pair,
    discover,
    everything,
    load_split,
)

BOTH = {frozenset(zip(c.source, c.target, strict=True)) for c in (VERBS, DIRECTIONS)}


def main() -> None:
    """Measure splits, random draws, noise and scale."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scan-dir", help="folder of the official SCAN files")
    scan_dir = parser.parse_args().scan_dir
    console = Console(highlight=False)
    table = Table("pairs", "classes", "misfits", "seconds of CPU", box=None)
    for name in RULES:
        row(table, name, load_split(name, scan_dir).train)
    for share in (0.01, 0.05):
        pairs, wrong = corrupted(load_split("length").train, share)
        found = row(table, f"length, {share:.0%} wrong", pairs)
        listed = len(wrong & set(found.misfits))
        console.print(f"{listed} of {len(wrong)} wrong pairs listed", style=None)
    for share in (0.0, 0.02):
        row(table, f"large, {share:.0%} wrong", corrupted(large(), share)[0])
    console.print(table)
    everything_there_is = list(everything())
    for count in (50, 100, 150, 200, 300):
        verdicts = [
            verdict(discover(random.Random(seed).sample(everything_there_is, count)))
            for seed in range(20)
        ]
        console.print(
            f"{count} random commands, 20 draws: "
            + ", ".join(f"{verdicts.count(v)} {v}" for v in ("exact", "a part", "wrong"))
        )


def row(table: Table, name: str, pairs: list[Pair] | tuple[Pair, ...]) -> Discovery:
    """Discover classes and add a row to the table."""
    started = time.process_time()
    found = discover(pairs)
    seconds = time.process_time() - started
    sizes = ", ".join(str(len(c.source)) for c in found.classes)
    told = verdict(found) if found.classes and len(found.classes[0].source) < 10 else sizes
    table.add_row(name, told, str(len(found.misfits)), f"{seconds:.1f}")
    return found


def verdict(found: Discovery) -> str:
    """Compare the classes found with those of SCAN."""
    classes = {frozenset(zip(c.source, c.target, strict=True)) for c in found.classes}
    if classes == BOTH:
        return "exact"
    return "a part" if all(any(c <= right for right in BOTH) for c in classes) else "wrong"


def corrupted(pairs: tuple[Pair, ...] | list[Pair], share: float) -> tuple[list[Pair], set[Pair]]:
    """Return distinct pairs, some of them with the target of another pair."""
    draw, pairs = random.Random(0), list(dict.fromkeys(pairs))
    wrong = set()
    for i in draw.sample(range(len(pairs)), round(share * len(pairs))):
        pairs[i] = Pair(pairs[i].source, draw.choice(pairs).target)
        wrong.add(pairs[i])
    return pairs, wrong


def large() -> list[Pair]:
    """Generate a hundred thousand pairs with six thousand verbs and four thousand nouns."""
    draw = random.Random(0)
    verbs, nouns = [f"v{i}" for i in range(6000)], [f"n{i}" for i in range(4000)]
    pairs = []
    for _ in range(100_000):
        (v, w), (n, m) = draw.choices(verbs, k=2), draw.choices(nouns, k=2)
        forms = [
            (f"{v}", f"{v}"),
            (f"{v} twice", f"{v} {v}"),
            (f"{v} the {n}", f"{n} {v}"),
            (f"{v} and {w}", f"{v} {w}"),
            (f"{v} {n} to the {m}", f"{v} {m} {n}"),
        ]
        source, target = draw.choice(forms)
        pairs.append(Pair(tuple(source.split()), tuple(target.upper().split())))
    return pairs


if __name__ == "__main__":
    main()
