"""Pairs as tensors, with everything shared that can be.

Pairs of one *orbit* (that some group element takes to one another) have the same likelihood by
theorem 3, so they are one row, weighted by their number. Rows of one *form* (the same classes in
the same order) have the same alignments by theorem 2, so a form is aligned once. Both are exact,
whatever the batch.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equitrans.data.pairs import Pair
from equitrans.data.renaming import representative
from equitrans.paper import BOS, EOS, PAD, Batch, Sentence, Symmetry


def pad_source(sentences: Iterable[Sentence]) -> Int[Tensor, "b n"]:
    """``BOS x EOS PAD…``, one row a sentence."""
    return _pad([(BOS, *sentence, EOS) for sentence in sentences])


def _pad(rows: list[Sentence]) -> Int[Tensor, "b n"]:
    length = max(map(len, rows), default=0)
    padded = [(*row, *[PAD] * (length - len(row))) for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), length)


@dataclass(frozen=True)
class Rows:
    """A data set: its distinct orbits, those of one form side by side."""

    source: Int[Tensor, "r n"]
    target: Int[Tensor, "r m"]
    weight: Float[Tensor, " r"]
    form: Int[Tensor, " r"]
    row: Int[Tensor, " p"]
    """The row of every pair, in the order of the data."""

    @classmethod
    def of(cls, pairs: Iterable[Pair], symmetry: Symmetry) -> "Rows":
        """Encode pairs under a symmetry; without classes, equal pairs alone share a row."""
        seen: Counter[Pair] = Counter()
        order: list[Pair] = []
        for pair in pairs:
            seen[pair] += 1
            order.append(pair)
        key = {
            pair: representative(
                symmetry, symmetry.source.encode(pair.source), symmetry.target.encode(pair.target)
            )
            for pair in seen
        }
        weight: Counter[tuple[Sentence, Sentence]] = Counter()
        for pair, count in seen.items():
            weight[key[pair]] += count
        forms = {k: _form(k, symmetry) for k in weight}
        number = {form: i for i, form in enumerate(dict.fromkeys(forms.values()))}
        keys = sorted(weight, key=lambda k: number[forms[k]])
        place = {k: i for i, k in enumerate(keys)}
        return cls(
            source=pad_source(x for x, _ in keys),
            target=_pad([(*y, EOS) for _, y in keys]),
            weight=torch.tensor([float(weight[k]) for k in keys]),
            form=torch.tensor([number[forms[k]] for k in keys], dtype=torch.long),
            row=torch.tensor([place[key[pair]] for pair in order], dtype=torch.long),
        )

    @property
    def n_forms(self) -> int:
        """How many forms there are."""
        return int(self.form[-1]) + 1 if len(self.form) else 0

    def batch(self, rows: Int[Tensor, " b"], weight: Float[Tensor, " b"]) -> Batch:
        """Some rows, in ascending order, as a batch no wider than it must be."""
        source, target = self.source[rows], self.target[rows]
        _, form, counts = torch.unique_consecutive(
            self.form[rows], return_inverse=True, return_counts=True
        )
        return Batch(
            source=source[:, : int((source != PAD).sum(1).max())],
            target=target[:, : int((target != PAD).sum(1).max())],
            weight=weight,
            form=form,
            first=counts.cumsum(0) - counts,
        )


def _form(pair: tuple[Sentence, Sentence], symmetry: Symmetry) -> tuple[Sentence, Sentence]:
    source, target = pair
    return (
        tuple(symmetry.source_classes[word] for word in source),
        tuple(symmetry.target_classes[word] for word in target),
    )


def in_order(data: Rows, *, rows: int = 512) -> Iterator[Batch]:
    """All rows once, for validation."""
    for part in torch.arange(len(data.form)).split(rows):
        yield data.batch(part, data.weight[part])


def by_form(data: Rows, *, forms: int, generator: torch.Generator) -> Iterator[Batch]:
    """Some forms with all their pairs, of similar target length, in random order.

    Every form counts the same, however many pairs it has, since it is forms that the aligner has
    to learn.
    """
    _, counts = torch.unique_consecutive(data.form, return_counts=True)
    starts = counts.cumsum(0) - counts
    pairs = torch.zeros(len(counts), dtype=data.weight.dtype).index_add_(0, data.form, data.weight)
    share = data.weight / pairs[data.form]
    length = (data.target[starts] != PAD).sum(1)
    jitter = torch.rand(len(length), generator=generator) * 4
    chunks = (length + jitter).argsort().split(forms)
    for chunk in torch.randperm(len(chunks), generator=generator).tolist():
        chosen = torch.zeros(data.n_forms, dtype=torch.bool)
        chosen[chunks[chunk]] = True
        rows = chosen[data.form].nonzero().squeeze(1)
        yield data.batch(rows, share[rows])


def by_pair(data: Rows, *, pairs: int, generator: torch.Generator) -> Iterator[Batch]:
    """Pairs drawn without replacement, as in the paper."""
    for part in data.row[torch.randperm(len(data.row), generator=generator)].split(pairs):
        rows, counts = torch.unique(part, return_counts=True)
        yield data.batch(rows, counts.to(data.weight.dtype))
