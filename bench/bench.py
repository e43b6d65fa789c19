"""Speed and memory as ratios, both sides measured in this run, on one thread.

    make bench

Training compares pairs per second on Add Jump, at the paper's sizes, with the plain implementation
of the tests: batches of eight pairs, vectorised over positions, the G-stack at every position,
nothing shared. Decoding compares sentences per second with the same search, one sentence at a
time.
"""

import argparse
import itertools
import json
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from rich.console import Console
from rich.table import Table

from equitrans import __version__
from equitrans.batches import Rows, by_form, pad_source
from equitrans.evaluation import predict
from equitrans.marginals import Moment
from equitrans.models.transducer import Transducer, TransducerConfig
from equitrans.scan import CLASSES, load_split
from equitrans.symmetry import Symmetry
from equitrans.training import TrainingConfig, TrainState, update
from plain import PlainTransducer

PAPER = TransducerConfig(k=122, d=7, embedding=223, hidden=67, warm_start=0.0, dropout=0.0)
"""The paper's sizes for Add Jump."""


def main() -> None:
    """Measure, print a table, and write all figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="for each side of a ratio")
    parser.add_argument("--out", type=Path, default=Path("bench/results.json"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    results = {
        "version": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.processor() or platform.machine(),
        "ratios": [
            *(training(classes, asked.seconds) for classes in ("both", "verbs")),
            *(decoding(width, asked.seconds) for width in (3, 1)),
        ],
    }
    asked.out.write_text(json.dumps(results, indent=2) + "\n")
    table = Table("what", "ours", "plain", "unit", "ratio", box=None)
    for row in results["ratios"]:
        table.add_row(
            row["what"],
            f"{row['ours']:.0f}",
            f"{row['plain']:.1f}",
            row["unit"],
            f"{row['ratio']:.1f}×",
        )
    Console().print(table)


def rates(ours: Iterator[float], plain: Iterator[float], seconds: float) -> tuple[float, float]:
    """Units per second of two endless jobs, run in turns so that both see the same machine."""
    spent, done = [0.0, 0.0], [0.0, 0.0]
    for job in (ours, plain):
        next(job)  # the first round warms up
    while min(spent) < seconds:
        side = int(spent[1] < spent[0])
        started = time.perf_counter()
        done[side] += next((ours, plain)[side])
        spent[side] += time.perf_counter() - started
    return done[0] / spent[0], done[1] / spent[1]


def ratio(what: str, unit: str, ours: float, plain: float) -> dict[str, object]:
    return {"what": what, "unit": unit, "ours": ours, "plain": plain, "ratio": ours / plain}


def training(classes: str, seconds: float) -> dict[str, object]:
    """Pairs per second, every pair counted, copies too."""
    pairs = load_split("add_jump").train
    symmetry = Symmetry.of(CLASSES[classes], pairs)
    rows = Rows.of(pairs, symmetry)
    count = torch.zeros(rows.n_forms).index_add_(0, rows.form, rows.weight)
    config = TrainingConfig(batch=32)

    def ours() -> Iterator[float]:
        torch.manual_seed(0)
        state = TrainState.new(PAPER.build(symmetry), config, seed=0)
        generator = torch.Generator().manual_seed(0)
        for _ in itertools.count():
            # an epoch is the unit, so that every form is counted with all its pairs
            for batch in by_form(rows, forms=config.batch, generator=generator):
                update(state, batch, config, Moment(1, 0.5))
            yield float(count.sum())

    def plain() -> Iterator[float]:
        torch.manual_seed(0)
        model = PlainTransducer(PAPER.build(symmetry))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        encoded = [(symmetry.source.encode(x), symmetry.target.encode(y)) for x, y in pairs]
        for _ in itertools.count():
            for chunk in torch.randperm(len(encoded)).split(8)[:50]:
                source = pad_source(encoded[i][0] for i in chunk)
                target = pad_source(encoded[i][1] for i in chunk)[:, 1:]
                optimizer.zero_grad()
                model.loss(source, target).mean().backward()
                optimizer.step()
            yield 400.0

    return ratio(f"training, {classes}", "pairs/s", *rates(ours(), plain(), seconds))


def decoding(width: int, seconds: float) -> dict[str, object]:
    """Sentences per second of a model that has learned when to stop, or it would decode to the
    limit."""
    split = load_split("add_jump")
    model = _roughly_trained(split.train)
    sentences = [x for x, _ in split.test]

    def ours() -> Iterator[float]:
        while True:
            predict(model, sentences, width=width, max_length=100)
            yield float(len(sentences))

    def plain() -> Iterator[float]:
        # a stride that all templates and lengths fall under in turn
        for i in itertools.cycle(range(0, len(sentences), 97)):
            predict(model, sentences[i : i + 1], width=width, max_length=100)
            yield 1.0

    name = "greedy search" if width == 1 else f"beam search, width {width}"
    return ratio(
        f"{name}, batches against single sentences", "sentences/s", *rates(ours(), plain(), seconds)
    )


def _roughly_trained(pairs: tuple) -> Transducer:
    torch.manual_seed(0)
    symmetry = Symmetry.of(CLASSES["both"], pairs)
    rows = Rows.of(pairs, symmetry)
    config = TrainingConfig(batch=16)
    state = TrainState.new(PAPER.build(symmetry), config, seed=0)
    generator = torch.Generator().manual_seed(0)
    for epoch in range(20):
        for batch in by_form(rows, forms=config.batch, generator=generator):
            update(state, batch, config, Moment(state.updates, epoch / 20))
    return state.model.eval()


if __name__ == "__main__":
    main()
