"""The recursive aligner: p(a | ℓ(x)) as a log-linear distribution over a grammar's derivations."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equitrans.models.recursive.derivations import (
    Alignment,
    Tree,
    Weights,
    alignments,
    best_tree,
    most_holes,
)
from equitrans.models.recursive.rules import Form, Grammar

REMEMBERED = 50_000
"""So many forms are remembered with their alignments, and then forgotten together."""


class RecursiveAligner(nn.Module):
    """``p(a | ℓ(x)) = Σ_d exp(w · f(d)) / Z`` over the derivations d of ℓ(x) with the yield a."""

    def __init__(self, grammar: Grammar, classes: tuple[int, ...]) -> None:
        super().__init__()
        self.grammar, self.classes = grammar, classes
        n, k = len(grammar), most_holes(grammar)
        self.rule = nn.Parameter(torch.zeros(n))
        self.child = nn.Parameter(torch.zeros(n, k, n))
        self.holds = nn.Parameter(torch.zeros(n, k, len(classes)))
        self._memory: dict[Form, list[Alignment]] = {}
        self._weights: Weights | None = None

    def flat(self) -> Float[Tensor, " f"]:
        """All weights, in the order in which a forest numbers its features."""
        return torch.cat([self.rule, self.child.flatten(), self.holds.flatten()])

    def weights(self) -> Weights:
        """The weights as plain numbers."""
        if self._weights is None:
            self._weights = Weights(
                self.rule.tolist(), self.child.tolist(), self.holds.tolist(), self.classes
            )
        return self._weights

    def forget(self) -> None:
        """Weights have changed: what was worked out with the old ones no longer holds."""
        self._memory, self._weights = {}, None

    def alignments(self, form: Form) -> list[Alignment]:
        """The alignments of a form, likeliest first; none if it has no derivation."""
        found = self._memory.get(form)
        if found is None:
            if len(self._memory) >= REMEMBERED:
                self._memory = {}
            found = self._memory[form] = alignments(self.grammar, self.weights(), form)
        return found

    def tree(self, form: Form) -> Tree | None:
        """The likeliest derivation of a form."""
        return best_tree(self.grammar, self.weights(), form)

    def _load_from_state_dict(self, *arguments: object) -> None:
        super()._load_from_state_dict(*arguments)
        self.forget()
