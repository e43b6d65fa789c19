"""Log-sums over the derivations of trees from sources."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

NEVER = -1e4
"""Log-score of what cannot be."""


class Chart(NamedTuple):
    """Log-sums over the derivations of each label from each span, by the length of the span: before
    it writes words, after it has written those on the left, and, if there are labels with two
    children, of its first and second child.
    """

    whole: list[Float[Tensor, "b w l"]]
    right: list[Float[Tensor, "b w l"]]
    first: list[Float[Tensor, "b w l"]]
    second: list[Float[Tensor, "b w l"]]


def fill_chart(
    emitted: Float[Tensor, "2 b n l"],
    own: Float[Tensor, "b l"],
    below: Float[Tensor, "*b 2 l l"],
    arity: Int[Tensor, "*b l"],
    empty: int,
) -> Chart:
    """Log-sums over derivations. A node writes words on the left, then on the right, and then
    leaves its span to its children. At most ``empty`` nodes in a row have one span. ``own`` is the
    score of each label, and ``below`` that of each label below another one, by slot.
    """
    n, size = emitted.shape[2:]
    binary = bool((arity == 2).any())
    first, second = below.exp().transpose(-1, -2).unbind(-3)
    can = [torch.where(arity == k, 0.0, NEVER)[..., None, :].to(emitted) for k in range(3)]
    chart = Chart([], [], [], [])
    for d in range(n + 1):
        w = n - d + 1
        if d == 0:
            whole = right = can[0].expand(emitted.shape[1], w, size)
        else:
            right = chart.right[d - 1][:, :w] + emitted[1][:, d - 1 :]
            if binary and d > 1:
                splits = [
                    one[k][:, :w] + other[d - k][:, k : k + w]
                    for k in range(1, d)
                    for one, other in ((chart.first, chart.second), (chart.second, chart.first))
                ]
                right = torch.logaddexp(right, torch.stack(splits).logsumexp(0) + can[2])
            whole = torch.logaddexp(right, chart.whole[d - 1][:, 1:] + emitted[0][:, :w])
        above = [whole]
        for _ in range(empty):
            above.append(_sum_below(first, above[-1] + own[:, None]) + can[1])
        whole = torch.stack(above).logsumexp(0)
        chart.whole.append(whole)
        chart.right.append(torch.stack([right, *above[1:]]).logsumexp(0))
        if binary:
            chart.first.append(_sum_below(first, whole + own[:, None]))
            chart.second.append(_sum_below(second, whole + own[:, None]))
    return chart


def _sum_below(
    weight: Float[Tensor, "*b l l"], values: Float[Tensor, "b w l"]
) -> Float[Tensor, "b w l"]:
    """``log Σ_c weight[c, l] exp(values[c])``."""
    largest = values.amax(2, keepdim=True)
    summed = (values - largest).exp() @ weight
    return summed.clamp(min=1e-37).log() + largest
