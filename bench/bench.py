"""Measure speed as ratios, with both sides in one run, on one thread.

    make bench

Training compares pairs per second on Add Jump, at the paper's sizes, with the plain implementation
of the tests: batches of eight pairs, vectorised over positions, the G-stack at every position,
nothing shared. Decoding compares sentences per second of a model that has learned Add Jump with the
search of the plain implementation, and with our own search on single sentences. The second table
has every model with its recipe for Add Jump: pairs trained and sentences decoded per second, and
the ratio of our default model to it.
"""

import argparse
import itertools
import json
import math
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

sys.path[:0] = [
    str(Path(__file__).parent.parent / "tests" / folder) for folder in ("fixtures", "oracles")
]

from rich.console import Console
from rich.table import Table

from equitrans import __version__
from equitrans.analysis import predict
from equitrans.data import CLASSES, Rows, by_form, by_pair, load_split, pad_source
from equitrans.models import TransducerConfig, build
from equitrans.paper import EOS, Autoregressive, Moment, Symmetry, Transducer
from equitrans.training import RunConfig, TrainingConfig, recipe
from equitrans.training.loop import TrainState, train, update
from plain import PlainTransducer

PAPER = TransducerConfig(k=122, d=7, embedding=223, hidden=67, warm_start=0.0, dropout=0.0)
"""Sizes of the paper for Add Jump."""

RECIPES = ("default", "paper", "gordon", "russin", "wu", "attention")
"""One recipe per model, and the one of the paper; the first is our default."""

WORDS = 15
"""Mean number of words of a target in the test set of Add Jump."""


def main() -> None:
    """Measure, print the tables, and write all figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=12.0, help="seconds for each side of a ratio"
    )
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
            *(row for width in (3, 1) for row in decoding(width, asked.seconds)),
        ],
        # six sides instead of two: a third of the time for each
        "models": models(asked.seconds / 3),
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
    table = Table(
        *(
            "recipe",
            "parameters",
            "batch",
            "pairs/s",
            "ours / it",
            "sentences/s",
            "ours / it",
        ),
        title="every model: training, and greedy search",
        box=None,
    )
    ours, *_ = results["models"]
    for row in results["models"]:
        table.add_row(
            row["recipe"],
            f"{row['parameters']:,}",
            row["batch"],
            f"{row['trained']:.0f}",
            f"{ours['trained'] / row['trained']:.1f}×",
            f"{row['decoded']:.0f}",
            f"{ours['decoded'] / row['decoded']:.1f}×",
        )
    Console().print(table)


def rates(jobs: Sequence[Iterator[float]], seconds: float) -> list[float]:
    """Return units per second of endless jobs, which run alternately under the same conditions."""
    spent, done = [0.0] * len(jobs), [0.0] * len(jobs)
    for job in jobs:
        next(job)  # warm-up
    while min(spent) < seconds:
        turn = spent.index(min(spent))
        started = time.perf_counter()
        done[turn] += next(jobs[turn])
        spent[turn] += time.perf_counter() - started
    return [units / time for units, time in zip(done, spent, strict=True)]


def ratio(what: str, unit: str, ours: float, plain: float) -> dict[str, object]:
    return {"what": what, "unit": unit, "ours": ours, "plain": plain, "ratio": ours / plain}


def training(classes: str, seconds: float) -> dict[str, object]:
    """Return training pairs per second; every pair counts, duplicates too."""
    pairs = load_split("add_jump").train
    symmetry = Symmetry.of(CLASSES[classes], pairs)
    rows = Rows.of(pairs, symmetry)
    count = torch.zeros(rows.n_forms).index_add_(0, rows.form, rows.weight)
    config = TrainingConfig(batch=32)

    def ours() -> Iterator[float]:
        torch.manual_seed(0)
        state = TrainState.new(build(PAPER, symmetry), config, seed=0)
        generator = torch.Generator().manual_seed(0)
        for _ in itertools.count():
            # the unit is an epoch, so that every form counts with all its pairs
            for batch in by_form(rows, forms=config.batch, generator=generator):
                update(state, batch, config, Moment(1, 0.5))
            yield float(count.sum())

    def plain() -> Iterator[float]:
        torch.manual_seed(0)
        model = PlainTransducer(build(PAPER, symmetry))
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

    return ratio(f"training, {classes}", "pairs/s", *rates([ours(), plain()], seconds))


def decoding(width: int, seconds: float) -> list[dict[str, object]]:
    """Return decoded sentences per second of a trained model; an untrained one would decode to the
    limit."""
    sentences = [x for x, _ in load_split("add_jump").test]
    model = _learned()
    plain_model = PlainTransducer(model)
    # this stride selects all templates and lengths
    turns = range(0, len(sentences), 97)

    def ours() -> Iterator[float]:
        while True:
            predict(model, sentences, width=width, max_length=100)
            yield float(len(sentences))

    def plain() -> Iterator[float]:
        for i in itertools.cycle(turns):
            source = list(model.symmetry.source.encode(sentences[i]))
            plain_model.search(source, width=width, max_length=100)
            yield 1.0

    def single() -> Iterator[float]:
        for i in itertools.cycle(turns):
            predict(model, sentences[i : i + 1], width=width, max_length=100)
            yield 1.0

    name = "greedy search" if width == 1 else f"beam search, width {width}"
    together, by_plain, one_by_one = rates([ours(), plain(), single()], seconds)
    return [
        ratio(f"{name}, against the plain search", "sentences/s", together, by_plain),
        ratio(f"{name}, against single sentences", "sentences/s", together, one_by_one),
    ]


@cache
def _learned() -> Transducer:
    torch.manual_seed(0)
    pairs = load_split("add_jump").train
    symmetry = Symmetry.of(CLASSES["both"], pairs)
    rows = Rows.of(pairs, symmetry)
    config = TrainingConfig(batch=16, epochs=40)
    state = TrainState.new(build(replace(PAPER, dropout=0.3), symmetry), config, seed=0)
    for _ in train(state, rows, None, config):
        pass
    return state.model.eval()


def models(seconds: float) -> list[dict[str, object]]:
    """Measure every model with its recipe."""
    configs = [
        RunConfig.from_settings({"split": "add_jump"} | recipe(name, "add_jump"))
        for name in RECIPES
    ]
    states = [_new(config) for config in configs]
    trained = rates([_trained(*both) for both in zip(states, configs, strict=True)], seconds)
    decoded = rates([_decoded(state.model) for state in states], seconds)
    return [
        {
            "recipe": name,
            "parameters": sum(p.numel() for p in state.model.parameters()),
            "batch": f"{config.training.batch} {config.training.batching}",
            "trained": pairs,
            "decoded": sentences,
        }
        for name, config, state, pairs, sentences in zip(
            RECIPES, configs, states, trained, decoded, strict=True
        )
    ]


def _new(config: RunConfig) -> TrainState:
    torch.manual_seed(0)
    classes = CLASSES[config.data.classes or "both"]
    symmetry = Symmetry.of(classes, load_split("add_jump").train, config.model.group)
    return TrainState.new(build(config.model, symmetry), config.training, seed=0)


def _trained(state: TrainState, config: RunConfig) -> Iterator[float]:
    """Train endlessly, one batch of pairs or one epoch of forms at a time."""
    pairs = load_split("add_jump").train
    rows, training = Rows.of(pairs, state.model.sharing), config.training
    generator = torch.Generator().manual_seed(0)
    while True:
        if training.batching == "pairs":
            for batch in by_pair(rows, pairs=training.batch, generator=generator):
                update(state, batch, training, Moment(1, 0.5))
                yield float(batch.weight.sum())
        else:
            for batch in by_form(rows, forms=training.batch, generator=generator):
                update(state, batch, training, Moment(1, 0.5))
            yield float(len(pairs))


def _decoded(model: Autoregressive) -> Iterator[float]:
    """Decode endlessly: all sentences at once if the model shares work, else in batches."""
    sentences = [x for x, _ in load_split("add_jump").test]
    some = len(sentences) if model.sharing.classes else 256
    _ending_after(model, WORDS)
    while True:
        for i in range(0, len(sentences), some):
            chunk = sentences[i : i + some]
            predict(model, chunk, width=1, max_length=100)
            yield float(len(chunk))


def _ending_after(model: Autoregressive, words: int) -> None:
    """Make a model end every target at this length; an untrained model does not know the end."""
    start, step = model.start, model.step
    said = 0

    def counting_start(source: torch.Tensor) -> object:
        nonlocal said
        said = 0
        return start(source)

    def ending_step(state: object, previous: torch.Tensor) -> tuple[torch.Tensor, object]:
        nonlocal said
        scores, state = step(state, previous)
        scores[:, EOS] = 0.0 if said == words else -math.inf
        said += 1
        return scores, state

    model.start, model.step = counting_start, ending_step  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
