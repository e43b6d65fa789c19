"""A linear layer that a recurrence uses at every step."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


class Repeated:
    """``W x`` with one gradient of W for all uses: a backward pass with a product of matrices per
    step takes twice as long.

    Every use must be part of the loss.
    """

    def __init__(self, weight: Float[Tensor, "o i"]) -> None:
        self._weight = weight
        self._uses: list[Tensor] = []
        self._back: list[tuple[Tensor, Tensor]] = []

    def __call__(self, x: Float[Tensor, "b i"]) -> Float[Tensor, "b o"]:
        found: Tensor = _Use.apply(x, self._weight, self)  # type: ignore[no-untyped-call]
        return found

    def add_use(self, x: Tensor) -> int:
        """The number of a new use."""
        self._uses.append(x)
        return len(self._uses) - 1

    def gradient(self, use: int, gradient: Tensor) -> Tensor | None:
        """The gradient of W once those of all uses have come, and None before."""
        self._back.append((gradient, self._uses[use]))
        if len(self._back) < len(self._uses):
            return None
        of_output, of_input = (torch.cat(parts) for parts in zip(*self._back, strict=True))
        self._back.clear()
        return of_output.T @ of_input


class _Use(torch.autograd.Function):
    """One use of a repeated linear layer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, layer: Repeated) -> Tensor:
        ctx.layer, ctx.weight, ctx.use = layer, weight, layer.add_use(x.detach())
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (gradient,) = gradients
        return gradient @ ctx.weight, ctx.layer.gradient(ctx.use, gradient), None
