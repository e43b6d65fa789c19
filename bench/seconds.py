"""How long a training takes from nothing to a chosen model, and what that model is worth.

    python bench/seconds.py --split add_jump --seeds 5
    python bench/seconds.py --device cuda --set training.batch=64 training.updates=1500

Each seed is trained with its recipe to the end, validation included, on one thread; validation
chooses the epoch, and the test is looked at once, after the clock has stopped. Imports and the
making of the data are not counted.
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from equitrans.analysis.evaluation import evaluate
from equitrans.data.batches import Rows
from equitrans.data.source import load_data
from equitrans.models import build
from equitrans.paper.base import Model
from equitrans.paper.symmetry import Symmetry
from equitrans.training.config import RunConfig, recipe
from equitrans.training.loop import TrainState, train


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--split", default="add_jump")
    parser.add_argument("--scan-dir", help="the official files; Simple is drawn at random")
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {name: _value(text) for name, _, text in (s.partition("=") for s in asked.set)}
    settings = {"split": asked.split, "scan_dir": asked.scan_dir}
    settings |= recipe(asked.recipe, asked.split) | chosen
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    if asked.device != "cpu":
        measure(settings | {"training.epochs": 2}, seed=0, device=asked.device)  # libraries load
    found = [measure(settings, seed=seed, device=asked.device) for seed in seeds]
    middle = statistics.median(row["seconds"] for row in found)
    print(f"median {middle:.1f} s, exact match {[row['exact_match'] for row in found]}")
    if asked.out:
        asked.out.write_text(json.dumps({"settings": settings, "seeds": found}, indent=2) + "\n")


def measure(settings: dict[str, Any], *, seed: int, device: str) -> dict[str, Any]:
    """One training."""
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
