"""Models that find their best targets without a search word by word."""

from abc import ABC, abstractmethod

from jaxtyping import Int
from torch import Tensor

from equitrans.paper import Hypothesis, Model


class Direct(Model, ABC):
    """A model with a prediction of its own; all other models are decoded by beam search."""

    @abstractmethod
    def predict(
        self, source: Int[Tensor, "b n"], *, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis[int]]]:
        """The best targets of each source, best first."""
