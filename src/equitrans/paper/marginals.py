"""Marginals over the alignments of one target word: the sum, the maximum, or annealing to it.

A marginal maps ``joint[…, n] = log p(y_m | x_n) + log p(a_m = n)`` to log p(y_m). The joint is −inf
at padding, which adds nothing.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.errors import ConfigError
from equitrans.paper.base import Moment

Joint = Float[Tensor, "*b n"]
LogProb = Float[Tensor, "*b"]
Aligned = Float[Tensor, "b m n"]
Emitted = Float[Tensor, "b n y"]


class Marginal(ABC):
    """A map from the alignments of a target word to its log-probability."""

    def phase(self, moment: Moment) -> Hashable:
        """A value that is equal for moments at which training runs the same operations."""
        return None

    @abstractmethod
    def __call__(self, joint: Joint, *, moment: Moment | None = None) -> LogProb:
        """Log p(y_m) at a moment of training or (without one) after training."""

    @abstractmethod
    def over(self, aligned: Aligned, emitted: Emitted) -> Float[Tensor, "b m y"]:
        """Log p(y_m) for every target word y, after training."""


@dataclass(frozen=True)
class Sum(Marginal):
    """``log Σ_n exp joint[n]`` (eq. 5)."""

    def __call__(self, joint: Joint, *, moment: Moment | None = None) -> LogProb:
        return torch.logsumexp(joint, dim=-1)

    def over(self, aligned: Aligned, emitted: Emitted) -> Float[Tensor, "b m y"]:
        return (aligned.exp() @ emitted.exp()).log()


@dataclass(frozen=True)
class Max(Marginal):
    """``max_n joint[n]`` (eq. 8)."""

    def __call__(self, joint: Joint, *, moment: Moment | None = None) -> LogProb:
        return joint.amax(dim=-1)

    def over(self, aligned: Aligned, emitted: Emitted) -> Float[Tensor, "b m y"]:
        # one position at a time: all positions at once need n times the memory
        joints = (aligned[:, :, n, None] + emitted[:, None, n] for n in range(aligned.shape[2]))
        return reduce(torch.maximum, joints)


@dataclass(frozen=True)
class AnnealedMax(Max):
    """``log Σ_n α_n exp joint[n]``, with α a softmax of *probabilities* over τ (eqs. 9 and 10).

    τ starts at ``start`` and is halved every ``every`` updates, down to ``floor``. After training τ
    is 0, which is the maximum.
    """

    start: float = 0.5
    every: int = 2000
    floor: float = 1e-4

    def __post_init__(self) -> None:
        if not (0 < self.floor <= self.start <= 1 and self.every >= 1):
            raise ConfigError(f"{self}: expected 0 < floor ≤ start ≤ 1 and every ≥ 1")

    def temperature(self, updates: int) -> float:
        """τ after a number of updates."""
        return max(self.floor, self.start * 0.5 ** (updates // self.every))

    def phase(self, moment: Moment) -> Hashable:
        return self.temperature(moment.updates)

    def __call__(self, joint: Joint, *, moment: Moment | None = None) -> LogProb:
        if moment is None:
            return super().__call__(joint)
        prob = joint.exp() / self.temperature(moment.updates)
        # exp(−inf) is 0, to which a softmax gives a share: keep padding at −inf
        alpha = torch.log_softmax(prob.masked_fill(joint == -math.inf, -math.inf), dim=-1)
        return torch.logsumexp(alpha + joint, dim=-1)


MARGINALS: dict[str, Marginal] = {"sum": Sum(), "max": Max(), "annealed": AnnealedMax()}
