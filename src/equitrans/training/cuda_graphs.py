"""Updates on a GPU, recorded once as a CUDA graph and replayed.

The update of a small model is thousands of small kernels, and a GPU waits for Python to start each
of them. A graph starts all of them at once. Its tensors have fixed shapes, so every batch is filled
up to one size with padding words and with rows of weight zero, which do not change the result.
"""

from collections.abc import Callable, Hashable

import torch
from jaxtyping import Int
from torch import Tensor, nn

from equitrans.data import Batching, Rows
from equitrans.paper import PAD, Batch

WARM_UP = 3
"""Number of updates before one is recorded; libraries choose their kernels in them."""


class FixedBatch:
    """A batch of fixed size, into which smaller batches of some data are copied."""

    def __init__(self, data: Rows, *, rows: int, forms: int, device: torch.device) -> None:
        self.batch = Batch(
            source=data.source.new_zeros(rows, data.source.shape[1]),
            target=data.target.new_zeros(rows, data.target.shape[1]),
            weight=data.weight.new_zeros(rows),
            form=data.form.new_zeros(rows),
            first=data.form.new_zeros(forms),
        ).to(device)

    @classmethod
    def for_training(
        cls, data: Rows, batching: Batching, size: int, *, device: torch.device
    ) -> "FixedBatch":
        """A fixed batch that holds every training batch of ``size`` forms or pairs."""
        if batching == "pairs":
            rows = forms = min(size, len(data.row))
        else:
            forms = min(size, data.n_forms)
            rows = int(torch.bincount(data.form).topk(forms).values.sum())
        return cls(data, rows=rows, forms=forms, device=device)

    def fill(self, batch: Batch) -> Batch:
        """Copy a batch into the fixed one; spare rows repeat its first row with weight zero."""
        here = self.batch
        for space, words in ((here.source, batch.source), (here.target, batch.target)):
            rows = words[_filled_up(len(words), len(space))]
            space.copy_(nn.functional.pad(rows, (0, space.shape[1] - words.shape[1]), value=PAD))
        spare = len(here.weight) - len(batch.weight)
        here.weight.copy_(nn.functional.pad(batch.weight, (0, spare)))
        for space, numbers in ((here.form, batch.form), (here.first, batch.first)):
            space.copy_(numbers[_filled_up(len(numbers), len(space))])
        return here


def _filled_up(n: int, size: int) -> Int[Tensor, " size"]:
    """``0 … n−1`` and zeros behind, ``size`` numbers in all."""
    return nn.functional.pad(torch.arange(n), (0, size - n))


class Recorder:
    """Makes updates; after WARM_UP updates of each phase of training it replays a CUDA graph."""

    def __init__(self, fixed: FixedBatch) -> None:
        self._fixed = fixed
        self._phase: Hashable = object()  # differs from every phase of a model
        self._made = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._loss = torch.empty(0)

    def __call__(
        self, batch: Batch, descend: Callable[[Batch], Tensor], *, phase: Hashable
    ) -> Tensor:
        """Make an update with ``descend``; return its loss, which the next call overwrites."""
        fixed = self._fixed.fill(batch)
        if phase != self._phase:
            self._phase, self._made, self._graph = phase, 0, None
        if self._made < WARM_UP:
            self._made += 1
            return _aside(descend, fixed)
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._loss = descend(fixed)
        self._graph.replay()
        return self._loss


def _aside(descend: Callable[[Batch], Tensor], batch: Batch) -> Tensor:
    """Make an update on a stream of its own, as recording does."""
    stream, current = torch.cuda.Stream(), torch.cuda.current_stream()
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        loss = descend(batch)
    current.wait_stream(stream)
    return loss
