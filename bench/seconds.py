"""Measure the time from the start of training to the selected model, and its test accuracy.

    python bench/seconds.py --split add_jump --seeds 5
    python bench/seconds.py --device cuda --set training.batch=64 training.updates=1500

Each seed is trained with its recipe to the end, including validation, on one thread. Validation
chooses the epoch. The model is tested once, after the clock has stopped. Imports and data
generation are not counted.
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from equitrans.analysis import evaluate
from equitrans.data import Rows, load_data
from equitrans.models import build
from equitrans.paper import Model, Symmetry
from equitrans.training import RunConfig, recipe
from equitrans.training.loop import TrainState, train


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--split", default="add_jump")
    parser.add_argument("--scan-dir", help="folder of the official SCAN files, for Simple")
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {name: _value(text) for name, _, text in (s.partition("=") for s in asked.set)}
    settings = {"split": asked.split, "scan_dir": asked.scan_dir}
    settings |= recipe(asked.recipe, asked.split) | chosen
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    if asked.device != "cpu":
        measure(
            settings | {"training.epochs": 2}, seed=0, device=asked.device
        )  # warm-up: libraries are loaded
    found = [measure(settings, seed=seed, device=asked.device) for seed in seeds]
    middle = statistics.median(row["seconds"] for row in found)
    print(f"median {middle:.1f} s, exact match {[row['exact_match'] for row in found]}")
    if asked.out:
        asked.out.write_text(json.dumps({"settings": settings, "seeds": found}, indent=2) + "\n")


def measure(settings: dict[str, Any], *, seed: int, device: str) -> dict[str, Any]:
    """Train once and return the figures."""
    config = RunConfig.from_settings(settings | {"seed": seed})
    data = load_data(config.data, seed=seed)
    pairs = data.train + data.valid
    symmetry = Symmetry.of(data.classes, pairs, config.model.group)
    torch.manual_seed(seed)
    started = time.perf_counter()
    model: Model = build(config.model, symmetry).to(device)
    rows, valid = (Rows.of(part, model.sharing) for part in (data.train, data.valid))
    state = TrainState.new(model, config.training, seed=seed)
    solved = math.nan
    for epoch in train(state, rows, valid, config.training):
        if math.isnan(solved) and epoch.valid_accuracy == 1.0:
            solved = time.perf_counter() - started
    model.load_state_dict(state.best)
    if device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    report = evaluate(model, data.test, width=1, max_length=100)
    row = {
        "seed": seed,
        "seconds": round(seconds, 2),
        "validation_solved_after": round(solved, 2),
        "updates": state.updates,
        "milliseconds_per_update": round(1000 * seconds / state.updates, 3),
        "exact_match": round(100 * report.exact_match, 2),
    }
    print(json.dumps(row), flush=True)
    return row


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


if __name__ == "__main__":
    main()
