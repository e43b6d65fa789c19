"""The weights of the recursive aligner, trained on the marginal likelihood of derivations."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equitrans.models.recursive.aligner import RecursiveAligner, Weights, best_tree
from equitrans.models.recursive.chart import Target, parse
from equitrans.models.recursive.forest import Forest, Packed
from equitrans.models.recursive.lbfgs import minimise
from equitrans.models.recursive.licences import ROOT, Licences, Step, steps
from equitrans.models.recursive.rules import HOLE, Form, Grammar
from equitrans.shards import by_shards

PULL = 0.05
"""Weight of the squared distance of a weight from its prior mean in the training loss."""

UNLICENSED = 8.0
"""Prior log-odds against a rule in a place that nothing suggests for it."""

ROUNDS = 3
"""Number of trainings, each with the prior that follows from the one before."""

AS_LIKELY = 0.45
"""Posterior probability above which a rule in a place is taken for one that a target needs."""

CLOSED = 1e6
"""A weight that closes a place for a rule."""

RARE = 0.1
"""Smallest number of pairs of another target for each pair of a form's target; fewer are noise."""

EDGES = 150_000
"""Forms are added to the training of weights, shortest first, until the forest has more edges."""


@dataclass(frozen=True)
class Fitted:
    """What training has found besides the weights."""

    uncertainty: float
    """The mean −log p of a form."""
    licences: Licences


def fit_weights(
    aligner: RecursiveAligner,
    observed: list[tuple[Form, Target]],
    others: Sequence[tuple[Form, Target, float]] = (),
) -> Fitted:
    """Maximise the marginal likelihood of the observed targets, given the prior of the weights.

    A place is a hole of a rule, or the root. The weight of a rule in a place is the sum of its own
    weight and of a weight that it shares with all rules of its shape in places of that shape, so
    what was seen of one rule decides about others that look alike. A weight has a normal prior. Its
    mean is 0 if a target was derived with the rule in that place, and the log of ``walked``
    otherwise. Where a target has several derivations, the weights of the round before tell which of
    them was used.

    ``others`` are further targets of observed forms, each with the number of its pairs for each
    pair of the observed target. Rare ones do not count.
    """
    forest = Forest(aligner.grammar, aligner.classes)
    pairs = []
    for form, target in sorted(observed, key=lambda item: (len(item[0]), item[0])):
        under = forest.add_under(form, target)
        if under is not None and (over := forest.add(form)) is not None:
            pairs.append((over, under))
        if len(forest.edges) > EDGES:
            break
    if not pairs:
        return Fitted(0.0, Licences(aligner.grammar, frozenset()))
    counts = [1.0] * len(pairs)
    for form, target, share in others:
        if share < RARE or len(forest.edges) > EDGES:
            continue
        under = forest.add_under(form, target)
        if under is not None and (over := forest.add(form)) is not None:
            pairs.append((over, under))
            counts.append(share)
    training = _Training(aligner, Packed(forest), pairs, counts)
    prior = torch.zeros(training.shape, dtype=torch.float64)
    for _ in range(ROUNDS):
        flat = training.fit(prior)
        needed = training.needed(flat)
        licences = _licences(aligner.grammar, needed, training.lost())
        prior = torch.where(needed > 0, 1.0, walked(needed)).clamp(math.exp(-UNLICENSED)).log()
    aligner.load(flat)
    return Fitted(training.uncertainty(flat), _completed(aligner, licences, observed))


def _completed(
    aligner: RecursiveAligner, licences: Licences, observed: Iterable[tuple[Form, Target]]
) -> Licences:
    """The licences, and those of forms that were too many for training."""
    grammar, observed = aligner.grammar, list(observed)
    found = by_shards(
        partial(_are_derived, grammar, aligner.weights(), licences), [form for form, _ in observed]
    )
    # a form that is derived stays so with more licences
    for form, target in [pair for pair, known in zip(observed, found, strict=True) if not known]:
        if best_tree(grammar, aligner.weights(), form, licences) is None:
            tree = parse(grammar, form, target).tree()
            if tree is not None:
                more = licences.needed | frozenset(steps(grammar, tree))
                licences = replace(licences, needed=more)
    return licences


def _are_derived(
    grammar: Grammar, weights: Weights, licences: Licences, forms: Sequence[Form]
) -> list[bool]:
    """Whether each form has a derivation with licences."""
    return [best_tree(grammar, weights, form, licences) is not None for form in forms]


def _licences(
    grammar: Grammar, needed: Float[Tensor, "places rules"], lost: Bool[Tensor, "places rules"]
) -> Licences:
    """The licences of the rules that pairs need in the holes of all rules and at the root."""
    places = [(r, k) for r in range(len(grammar)) for k in range(grammar.most_holes)]

    def found(cells: Tensor) -> frozenset[Step]:
        return frozenset((*[*places, ROOT][p], r) for p, r in cells.nonzero().tolist())

    return Licences(grammar, found(needed), found(lost))


class _Training:
    """The forest of the observed forms, and the weights that decide in it."""

    def __init__(
        self,
        aligner: RecursiveAligner,
        packed: Packed,
        pairs: Sequence[tuple[int, int]],
        counts: Sequence[float],
    ) -> None:
        self.packed = packed
        self.everything = torch.tensor([packed.place[a] for a, _ in pairs])
        self.wanted = torch.tensor([packed.place[b] for _, b in pairs])
        self.counts = torch.tensor(counts, dtype=torch.float64)
        grammar = aligner.grammar
        n, slots = len(grammar), len(grammar) * grammar.most_holes
        size = aligner.flat().numel()
        self.mean = torch.zeros(size, dtype=torch.float64)
        self.cells = torch.cat([torch.arange(n, n + slots * n), torch.arange(size - n, size)])
        """The number of the feature of each place and rule."""
        self.shape = (slots + 1, n)
        self.shared, self.shares = _shared(grammar)

    def weights(self, own: Float[Tensor, " f"], shared: Float[Tensor, " s"]) -> Float[Tensor, " f"]:
        """All weights, with the shared ones added to those of the single places and rules."""
        return own.index_add(0, self.cells, shared[self.shared])

    def fit(self, prior: Float[Tensor, "places rules"]) -> Float[Tensor, " f"]:
        """The likeliest weights, given the means of those of rules in places."""
        mean = self.mean.index_copy(0, self.cells, prior.flatten())
        own = mean.clone().requires_grad_()
        shared = torch.zeros(self.shares, dtype=own.dtype).requires_grad_()

        def loss() -> Tensor:
            values = self.packed.values(self.weights(own, shared))
            wrong = (self.counts * (values[self.everything] - values[self.wanted])).sum()
            return wrong + PULL * (((own - mean) ** 2).sum() + (shared**2).sum())

        minimise(loss, [own, shared], rounds=60)
        return self.weights(own.detach(), shared.detach())

    def uncertainty(self, flat: Float[Tensor, " f"]) -> float:
        """The mean −log p of a form."""
        values = self.packed.values(flat)
        surprise = self.counts * (values[self.everything] - values[self.wanted])
        return float(surprise.sum() / self.counts.sum())

    def seen(self, flat: Float[Tensor, " f"]) -> Float[Tensor, "places rules"]:
        """The largest probability of each rule in each place, in the derivations of a target."""
        return self.packed.posteriors(flat, self.wanted)[self.cells].view(self.shape)

    def lost(self) -> Bool[Tensor, "places rules"]:
        """Whether some forms have a rule in a place, and no target of these forms needs it."""
        nothing = torch.zeros_like(self.mean)
        possible, seen = (
            self.packed.posteriors(nothing, nodes)[self.cells] > 0
            for nodes in (self.everything, self.wanted)
        )
        return (possible & ~seen).view(self.shape)

    def needed(self, flat: Float[Tensor, " f"]) -> Float[Tensor, "places rules"]:
        """1 for each rule in a place without which some target has no derivation. Where one of
        several will do, the likeliest remains, and those that are as likely.
        """
        seen, nothing = self.seen(flat).flatten(), torch.zeros_like(flat)
        kept = seen > 0
        # a rule that all derivations of a target use is needed, whatever the weights are
        single = self.wanted[self.packed.values(nothing)[self.wanted] < 1e-9]
        sure = torch.zeros_like(kept)
        if len(single):
            sure = self.packed.posteriors(nothing, single)[self.cells] > 0
        unsure = (kept & ~sure & (seen < AS_LIKELY)).nonzero().squeeze(1)
        for cell in unsure[seen[unsure].argsort(stable=True)].tolist():
            kept[cell] = False
            closed = nothing.index_fill(0, self.cells[~kept], -CLOSED)
            kept[cell] = bool((self.packed.values(closed)[self.wanted] < -CLOSED / 2).any())
        return kept.to(flat.dtype).view(self.shape)


def walked(needed: Float[Tensor, "places rules"]) -> Float[Tensor, "places rules"]:
    """For each place and rule, the probability that a random walk from the place to a rule that
    stands there, and on to a place of that rule, ends where the rule stands.

    Places that share rules accept each other's rules. 0 means that nothing suggests the rule there.
    """
    step = needed / needed.sum(1, keepdim=True).clamp(min=1)
    back = needed.T / needed.sum(0)[:, None].clamp(min=1)
    return step @ back @ needed


def _shared(grammar: Grammar) -> tuple[Int[Tensor, " c"], int]:
    """For each place and rule, the number of the weight that it shares; and the number of these."""
    outlines = [tuple(s == HOLE for s in rule.left) for rule in grammar.rules]
    holes = range(grammar.most_holes)
    places = [(outline, k) for outline in outlines for k in holes]
    keys = [(place, outline) for place in [*places, None] for outline in outlines]
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return torch.tensor([numbers[key] for key in keys]), len(numbers)
