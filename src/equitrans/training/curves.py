"""Learning curves over the number of pairs: how many pairs a language needs."""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from equitrans.data import AnyPair, Pair, as_pairs
from equitrans.errors import ConfigError, DataError
from equitrans.models import ModelConfig, TransducerConfig
from equitrans.settings import check_pairs
from equitrans.training.fitting import fitted
from equitrans.training.study import compound_sign

Row = dict[str, Any]
"""A point of a curve: pairs, seed, and the answers to the test pairs."""


def curve(
    pairs: Iterable[AnyPair],
    test: Iterable[AnyPair] | None = None,
    *,
    sizes: Sequence[int],
    seeds: Sequence[int] = (0,),
    model: ModelConfig | None = None,
    characters: bool = False,
    split_words: str | Literal["auto"] | None = "auto",
) -> Iterator[Row]:
    """Learn from random pairs, of each size with each seed, and judge each model on test pairs.

    A larger sample of a seed contains the smaller ones. Classes are discovered in each sample. By
    default rules are learned, and target words are read apart as ``learn`` does. Without ``test``,
    the pairs that no sample of the seed has are the test pairs. Every row is a dictionary of plain
    values, for a data frame.

    >>> words = ["lamp", "fan", "heater", "radio"]
    >>> pairs = [(f"{v} the {w}", f"{w.upper()} {v}") for v in ("dim", "stop") for w in words]
    >>> [(row["pairs"], row["test"]) for row in curve(pairs, sizes=[4, 6])]
    [(4, 2), (6, 2)]
    """
    given = tuple(dict.fromkeys(as_pairs(pairs, characters=characters)))
    check_pairs(given)
    if split_words == "auto":
        split_words = None if characters else compound_sign(given)
    judged = None if test is None else as_pairs(test, characters=characters)
    if not sizes or min(sizes) < 1:
        raise ConfigError(f"sizes are {list(sizes)}; expected numbers of 1 or more")
    if max(sizes) > len(given) - (judged is None):
        rest = ", and one is left to judge" if judged is None else ""
        raise DataError(
            f"a sample of {max(sizes)} pairs; the data have {len(given)} distinct pairs{rest}"
        )
    model = model or TransducerConfig(aligner="recursive")
    for seed in seeds:
        order = random.Random(seed).sample(given, len(given))
        tests = order[max(sizes) :] if judged is None else judged
        for size in sorted(set(sizes)):
            yield _point(order[:size], tests, model, seed, characters, split_words)


def _point(
    sample: Sequence[Pair],
    tests: Sequence[Pair],
    model: ModelConfig,
    seed: int,
    characters: bool,
    split_words: str | None,
) -> Row:
    """Learn from a sample and judge."""
    started = time.process_time()
    trained, _ = fitted(
        sample, "discover", model=model, seed=seed, characters=characters, split_words=split_words
    )
    seconds = time.process_time() - started
    report = trained.evaluate(tests)
    right = sum(report.right)
    return {
        "pairs": len(sample),
        "seed": seed,
        "test": len(tests),
        "right": right,
        "refused": report.refused,
        "wrong": len(tests) - right - report.refused,
        "exact_match": report.exact_match,
        "classes": len(trained.symmetry.classes),
        "rules": None if trained.grammar is None else len(trained.grammar.texts),
        "cpu_seconds": round(seconds, 3),
    }
