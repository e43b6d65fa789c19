"""The invariant aligner (§4.3): from two sequences of classes to a distribution over positions."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.lstm import LSTM
from equitrans.models.seq2seq import closed, lengths
from equitrans.symmetry import Symmetry


class AlignerState(NamedTuple):
    """What the aligner knows of a source and of the target so far."""

    keys: Float[Tensor, "b n s"]
    closed: Float[Tensor, "b n"]
    h: Float[Tensor, "b s"]
    c: Float[Tensor, "b s"]


class Aligner(nn.Module):
    """``p(a_m = n) ∝ exp(h_mᵀ T [h→_n; h←_n])`` (eqs. 6 and 7), from LSTMs that see classes
    only.
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
        for name, classes in (
            ("source_classes", symmetry.source_classes),
            ("target_classes", symmetry.target_classes),
        ):
            self.register_buffer(name, torch.tensor(classes), persistent=False)
        n, m = (max(c) for c in (symmetry.source_classes, symmetry.target_classes))

        def lstm(symbols: int) -> LSTM:
            return LSTM(symbols, embedding=embedding, hidden=hidden, forget_bias=forget_bias)

        self.encoder, self.decoder = lstm(n), lstm(m)
        self.backward_encoder = None if tied else lstm(n)
        self.bilinear = nn.Parameter(torch.empty(hidden, 2 * hidden).uniform_(-0.5, 0.5))
        self.dropout = nn.Dropout(dropout)

    def start(self, source: Int[Tensor, "b n"]) -> AlignerState:
        """Read a source in both directions."""
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
            closed=closed(source, like=states),
            h=forward[row, last],
            c=cells,
        )

    def advance(
        self, state: AlignerState, previous: Int[Tensor, "b m"]
    ) -> tuple[Float[Tensor, "b m n"], AlignerState]:
        """Log p(a_m = n) after each of the previous words, and the state after the last."""
        states, cells = self.decoder(self.target_classes[previous], state.h, state.c)
        scores = self.dropout(states) @ state.keys.transpose(1, 2) + state.closed[:, None]
        after = state._replace(h=states[:, -1], c=cells)
        return torch.log_softmax(scores, dim=2), after
