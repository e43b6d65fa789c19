"""The weights of the recursive aligner, trained on the marginal likelihood of derivations."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equitrans.models.recursive.aligner import RecursiveAligner
from equitrans.models.recursive.forests import Forest
from equitrans.models.recursive.parsing import Target
from equitrans.models.recursive.rules import Form

SMOOTHING = 0.1
"""A rule that was never seen in a hole counts as so many times seen."""

PULL = 0.02
"""How strongly weights are drawn back to those of the counts."""

EDGES = 150_000
"""Forms are added to the training of weights, shortest first, until they have so many edges."""


class Packed:
    """A forest as tensors, level by level."""

    def __init__(self, forest: Forest) -> None:
        order = sorted(range(len(forest.levels)), key=lambda n: (forest.levels[n], n))
        # node 0 is no node, and its value 0; feature -1 is no feature, and its weight 0
        self.place = {node: i for i, node in enumerate(order, start=1)}
        edges = sorted(
            (forest.levels[node], self.place[node], features, [self.place[b] for b in below])
            for node, features, below in forest.edges
        )
        self.levels: list[tuple[int, Tensor, Tensor, Tensor]] = []
        start = 0
        while start < len(edges):
            stop = start
            while stop < len(edges) and edges[stop][0] == edges[start][0]:
                stop += 1
            part = edges[start:stop]
            first = part[0][1]
            head = torch.tensor([e[1] - first for e in part])
            self.levels.append(
                (
                    int(head.max()) + 1,
                    head,
                    _padded([e[2] for e in part], -1),
                    _padded([e[3] for e in part], 0),
                )
            )
            start = stop

    def values(self, flat: Float[Tensor, " f"]) -> Float[Tensor, " v"]:
        """The value of every node, by place."""
        weights = torch.cat([flat, flat.new_zeros(1)])
        values = flat.new_zeros(1)
        for nodes, head, features, below in self.levels:
            scores = weights[features].sum(1) + values[below].sum(1)
            top = scores.detach().new_full((nodes,), -torch.inf)
            top = top.scatter_reduce(0, head, scores.detach(), "amax")
            total = scores.new_zeros(nodes).index_add(0, head, torch.exp(scores - top[head]))
            values = torch.cat([values, top + torch.log(total)])
        return values


def _padded(rows: list[list[int]] | list[tuple[int, ...]], padding: int) -> Int[Tensor, "e w"]:
    width = max(1, max(map(len, rows)))
    return torch.tensor([[*row, *[padding] * (width - len(row))] for row in rows])


def fit_weights(aligner: RecursiveAligner, observed: list[tuple[Form, Target]]) -> float:
    """Maximise the marginal likelihood of what was observed; gives −log p per form.

    The weights start from counts: how often each rule stands in each hole in the derivations of
    the targets. So a rule that was never seen in a hole is unlikely there even where nothing
    speaks against it. Then follows the gradient of Σ log p(target | form), over forms that have
    derivations of other targets too.
    """
    forest = Forest(aligner.grammar, aligner.classes)
    pairs = []
    for form, target in sorted(observed, key=lambda item: (len(item[0]), item[0])):
        under = forest.add_under(form, target)
        if under is not None:
            pairs.append((forest.add(form), under))
        if len(forest.edges) > EDGES:
            break
    if not pairs:
        return 0.0
    packed = Packed(forest)
    everything = torch.tensor([packed.place[a] for a, _ in pairs])
    wanted = torch.tensor([packed.place[b] for _, b in pairs])
    start = _from_counts(aligner, packed, wanted)
    flat = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([flat], max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        values = packed.values(flat)
        return (values[everything] - values[wanted]).sum() + PULL * ((flat - start) ** 2).sum()

    def closure() -> Tensor:
        optimizer.zero_grad()
        result = loss()
        result.backward()
        return result

    optimizer.step(closure)
    n = aligner.rule.numel()
    with torch.no_grad():
        new = flat.detach().to(aligner.rule.dtype)
        aligner.rule.copy_(new[:n])
        aligner.child.copy_(new[n : n + aligner.child.numel()].view_as(aligner.child))
        aligner.holds.copy_(new[n + aligner.child.numel() :].view_as(aligner.holds))
        aligner.forget()
        values = packed.values(flat.detach())
        return float((values[everything] - values[wanted]).mean())


def _from_counts(
    aligner: RecursiveAligner, packed: Packed, wanted: Int[Tensor, " p"]
) -> Float[Tensor, " f"]:
    """Weights by relative frequency: the gradient of a log-partition is the expected count."""
    flat = torch.zeros_like(aligner.flat(), dtype=torch.float64).requires_grad_()
    packed.values(flat)[wanted].sum().backward()
    assert flat.grad is not None
    n, child = aligner.rule.numel(), aligner.child
    counts = flat.grad[n : n + child.numel()].view_as(child) + SMOOTHING
    share = torch.log(counts / counts.sum(2, keepdim=True))
    start = torch.zeros_like(flat.detach())
    start[n : n + child.numel()] = share.flatten()
    return start
