"""The interface of a model p(y | x), and its batches."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.paper.symmetry import Symmetry
from equitrans.paper.vocabulary import BOS, PAD


@dataclass(frozen=True)
class Batch:
    """Pairs as rows; row i counts ``weight[i]`` times and has the form ``form[i]``.

    The source is ``BOS x EOS`` (it keeps EOS so that a target EOS can align), the target ``y EOS``.
    A *form* is a sequence of classes; ``first[f]`` is a row of form f.
    """

    source: Int[Tensor, "b n"]
    target: Int[Tensor, "b m"]
    weight: Float[Tensor, " b"]
    form: Int[Tensor, " b"]
    first: Int[Tensor, " f"]

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device."""
        parts = (self.source, self.target, self.weight, self.form, self.first)
        return Batch(*(part.to(device) for part in parts))


@dataclass(frozen=True)
class Moment:
    """A moment of training: the number of updates so far, and the fraction of training done."""

    updates: int
    done: float


class Parts(NamedTuple):
    """Log p(a_m = n) after the words y_<m, and log p(y_m | a_m = n)."""

    aligned: Float[Tensor, "b m n"]
    emitted: Float[Tensor, "b m n"]


class Model(nn.Module, ABC):
    """A distribution p(y | x); ``symmetry`` holds its vocabularies and classes."""

    symmetry: Symmetry

    static: bool = False
    """Whether the loss runs the same operations for all batches of one shape within a phase, so
    that a CUDA graph can record them."""

    def phase(self, moment: Moment) -> Hashable:
        """A value that is equal for moments at which the training loss runs the same operations."""
        return None

    @property
    def sharing(self) -> Symmetry:
        """The classes under which pairs have equal likelihood by construction: the model's own
        classes if it is equivariant, none otherwise.
        """
        return self.symmetry

    @abstractmethod
    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        """−log p(y | x) of each row, at a moment of training or (without one) after training."""

    @abstractmethod
    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """For each target word a distribution over source positions: the posterior
        p(a_m = n | x, y) of hard alignments, or the weights of soft attention.
        """

    # --- capabilities: None where a model has none

    learned: Any = None
    """The rules of the model, with the evidence for them."""

    def parts(self, batch: Batch) -> Parts | None:
        """The two factors of the posterior over hard alignments."""
        return None

    def translation_table(self, words: Int[Tensor, " x"]) -> Float[Tensor, "x y"] | None:
        """Log p(y | x) for single source words and all target words."""
        return None

    def derivation(self, source: Sequence[str]) -> Any:
        """The likeliest derivation of a source under the model's grammar."""
        return None


class Autoregressive(Model, ABC):
    """A model that scores word by word; beam search decodes it."""

    @abstractmethod
    def start(self, source: Int[Tensor, "b n"]) -> Any:
        """The state before the first word: a NamedTuple of tensors, batch first, and of values
        that all rows share.
        """

    @abstractmethod
    def step(self, state: Any, previous: Int[Tensor, " b"]) -> tuple[Float[Tensor, "b y"], Any]:
        """Log p(next word | words so far, x) for every word, after ``previous``."""

    @abstractmethod
    def score_words(self, batch: Batch) -> tuple[Float[Tensor, " b"], Float[Tensor, "b m y"]]:
        """The loss of each row, and log p(y_m | y_<m, x) for every word at each target position."""


def lengths(sentences: Int[Tensor, "b n"]) -> Int[Tensor, " b"]:
    """The number of words of each row before its padding."""
    return (sentences != PAD).sum(1)


def padding_mask(source: Int[Tensor, "b n"], like: Tensor) -> Float[Tensor, "b n"]:
    """−inf at padding and 0 elsewhere, to add to scores before their softmax."""
    scores = torch.zeros(source.shape, device=source.device, dtype=like.dtype)
    return scores.masked_fill(source == PAD, -math.inf)


def previous_words(target: Int[Tensor, "b m"]) -> Int[Tensor, "b m"]:
    """The word before each target word: ``BOS y_1 … y_{M−1}``."""
    return torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
