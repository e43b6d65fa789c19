"""L-BFGS without the compiler of torch.

The first optimizer that a process creates imports ``torch._dynamo``, which takes longer than to
learn most grammars. The methods below do so only to tell the compiler to leave them alone.
"""

import inspect
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


class _LBFGS(torch.optim.LBFGS):
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)


def minimise(loss: Callable[[], Tensor], parameters: Sequence[Tensor], *, rounds: int) -> None:
    """Change parameters so that the loss has a local minimum, in at most some rounds."""
    optimizer = _LBFGS(parameters, max_iter=rounds, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
