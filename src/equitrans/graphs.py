"""Updates on a GPU, recorded once as a CUDA graph and replayed.

A small model's update is thousands of small kernels, and a GPU waits for Python to start them one
by one. A graph starts them all at once. It has fixed shapes: batches are brought to one size, with
padding behind their words and rows of weight zero behind their rows, which change nothing.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from equitrans.batches import Batch, Rows
from equitrans.vocabulary import PAD

WARM_UP = 3
"""So many updates are made before one is recorded, for libraries to settle on their kernels."""


class FixedBatch:
    """Room for any batch of some data that has no more than so many rows."""

    def __init__(self, data: Rows, *, rows: int, device: torch.device) -> None:
        rows = min(rows, len(data.row))
        self.batch = Batch(
            source=data.source.new_zeros(rows, data.source.shape[1]),
            target=data.target.new_zeros(rows, data.target.shape[1]),
            weight=data.weight.new_zeros(rows),
            form=torch.arange(rows),
            first=torch.arange(rows),
        ).to(device)

    def fill(self, batch: Batch) -> Batch:
        """The batch at its fixed size; what is left over is its first row with no weight."""
        here = self.batch
        spare = torch.arange(len(here.weight)).where(
            torch.arange(len(here.weight)) < len(batch.weight), torch.tensor(0)
        )
        for room, words in ((here.source, batch.source), (here.target, batch.target)):
            wide = words.new_full((len(words), room.shape[1]), PAD)
            wide[:, : words.shape[1]] = words
            room.copy_(wide[spare])
        weight = batch.weight.new_zeros(len(spare))
        weight[: len(batch.weight)] = batch.weight
        here.weight.copy_(weight)
        return here


class Recorder:
    """Does what ``descend`` does to a batch, from the fourth time on by replaying it."""

    def __init__(self, descend: Callable[[Batch], Tensor], room: FixedBatch) -> None:
        self._descend = descend
        self._room = room
        self._made = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._loss = torch.empty(0)

    def __call__(self, batch: Batch) -> Tensor:
        fixed = self._room.fill(batch)
        if self._made < WARM_UP:
            self._made += 1
            return self._aside(fixed)
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._loss = self._descend(fixed)
        self._graph.replay()
        return self._loss

    def _aside(self, batch: Batch) -> Tensor:
        """On a stream of its own, as recording is."""
        stream, current = torch.cuda.Stream(), torch.cuda.current_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            loss = self._descend(batch)
        current.wait_stream(stream)
        return loss
