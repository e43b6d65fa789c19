"""Parts that the encoder-decoders share: embeddings, LSTMs in both directions, losses per word."""

import math
from abc import ABC

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.paper import (
    BOS,
    EOS,
    PAD,
    Autoregressive,
    Batch,
    Symmetry,
    Vocabulary,
    previous_words,
)


class Baseline(Autoregressive, ABC):
    """A compared system, which scores the words of a target one after the other."""

    @torch.no_grad()
    def score_words(self, batch: Batch) -> tuple[Float[Tensor, " b"], Float[Tensor, "b m y"]]:
        state = self.start(batch.source)
        by_word = []
        for previous in previous_words(batch.target).unbind(1):
            scores, state = self.step(state, previous)
            by_word.append(scores)
        return self.loss(batch), torch.stack(by_word, dim=1)


class Embedding(nn.Module):
    """A free vector for every word except PAD; padding reads the vector of BOS."""

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(len(vocabulary) - BOS, size))

    def forward(self, words: Int[Tensor, "b n"]) -> Float[Tensor, "b n e"]:
        return nn.functional.embedding((words - BOS).clamp(min=0), self.weight)


class BiLSTM(nn.Module):
    """``h→_j = LSTM→(x_1 … x_j)`` and ``h←_j = LSTM←(x_N … x_j)``; N is the length of the row."""

    def __init__(self, size: int, *, hidden: int) -> None:
        super().__init__()
        # a bidirectional nn.LSTM would read the padding first on its way back
        self.ahead = nn.LSTM(size, hidden, batch_first=True)
        self.back = nn.LSTM(size, hidden, batch_first=True)

    def forward(
        self, inputs: Float[Tensor, "b n e"], length: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b n s"], Float[Tensor, "b n s"]]:
        """The states of both directions at every position; states at padding are arbitrary."""
        mirror = mirrored(length, inputs.shape[1])[:, :, None]
        ahead, _ = self.ahead(inputs)
        back, _ = self.back(inputs.gather(1, mirror.expand_as(inputs)))
        return ahead, back.gather(1, mirror.expand_as(back))


def lstm_cell(
    gates: Float[Tensor, "b gates"], c: Float[Tensor, "b s"]
) -> tuple[Float[Tensor, "b s"], Float[Tensor, "b s"]]:
    """``c' = σ(f) c + σ(i) tanh g; h' = σ(o) tanh c'``, gates in torch's order i, f, g, o."""
    if gates.is_cuda:  # one kernel, the one of nn.LSTMCell; on a CPU it does not exist
        h, c, _ = torch.ops.aten._thnn_fused_lstm_cell(gates, torch.zeros_like(gates), c)
        return h, c
    i, f, g, o = gates.unflatten(1, (4, -1)).unbind(1)
    c = torch.addcmul(f.sigmoid() * c, i.sigmoid(), g.tanh())
    return o.sigmoid() * c.tanh(), c


def log_words(logits: Float[Tensor, "*b w"]) -> Float[Tensor, "*b y"]:
    """Log-probabilities of all words from the logits of EOS and the words after it. PAD and BOS
    come before EOS and get −∞.
    """
    return torch.log_softmax(nn.functional.pad(logits, (EOS, 0), value=-math.inf), dim=-1)


def word_losses(logits: Float[Tensor, "b m w"], target: Int[Tensor, "b m"]) -> Float[Tensor, "b m"]:
    """−log p of each target word, 0 at padding, from the logits of EOS and the words after it."""
    return nn.functional.cross_entropy(
        logits.transpose(1, 2), target - EOS, ignore_index=PAD - EOS, reduction="none"
    )


def unshared(symmetry: Symmetry) -> Symmetry:
    """The same vocabularies without classes: the sharing of a model that is not equivariant."""
    return Symmetry(symmetry.source, symmetry.target)


def mirrored(length: Int[Tensor, " b"], n: int) -> Int[Tensor, "b n"]:
    """The position that each position moves to when rows are reversed; padding stays in place.

    >>> mirrored(torch.tensor([2, 3]), 3)
    tensor([[1, 0, 2],
            [2, 1, 0]])
    """
    position = torch.arange(n, device=length.device).expand(len(length), n)
    last = length[:, None] - 1
    return torch.where(position <= last, last - position, position)
