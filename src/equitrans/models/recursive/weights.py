"""The weights of the recursive aligner, trained on the marginal likelihood of derivations.

A forest holds all derivations of many forms, packed. It has two kinds of nodes: a *rule node* (a
part of a form and the rule at its root) sums over the ways to lay the rule over the part; a *hole
node* (a rule's hole and the part in it) sums over the rules at the root of that part. The value of
a node is the log of the sum over its edges of exp(weights of the edge + values of the nodes below).
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equitrans.models.recursive.aligner import RecursiveAligner, best_tree
from equitrans.models.recursive.chart import Target, parse
from equitrans.models.recursive.licences import ROOT, Licences, steps
from equitrans.models.recursive.rules import HOLE, Form, Grammar

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

EDGES = 150_000
"""Forms are added to the training of weights, shortest first, until the forest has more edges."""


class Forest:
    """Nodes with levels; an edge has features and nodes of lower levels.

    Features are numbered: rules first, then (rule, hole, child), then (rule, hole, class), then
    rules at the root of a form. Equal parts of forms share their nodes. Under a target, the nodes
    of a part are also specific to the form, the target, the span and the yield.
    """

    def __init__(self, grammar: Grammar, classes: tuple[int, ...]) -> None:
        self.grammar, self.classes = grammar, classes
        self.levels: list[int] = []
        """The level of each node."""
        self.edges: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        """For each edge: the node it belongs to, its features, the nodes below."""
        self._nodes: dict[Hashable, int] = {}
        self._roots: dict[Hashable, list[int]] = {}
        """For each part, the rules at its root."""

    def add(self, form: Form) -> int | None:
        """Add all derivations of a form; return their node, or None if there are none."""
        for (i, j), analyses in self.grammar.analyses(form).items():
            part = form[i:j]
            if part not in self._roots:
                for r, spans in analyses:
                    parts = [form[slice(*spans[k])] for k in self.grammar.rules[r].holes]
                    self._add_edge(part, j - i, r, zip(parts, parts, strict=True))
        return self._top(form, [form])

    def add_under(self, form: Form, target: Target) -> int | None:
        """Add the derivations of a form that yield a target; return their node, or None if there
        are none.
        """
        if (known := self._nodes.get(("top", (form, target)))) is not None:
            return known
        parsed = parse(self.grammar, form, target)
        if parsed.root is None:
            return None
        yields = parsed.yields
        for span, analyses in self.grammar.analyses(form).items():
            for r, spans in analyses:
                rule = self.grammar.rules[r]
                below = [yields.get(spans[k], {}) for k in rule.used]
                for texts in product(*below):
                    used = dict(zip(rule.used, texts, strict=True))
                    text = rule.join(spans, used)
                    if text not in yields.get(span, {}):
                        continue
                    # a hole that the right side does not mention may hold any derivation
                    holes = []
                    for k in rule.holes:
                        words = form[slice(*spans[k])]
                        part = (form, target, spans[k], used[k]) if k in used else words
                        holes.append((part, words))
                    self._add_edge((form, target, span, text), span[1] - span[0], r, holes)
        whole = (0, len(form))
        right = [text for text in yields[whole] if parsed.pieces.whole(text)]
        return self._top((form, target), [(form, target, whole, text) for text in right])

    def _add_edge(
        self, part: Hashable, size: int, r: int, holes: Iterable[tuple[Hashable, Form]]
    ) -> None:
        """Add one way to lay a rule over a part; each hole has a part and the words in it."""
        node, new = self._node((part, r), 2 * size - 1)
        if new:
            self._roots.setdefault(part, []).append(r)
        below = tuple(self._hole(r, k, *hole) for k, hole in enumerate(holes))
        self.edges.append((node, (r,), below))

    def _hole(self, r: int, k: int, part: Hashable, words: Form) -> int:
        """The node of a part in a hole, over all rules at the root of the part."""
        if part not in self._roots:
            self.add(words)
        node, new = self._node((part, r, k), 2 * len(words))
        if new:
            n, slot = len(self.grammar), r * self.grammar.most_holes + k
            start = n + n * self.grammar.most_holes * n + slot * len(self.classes)
            holds = [start + c for c, symbol in enumerate(self.classes) if symbol in words]
            for child in self._roots[part]:
                features = (n + slot * n + child, *holds)
                self.edges.append((node, features, (self._nodes[part, child],)))
        return node

    def _top(self, key: Hashable, parts: Sequence[Hashable]) -> int | None:
        """The node over all rules at the root of some parts; None if there are no rules."""
        roots = [(r, self._nodes[part, r]) for part in parts for r in self._roots.get(part, ())]
        if not roots:
            return None
        node, new = self._node(("top", key), self.levels[roots[0][1]] + 1)
        if new:
            n, slots = len(self.grammar), len(self.grammar) * self.grammar.most_holes
            start = n + slots * (n + len(self.classes))
            self.edges += [(node, (start + r,), (root,)) for r, root in roots]
        return node

    def _node(self, key: Hashable, level: int) -> tuple[int, bool]:
        """The number of a node, and whether it is new."""
        known = self._nodes.get(key)
        if known is not None:
            return known, False
        self._nodes[key] = number = len(self.levels)
        self.levels.append(level)
        return number, True


class Packed:
    """A forest as tensors, level by level."""

    def __init__(self, forest: Forest) -> None:
        order = sorted(range(len(forest.levels)), key=lambda n: (forest.levels[n], n))
        # padding: place 0 has the value 0, feature -1 has the weight 0
        self.place = {node: i for i, node in enumerate(order, start=1)}
        edges = sorted(
            (forest.levels[node], self.place[node], features, [self.place[b] for b in below])
            for node, features, below in forest.edges
        )
        self.levels: list[tuple[int, Tensor, Tensor, Tensor]] = []
        for _, group in groupby(edges, key=lambda edge: edge[0]):
            _, places, features, below = zip(*group, strict=True)
            head = torch.tensor(places) - places[0]
            count = int(head[-1]) + 1
            self.levels.append((count, head, _padded(features, -1), _padded(below, 0)))

    def values(self, flat: Float[Tensor, " f"], more: Sequence[Tensor] = ()) -> Float[Tensor, " v"]:
        """The value of every node, by place; ``more`` is added to the edges of each level."""
        weights = torch.cat([flat, flat.new_zeros(1)])
        values = flat.new_zeros(1)
        for level, (nodes, head, features, below) in enumerate(self.levels):
            scores = weights[features].sum(1) + values[below].sum(1)
            if more:
                scores = scores + more[level]
            top = scores.detach().new_full((nodes,), -torch.inf)
            top = top.scatter_reduce(0, head, scores.detach(), "amax")
            total = scores.new_zeros(nodes).index_add(0, head, torch.exp(scores - top[head]))
            values = torch.cat([values, top + torch.log(total)])
        return values

    def posteriors(
        self, flat: Float[Tensor, " f"], nodes: Int[Tensor, " p"]
    ) -> Float[Tensor, " f"]:
        """For each feature, the largest posterior probability of an edge that has it, in the
        derivations of some nodes.
        """
        more = [flat.new_zeros(len(head), requires_grad=True) for _, head, _, _ in self.levels]
        # the gradient of a log-partition is the expected count
        self.values(flat, more)[nodes].sum().backward()
        found = flat.new_zeros(len(flat) + 1)
        for (_, _, features, _), edges in zip(self.levels, more, strict=True):
            assert edges.grad is not None
            grad = edges.grad[:, None].expand_as(features)
            found.scatter_reduce_(0, features.flatten() % len(found), grad.flatten(), "amax")
        return found[:-1].clamp(max=1)


def _padded(rows: Sequence[Sequence[int]], padding: int) -> Int[Tensor, "e w"]:
    width = max(1, max(map(len, rows)))
    return torch.tensor([[*row, *[padding] * (width - len(row))] for row in rows])


@dataclass(frozen=True)
class Fitted:
    """What training has found besides the weights."""

    uncertainty: float
    """The mean −log p of a form."""
    licences: Licences


def fit_weights(aligner: RecursiveAligner, observed: list[tuple[Form, Target]]) -> Fitted:
    """Maximise the marginal likelihood of the observed targets, given the prior of the weights.

    A place is a hole of a rule, or the root. The weight of a rule in a place is the sum of its own
    weight and of a weight that it shares with all rules of its shape in places of that shape, so
    what was seen of one rule decides about others that look alike. A weight has a normal prior. Its
    mean is 0 if a target was derived with the rule in that place, and the log of ``walked``
    otherwise. Where a target has several derivations, the weights of the round before tell which of
    them was used.
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
    training = _Training(aligner, Packed(forest), pairs)
    prior = torch.zeros(training.shape, dtype=torch.float64)
    for _ in range(ROUNDS):
        flat = training.fit(prior)
        needed = training.needed(flat)
        licences = _licences(aligner.grammar, needed)
        prior = torch.where(needed > 0, 1.0, walked(needed)).clamp(math.exp(-UNLICENSED)).log()
    aligner.load(flat)
    return Fitted(training.uncertainty(flat), _completed(aligner, licences, observed))


def _completed(
    aligner: RecursiveAligner, licences: Licences, observed: Iterable[tuple[Form, Target]]
) -> Licences:
    """The licences, and those of forms that were too many for training."""
    grammar = aligner.grammar
    for form, target in observed:
        if best_tree(grammar, aligner.weights(), form, licences) is None:
            tree = parse(grammar, form, target).tree()
            if tree is not None:
                licences = Licences(grammar, licences.needed | frozenset(steps(grammar, tree)))
    return licences


def _licences(grammar: Grammar, needed: Float[Tensor, "places rules"]) -> Licences:
    """The licences of the rules that pairs need in the holes of all rules and at the root."""
    places = [(r, k) for r in range(len(grammar)) for k in range(grammar.most_holes)]
    found = [(*[*places, ROOT][p], r) for p, r in needed.nonzero().tolist()]
    return Licences(grammar, frozenset(found))


class _Training:
    """The forest of the observed forms, and the weights that decide in it."""

    def __init__(
        self, aligner: RecursiveAligner, packed: Packed, pairs: Sequence[tuple[int, int]]
    ) -> None:
        self.packed = packed
        self.everything = torch.tensor([packed.place[a] for a, _ in pairs])
        self.wanted = torch.tensor([packed.place[b] for _, b in pairs])
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
        optimizer = torch.optim.LBFGS([own, shared], max_iter=60, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            values = self.packed.values(self.weights(own, shared))
            loss = (values[self.everything] - values[self.wanted]).sum()
            loss = loss + PULL * (((own - mean) ** 2).sum() + (shared**2).sum())
            loss.backward()
            return loss

        optimizer.step(closure)
        return self.weights(own.detach(), shared.detach())

    def uncertainty(self, flat: Float[Tensor, " f"]) -> float:
        """The mean −log p of a form."""
        values = self.packed.values(flat)
        return float((values[self.everything] - values[self.wanted]).mean())

    def seen(self, flat: Float[Tensor, " f"]) -> Float[Tensor, "places rules"]:
        """The largest probability of each rule in each place, in the derivations of a target."""
        return self.packed.posteriors(flat, self.wanted)[self.cells].view(self.shape)

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
