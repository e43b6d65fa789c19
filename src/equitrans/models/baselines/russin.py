"""Syntactic Attention (Russin, Jo, O'Reilly & Bengio 2019): meaning and syntax are separate.

The meaning of a word depends on the word only, and the output depends on meanings only. The syntax
of a word depends on the words around it but not on the word itself, and the attention depends on
syntax only. The released code is correct for batches of one pair. Here every row of a batch is
reversed within its own length, so batches of any size give the same results.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.models.baselines.common import (
    Baseline,
    BiLSTM,
    log_words,
    lstm_cell,
    unshared,
    word_losses,
)
from equitrans.paper import BOS, EOS, Batch, Moment, Symmetry, lengths, padding_mask


class RussinState(NamedTuple):
    """The encoded source and the decoder's state; ``query`` is h except before the first word."""

    meanings: Float[Tensor, "b n d"]
    keys: Float[Tensor, "b n s"]
    inputs: Float[Tensor, "b n gates"]
    closed: Float[Tensor, "b n"]
    query: Float[Tensor, "b s"]
    h: Float[Tensor, "b s"]
    c: Float[Tensor, "b s"]


class SyntacticAttention(Baseline):
    """``p(y_i | x) = softmax(O Σ_j α_ij m_j)`` with ``α_i = softmax_j(s_i·h_j)`` and ``s_{i+1} =
    LSTM(Σ_j α_ij h_j)``. Target words are not fed back, so they are independent given x.
    """

    static = True

    def __init__(
        self, symmetry: Symmetry, *, semantics: int, syntax: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.symmetry = symmetry
        # as published, PAD has a row on the source side and BOS on the target side; both are unused
        n, m = len(symmetry.source), len(symmetry.target) - BOS
        self.meaning = nn.Embedding(n, semantics)
        self.embedding = nn.Embedding(n, syntax // 2)
        self.first = BiLSTM(syntax // 2, hidden=syntax // 2)
        self.bos, self.eos = nn.Parameter(torch.randn(syntax)), nn.Parameter(torch.randn(syntax))
        self.second = BiLSTM(syntax, hidden=syntax)
        self.begin = nn.Linear(2 * syntax, 2 * syntax)
        self.decoder = nn.LSTMCell(2 * syntax, 2 * syntax)
        self.output = nn.Linear(semantics, m)
        self.dropout = nn.Dropout(dropout)

    @property
    def sharing(self) -> Symmetry:
        return unshared(self.symmetry)

    def contexts(self, source: Int[Tensor, "b n"]) -> Float[Tensor, "b n r"]:
        """``r_j = [h→_{j−1} ; h←_{j+1}]``, which does not depend on x_j; BOS and EOS have learned
        vectors.
        """
        length = lengths(source)
        ahead, back = self.first(self.dropout(self.embedding(source)), length)
        # values that roll around an end land on BOS, EOS or padding: replaced below, or unused
        around = torch.cat([ahead.roll(1, dims=1), back.roll(-1, dims=1)], dim=2)
        position = torch.arange(source.shape[1], device=source.device)[:, None]
        last = (length - 1)[:, None, None]
        return torch.where(position == last, self.eos, around).where(position > 0, self.bos)

    def start(self, source: Int[Tensor, "b n"]) -> RussinState:
        length = lengths(source)
        ahead, back = self.second(self.contexts(source), length)
        keys = torch.cat([ahead, back], dim=2)
        row = torch.arange(len(source), device=source.device)
        ends = torch.cat([ahead[row, length - 1], back[:, 0]], dim=1)
        cell = self.decoder
        zero = torch.zeros_like(ends)
        return RussinState(
            meanings=self.dropout(self.meaning(source)),
            keys=keys,
            # W Σ_j α_j h_j + b = Σ_j α_j (W h_j + b), so the product is computed once, before α
            inputs=nn.functional.linear(keys, cell.weight_ih, cell.bias_ih + cell.bias_hh),
            closed=padding_mask(source, like=keys),
            query=torch.relu(self.begin(ends)),
            h=zero,
            c=zero,
        )

    def step(
        self, state: RussinState, previous: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b y"], RussinState]:
        attention = _attend(state)
        words = log_words(self._logits(state, attention[:, None]))[:, 0]
        return words, self._advance(state, attention)

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        """−log p(y | x) of each row; in training, as published, divided by the row's words."""
        state = self.start(batch.source)
        logits = self._logits(state, self._unroll(state, batch.target.shape[1]))
        total = word_losses(logits, batch.target).sum(1)
        return total if moment is None else total / lengths(batch.target)

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The attention α at each target word."""
        return self._unroll(self.start(batch.source), batch.target.shape[1])

    def _unroll(self, state: RussinState, m: int) -> Float[Tensor, "b m n"]:
        """The attention at the first m target words."""
        attentions = [_attend(state)]
        for _ in range(m - 1):
            state = self._advance(state, attentions[-1])
            attentions.append(_attend(state))
        return torch.stack(attentions, dim=1)

    def _advance(self, state: RussinState, attention: Float[Tensor, "b n"]) -> RussinState:
        """The decoder's state after one more word."""
        hidden = (state.h @ self.decoder.weight_hh.T)[:, None]
        gates = torch.baddbmm(hidden, attention[:, None], state.inputs)[:, 0]
        h, c = lstm_cell(gates, state.c)
        return state._replace(query=h, h=h, c=c)

    def _logits(
        self, state: RussinState, attention: Float[Tensor, "b m n"]
    ) -> Float[Tensor, "b m w"]:
        """Logits of EOS and the words after it."""
        return self.output(attention @ state.meanings)[:, :, EOS - BOS :]


def _attend(state: RussinState) -> Float[Tensor, "b n"]:
    scores = torch.baddbmm(state.closed[:, None], state.query[:, None], state.keys.transpose(1, 2))
    return torch.softmax(scores[:, 0], dim=1)
