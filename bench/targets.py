"""Cross-validation over targets: how a recipe does on targets that training does not have.

    python bench/targets.py FILE --recipe trees --parts 3 --judged 2

Each part of the distinct targets is held out in turn. Prints right, wrong and refused answers, and
what they are with answers of at least a probability only.
"""

import argparse
import math
import random
import time
import warnings
from pathlib import Path

import torch

from equitrans import fit
from equitrans.data import read_pairs
from equitrans.training import RunConfig, recipe


def main() -> None:
    """Train on all parts but one, judge the pairs of that part, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--recipe", default="trees")
    parser.add_argument("--parts", type=int, default=3)
    parser.add_argument("--judged", type=int, help="number of parts that are judged")
    parser.add_argument("--updates", type=int, help="number of updates of each training")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    pairs = read_pairs(asked.file)
    targets = sorted({pair.target for pair in pairs})
    random.Random(asked.seed).shuffle(targets)
    settings = recipe(asked.recipe, None) | {"file": str(asked.file), "seed": asked.seed}
    if asked.updates is not None:
        settings["training.updates"] = asked.updates
    config = RunConfig.from_settings(settings)
    answers: list[tuple[float, bool]] = []
    judged, started = 0, time.process_time()
    for k in range(asked.judged or asked.parts):
        held = {*targets[k :: asked.parts]}
        others = [pair for pair in pairs if pair.target not in held]
        asks = [pair for pair in pairs if pair.target in held]
        trained = fit(others, (), model=config.model, training=config.training, seed=asked.seed)
        for pair, answer in zip(asks, trained.predict([p.source for p in asks]), strict=True):
            judged += 1
            if not answer.refused:
                answers.append((math.exp(answer.log_prob), answer.gives(pair.target)))
    print(f"{judged} pairs, {time.process_time() - started:.0f} s of CPU time")
    for least in (0.0, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9):
        some = [right for p, right in answers if p >= least]
        wrong, refused = len(some) - sum(some), judged - len(some)
        print(f"p ≥ {least}: {sum(some)} right, {wrong} wrong, {refused} refused")


if __name__ == "__main__":
    main()
