"""What every model promises; no model is made here."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from equitrans.batches import Batch, Rows, in_order
from equitrans.decoding import Hypothesis, beam_search
from equitrans.marginals import Moment
from equitrans.symmetry import Symmetry
from equitrans.vocabulary import BOS, PAD


class Parts(NamedTuple):
    """Log p(a_m = n) after the words y_<m, and log p(y_m | a_m = n)."""

    aligned: Float[Tensor, "b m n"]
    emitted: Float[Tensor, "b m n"]


class Model(nn.Module, ABC):
    """A distribution p(y | x) that can be trained and asked for its best y.

    ``symmetry`` holds its vocabularies and the classes that it was given.
    """

    symmetry: Symmetry

    static: bool = False
    """Whether the loss in a phase of training is the same operations for all batches of one shape,
    so that they can be recorded; values decide nothing and are not looked at."""

    def phase(self, moment: Moment) -> Hashable:
        """Equal for moments at which the loss in training is the same operations."""
        return None

    @property
    def sharing(self) -> Symmetry:
        """The classes under which pairs have the same likelihood by construction, so that one
        stands for all: those of the model if it is equivariant, none if it is not.
        """
        return self.symmetry

    @abstractmethod
    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        """−log p(y | x) of each row, at a moment of training or, without one, after it."""

    @abstractmethod
    def predict(
        self, source: Int[Tensor, "b n"], *, width: int, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis]]:
        """The best targets of each source, best first."""

    @abstractmethod
    def correct(self, batch: Batch) -> Bool[Tensor, " b"]:
        """Whether greedy decoding of each row's source gives the row's target."""

    def judge(self, batch: Batch) -> tuple[Float[Tensor, " b"], Bool[Tensor, " b"]]:
        """The loss of each row, and whether it is correct."""
        return self.loss(batch), self.correct(batch)

    @abstractmethod
    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """How much each target word comes from each source position, which sums to 1: the
        posterior p(a_m = n | x, y) where alignments are hard, the attention where they are soft.
        """

    def parts(self, batch: Batch) -> Parts | None:
        """What a posterior is made of; None where alignments are soft, and it is not made."""
        return None


class Autoregressive(Model, ABC):
    """A model that scores word by word, and is decoded by beam search."""

    @abstractmethod
    def start(self, source: Int[Tensor, "b n"]) -> Any:
        """What is known before the first word: a NamedTuple of tensors, batch first, and of what
        all rows share.
        """

    @abstractmethod
    def step(self, state: Any, previous: Int[Tensor, " b"]) -> tuple[Float[Tensor, "b y"], Any]:
        """Log p(next word | words so far, x) for every word, after ``previous``."""

    def predict(
        self, source: Int[Tensor, "b n"], *, width: int, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis]]:
        return beam_search(self, source, width=width, max_length=max_length, n_best=n_best)

    @torch.no_grad()
    def correct(self, batch: Batch) -> Bool[Tensor, " b"]:
        # greedy search finds the target just if every word of it is the best one after its
        # predecessors
        state = self.start(batch.source)
        previous = torch.full_like(batch.target[:, 0], BOS)
        right = torch.ones_like(previous, dtype=torch.bool)
        for gold in batch.target.unbind(1):
            scores, state = self.step(state, previous)
            right &= (gold == PAD) | (scores.argmax(1) == gold)
            previous = gold
        return right


_ROWS = {"cpu": 512, "cuda": 2048}
"""How many rows go together: a GPU takes as long for many as for few."""

_ENTRIES = 50_000_000
"""The largest number of entries in one tensor; with long sentences or many words fewer rows go
together."""


def rows_together(entries: int, *, most: int) -> int:
    """How many rows there is room for, if each takes so many entries."""
    return max(1, min(most, _ENTRIES // max(entries, 1)))


def in_parts(model: Model, data: Rows) -> Iterator[Batch]:
    """All rows once, as many together as there is room for, where the model is."""
    device = next(model.parameters()).device
    width = data.source.shape[1] * max(data.target.shape[1], len(model.symmetry.target))
    rows = rows_together(width, most=_ROWS[device.type])
    return (batch.to(device) for batch in in_order(data, rows=rows))


@torch.no_grad()
def mean_loss(model: Model, data: Rows) -> float:
    """Mean −log p(y | x) per pair."""
    return _mean(model, data, lambda batch: (model.loss(batch),))[0]


@torch.no_grad()
def greedy_accuracy(model: Model, data: Rows) -> float:
    """The share of pairs that greedy decoding gets right."""
    return _mean(model, data, lambda batch: (model.correct(batch),))[0]


@torch.no_grad()
def judge(model: Model, data: Rows) -> tuple[float, float]:
    """Both of these."""
    loss, accuracy = _mean(model, data, model.judge)
    return loss, accuracy


def _mean(
    model: Model, data: Rows, figures: Callable[[Batch], tuple[Tensor, ...]]
) -> tuple[float, ...]:
    """Means over pairs of what is said of every row."""
    model.eval()
    totals = [
        [float((figure * batch.weight).sum()) for figure in figures(batch)]
        for batch in in_parts(model, data)
    ]
    return tuple(sum(parts) / float(data.weight.sum()) for parts in zip(*totals, strict=True))
