"""Check the CUDA graphs of training on a GPU; exit with status 1 if they compute something else.

    python bench/graphs.py --out records/reliability/graphs.json

1. Dropout differs between two replays of one graph.
2. Fifty updates without dropout give the weights that the CPU gives, within rounding error.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from equitrans.data import Rows, load_split
from equitrans.data.scan import CLASSES
from equitrans.experiments.jobs import machine
from equitrans.models import AttentionConfig, GordonConfig, RussinConfig, TransducerConfig, build
from equitrans.models.configs import ModelConfig
from equitrans.paper import Model, Symmetry
from equitrans.training import TrainingConfig
from equitrans.training.loop import TrainState, train

UPDATES = 50
PAIRS = load_split("simple_p1").train
SYMMETRY = Symmetry.of(CLASSES["verbs"], PAIRS)
CONFIGS: dict[str, ModelConfig] = {
    "transducer": TransducerConfig(dropout=0.0, warm_start=0.2),
    "gordon": GordonConfig(hidden=8, teacher_forcing=1.0),
    "russin": RussinConfig(semantics=16, syntax=16, dropout=0.0),
    "attention": AttentionConfig(embedding=16, hidden=16, dropout=0.0),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU; nothing is checked")
        return 1
    torch.set_default_dtype(torch.float64)
    figures: dict[str, Any] = {
        "updates": UPDATES,
        "graphs recorded": {},
        "largest difference of a weight": {},
        "losses of one batch with dropout": replayed(TransducerConfig(dropout=0.5, warm_start=0.0)),
        "losses of one batch without": replayed(TransducerConfig(dropout=0.0, warm_start=0.0)),
    }
    for name, config in CONFIGS.items():
        cpu, gpu = (trained(config, device) for device in ("cpu", "cuda"))
        figures["graphs recorded"][name] = gpu.recorder is not None
        figures["largest difference of a weight"][name] = max(
            float((a.detach() - b.detach().cpu()).abs().max())
            for a, b in zip(cpu.model.parameters(), gpu.model.parameters(), strict=True)
        )
    problems = list(wrong(figures))
    record = json.dumps(machine("cuda") | figures | {"problems": problems}, indent=1)
    print(record)
    if args.out:
        args.out.write_text(record + "\n", encoding="utf-8")
    return 1 if problems else 0


def wrong(figures: dict[str, Any]) -> Iterator[str]:
    """What the figures show to be wrong; the last one is a control of the first."""
    for name, recorded in figures["graphs recorded"].items():
        if not recorded:
            yield f"{name}: no graph was recorded"
    for name, worst in figures["largest difference of a weight"].items():
        if worst > 1e-6:
            yield f"{name}: weights differ from the CPU's by {worst:.1e}"
    losses = figures["losses of one batch with dropout"]
    if len(set(losses)) < len(losses):
        yield "dropout repeats between replays"
    losses = figures["losses of one batch without"]
    if max(losses) - min(losses) > 1e-6:
        yield "losses differ between replays although nothing is dropped"


def trained(config: ModelConfig, device: str) -> TrainState:
    """The state after some updates on a device."""
    training = TrainingConfig(updates=UPDATES, batch=8, batching="pairs", learning_rate=1e-3)
    state = TrainState.new(new_model(config).to(device), training, seed=0)
    for _ in train(state, Rows.of(PAIRS, state.model.sharing), None, training):
        pass
    return state


def replayed(config: ModelConfig) -> list[float]:
    """The losses of one batch in updates with a learning rate of nearly 0."""
    training = TrainingConfig(
        epochs=20, batch=8, learning_rate=1e-12, weight_decay=0.0, schedule="constant"
    )
    model = new_model(config).to("cuda")
    rows = Rows.of(PAIRS[:1] * 8, model.sharing)
    state = TrainState.new(model, training, seed=0)
    return [epoch.train_loss for epoch in train(state, rows, None, training)]


def new_model(config: ModelConfig) -> Model:
    torch.manual_seed(0)
    return build(config, SYMMETRY)


if __name__ == "__main__":
    sys.exit(main())
