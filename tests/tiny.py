"""Trainings of a second, for tests of what is done with them."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from equitrans.records import Job, Order, Record, perform
from equitrans.scan import RULES, Parts, Rule, everything

SETTINGS: dict[str, Any] = {
    "training.epochs": 7,
    "model.hidden": 12,
    "model.embedding": 4,
    "model.k": 4,
    "model.d": 3,
    "model.dropout": 0.1,
}
DIVERGING = {
    "training.learning_rate": 1000.0,
    "training.weight_decay": 1.0,  # every update makes the weights 999 times as large
    "training.clip": None,
    "training.schedule": "constant",
}


def _short() -> Parts:
    pairs = [pair for pair in everything() if len(pair.target) <= 4]
    random.Random(0).shuffle(pairs)
    return tuple(pairs[:80]), tuple(pairs[80:120])


@contextmanager
def tiny_split() -> Iterator[None]:
    """A split like any other, called tiny: forty short commands to judge by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RULES, "tiny", Rule("tiny_{}.txt", _short, ("", "")))
        yield


def tiny_job(seed: int = 0, **options: Any) -> Job:
    """A job on the tiny split, with settings on top of small ones."""
    settings = SETTINGS | options.pop("settings", {})
    return Job.of("tiny", settings, seed=seed, **options)


def perform_tiny(order: Order) -> Record:
    """What a process does that does not know the split yet."""
    with tiny_split():
        return perform(order)


@cache
def tiny_record(seed: int = 0) -> Record:
    """What an uninterrupted training in this process comes to."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return perform_tiny(Order(tiny_job(seed), str(Path(folder) / "run")))
    finally:
        torch.set_default_dtype(before)


def figures_of(record: Record) -> Record:
    """All of a record that must come out the same whenever and wherever it is made."""
    vary = {"made", "machine", "seconds", "version"}
    return {name: value for name, value in record.items() if name not in vary}
