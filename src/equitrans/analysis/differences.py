"""Paired differences between two models on the same pairs, with bootstrap intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

RESAMPLES = 10_000
"""Number of bootstrap samples."""

SHARE = 0.95
"""Share of the bootstrap samples within an interval."""


@dataclass(frozen=True)
class Difference:
    """How much larger the exact match of one model is than that of another, on the same pairs."""

    gained: int
    """Number of pairs that only the one model predicts."""
    lost: int
    """Number of pairs that only the other model predicts."""
    pairs: int
    low: float
    """The difference of shares that 2.5 % of the bootstrap samples are below."""
    high: float

    @property
    def value(self) -> float:
        """The difference of the shares of right predictions."""
        return (self.gained - self.lost) / self.pairs

    @property
    def is_clear(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.low > 0 or self.high < 0


def bootstrap_interval(right: Sequence[bool], *, seed: int = 0) -> tuple[float, float]:
    """The interval that contains 95 % of the bootstrap samples of a share of right predictions.

    >>> bootstrap_interval([True] * 5)
    (1.0, 1.0)
    """
    n = len(right)
    size = torch.full((RESAMPLES,), float(n), dtype=torch.float64)
    draw = torch.Generator().manual_seed(seed)
    drawn = torch.binomial(size, torch.full_like(size, sum(right) / n), generator=draw)
    return _ends(drawn / n)


def _ends(samples: Float[Tensor, " n"]) -> tuple[float, float]:
    ends = torch.tensor([(1 - SHARE) / 2, (1 + SHARE) / 2], dtype=torch.float64)
    low, high = torch.quantile(samples, ends).tolist()
    return low, high


def paired_difference(one: Sequence[bool], other: Sequence[bool], *, seed: int = 0) -> Difference:
    """Compare two models by their right predictions of the same pairs.

    A bootstrap sample draws as many pairs as there are, with replacement. Only the numbers of
    gained and lost pairs matter, so these are drawn: together with the rest they are multinomial.

    >>> found = paired_difference([True] * 9 + [False], [True] * 4 + [False] * 6)
    >>> found.gained, found.lost, found.is_clear
    (5, 0, True)
    """
    judged = list(zip(one, other, strict=True))
    n = len(judged)
    gained, lost = judged.count((True, False)), judged.count((False, True))
    draw = torch.Generator().manual_seed(seed)
    size = torch.full((RESAMPLES,), float(n), dtype=torch.float64)
    better = torch.binomial(size, torch.full_like(size, gained / n), generator=draw)
    rest = torch.full_like(size, lost / (n - gained) if lost else 0.0)
    worse = torch.binomial(size - better, rest, generator=draw)
    return Difference(gained, lost, n, *_ends((better - worse) / n))
