"""An LSTM encoder-decoder with soft attention (Bahdanau, Cho & Bengio 2015)."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.models.baselines.common import (
    Baseline,
    BiLSTM,
    Embedding,
    log_words,
    lstm_cell,
    unshared,
    word_losses,
)
from equitrans.paper import (
    EOS,
    Batch,
    Moment,
    Symmetry,
    lengths,
    padding_mask,
    previous_words,
)


class AttentionState(NamedTuple):
    """The encoded source and the decoder's state."""

    values: Float[Tensor, "b n e"]
    keys: Float[Tensor, "b n a"]
    inputs: Float[Tensor, "b n gates"]
    closed: Float[Tensor, "b n"]
    h: Float[Tensor, "b s"]
    c: Float[Tensor, "b s"]


class SoftAttention(Baseline):
    """``p(y_i | y_<i, x) = softmax(O [h_i ; c_i])`` with ``h_i = LSTM([e(y_{i−1}) ; c_i])``,
    ``c_i = Σ_j α_ij e_j`` and ``α_i = softmax_j(v·tanh(W h_{i−1} + U e_j))``. e_j are the states of
    a bidirectional LSTM, and ``h_0 = tanh(B e←_1 + b)``.

    With ``context="after"`` the source is read after the step of the LSTM (Luong, Pham & Manning
    2015, without input feeding): ``h_i = LSTM(e(y_{i−1}))`` and
    ``α_i = softmax_j(v·tanh(W h_i + U e_j))``.
    """

    static = True

    def __init__(
        self,
        symmetry: Symmetry,
        *,
        embedding: int,
        hidden: int,
        context: Literal["before", "after"] = "before",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.symmetry = symmetry
        self.context = context
        self.source_embedding = Embedding(symmetry.source, embedding)
        self.target_embedding = Embedding(symmetry.target, embedding)
        self.encoder = BiLSTM(embedding, hidden=hidden)
        self.begin = nn.Linear(hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(2 * hidden, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)
        read = 2 * hidden if context == "before" else 0
        self.decoder = nn.LSTMCell(embedding + read, hidden)
        self.output = nn.Linear(3 * hidden, len(symmetry.target) - EOS)
        self.dropout = nn.Dropout(dropout)

    @property
    def sharing(self) -> Symmetry:
        return unshared(self.symmetry)

    def start(self, source: Int[Tensor, "b n"]) -> AttentionState:
        embedded = self.dropout(self.source_embedding(source))
        ahead, back = self.encoder(embedded, lengths(source))
        values = torch.cat([ahead, back], dim=2)
        h = torch.tanh(self.begin(back[:, 0]))
        _, of_context = self._parts()
        return AttentionState(
            values=values,
            keys=self.key(values),
            # W Σ_j α_j e_j = Σ_j α_j W e_j, so the product is computed once, before α; W has no
            # columns, and the product is 0, if the LSTM does not read the context
            inputs=nn.functional.linear(values[:, :, : of_context.shape[1]], of_context),
            closed=padding_mask(source, like=values),
            h=h,
            c=torch.zeros_like(h),
        )

    def step(
        self, state: AttentionState, previous: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b y"], AttentionState]:
        attention, states, after = self._advance(state, previous[:, None])
        return log_words(self._logits(state, attention, states))[:, 0], after

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        state = self.start(batch.source)
        attention, states, _ = self._advance(state, previous_words(batch.target))
        return word_losses(self._logits(state, attention, states), batch.target).sum(1)

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The attention α at each target word."""
        return self._advance(self.start(batch.source), previous_words(batch.target))[0]

    def _advance(
        self, state: AttentionState, previous: Int[Tensor, "b m"]
    ) -> tuple[Float[Tensor, "b m n"], Float[Tensor, "b m s"], AttentionState]:
        """The attention and the decoder's h after each of the previous words, and the state after
        the last.
        """
        of_word, _ = self._parts()
        embedded = self.dropout(self.target_embedding(previous))
        words = nn.functional.linear(embedded, of_word, self.decoder.bias_ih + self.decoder.bias_hh)
        if self.context == "after":
            return self._advance_first(state, words)
        # one product with h for the attention and the LSTM
        recurrent = torch.cat([self.query.weight, self.decoder.weight_hh]).T.contiguous()
        h, c = state.h, state.c
        attentions, states = [], []
        for word in words.unbind(1):
            query, gates = (h @ recurrent).split([self.query.out_features, word.shape[1]], dim=1)
            compared = torch.tanh(state.keys + query[:, None])
            scores = self.score(compared)[:, :, 0] + state.closed
            attention = torch.softmax(scores, dim=1)
            gates = torch.baddbmm((gates + word)[:, None], attention[:, None], state.inputs)[:, 0]
            h, c = lstm_cell(gates, c)
            attentions.append(attention)
            states.append(h)
        after = state._replace(h=h, c=c)
        return torch.stack(attentions, dim=1), torch.stack(states, dim=1), after

    def _advance_first(
        self, state: AttentionState, words: Float[Tensor, "b m gates"]
    ) -> tuple[Float[Tensor, "b m n"], Float[Tensor, "b m s"], AttentionState]:
        """As ``_advance``, from the LSTM's products with the previous words. No state depends on
        the attention, so the attention of all states is computed at once.
        """
        recurrent = self.decoder.weight_hh.T.contiguous()
        h, c = state.h, state.c
        steps = []
        for word in words.unbind(1):
            h, c = lstm_cell(torch.addmm(word, h, recurrent), c)
            steps.append(h)
        states = torch.stack(steps, dim=1)
        compared = torch.tanh(state.keys[:, None] + self.query(states)[:, :, None])
        scores = self.score(compared)[:, :, :, 0] + state.closed[:, None]
        return torch.softmax(scores, dim=2), states, state._replace(h=h, c=c)

    def _logits(
        self,
        state: AttentionState,
        attention: Float[Tensor, "b m n"],
        states: Float[Tensor, "b m s"],
    ) -> Float[Tensor, "b m w"]:
        """Logits of EOS and the words after it."""
        return self.output(self.dropout(torch.cat([states, attention @ state.values], dim=2)))

    def _parts(self) -> tuple[Float[Tensor, "gates w"], Float[Tensor, "gates e"]]:
        """The LSTM's weights for the previous word and for the context."""
        weight, size = self.decoder.weight_ih, self.target_embedding.weight.shape[1]
        return weight[:, :size], weight[:, size:]
