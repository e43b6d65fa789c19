"""The targets of the alignments of one source, with their probabilities."""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.models.recursive.rules import CONSTANTS
from equitrans.paper import Marginal


def translated(
    alignments: Sequence[tuple[str, float]],
    source: Sequence[int],
    best: Mapping[int, int],
    table: Mapping[int, Sequence[float]],
    marginal: Marginal,
) -> Iterator[tuple[tuple[int, ...], Float[Tensor, ""]]]:
    """The likeliest target of each alignment, and its log-probability over all alignments.

    ``best`` has the likeliest translation of each source word, ``table`` its log-probabilities.
    """
    targets = dict.fromkeys(
        tuple(best[source[ord(c)]] if ord(c) < CONSTANTS else ord(c) - CONSTANTS for c in text)
        for text, _ in alignments
    )
    for target in targets:
        scores = [
            log_prob + sum(_spoken(source, table, c, y) for c, y in zip(text, target, strict=True))
            for text, log_prob in alignments
            if len(text) == len(target)
        ]
        yield target, marginal(torch.tensor(scores, dtype=torch.float64))


def _spoken(
    source: Sequence[int], table: Mapping[int, Sequence[float]], atom: str, word: int
) -> float:
    """Log p(y_m | a_m) for one target word."""
    if ord(atom) < CONSTANTS:
        return table[source[ord(atom)]][word]
    return 0.0 if ord(atom) - CONSTANTS == word else -math.inf
