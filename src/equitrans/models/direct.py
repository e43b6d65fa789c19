"""Hypotheses, and the interface of models that predict whole targets without beam search."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from jaxtyping import Bool, Float, Int
from torch import Tensor

from equitrans.paper import Batch, Model

Word = TypeVar("Word")


@dataclass(frozen=True)
class Hypothesis(Generic[Word]):
    """Target words without EOS, as numbers or as text, and their log p(y | x).

    ``finished``: EOS came before the maximum length. ``tied``: another target was equally likely.
    """

    words: tuple[Word, ...]
    log_prob: float
    finished: bool = True
    tied: bool = False

    @property
    def score(self) -> float:
        """Log-probability per word, EOS included; beam search ranks hypotheses by it."""
        return self.log_prob / max(1, len(self.words) + self.finished)

    @property
    def is_refused(self) -> bool:
        """Whether the model has no target for the source because no rule derives it."""
        return self.log_prob == -math.inf


@dataclass(frozen=True)
class Answer(Hypothesis[int]):
    """A target with what speaks against it."""

    margin: float = math.inf
    """Log p of the target less that of the likeliest other target; at most the log-odds that the
    pair is not one of the wrong ones."""
    rival: tuple[int, ...] | None = None
    """The likeliest other target, if there is one."""
    licensed: bool = True
    """Whether the model stands by the target: no step of its derivation is a combination that
    nothing suggests, and a second model is sure enough."""
    by: str | None = None
    """The part of the model that wrote the target, if it has several: rules or second."""

    @classmethod
    def ranked(
        cls, found: Sequence[Hypothesis[int]], noise: float, *, tied: bool, licensed: bool
    ) -> list["Answer"]:
        """The targets of a source, best first, with their margins; ``noise`` is the share of wrong
        pairs.
        """
        answers = []
        for h in found:
            other = next((o for o in found if o is not h), None)
            least = math.log(noise) if other is None else max(other.log_prob, math.log(noise))
            rival = None if other is None else other.words
            margin = h.log_prob - least
            answers.append(cls(h.words, h.log_prob, h.finished, tied, margin, rival, licensed))
        return answers


class Direct(Model, ABC):
    """A model that implements ``predict``; beam search decodes every other model."""

    @abstractmethod
    def predict(
        self, source: Int[Tensor, "b n"], *, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis[int]]]:
        """The ``n_best`` best targets of each source, best first."""

    def refusal(self, words: Sequence[str], *, max_length: int | None = None) -> str:
        """The reason why a source has no target of up to ``max_length`` words, or why its target
        is not licensed.
        """
        return "no derivation"

    @abstractmethod
    def judge(self, batch: Batch) -> tuple[Float[Tensor, " b"], Bool[Tensor, " b"]]:
        """The loss of each row, and whether its target is the prediction, without a tie."""
