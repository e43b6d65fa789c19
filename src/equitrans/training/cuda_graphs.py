"""Updates on a GPU, recorded once as a CUDA graph and replayed.

The update of a small model is thousands of small kernels, and a GPU waits for Python to start each
of them. A graph starts all of them at once. Its tensors have fixed shapes, so every batch is filled
up to one of a few sizes with padding words and with rows of weight zero, which do not change the
result. Batches of one pair have a graph for each multiple of eight target words: the time of an
update grows with the longest target of its batch.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor, nn

from equitrans.data import Batching, Rows
from equitrans.paper import PAD, Batch

WARM_UP = 3
"""Number of updates before one is recorded; libraries choose their kernels in them."""

STEP = 8
"""The target of a batch of one pair is filled up to a multiple of this number of words."""


class FixedBatch:
    """A batch of fixed size, into which smaller batches of some data are copied."""

    def __init__(
        self, data: Rows, *, rows: int, forms: int, words: int, device: torch.device
    ) -> None:
        self.batch = Batch(
            source=data.source.new_zeros(rows, data.source.shape[1]),
            target=data.target.new_zeros(rows, words),
            weight=data.weight.new_zeros(rows),
            form=data.form.new_zeros(rows),
            first=data.form.new_zeros(forms),
        ).to(device)

    @classmethod
    def for_training(
        cls,
        data: Rows,
        batching: Batching,
        size: int,
        *,
        device: torch.device,
        words: int | None = None,
    ) -> "FixedBatch":
        """A fixed batch that holds every training batch of ``size`` forms or pairs whose targets
        have up to ``words`` words, or any number.
        """
        if batching == "pairs":
            rows = forms = min(size, len(data.row))
        else:
            forms = min(size, data.n_forms)
            rows = int(torch.bincount(data.form).topk(forms).values.sum())
        words = data.target.shape[1] if words is None else words
        return cls(data, rows=rows, forms=forms, words=words, device=device)

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


@dataclass
class _Recording:
    """The updates of one size of batches: made so far, and the graph that repeats them."""

    fixed: FixedBatch
    made: int = 0
    graph: torch.cuda.CUDAGraph | None = None
    loss: Tensor = field(default_factory=lambda: torch.empty(0))


class Recorder:
    """Makes updates; after WARM_UP updates of a size and a phase of training it replays a graph.

    ``room`` makes a fixed batch for targets of some number of words, a multiple of ``step``.
    """

    def __init__(self, room: Callable[[int], FixedBatch], *, step: int) -> None:
        self._room, self._step = room, step
        self._phase: Hashable = object()  # differs from every phase of a model
        self._by_words: dict[int, _Recording] = {}
        # graphs run one after the other and keep nothing but a loss, so they share their memory
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(
        self, batch: Batch, descend: Callable[[Batch], Tensor], *, phase: Hashable
    ) -> Tensor:
        """Make an update with ``descend``; return its loss, which the next call overwrites."""
        if phase != self._phase:
            self._phase, self._by_words = phase, {}
            self._pool = torch.cuda.graph_pool_handle()
        words = -(-batch.target.shape[1] // self._step) * self._step
        if words not in self._by_words:
            self._by_words[words] = _Recording(self._room(words))
        here = self._by_words[words]
        fixed = here.fixed.fill(batch)
        if here.made < WARM_UP:
            here.made += 1
            return _aside(descend, fixed)
        if here.graph is None:
            here.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(here.graph, pool=self._pool):
                here.loss = descend(fixed)
        here.graph.replay()
        return here.loss


def _aside(descend: Callable[[Batch], Tensor], batch: Batch) -> Tensor:
    """Make an update on a stream of its own, as recording does."""
    stream, current = torch.cuda.Stream(), torch.cuda.current_stream()
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        loss = descend(batch)
    current.wait_stream(stream)
    return loss
