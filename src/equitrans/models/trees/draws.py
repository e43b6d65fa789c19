"""Draws of derivations from the chart of one source."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from equitrans.models.trees.chart import Chart
from equitrans.models.trees.targets import ARITY, Tree

Numbers = NDArray[np.float64]


class Draw:
    """Draws trees by the probability of their derivations; the draws are the same every time."""

    def __init__(
        self,
        chart: Chart,
        emitted: Float[Tensor, "2 n l"],
        below: Float[Tensor, "2 l l"],
        labels: Sequence[int],
        empty: int,
    ) -> None:
        self.whole, self.right, self.first, self.second = (
            [_numbers(part[0]) for part in parts] for parts in chart
        )
        self.emitted, self.below, self.labels = _numbers(emitted), _numbers(below), labels
        self.empty = empty
        self.random = np.random.default_rng(0)

    def tree(self, root: Float[Tensor, " l"]) -> Tree | None:
        """The tree of a derivation of the whole source, given the score of each root. None if the
        draw has too many nodes without words in a row.
        """
        end = len(self.whole) - 1
        return self._tree(self._choice(self.whole[end][0] + _numbers(root)), 0, end, 0)

    def _choice(self, scores: Numbers) -> int:
        """The number of an item, drawn by its log-score."""
        sums = np.exp(scores - scores.max()).cumsum()
        return int(sums.searchsorted(self.random.random() * sums[-1], side="right"))

    def _tree(self, label: int, start: int, end: int, empty: int) -> Tree | None:
        """A tree that begins with a label and writes a span, after a number of nodes that have the
        same span.
        """
        word, layout = divmod(self.labels[label], len(ARITY))
        arity, has_left = ARITY[layout], True
        while end > start or arity > 0:
            d = end - start
            options: dict[tuple[str, int], float] = {}
            if d and has_left:
                written = self.emitted[0, start, label]
                options["left", 0] = self.whole[d - 1][start + 1, label] + written
            if d:
                written = self.emitted[1, end - 1, label]
                options["right", 0] = self.right[d - 1][start, label] + written
            if arity == 1 and empty < self.empty:
                options["child", 0] = _log_sum(self.below[0, label] + self.whole[d][start])
            for k in range(1, d if arity == 2 else 1):
                one, other = (k, start), (d - k, start + k)
                options["order", k] = self._both(label, one, other)
                options["swapped", k] = self._both(label, other, one)
            if not options:
                return None
            chosen = self._choice(np.array(list(options.values())))
            kind, k = list(options)[chosen]
            if kind == "child":
                child = self._below(0, label, start, end, empty + 1)
                return child and Tree(word, layout, (child,))
            if k:
                spans = [(start, start + k), (start + k, end)]
                if kind == "swapped":
                    spans.reverse()
                one_tree = self._below(0, label, *spans[0], 0)
                other_tree = self._below(1, label, *spans[1], 0)
                if one_tree is None or other_tree is None:
                    return None
                return Tree(word, layout, (one_tree, other_tree))
            has_left = kind == "left"
            start, end, empty = start + has_left, end - (not has_left), 0
        return Tree(word, layout)

    def _both(self, label: int, one: tuple[int, int], other: tuple[int, int]) -> Any:
        """The score of a first and a second child from spans, given by length and start."""
        (d, i), (e, j) = one, other
        return self.first[d][i, label] + self.second[e][j, label]

    def _below(self, slot: int, label: int, start: int, end: int, empty: int) -> Tree | None:
        """A child of a label from a span."""
        child = self._choice(self.below[slot, label] + self.whole[end - start][start])
        return self._tree(child, start, end, empty)


def _log_sum(scores: Numbers) -> Any:
    largest = scores.max()
    return largest + np.log(np.exp(scores - largest).sum())


def _numbers(values: Tensor) -> Numbers:
    return np.asarray(values.detach().double().cpu().numpy())
