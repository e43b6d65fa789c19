"""The targets of the alignments of one source, with their probabilities."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.models.direct import Hypothesis
from equitrans.models.recursive.rules import CONSTANTS
from equitrans.paper import Marginal


def ranked(
    found: Iterable[tuple[tuple[int, ...], Float[Tensor, ""]]], noise: float, word_share: float
) -> list[Hypothesis[int]]:
    """Targets with their log p(y | x), likeliest first, if a share of the pairs is wrong and a word
    of a wrong pair has the log-probability ``word_share``.
    """
    hypotheses, share = [], torch.tensor(noise, dtype=torch.float64)
    for target, likely in found:
        wrong = share.log() + (len(target) + 1) * word_share
        log_prob = torch.logaddexp(torch.log1p(-share) + likely, wrong)
        hypotheses.append(Hypothesis(target, float(log_prob)))
    return sorted(hypotheses, key=lambda h: -h.log_prob)


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
