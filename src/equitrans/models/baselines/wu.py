"""Hard attention without symmetry (Wu, Shapiro & Cotterell 2018), which the paper builds on.

A position emits words given its encoder *state* and the decoder's state. In the transducer it emits
words given its source word only. So here a word has no fixed meaning, and no two words share one.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.models.baselines.common import Baseline, BiLSTM, Embedding, log_words, unshared
from equitrans.paper import (
    EOS,
    PAD,
    Batch,
    Moment,
    Parts,
    Symmetry,
    lengths,
    padding_mask,
    previous_words,
)


class WuState(NamedTuple):
    """The keys and emissions of each source position, and the decoder's state."""

    keys: Float[Tensor, "b n s"]
    emissions: Float[Tensor, "b n l"]
    closed: Float[Tensor, "b n"]
    h: Float[Tensor, "b s"]
    c: Float[Tensor, "b s"]


class HardAttention(Baseline):
    """``p(y | x) = Π_m Σ_n p(a_m = n) p(y_m | a_m = n)`` with ``p(a_m = n) ∝ exp(h_m·(S e_n + s))``
    and ``p(y_m | a_m = n) = softmax(O tanh(L [h_m ; e_n]))``, both after the words y_<m. e_n are
    the states of a bidirectional LSTM over the source, and h_m those of an LSTM over y_<m.
    """

    static = True

    def __init__(
        self, symmetry: Symmetry, *, embedding: int, hidden: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.symmetry = symmetry
        self.source_embedding = Embedding(symmetry.source, embedding)
        self.target_embedding = Embedding(symmetry.target, embedding)
        self.encoder = BiLSTM(embedding, hidden=hidden)
        self.decoder = nn.LSTM(embedding, hidden, batch_first=True)
        self.key = nn.Linear(2 * hidden, hidden)
        self.joined = nn.Linear(3 * hidden, 3 * hidden)
        self.output = nn.Linear(3 * hidden, len(symmetry.target) - EOS)
        self.dropout = nn.Dropout(dropout)

    @property
    def sharing(self) -> Symmetry:
        return unshared(self.symmetry)

    def start(self, source: Int[Tensor, "b n"]) -> WuState:
        embedded = self.dropout(self.source_embedding(source))
        states = torch.cat(self.encoder(embedded, lengths(source)), dim=2)
        zero = states.new_zeros(len(source), self.decoder.hidden_size)
        _, of_source = self._parts()
        return WuState(
            keys=self.key(states),
            emissions=nn.functional.linear(states, of_source, self.joined.bias),
            closed=padding_mask(source, like=states),
            h=zero,
            c=zero,
        )

    def step(
        self, state: WuState, previous: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b y"], WuState]:
        aligned, logits, after = self._advance(state, previous[:, None])
        words = log_words(logits[:, 0]) + aligned[:, 0, :, None]
        return torch.logsumexp(words, dim=1), after

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        """−log p(y | x) of each row. In training, as published, it is divided by the mean target
        length of the batch, so that the mean over rows is the mean over words.
        """
        by_word = torch.logsumexp(self._joint(batch), dim=2)
        total = -by_word.masked_fill(batch.target == PAD, 0.0).sum(1)
        if moment is None:
            return total
        return total * batch.weight.sum() / (lengths(batch.target) * batch.weight).sum()

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The posterior p(a_m = n | x, y) of each row."""
        return torch.softmax(self._joint(batch), dim=2)

    def _joint(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """Log p(a_m = n) + log p(y_m | a_m = n)."""
        aligned, emitted = self.parts(batch)
        return aligned + emitted

    def parts(self, batch: Batch) -> Parts:
        """The two factors of the posterior; arbitrary where the target is padding."""
        aligned, logits, _ = self._advance(self.start(batch.source), previous_words(batch.target))
        gold = (batch.target - EOS).clamp(min=0)[:, :, None, None].expand(*aligned.shape, 1)
        return Parts(aligned, torch.log_softmax(logits, dim=3).gather(3, gold)[..., 0])

    def _advance(
        self, state: WuState, previous: Int[Tensor, "b m"]
    ) -> tuple[Float[Tensor, "b m n"], Float[Tensor, "b m n w"], WuState]:
        """Log p(a_m = n) and the logits of EOS and the words after it at every source position,
        after each of the previous words; and the state after the last.
        """
        embedded = self.dropout(self.target_embedding(previous))
        states, (h, c) = self.decoder(embedded, (state.h[None], state.c[None]))
        states = self.dropout(states)
        scores = torch.baddbmm(state.closed[:, None], states, state.keys.transpose(1, 2))
        of_decoder, _ = self._parts()
        said = nn.functional.linear(states, of_decoder)[:, :, None] + state.emissions[:, None]
        # in place: this is by far the largest tensor, and the gradient of a sum does not need it
        logits = self.output(said.tanh_())
        return torch.log_softmax(scores, dim=2), logits, state._replace(h=h[0], c=c[0])

    def _parts(self) -> tuple[Float[Tensor, "l s"], Float[Tensor, "l e"]]:
        """L_h and L_e of ``L [h ; e] = L_h h + L_e e``: two products, and no product per pair."""
        hidden = self.decoder.hidden_size
        return self.joined.weight[:, :hidden], self.joined.weight[:, hidden:]
