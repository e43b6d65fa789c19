"""The most general equivariant translator: one free logit per orbit of (source, target word)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.paper import EOS, Symmetry, WordTranslator, class_numbers, entries


class TableTranslator(WordTranslator):
    """log p(y | x) from ``logits[orbit of (x, y)]``: every equivariant table has this form (§4.2).

    There is one orbit for each pair (class of x, class of y), where a word without a class forms a
    class alone. Two words of the same class have further orbits: one per non-zero shift of a cyclic
    group, or one for all unlike words of a symmetric group. So a word that joins a class with a
    symmetric group adds no orbit, and the logits stay as they are.
    """

    shared: Int[Tensor, "x y"]

    def __init__(self, symmetry: Symmetry) -> None:
        super().__init__()
        self.actions = symmetry.source_action, symmetry.target_action
        sources, targets = symmetry.members
        row, source_class, source_place = class_numbers(len(symmetry.source), sources, none=-1)
        column, target_class, target_place = class_numbers(len(symmetry.target), targets, none=-2)
        columns = max(column) + 1
        shared = torch.tensor(row)[:, None] * columns + torch.tensor(column)
        first = (max(row) + 1) * columns
        for c, words in enumerate(sources):
            places = torch.tensor(target_place) - torch.tensor(source_place)[:, None]
            if symmetry.kind == "symmetric":
                shift, more = (places != 0).long(), 1
            else:
                shift, more = places % len(words), len(words) - 1
            own = (torch.tensor(source_class) == c)[:, None] & (torch.tensor(target_class) == c)
            shared = torch.where(own & (shift > 0), first + shift - 1, shared)
            first += more
        self.register_buffer("shared", shared, persistent=False)
        self.logits = nn.Parameter(torch.zeros(first))

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b y"]:
        """Log p(y | x) of all target words for each source word; −∞ for PAD and BOS."""
        logits = self.logits[self.shared[words]][..., EOS:]
        return torch.log_softmax(nn.functional.pad(logits, (EOS, 0), value=-math.inf), dim=-1)

    def pairs(
        self, source: Int[Tensor, "b n"], target: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n)."""
        words, at = torch.unique(source, return_inverse=True)
        return entries(self(words), at[:, None], target[:, :, None])

    @torch.no_grad()
    def fill(self, log_prob: Float[Tensor, "x y"]) -> None:
        """Set each orbit's logit to the log of its mean probability in a table.

        The probabilities of an orbit's words in one row keep their sum, so those of other words do
        not change. An orbit without words (unlike words in a class of one word) gets the smallest
        probability of the table.
        """
        prob = log_prob.double().exp()
        orbit = self.shared[:, EOS:].flatten()
        size = len(self.logits)
        total = torch.zeros(size, dtype=prob.dtype).index_add_(0, orbit, prob[:, EOS:].flatten())
        count = torch.bincount(orbit, minlength=size)
        least = prob[:, EOS:].min().clamp(min=1e-30)
        mean = torch.where(count > 0, total / count.clamp(min=1), least).clamp(min=1e-30)
        self.logits.copy_(mean.log())
