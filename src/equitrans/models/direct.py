"""The interface of models that predict whole targets without beam search."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Int
from torch import Tensor

from equitrans.paper import Hypothesis, Model


class Direct(Model, ABC):
    """A model that implements ``predict``; beam search decodes every other model."""

    @abstractmethod
    def predict(
        self, source: Int[Tensor, "b n"], *, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis[int]]]:
        """The ``n_best`` best targets of each source, best first."""

    def refusal(self, words: Sequence[str], *, max_length: int | None = None) -> str:
        """The reason why a source has no target of up to ``max_length`` words."""
        return "no derivation"
