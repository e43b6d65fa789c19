"""An LSTM over few symbols, on top of torch's.

What the symbols add to the gates is a table with a row per symbol, made once per call, so that the
size of the embedding costs nothing per position: torch is given unit vectors as inputs and the
table as their weights. Padding has a row of its own that closes the input and output gates and
opens the forget gate: nothing is read there. Rows of unequal length need no packing, and reading
backwards is reading what has been flipped.
"""

import warnings

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.vocabulary import PAD

SHUT = 1e4
"""The sigmoid of its negative is 0 in any floating point."""

# torch would like both weights of an LSTM on a GPU in one piece; one of ours is made in every call
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous")

FEW = 256
"""Up to so many symbols are given as unit vectors; more of them, as their embeddings."""


class LSTM(nn.Module):
    """``i, f, o = σ(·), g = tanh(·)`` of ``W e(symbol) + U h + b``; ``c' = f c + i g``; ``h' = o
    tanh c'``. At padding ``c' = c`` and ``h' = 0``.

    Symbols are counted from 1; 0 is padding. Gates stand in torch's order i, f, g, o.
    """

    units: Float[Tensor, "x inputs"]
    nothing: Float[Tensor, "gates 1"]

    def __init__(
        self, symbols: int, *, embedding: int, hidden: int, forget_bias: float = 0.0
    ) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.embedding = nn.Parameter(torch.randn(symbols, embedding))
        self.weight_in = nn.Parameter(torch.empty(4 * hidden, embedding).uniform_(-bound, bound))
        self.weight_hidden = nn.Parameter(torch.empty(4 * hidden, hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))
        with torch.no_grad():
            self.bias[hidden : 2 * hidden] += forget_bias
        nothing = torch.tensor([-SHUT, SHUT, 0.0, -SHUT]).repeat_interleave(hidden)[:, None]
        self.register_buffer("nothing", nothing, persistent=False)
        self.register_buffer("units", torch.eye(min(symbols, FEW) + 1), persistent=False)

    def forward(
        self,
        symbols: Int[Tensor, "b t"],
        h: Float[Tensor, "b s"] | None = None,
        c: Float[Tensor, "b s"] | None = None,
    ) -> tuple[Float[Tensor, "b t s"], Float[Tensor, "b s"]]:
        """Hidden states after each symbol, from (h, c) or from zero, and the cells at the end."""
        inputs, weight = self._inputs(symbols)
        if h is None or c is None:
            h = c = inputs.new_zeros(len(symbols), self.weight_hidden.shape[1])
        states, _, cells = torch.lstm(
            inputs,
            (h[None], c[None]),
            (weight, self.weight_hidden),
            has_biases=False,
            num_layers=1,
            dropout=0.0,
            train=torch.is_grad_enabled(),
            bidirectional=False,
            batch_first=False,
        )
        return states.transpose(0, 1), cells[0]

    def _inputs(
        self, symbols: Int[Tensor, "b t"]
    ) -> tuple[Float[Tensor, "t b inputs"], Float[Tensor, "gates inputs"]]:
        """Vectors of the symbols, and what they are multiplied by to be added to the gates."""
        if len(self.embedding) <= FEW:
            table = torch.addmm(self.bias[:, None], self.weight_in, self.embedding.T)
            return self.units[symbols.T], torch.cat([self.nothing, table], dim=1)
        # the last two inputs say: this is padding, this is none
        embedded = nn.functional.embedding((symbols.T - 1).clamp(min=0), self.embedding)
        pad = (symbols.T == PAD).to(embedded.dtype)[:, :, None]
        weight = torch.cat([self.weight_in, self.nothing, self.bias[:, None]], dim=1)
        return torch.cat([embedded * (1 - pad), pad, 1 - pad], dim=2), weight
