"""An LSTM over symbols, made for few symbols and long training: three things that ``nn.LSTM`` does
not do.

The input projection is a table with a row per symbol, made once per call, so that the size of the
embedding costs nothing per position. States *and* cells of every position come back, so that a
batch of unequal lengths can be read at each sequence's true end without packing. The backward pass
is written out: what can be done for all positions at once is, and the loop over positions holds
one product and a few sums.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class LSTM(nn.Module):
    """``i, f, o = σ(·), g = tanh(·)`` of ``W e(symbol) + U h + b``; ``c' = f c + i g``; ``h' = o
    tanh c'``.
    """

    def __init__(
        self, symbols: int, *, embedding: int, hidden: int, forget_bias: float = 0.0
    ) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.embedding = nn.Parameter(torch.randn(symbols, embedding))
        self.weight_in = nn.Parameter(torch.empty(embedding, 4 * hidden).uniform_(-bound, bound))
        self.weight_hidden = nn.Parameter(torch.empty(hidden, 4 * hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))
        with torch.no_grad():
            self.bias[hidden : 2 * hidden] += forget_bias

    def forward(
        self,
        symbols: Int[Tensor, "b t"],
        h: Float[Tensor, "b s"] | None = None,
        c: Float[Tensor, "b s"] | None = None,
    ) -> tuple[Float[Tensor, "b t s"], Float[Tensor, "b t s"]]:
        """Hidden states and cells after each symbol, from (h, c) or from zero."""
        table = torch.addmm(self.bias, self.embedding, self.weight_in)
        inputs = nn.functional.embedding(symbols.T, table)
        if h is None or c is None:
            h = c = inputs.new_zeros(len(symbols), len(self.weight_hidden))
        apply = _Recurrence.apply
        states, cells = apply(inputs, self.weight_hidden, h, c)  # type: ignore[no-untyped-call]
        return states.transpose(0, 1), cells.transpose(0, 1)


class _Recurrence(torch.autograd.Function):
    """The loop over positions, time first; gates are kept in the order i, f, o, g."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        inputs: Float[Tensor, "t b gates"],
        weight: Float[Tensor, "s gates"],
        h: Float[Tensor, "b s"],
        c: Float[Tensor, "b s"],
    ) -> tuple[Float[Tensor, "t b s"], Float[Tensor, "t b s"]]:
        t, b, s = len(inputs), len(h), len(weight)
        gates = inputs.clone()
        states, cells = inputs.new_empty(t + 1, b, s), inputs.new_empty(t + 1, b, s)
        tanh_cells = inputs.new_empty(t, b, s)
        states[0], cells[0] = h, c
        by_gate = gates.view(t, b, 4, s)
        sigmoids = by_gate[:, :, :3].unbind()
        i, f, o, g = (gate.unbind() for gate in by_gate.unbind(2))
        all_gates, hs, cs, tanh_cs = (x.unbind() for x in (gates, states, cells, tanh_cells))
        # views are made above, all at once: making them step by step would cost more than the
        # arithmetic
        for n in range(t):
            all_gates[n].addmm_(hs[n], weight)
            sigmoids[n].sigmoid_()
            g[n].tanh_()
            torch.mul(f[n], cs[n], out=cs[n + 1])
            cs[n + 1].addcmul_(i[n], g[n])
            torch.tanh(cs[n + 1], out=tanh_cs[n])
            torch.mul(o[n], tanh_cs[n], out=hs[n + 1])
        ctx.save_for_backward(by_gate, states, cells, tanh_cells, weight)
        return states[1:], cells[1:]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: torch.autograd.function.FunctionCtx,
        d_states: Float[Tensor, "t b s"],
        d_cells: Float[Tensor, "t b s"],
    ) -> tuple[Tensor, ...]:
        by_gate, states, cells, tanh_cells, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        i, f, o, g = by_gate.unbind(2)
        # d gate = slope × (d cell for i, f, g; d state for o), and d cell gets through × d state
        slopes = torch.empty_like(by_gate)
        torch.mul(g * i, 1 - i, out=slopes[:, :, 0])
        torch.mul(cells[:-1] * f, 1 - f, out=slopes[:, :, 1])
        torch.mul(tanh_cells * o, 1 - o, out=slopes[:, :, 2])
        torch.mul(i, 1 - g * g, out=slopes[:, :, 3])
        through = (o * (1 - tanh_cells * tanh_cells)).unbind()
        d_gates = torch.empty_like(by_gate)
        flat = d_gates.flatten(2)
        d_h, d_c = torch.zeros_like(states[0]), torch.zeros_like(states[0])
        d_c_gates = d_c[:, None]
        back = weight.T.contiguous()
        slope, slope_o = slopes.unbind(), slopes[:, :, 2].unbind()
        d_gate, d_gate_o, d_flat = d_gates.unbind(), d_gates[:, :, 2].unbind(), flat.unbind()
        d_hs, d_cs, forget = d_states.unbind(), d_cells.unbind(), f.unbind()
        for n in range(len(d_hs) - 1, -1, -1):
            d_h.add_(d_hs[n])
            d_c.add_(d_cs[n])
            d_c.addcmul_(d_h, through[n])
            torch.mul(slope[n], d_c_gates, out=d_gate[n])
            torch.mul(slope_o[n], d_h, out=d_gate_o[n])
            d_c.mul_(forget[n])
            torch.mm(d_flat[n], back, out=d_h)
        d_weight = states[:-1].flatten(0, 1).T @ flat.flatten(0, 1)
        return flat, d_weight, d_h, d_c


def mirrored(length: Int[Tensor, " b"], n: int) -> Int[Tensor, "b n"]:
    """Where each position goes when rows are reversed within their lengths; padding stays.

    >>> mirrored(torch.tensor([2, 3]), 3)
    tensor([[1, 0, 2],
            [2, 1, 0]])
    """
    position = torch.arange(n, device=length.device).expand(len(length), n)
    last = length[:, None] - 1
    return torch.where(position <= last, last - position, position)
