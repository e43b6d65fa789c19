"""A decoder that looks at the source before every word, written out for long training.

What it reads, given its state h: ``α_n ∝ exp(h·key_n)``, ``z = tanh(word + Σ_n α_n value_n)``, and
an LSTM cell on (z, h). Nothing of this can be done before h is known, so the loop over positions
holds all of it; but in the backward pass the gradients of all weights are one product each, over
all positions at once. Knows nothing of groups, and of words only that they have rows in a table.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from equitrans.models.baselines.recurrence import Cell, CellGradient

Previous = Callable[[int, Tensor], Tensor]
"""The words (b) before position n, given the states (b × s) there; a choice, with no gradient."""


class Memory(NamedTuple):
    """What there is to look at; ``closed`` is −inf at positions that are padding, and 0 at others.

    A position's value is what it adds to z.
    """

    keys: Float[Tensor, "b n s"]
    values: Float[Tensor, "b n s"]
    closed: Float[Tensor, "b n"]


class Reading(NamedTuple):
    """States after each position, the cell after the last, and α, which has no gradient."""

    states: Float[Tensor, "t b s"]
    cell: Float[Tensor, "b s"]
    attention: Float[Tensor, "t b n"]


def attend(
    memory: Memory,
    h: Float[Tensor, "b s"],
    c: Float[Tensor, "b s"],
    previous: Previous,
    *,
    positions: int,
    words: Float[Tensor, "y s"],
    weight: Float[Tensor, "zh gates"],
    bias: Float[Tensor, " gates"],
) -> Reading:
    """Some positions from (h, c) on. ``words`` is what each word adds to z, ``weight`` what z, and
    below it h, add to the gates, in the order i, f, o, g.
    """
    parts = (*memory, h, c, words, weight, bias, positions, previous)
    return Reading(*_Attentive.apply(*parts))  # type: ignore[no-untyped-call]


class _Attentive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        keys: Float[Tensor, "b n s"],
        values: Float[Tensor, "b n s"],
        closed: Float[Tensor, "b n"],
        h: Float[Tensor, "b s"],
        c: Float[Tensor, "b s"],
        words: Float[Tensor, "y s"],
        weight: Float[Tensor, "zh gates"],
        bias: Float[Tensor, " gates"],
        positions: int,
        previous: Previous,
    ) -> tuple[Float[Tensor, "t b s"], Float[Tensor, "b s"], Float[Tensor, "t b n"]]:
        b, s = h.shape
        # z and h of a position stand side by side, for one product to read both
        both = h.new_empty(positions + 1, b, 2 * s)
        attention = h.new_empty(positions, *closed.shape)
        chosen = torch.empty(positions, b, dtype=torch.long, device=h.device)
        both[0, :, s:] = h
        cell = Cell(h.new_empty(positions, b, 4 * s), c)
        bias_scores = closed[:, :, None]
        zs, hs = both[:, :, :s].unbind(), both[:, :, s:].unbind()
        zhs, alphas, words_at = both.unbind(), attention.unbind(), chosen.unbind()
        for n in range(positions):
            words_at[n].copy_(previous(n, hs[n]))
            scores = torch.baddbmm(bias_scores, keys, hs[n][:, :, None])
            torch.softmax(scores[:, :, 0], dim=1, out=alphas[n])
            word = words.index_select(0, words_at[n])
            summed = torch.baddbmm(word[:, None], alphas[n][:, None], values)
            torch.tanh(summed[:, 0], out=zs[n])
            torch.addmm(bias, zhs[n], weight, out=cell.gates[n])
            cell.advance(n, out=hs[n + 1])
        ctx.save_for_backward(keys, values, words, weight, both, attention, chosen, *cell.kept)
        ctx.mark_non_differentiable(attention)
        return both[1:, :, s:], cell.cells[-1].clone(), attention

    @staticmethod
    @once_differentiable
    def backward(
        ctx: torch.autograd.function.FunctionCtx,
        d_states: Float[Tensor, "t b s"],
        d_cell: Float[Tensor, "b s"],
        _: Tensor,
    ) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # type: ignore[attr-defined]
        keys, values, words, weight, both, attention, chosen, *kept = saved
        t, b, s = d_states.shape
        cell = CellGradient(*kept)
        d_h, d_c = both.new_zeros(b, s), d_cell.clone()
        d_sums, d_scores = both.new_empty(t, b, s), torch.empty_like(attention)
        z, states = both[:-1, :, :s], both[:-1, :, s:]
        slopes, d_zh = (1 - z * z).unbind(), both.new_empty(b, 2 * s)
        d_z, d_h_gates = d_zh[:, :s], d_zh[:, s:, None].transpose(1, 2)
        back = weight.T.contiguous()
        d_hs, alphas = d_states.unbind(), attention.unbind()
        d_sum, d_score = d_sums.unbind(), d_scores.unbind()
        for n in range(t - 1, -1, -1):
            d_h = d_h + d_hs[n]
            cell.retreat(n, d_h, d_c)
            torch.mm(cell.gates[n], back, out=d_zh)
            torch.mul(d_z, slopes[n], out=d_sum[n])
            shares = torch.bmm(values, d_sum[n][:, :, None])[:, :, 0] * alphas[n]
            # d softmax: what each position gets, less its share of what all get
            torch.addcmul(shares, alphas[n], shares.sum(1, keepdim=True), value=-1, out=d_score[n])
            d_h = torch.baddbmm(d_h_gates, d_score[n][:, None], keys)[:, 0]
        d_gates = cell.d_gates.flatten(0, 1)
        return (
            torch.einsum("tbn,tbs->bns", d_scores, states),
            torch.einsum("tbn,tbs->bns", attention, d_sums),
            None,
            d_h,
            d_c,
            torch.zeros_like(words).index_put_((chosen,), d_sums, accumulate=True),
            both[:-1].flatten(0, 1).T @ d_gates,
            d_gates.sum(0),
            None,
            None,
        )
