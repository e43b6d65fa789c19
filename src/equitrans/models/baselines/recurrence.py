"""An LSTM's loop over positions with its gradient written out: what can be done for all positions
at once is, and the loop holds one product and a few sums.

For cells that torch's own LSTM cannot be: its inputs come with attention, or its weights with
structure.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


def recurrence(
    inputs: Float[Tensor, "t b gates"],
    weight: Float[Tensor, "s gates"],
    h: Float[Tensor, "b s"],
    c: Float[Tensor, "b s"],
) -> tuple[Float[Tensor, "t b s"], Float[Tensor, "t b s"]]:
    """States and cells after each position, time first, from what the inputs add to the gates.

    Gates stand in the order i, f, o, g.
    """
    return _Recurrence.apply(inputs, weight, h, c)  # type: ignore[no-untyped-call]


class _Recurrence(torch.autograd.Function):
    """The loop over positions."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        inputs: Float[Tensor, "t b gates"],
        weight: Float[Tensor, "s gates"],
        h: Float[Tensor, "b s"],
        c: Float[Tensor, "b s"],
    ) -> tuple[Float[Tensor, "t b s"], Float[Tensor, "t b s"]]:
        states = inputs.new_empty(len(inputs) + 1, *h.shape)
        states[0] = h
        cell = Cell(inputs.clone(), c)
        hs = states.unbind()
        for n in range(len(inputs)):
            cell.gates[n].addmm_(hs[n], weight)
            cell.advance(n, out=hs[n + 1])
        ctx.save_for_backward(states, weight, *cell.kept)
        return states[1:], cell.cells[1:]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: torch.autograd.function.FunctionCtx,
        d_states: Float[Tensor, "t b s"],
        d_cells: Float[Tensor, "t b s"],
    ) -> tuple[Tensor, ...]:
        states, weight, *kept = ctx.saved_tensors  # type: ignore[attr-defined]
        cell = CellGradient(*kept)
        d_h, d_c = torch.zeros_like(states[0]), torch.zeros_like(states[0])
        back = weight.T.contiguous()
        d_hs, d_cs = d_states.unbind(), d_cells.unbind()
        for n in range(len(d_hs) - 1, -1, -1):
            d_h.add_(d_hs[n])
            d_c.add_(d_cs[n])
            cell.retreat(n, d_h, d_c)
            torch.mm(cell.gates[n], back, out=d_h)
        d_inputs = cell.d_gates
        d_weight = states[:-1].flatten(0, 1).T @ d_inputs.flatten(0, 1)
        return d_inputs, d_weight, d_h, d_c


class Cell:
    """``c' = f c + i g``, ``h' = o tanh c'`` at one position after the other, in place.

    Views of all positions are made at once: making them step by step would cost more than the
    arithmetic.
    """

    def __init__(self, gates: Float[Tensor, "t b gates"], c: Float[Tensor, "b s"]) -> None:
        by_gate = gates.unflatten(2, (4, c.shape[1]))
        self.cells = gates.new_empty(len(gates) + 1, *c.shape)
        tanh_cells = gates.new_empty(len(gates), *c.shape)
        self.cells[0] = c
        self.gates = gates.unbind()
        self._sigmoids = by_gate[:, :, :3].unbind()
        self._i, self._f, self._o, self._g = (gate.unbind() for gate in by_gate.unbind(2))
        self._c, self._tanh_c = self.cells.unbind(), tanh_cells.unbind()
        self.kept = by_gate, self.cells, tanh_cells
        """What the gradient needs."""

    def advance(self, n: int, *, out: Float[Tensor, "b s"]) -> None:
        """The state after position n, whose gates hold sums so far."""
        self._sigmoids[n].sigmoid_()
        self._g[n].tanh_()
        torch.mul(self._f[n], self._c[n], out=self._c[n + 1])
        self._c[n + 1].addcmul_(self._i[n], self._g[n])
        torch.tanh(self._c[n + 1], out=self._tanh_c[n])
        torch.mul(self._o[n], self._tanh_c[n], out=out)


class CellGradient:
    """The way back through ``Cell``; what needs no loop is done for all positions at once."""

    def __init__(
        self,
        by_gate: Float[Tensor, "t b 4 s"],
        cells: Float[Tensor, "t+1 b s"],
        tanh_cells: Float[Tensor, "t b s"],
    ) -> None:
        i, f, o, g = by_gate.unbind(2)
        # d gate = slope × (d cell for i, f, g; d state for o), and d cell gets through × d state
        slopes = torch.empty_like(by_gate)
        torch.mul(g * i, 1 - i, out=slopes[:, :, 0])
        torch.mul(cells[:-1] * f, 1 - f, out=slopes[:, :, 1])
        torch.mul(tanh_cells * o, 1 - o, out=slopes[:, :, 2])
        torch.mul(i, 1 - g * g, out=slopes[:, :, 3])
        self._through = (o * (1 - tanh_cells * tanh_cells)).unbind()
        d_by_gate = torch.empty_like(by_gate)
        self._slope, self._slope_o = slopes.unbind(), slopes[:, :, 2].unbind()
        self._d_gate, self._d_gate_o = d_by_gate.unbind(), d_by_gate[:, :, 2].unbind()
        self._forget = f.unbind()
        self.d_gates = d_by_gate.flatten(2)
        self.gates = self.d_gates.unbind()

    def retreat(self, n: int, d_h: Float[Tensor, "b s"], d_c: Float[Tensor, "b s"]) -> None:
        """From the gradient after position n to that of its gates, and of the cell before it."""
        d_c.addcmul_(d_h, self._through[n])
        torch.mul(self._slope[n], d_c[:, None], out=self._d_gate[n])
        torch.mul(self._slope_o[n], d_h, out=self._d_gate_o[n])
        d_c.mul_(self._forget[n])


def mirrored(length: Int[Tensor, " b"], n: int) -> Int[Tensor, "b n"]:
    """Where each position goes when rows are reversed within their lengths; padding stays.

    >>> mirrored(torch.tensor([2, 3]), 3)
    tensor([[1, 0, 2],
            [2, 1, 0]])
    """
    position = torch.arange(n, device=length.device).expand(len(length), n)
    last = length[:, None] - 1
    return torch.where(position <= last, last - position, position)
