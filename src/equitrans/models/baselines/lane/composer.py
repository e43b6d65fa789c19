"""LANE's Composer: a policy that decides which spans of a sentence are translated by themselves.

The state of an item depends on its kind only. So states and scores are computed once per kind and
per candidate, for all sentences of a batch.
"""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.models.baselines.lane.interpreter import VARIABLE, Policy
from equitrans.paper import N_SPECIAL

LEAST = 1.2e-7
"""Probabilities are at least this before a logarithm, so smaller ones have no gradient."""


def log_prob(logits: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """Log of the softmax, at least log LEAST."""
    return torch.log_softmax(logits, -1).clamp(min=math.log(LEAST))


def entropy(log_probs: Float[Tensor, "*b n"]) -> Float[Tensor, "*b"]:
    """−Σ p log p over the last dimension; outcomes at LEAST or below count as impossible."""
    p = log_probs.exp()
    return -(torch.where(log_probs > math.log(LEAST), p, 0.0) * log_probs).sum(-1)


class States(NamedTuple):
    """Hidden and cell states."""

    h: Float[Tensor, "k d"]
    c: Float[Tensor, "k d"]


def join(one: States, two: States) -> States:
    """The states of both, one after the other."""
    return States(torch.cat([one.h, two.h]), torch.cat([one.c, two.c]))


class Scores(NamedTuple):
    """The logit of each candidate, and two logits (abstract, leave open) of each candidate and of
    each kind with one symbol.
    """

    merge: Float[Tensor, " n"]
    check: Float[Tensor, "n 2"]
    leaf: Float[Tensor, "k 2"]


class Composer(nn.Module):
    """A tree LSTM over symbols, a scorer of neighbours and a checker of spans."""

    def __init__(self, words: int, *, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words + 1, size)  # the last row is the variable
        self.leaf = nn.Linear(size, 2 * size)
        self.cell = nn.Linear(2 * size, 5 * size)
        self.query = nn.Parameter(torch.empty(size).normal_(std=0.01))
        self.checker = nn.Linear(size, 2)
        for layer in (self.leaf, self.cell):
            nn.init.orthogonal_(layer.weight)
            nn.init.zeros_(layer.bias)
        with torch.no_grad():  # the parts of the cell: g, i, f of the left, f of the right, o
            self.cell.bias[2 * size : 4 * size] = 1

    def leaves(self, symbols: Sequence[int]) -> States:
        """The state of each symbol by itself."""
        rows = [len(self.embedding.weight) - 1 if s == VARIABLE else s - N_SPECIAL for s in symbols]
        embedded = self.embedding(self.index(rows))
        return States(*self.leaf(embedded).tanh().chunk(2, dim=1))

    def sides(self, h: Float[Tensor, "k d"]) -> tuple[Float[Tensor, "k g"], Float[Tensor, "k g"]]:
        """The gates of each state as a left and as a right neighbour, with the bias on the left."""
        left, right = self.cell.weight.chunk(2, dim=1)
        return nn.functional.linear(h, left, self.cell.bias), nn.functional.linear(h, right)

    def parents(
        self,
        left: Float[Tensor, "k g"],
        right: Float[Tensor, "k g"],
        c: Float[Tensor, "k d"],
        a: Int[Tensor, " n"],
        b: Int[Tensor, " n"],
    ) -> States:
        """The states of the pairs (a, b): ``c = tanh(σ(i) tanh(g) + σ(f_l) c_l + σ(f_r) c_r)`` and
        ``h = σ(o) c``. The tanh is part of the cell state that is passed upward.
        """
        gates = left.index_select(0, a) + right.index_select(0, b)  # faster backward than left[a]
        g, i, f_left, f_right, o = gates.chunk(5, dim=1)
        kept = f_left.sigmoid() * c.index_select(0, a) + f_right.sigmoid() * c.index_select(0, b)
        cell = torch.addcmul(kept, i.sigmoid(), g.tanh()).tanh()
        return States(o.sigmoid() * cell, cell)

    def scores(self, policy: Policy) -> Scores:
        """The scores of all candidates of a policy, in two steps: open pairs, then candidates."""
        states = self.leaves([kind[0] for kind in policy.kinds if len(kind) == 1])
        leaf, (left, right) = self.checker(states.h), self.sides(states.h)
        if policy.opened:
            a, b = self.index([policy.candidates[n] for n in policy.opened]).unbind(1)
            pairs = self.parents(left, right, states.c, a, b)
            more = self.sides(pairs.h)
            left, right = torch.cat([left, more[0]]), torch.cat([right, more[1]])
            states = join(states, pairs)
        a, b = self.index(policy.candidates).view(-1, 2).unbind(1)
        parents = self.parents(left, right, states.c, a, b)
        return Scores(parents.h @ self.query, self.checker(parents.h), leaf)

    def index(self, numbers: Sequence[object]) -> Int[Tensor, "..."]:
        """Numbers as a tensor on the device of the weights."""
        return torch.tensor(numbers, dtype=torch.long, device=self.query.device)


class Scored(Policy):
    """The policy of a Composer's weights as they are: greedy, or drawn with a random generator.

    States are added as kinds and candidates occur, without gradients.
    """

    def __init__(self, composer: Composer, draw: random.Random | None = None) -> None:
        super().__init__()
        self._composer, self._draw = composer, draw
        size = len(composer.query)
        empty = composer.query.new_zeros(0, size)
        self._left = self._right = composer.query.new_zeros(0, 5 * size)
        self._c, self._parents = empty, States(empty, empty)
        self._leaf: list[float] = []
        self._merge: list[float] = []
        self._check: list[float] = []

    @torch.no_grad()
    def prepare(self) -> None:
        self._prepare_kinds()
        new = self.candidates[len(self._merge) :]
        if not new:
            return
        composer = self._composer
        a, b = composer.index(new).unbind(1)
        states = composer.parents(self._left, self._right, self._c, a, b)
        self._parents = join(self._parents, states)
        self._merge += (states.h @ composer.query).tolist()
        self._check += composer.checker(states.h).softmax(1)[:, 0].tolist()

    def _prepare_kinds(self) -> None:
        new = self.kinds[len(self._c) :]
        if not new:
            return
        composer = self._composer
        pairs = self.opened[len(self.opened) - sum(len(kind) == 2 for kind in new) :]
        h, c = join(
            composer.leaves([kind[0] for kind in new if len(kind) == 1]),
            States(*(part[composer.index(pairs)] for part in self._parents)),
        )
        left, right = composer.sides(h)
        self._left, self._right = torch.cat([self._left, left]), torch.cat([self._right, right])
        self._c = torch.cat([self._c, c])
        self._leaf += composer.checker(h).softmax(1)[:, 0].tolist()

    def abstracts_leaf(self, kind: int) -> bool:
        return self._decide(self._leaf[kind])

    def abstracts(self, candidate: int) -> bool:
        return self._decide(self._check[candidate])

    def _decide(self, probability: float) -> bool:
        return probability > (0.5 if self._draw is None else self._draw.random())

    def choose(self, candidates: Sequence[int]) -> int:
        scores = [self._merge[n] for n in candidates]
        most = max(scores)
        if self._draw is None or len(scores) == 1:
            return scores.index(most)
        weights = [math.exp(score - most) for score in scores]
        left = self._draw.random() * sum(weights)
        for k, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return k
        return len(weights) - 1  # rounding, or NaN, which the loss will show
