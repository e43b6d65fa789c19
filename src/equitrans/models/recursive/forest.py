"""All derivations of many forms, packed into a forest and evaluated as tensors.

A forest has two kinds of nodes: a *rule node* (a part of a form and the rule at its root) sums over
the ways to lay the rule over the part; a *hole node* (a rule's hole and the part in it) sums over
the rules at the root of that part. The value of a node is the log of the sum over its edges of
exp(weights of the edge + values of the nodes below).
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby, product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equitrans.models.recursive.chart import Target, parse
from equitrans.models.recursive.rules import Form, Grammar


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
