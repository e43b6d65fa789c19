"""Measure how the time of an update grows with one setting at a time (``make bench``).

Rows are random words, and each row has its own form, so that rows share no work.
``bench/plot_scaling.py`` draws the figures.
"""

from typing import Any

import pytest
import torch

from equitrans.models import TransducerConfig, build
from equitrans.paper import BOS, EOS, N_SPECIAL, Batch, LexicalClass, Moment, Symmetry, Vocabulary
from equitrans.training import TrainingConfig
from equitrans.training.loop import TrainState, update

USUAL = {"words": 100, "classes": 1, "size": 4, "source": 8, "target": 8, "batch": 32}
AXES = {
    "words": [10, 100, 1000, 10_000, 100_000],
    "size": [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000],
    "classes": [1, 2, 3, 4, 6, 8, 10],
    "source": [2, 4, 8, 16, 32, 64, 128],
    "target": [2, 4, 8, 16, 32, 64, 128],
    "batch": [1, 2, 4, 8, 16, 32, 64, 128, 256],
}


def symmetry(words: int, classes: int, size: int) -> Symmetry:
    """Return a symmetry with words of no class and classes of one size."""
    members = [tuple(f"{c}.{i}" for i in range(size)) for c in range(classes)]
    every = tuple(f"w{i}" for i in range(words)) + tuple(w for own in members for w in own)
    vocabulary = Vocabulary(every)
    made = tuple(LexicalClass(f"c{i}", own, own) for i, own in enumerate(members))
    return Symmetry(vocabulary, vocabulary, made)


def batch(world: Symmetry, *, source: int, target: int, batch: int) -> Batch:
    """Return random rows."""
    draw = torch.Generator().manual_seed(0)
    words = [
        torch.randint(N_SPECIAL, len(world.source), (batch, n), generator=draw)
        for n in (source, target)
    ]
    first, last = torch.full((batch, 1), BOS), torch.full((batch, 1), EOS)
    every = torch.arange(batch)
    return Batch(
        source=torch.cat([first, words[0], last], dim=1),
        target=torch.cat([words[1], last], dim=1),
        weight=torch.ones(batch),
        form=every,
        first=every,
    )


@pytest.mark.parametrize(("axis", "value"), [(a, v) for a, values in AXES.items() for v in values])
def test_an_update(benchmark: Any, axis: str, value: int) -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    at = USUAL | {axis: value}
    world = symmetry(at["words"], at["classes"], at["size"])
    rows = batch(world, source=at["source"], target=at["target"], batch=at["batch"])
    config = TrainingConfig()
    state = TrainState.new(build(TransducerConfig(), world).train(), config, seed=0)
    benchmark.group = axis
    benchmark.extra_info |= {"axis": axis, "value": value} | at
    rounds = 5 if at["words"] > 1000 else 30
    benchmark.pedantic(
        update, args=(state, rows, config, Moment(1, 0.5)), rounds=rounds, warmup_rounds=3
    )
