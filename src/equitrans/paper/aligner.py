"""The invariant aligner (§4.3): from two sequences of classes to a distribution over positions."""

import warnings
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.paper.base import lengths, padding_mask
from equitrans.paper.symmetry import Symmetry
from equitrans.paper.vocabulary import PAD

SHUT = 1e4
"""Gate input with sigmoid 1, or 0 if negated, in every floating-point type."""

# on a GPU torch warns that weights are not contiguous; one of them is computed in every call
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous")

FEW = 256
"""Largest number of symbols that are read as unit vectors; more are read as embeddings."""


class LSTM(nn.Module):
    """An LSTM over a few symbols, numbered from 1; 0 is padding.

    ``i, f, o = σ(·), g = tanh(·)`` of ``W e(symbol) + U h + b``; ``c' = f c + i g``; ``h' = o tanh
    c'``. At padding ``c' = c`` and ``h' = 0``, so rows of unequal length need no packing. The
    term ``W e + b`` is a table with one row per symbol, computed once per call: torch.lstm gets
    unit vectors as inputs and the table as weights. Padding has a row that closes the input and
    output gates and opens the forget gate. Gates are in torch's order i, f, g, o.
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
        """Hidden states after each symbol, started at (h, c) or at zero, and the last cells."""
        inputs, weight = self._inputs(symbols)
        if h is None or c is None:
            h = c = inputs.new_zeros(len(symbols), self.weight_hidden.shape[1])
        # no biases, one layer, no dropout, one direction, time first
        options = (False, 1, 0.0, torch.is_grad_enabled(), False, False)
        weights = (weight, self.weight_hidden)
        states, _, cells = torch.lstm(inputs, (h[None], c[None]), weights, *options)
        return states.transpose(0, 1), cells[0]

    def _inputs(
        self, symbols: Int[Tensor, "b t"]
    ) -> tuple[Float[Tensor, "t b inputs"], Float[Tensor, "gates inputs"]]:
        """Input vectors of the symbols, and the matrix that maps them to gate inputs."""
        if len(self.embedding) <= FEW:
            table = torch.addmm(self.bias[:, None], self.weight_in, self.embedding.T)
            return self.units[symbols.T], torch.cat([self.nothing, table], dim=1)
        # the last two inputs are 1 at padding and 1 elsewhere
        embedded = nn.functional.embedding((symbols.T - 1).clamp(min=0), self.embedding)
        pad = (symbols.T == PAD).to(embedded.dtype)[:, :, None]
        weight = torch.cat([self.weight_in, self.nothing, self.bias[:, None]], dim=1)
        return torch.cat([embedded * (1 - pad), pad, 1 - pad], dim=2), weight


class AlignerState(NamedTuple):
    """The aligner's state after reading a source and some target words."""

    keys: Float[Tensor, "b n s"]
    mask: Float[Tensor, "b n"]
    h: Float[Tensor, "b s"]
    c: Float[Tensor, "b s"]


class Aligner(nn.Module):
    """``p(a_m = n) ∝ exp(h_mᵀ T [h→_n; h←_n])`` (eqs. 6 and 7). The LSTMs read classes, not words,
    so the alignment is invariant (theorem 2).
    """

    source_classes: Int[Tensor, " x"]
    target_classes: Int[Tensor, " y"]

    def __init__(
        self,
        symmetry: Symmetry,
        *,
        embedding: int,
        hidden: int,
        tied: bool = True,
        dropout: float = 0.0,
        forget_bias: float = 0.0,
    ) -> None:
        super().__init__()
        sides = {"source": symmetry.source_classes, "target": symmetry.target_classes}
        for side, classes in sides.items():
            self.register_buffer(f"{side}_classes", torch.tensor(classes), persistent=False)
        n, m = map(max, sides.values())

        def lstm(symbols: int) -> LSTM:
            return LSTM(symbols, embedding=embedding, hidden=hidden, forget_bias=forget_bias)

        self.encoder, self.decoder = lstm(n), lstm(m)
        self.backward_encoder = None if tied else lstm(n)
        self.bilinear = nn.Parameter(torch.empty(hidden, 2 * hidden).uniform_(-0.5, 0.5))
        self.dropout = nn.Dropout(dropout)

    def start(self, source: Int[Tensor, "b n"]) -> AlignerState:
        """The state after reading a source in both directions."""
        b = len(source)
        ahead = self.source_classes[source]
        back = ahead.flip(1)
        if self.backward_encoder is None:
            both, cells = self.encoder(torch.cat([ahead, back]))
            forward, backward = both[:b], both[b:]
            cells = cells[:b]
        else:
            forward, cells = self.encoder(ahead)
            backward, _ = self.backward_encoder(back)
        row, last = torch.arange(b, device=source.device), lengths(source) - 1
        states = torch.cat([forward, backward.flip(1)], dim=2)
        return AlignerState(
            keys=self.dropout(states) @ self.bilinear.T,
            mask=padding_mask(source, like=states),
            h=forward[row, last],
            c=cells,
        )

    def advance(
        self, state: AlignerState, previous: Int[Tensor, "b m"]
    ) -> tuple[Float[Tensor, "b m n"], AlignerState]:
        """Log p(a_m = n) after each of the previous words, and the state after the last."""
        states, cells = self.decoder(self.target_classes[previous], state.h, state.c)
        scores = self.dropout(states) @ state.keys.transpose(1, 2) + state.mask[:, None]
        after = state._replace(h=states[:, -1], c=cells)
        return torch.log_softmax(scores, dim=2), after
