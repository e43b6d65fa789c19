"""Pairs as tensors, and what pairs share.

A group element takes each pair of an *orbit* to each other pair of it. All have the same likelihood
(theorem 3), so an orbit is one row with the number of its pairs as weight. Rows of one *form* have
the same classes in the same order and the same alignments (theorem 2), so a form is aligned once.
Both are exact.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equitrans.data.pairs import Pair
from equitrans.paper import BOS, EOS, PAD, Batch, Sentence, Symmetry


def pad_source(sentences: Iterable[Sentence]) -> Int[Tensor, "b n"]:
    """One row ``BOS x EOS PAD…`` for each sentence."""
    return _pad([(BOS, *sentence, EOS) for sentence in sentences])


def _pad(rows: list[Sentence]) -> Int[Tensor, "b n"]:
    length = max(map(len, rows), default=0)
    padded = [(*row, *[PAD] * (length - len(row))) for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), length)


@dataclass(frozen=True)
class Rows:
    """A data set: one row per orbit, with the rows of a form side by side."""

    source: Int[Tensor, "r n"]
    target: Int[Tensor, "r m"]
    weight: Float[Tensor, " r"]
    form: Int[Tensor, " r"]
    row: Int[Tensor, " p"]
    """The row of every pair, in the order of the data."""

    @classmethod
    def of(cls, pairs: Iterable[Pair], symmetry: Symmetry) -> "Rows":
        """The rows of some pairs under a symmetry; without classes only equal pairs share a row."""
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
        """The number of forms."""
        return int(self.form[-1]) + 1 if len(self.form) else 0

    def batch(self, rows: Int[Tensor, " b"], weight: Float[Tensor, " b"]) -> Batch:
        """A batch of some rows, given in ascending order, without columns of padding only."""
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
    """The classes of a pair's words."""
    source, target = pair
    return (
        tuple(symmetry.source_classes[word] for word in source),
        tuple(symmetry.target_classes[word] for word in target),
    )


def in_order(data: Rows, *, rows: int = 512) -> Iterator[Batch]:
    """Batches of all rows, in order."""
    for part in torch.arange(len(data.form)).split(rows):
        yield data.batch(part, data.weight[part])


def by_form(data: Rows, *, forms: int, generator: torch.Generator) -> Iterator[Batch]:
    """Batches of ``forms`` random forms with all their pairs.

    Every form has a total weight of 1, because the aligner learns forms. Short and long forms share
    batches: with batches of one length each, the few shortest forms are seen in so few batches that
    the aligner repeats the words of a shorter form that it has not seen.
    """
    pairs = torch.zeros(data.n_forms, dtype=data.weight.dtype).index_add_(0, data.form, data.weight)
    share = data.weight / pairs[data.form]
    for chunk in torch.randperm(data.n_forms, generator=generator).split(forms):
        chosen = torch.zeros(data.n_forms, dtype=torch.bool)
        chosen[chunk] = True
        rows = chosen[data.form].nonzero().squeeze(1)
        yield data.batch(rows, share[rows])


def by_pair(data: Rows, *, pairs: int, generator: torch.Generator) -> Iterator[Batch]:
    """Batches of ``pairs`` pairs, drawn without replacement as in the paper.

    Nothing is shared within a batch: every pair has its own row, its own form, and so its own
    dropout.
    """
    for part in data.row[torch.randperm(len(data.row), generator=generator)].split(pairs):
        batch = data.batch(part, torch.ones(len(part), dtype=data.weight.dtype))
        own = torch.arange(len(part))
        yield replace(batch, form=own, first=own)


def representative(
    symmetry: Symmetry, source: Sentence, target: Sentence = ()
) -> tuple[Sentence, Sentence]:
    """The pair that represents the orbit of a pair.

    >>> from equitrans import LexicalClass
    >>> verbs = LexicalClass("verbs", ("walk", "look", "run"), ("WALK", "LOOK", "RUN"))
    >>> symmetry = Symmetry.of([verbs], [])
    >>> representative(symmetry, (4, 5), (5, 4)) == representative(symmetry, (5, 3), (3, 5))
    True
    """
    renaming = Renaming(symmetry)
    return renaming.source(source), renaming.target(target)


class Renaming:
    """The group element that takes a pair to the representative of its orbit, found word by word.

    In a cyclic class, the shift moves the first word that appears to the first place of the class.
    In a symmetric class, words take the places of the class in order of appearance.
    """

    def __init__(self, symmetry: Symmetry) -> None:
        self._symmetry = symmetry
        # per class: {old place: new place} if symmetric, {0: old place that becomes 0} if cyclic
        self._new: list[dict[int, int]] = [{} for _ in symmetry.classes]

    @property
    def element(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """A value that is equal for renamings that moved the words read so far alike."""
        return tuple(tuple(names.items()) for names in self._new)

    def source(self, sentence: Sentence) -> Sentence:
        """The source sentence after renaming."""
        return self._moved(0, sentence, self._new_place)

    def target(self, sentence: Sentence) -> Sentence:
        """The target sentence after renaming."""
        return self._moved(1, sentence, self._new_place)

    def original_target(self, sentence: Sentence) -> Sentence:
        """The target sentence before renaming."""
        return self._moved(1, sentence, self._old_place)

    def _moved(self, side: int, sentence: Sentence, place: Callable[[int, int], int]) -> Sentence:
        """A sentence with every class word replaced by the word at its new place in the class."""
        home, members = self._symmetry.homes[side], self._symmetry.members[side]
        out = list(sentence)
        for i, word in enumerate(sentence):
            if word in home:
                c, row, column = home[word]
                out[i] = members[column][place(c, row)]
        return tuple(out)

    def _new_place(self, c: int, place: int) -> int:
        names = self._new[c]
        if self._symmetry.kinds[c] == "symmetric":
            return names.setdefault(place, len(names))
        return (place - names.setdefault(0, place)) % len(self._symmetry.classes[c].source)

    def _old_place(self, c: int, place: int) -> int:
        names, n = self._new[c], len(self._symmetry.classes[c].source)
        if self._symmetry.kinds[c] == "symmetric":
            # words that have not appeared take the remaining places, in order
            return [*names, *(i for i in range(n) if i not in names)][place]
        return (place + names.get(0, 0)) % n
