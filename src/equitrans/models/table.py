"""The most general equivariant translator: one free logit per orbit of (source, target word)."""

import math
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.paper import EOS, Symmetry, WordTranslator, class_numbers, entries


class TableTranslator(WordTranslator):
    """log p(y | x) from ``logits[orbit of (x, y)]``: every equivariant table has this form (§4.2).

    There is one orbit for each pair (column of x, column of y), where a word without a class forms
    a column alone. Two columns of one class have further orbits: one per non-zero shift of a cyclic
    group, or one for all words of other rows under a symmetric group. So a row that joins a class
    with a symmetric group adds no orbit, and the logits stay as they are.
    """

    shared: Int[Tensor, "x y"]

    def __init__(self, symmetry: Symmetry) -> None:
        super().__init__()
        self.actions = symmetry.source_action, symmetry.target_action
        (sources, targets), (home, there) = symmetry.members, symmetry.owners
        row, source_class, source_row, _ = class_numbers(
            len(symmetry.source), sources, home, none=-1
        )
        column, target_class, target_row, _ = class_numbers(
            len(symmetry.target), targets, there, none=-2
        )
        columns = max(column) + 1
        shared = torch.tensor(row)[:, None] * columns + torch.tensor(column)
        first = (max(row) + 1) * columns
        distance = torch.tensor(target_row) - torch.tensor(source_row)[:, None]
        for (s, c), (t, owner) in product(enumerate(home), enumerate(there)):
            if c != owner:
                continue
            if symmetry.kinds[c] == "symmetric":
                shift, more = (distance != 0).long(), 1
            else:
                n = len(sources[s])
                shift, more = distance % n, n - 1
            of_source = (torch.tensor(row) == s) & (torch.tensor(source_class) == c)
            of_target = (torch.tensor(column) == t) & (torch.tensor(target_class) == c)
            own = of_source[:, None] & of_target
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
