"""Run the long versions of the reliability tests and record the results.

    make reliability
    python bench/reliability.py kills-train determinism limits hostile

Each part writes a file under records/reliability, from which ``make results`` updates the figures
of docs/reliability.md.
"""

import argparse
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("fixtures", "oracles")]

import attacks
import explorer
import hostile
import torch

import kills
from equitrans import __version__, settings
from equitrans.cli.main import main
from equitrans.data import Pair
from equitrans.experiments import commit
from equitrans.models import TransducerConfig
from equitrans.paper import LexicalClass
from equitrans.training import WEIGHTS, TrainingConfig, fit

RECORDS = ROOT / "records" / "reliability"
Row = dict[str, Any]


def kill(work: str, count: int, *, processes: int = 2) -> list[Row]:
    """Kill some work ``count`` times, divided between parallel processes."""
    started = [
        subprocess.Popen(
            [
                *(sys.executable, kills.__file__, "--seed", str(seed)),
                f"{work}={count // processes}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(processes)
    ]
    found = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        sys.exit(f"{work} differs from a run without kills")
    parts = [json.loads(line) for line in found]
    row = {key: sum(p[key] for p in parts) for key in parts[0] if key != "work"}
    row["files compared in each"] = parts[0]["files compared in each"]
    return [{"work": work} | row]


def determine() -> list[Row]:
    """Check that a seed gives one SHA-256 of weights in any process, with one to four workers."""
    rows = []
    with tempfile.TemporaryDirectory() as place, kills.prepared(Path(place)):
        for name, work, counts in (
            ("train", _train, (1, 1, 1)),
            ("reproduce", _reproduce, (1, 1, 2, 3, 4)),
        ):
            seen = []
            for number, workers in enumerate(counts):
                folder = Path(place) / f"{name}{number}"
                folder.mkdir()
                if kills.wait(kills.start(partial(work, workers=workers), folder)) != 0:
                    sys.exit((folder / "said").read_text())
                files = sorted(folder.rglob(WEIGHTS))
                seen.append([hashlib.sha256(p.read_bytes()).hexdigest() for p in files])
            if any(each != seen[0] for each in seen):
                sys.exit(f"{name}: one seed gave different weights")
            rows.append(
                {
                    "work": name,
                    "repetitions": len(counts),
                    "workers": "–" if name == "train" else "1 to 4",
                    "models": len(seen[0]),
                    "SHA-256 of each": max(len(set(each)) for each in zip(*seen, strict=True)),
                }
            )
    return rows


def _train(folder: Path, *, workers: int) -> int:
    assert workers == 1  # training has no other workers
    return kills.training(folder)


def _reproduce(folder: Path, *, workers: int) -> int:
    places = ("--records", str(folder / "records"), "--runs", str(folder / "runs"))
    more = ("--workers", str(workers), "--keep", "--quiet")
    return main(["reproduce", "table1", *places, *more])


# --- the limits


def long_sentences(folder: Path) -> int:
    """Train for an epoch on pairs of the longest allowed sentences, and decode."""
    words = [f"w{i}" for i in range(20)]
    draw = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(16):
        numbers = torch.randint(0, 20, (settings.LONGEST_SENTENCE,), generator=draw).tolist()
        source = tuple(words[i] for i in numbers)
        pairs.append(Pair(source, tuple(w.upper() for w in source)))
    verbs = LexicalClass("some", tuple(words[:4]), tuple(w.upper() for w in words[:4]))
    return _learn(pairs, [verbs], TransducerConfig(), TrainingConfig(epochs=1))


def many_words(folder: Path) -> int:
    """Train and decode with the largest allowed vocabulary and the largest allowed class."""
    pairs = []
    for start in range(0, settings.LARGEST_VOCABULARY, 10):
        source = tuple(f"w{i}" for i in range(start, start + 10))
        pairs.append(Pair(source, tuple(w.upper() for w in source)))
    words = [f"w{i}" for i in range(settings.LARGEST_CLASS)]
    some = LexicalClass("some", tuple(words), tuple(w.upper() for w in words))
    return _learn(pairs, [some], TransducerConfig(k=8, d=8), TrainingConfig(seconds=60.0))


def _learn(
    pairs: list[Pair],
    classes: list[LexicalClass],
    model: TransducerConfig,
    training: TrainingConfig,
) -> int:
    trained = fit(pairs, classes, model=model, training=training)
    predicted = trained.predict([pairs[0].source])[0]
    return 0 if math.isfinite(predicted.log_prob) and predicted.words else 1


def reach() -> list[Row]:
    """Measure the peak memory at the limits, each in a separate process."""
    rows = []
    torch.set_num_threads(1)
    for name, work in (
        (f"sentences of {settings.LONGEST_SENTENCE:,} words", long_sentences),
        (
            f"vocabularies of {settings.LARGEST_VOCABULARY:,} words, "
            f"a class of {settings.LARGEST_CLASS:,}",
            many_words,
        ),
    ):
        with tempfile.TemporaryDirectory() as place:
            started = time.monotonic()
            child = kills.start(work, Path(place))
            _, status, used = os.wait4(child, 0)
            if status:
                sys.exit(f"{name}: {(Path(place) / 'said').read_text()}")
            rows.append(
                {
                    "trained and decoded": name,
                    "most memory, MB": round(used.ru_maxrss / 1000),
                    "seconds": round(time.monotonic() - started),
                }
            )
    return rows


# --- the explorer


def besiege() -> list[Row]:
    """Send ten thousand requests of fifty clients to the explorer; no answer may be an error."""
    with tempfile.TemporaryDirectory() as place:
        rows = explorer.measure(explorer.train(Path(place)))
    if any(row["errors"] for row in rows):
        sys.exit("the explorer answered with an error")
    return rows


def attack() -> list[Row]:
    """Attack the explorer; ordinary requests must be answered in time, in bounded memory."""
    with tempfile.TemporaryDirectory() as place:
        rows = attacks.measure(attacks.make_models(Path(place)))
    if wrong := attacks.broken(rows):
        sys.exit("the explorer under attack: " + "; ".join(wrong))
    return rows


# --- hostile directories and files


def endure() -> list[Row]:
    """Run commands on damaged directories and files; none may fail in a way of its own."""
    rows, findings = hostile.attack()
    if findings:
        sys.exit(f"{findings} findings")
    return rows


PARTS: dict[str, Callable[[], list[Row]]] = {
    "kills-train": partial(kill, "train", 200),
    "kills-search": partial(kill, "search", 50),
    "kills-reproduce": partial(kill, "reproduce", 50),
    "determinism": determine,
    "limits": reach,
    "explorer": besiege,
    "explorer-attacks": attack,
    "hostile": endure,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    asked = parser.parse_args()
    if unknown := set(asked.parts) - PARTS.keys():
        parser.error(f"{min(unknown)} is not one of {', '.join(PARTS)}")
    RECORDS.mkdir(parents=True, exist_ok=True)
    for part in asked.parts or PARTS:
        content = {
            "made": time.strftime("%Y-%m-%d"),
            "commit": commit(),
            "version": {
                "equitrans": __version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
            "rows": PARTS[part](),
        }
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (RECORDS / f"{part}.json").write_text(text, encoding="utf-8")
        print(text, end="", flush=True)
