"""What is done with the alignments of one target word: summed, maximised, or annealed from one to
the other.

Each marginal takes ``joint[…, n] = log p(y_m | x_n) + log p(a_m = n)`` and gives log p(y_m).
Positions that are no alignment (padding) hold −inf and get no share.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.errors import ConfigError


@dataclass(frozen=True)
class Moment:
    """A moment of training: updates made so far, and the share of the whole that is done."""

    updates: int
    done: float


@dataclass(frozen=True)
class Sum:
    """``log Σ_n exp joint[n]`` (eq. 5)."""

    def phase(self, moment: Moment) -> Hashable:
        """Equal for moments at which the same is done."""
        return None

    def __call__(
        self, joint: Float[Tensor, "*b n"], *, moment: Moment | None = None
    ) -> Float[Tensor, "*b"]:
        return torch.logsumexp(joint, dim=-1)

    def over(
        self, aligned: Float[Tensor, "b m n"], emitted: Float[Tensor, "b n y"]
    ) -> Float[Tensor, "b m y"]:
        """Log p(y_m) for every y: a product of matrices."""
        return (aligned.exp() @ emitted.exp()).log()


@dataclass(frozen=True)
class Max:
    """``max_n joint[n]`` (eq. 8)."""

    def phase(self, moment: Moment) -> Hashable:
        """Equal for moments at which the same is done."""
        return None

    def __call__(
        self, joint: Float[Tensor, "*b n"], *, moment: Moment | None = None
    ) -> Float[Tensor, "*b"]:
        return joint.amax(dim=-1)

    def over(
        self, aligned: Float[Tensor, "b m n"], emitted: Float[Tensor, "b n y"]
    ) -> Float[Tensor, "b m y"]:
        """Log p(y_m) for every y; position by position, since all at once would take n times the
        room.
        """
        joints = (aligned[:, :, n, None] + emitted[:, None, n] for n in range(aligned.shape[2]))
        return reduce(torch.maximum, joints)


@dataclass(frozen=True)
class AnnealedMax:
    """``log Σ_n α_n exp joint[n]``, with α a softmax of *probabilities* over τ (eqs. 9 and 10).

    τ begins at ``start`` and is halved every ``every`` updates, down to ``floor``; after training
    it is 0, which is the maximum.
    """

    start: float = 0.5
    every: int = 2000
    floor: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 < self.floor <= self.start <= 1:
            raise ConfigError(
                "temperatures go from start to floor, 0 < floor ≤ start ≤ 1; "
                f"got {self.start} and {self.floor}"
            )
        if self.every < 1:
            raise ConfigError(
                f"the temperature is halved every {self.every} updates; it must be 1 or more"
            )

    def temperature(self, updates: int) -> float:
        """τ after so many updates."""
        return max(self.floor, self.start * 0.5 ** (updates // self.every))

    def phase(self, moment: Moment) -> Hashable:
        """Equal for moments at which the same is done."""
        return self.temperature(moment.updates)

    def __call__(
        self, joint: Float[Tensor, "*b n"], *, moment: Moment | None = None
    ) -> Float[Tensor, "*b"]:
        if moment is None:
            return joint.amax(dim=-1)
        prob = joint.exp() / self.temperature(moment.updates)
        # exp(−inf) is 0, which a softmax would give a share: padding must stay at −inf
        alpha = torch.log_softmax(prob.masked_fill(joint == -math.inf, -math.inf), dim=-1)
        return torch.logsumexp(alpha + joint, dim=-1)

    def over(
        self, aligned: Float[Tensor, "b m n"], emitted: Float[Tensor, "b n y"]
    ) -> Float[Tensor, "b m y"]:
        """Log p(y_m) for every y, after training."""
        return Max().over(aligned, emitted)


Marginal = Sum | Max | AnnealedMax
