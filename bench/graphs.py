"""Check the CUDA graphs of training on a GPU; exit with status 1 if they compute something else.

    python bench/graphs.py

1. Dropout differs between two replays of one graph.
2. Fifty updates without dropout give the weights that the CPU gives, within rounding error.
"""

import sys
from collections.abc import Iterator

import torch

from equitrans.data import Rows, load_split
from equitrans.data.scan import CLASSES
from equitrans.models import AttentionConfig, GordonConfig, TransducerConfig, build
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
    "attention": AttentionConfig(embedding=16, hidden=16, dropout=0.0),
}


def main() -> int:
    if not torch.cuda.is_available():
        print("no GPU; nothing is checked")
        return 1
    torch.set_default_dtype(torch.float64)
    wrong = list(_problems())
    print("\n".join(wrong) or "CUDA graphs compute what the CPU computes, with fresh dropout")
    return 1 if wrong else 0


def _problems() -> Iterator[str]:
    for name, config in CONFIGS.items():
        cpu, gpu = (trained(config, device) for device in ("cpu", "cuda"))
        if gpu.recorder is None:
            yield f"{name}: no graph was recorded"
        worst = max(
            float((a - b.cpu()).abs().max())
            for a, b in zip(cpu.model.parameters(), gpu.model.parameters(), strict=True)
        )
        print(f"{name}: largest difference of a weight after {UPDATES} updates {worst:.1e}")
        if worst > 1e-6:
            yield f"{name}: weights differ from the CPU's by {worst:.1e}"
    dropped = TransducerConfig(dropout=0.5, warm_start=0.0)
    if len(losses := replayed(dropped)) != len(set(losses)):
        yield f"dropout repeats: losses of one batch are {losses}"


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
