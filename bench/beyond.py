"""Rules for other benchmarks: python bench/beyond.py --data-dir COGS, or --pcfg PCFG

COGS has train.tsv, dev.tsv, test.tsv and a file of generalisation sentences, with three columns:
source, target and kind. PCFG has train.tsv and test-sample.tsv with two columns. Every row of the
table is one training; its seconds are CPU time.
"""

import argparse
import json
import random
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from equitrans import TransducerConfig, fit
from equitrans.data import Pair

SLOG = ("center_embed", "cp_4", "object_modifying_RC", "pp_4", "standalone", "wh_Q")
"""Beginnings of the kinds that SLOG adds to the training pairs of COGS."""

Row = tuple[Pair, str]


def read(path: Path) -> list[Row]:
    """The pairs of a file with their kinds."""
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [(Pair(tuple(x.split()), tuple(y.split())), "".join(kind)) for x, y, *kind in lines]


def spoiled(pairs: Sequence[Pair], share: float, seed: int) -> list[Pair]:
    """The pairs, with one wrong word in a share of the targets."""
    rng = random.Random(seed)
    words = sorted({word for pair in pairs for word in pair.target})
    found = []
    for pair in pairs:
        target = list(pair.target)
        if rng.random() < share:
            target[rng.randrange(len(target))] = rng.choice(words)
        found.append(Pair(pair.source, tuple(target)))
    return found


def training_sets(rows: Sequence[Row], seed: int) -> dict[str, list[Pair]]:
    """The pairs of each training, by name."""
    pairs = [pair for pair, _ in rows]
    single = [pair for pair, kind in rows if kind == "primitive" or kind.startswith("exposure")]
    rng = random.Random(seed)
    sets = {
        "all pairs": pairs,
        "COGS's own kinds": [pair for pair, kind in rows if not kind.startswith(SLOG)],
        "all pairs, 1 % spoiled": spoiled(pairs, 0.01, seed),
    }
    for n in (1000, 5000):
        sets[f"{n} random pairs and single words"] = [*rng.sample(pairs, n), *single]
    return sets


def measure(pairs: Sequence[Pair], tests: dict[str, list[Row]]) -> dict[str, object]:
    """Train once; the figures of each test file, with the kinds below 100."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = fit(pairs, "discover", model=TransducerConfig(aligner="recursive"))
    found: dict[str, object] = {
        "pairs": len(pairs),
        "seconds": round(time.process_time() - started, 1),
        "rules": 0 if trained.grammar is None else trained.grammar.grammar.parents,
    }
    for name, rows in tests.items():
        best = trained.predict([pair.source for pair, _ in rows])
        right, total = Counter[str](), Counter(kind for _, kind in rows)
        for prediction, (pair, kind) in zip(best, rows, strict=True):
            right[kind] += not prediction.refused and prediction.words == pair.target
        refused = sum(prediction.refused for prediction in best)
        kinds = {k: f"{right[k]} of {n}" for k, n in total.items() if right[k] < n}
        share = round(100 * right.total() / len(rows), 2)
        found[name] = {"exact match": share, "refused": refused, "below 100": kinds}
    return found


def main() -> None:
    """Print one JSON line for every training."""
    parser = argparse.ArgumentParser(description=__doc__)
    asking = parser.add_mutually_exclusive_group(required=True)
    asking.add_argument("--data-dir", type=Path)
    asking.add_argument("--pcfg", type=Path)
    parser.add_argument("--gen", default="gen-sample.tsv", help="file of generalisation sentences")
    parser.add_argument("--only", default="", help="only trainings with this text in their names")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.pcfg:
        pairs = [pair for pair, _ in read(asked.pcfg / "train.tsv")]
        tests = {"test-sample.tsv": read(asked.pcfg / "test-sample.tsv")}
        print(json.dumps({"training": "PCFG SET", **measure(pairs, tests)}))
        return
    tests = {name: read(asked.data_dir / name) for name in ("dev.tsv", "test.tsv", asked.gen)}
    for name, pairs in training_sets(read(asked.data_dir / "train.tsv"), asked.seed).items():
        if asked.only in name:
            print(json.dumps({"training": name, **measure(pairs, tests)}), flush=True)


if __name__ == "__main__":
    main()
