"""Predictions in words, and their exact match."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch

from equitrans.analysis.decoding import decode
from equitrans.data import Pair, Renaming, Rows, in_order, pad_source
from equitrans.errors import DataError
from equitrans.paper import Batch, Hypothesis, Model, Sentence, Symmetry

Words = tuple[str, ...]
K = TypeVar("K")

_SENTENCES = 4096
"""Largest number of sentences in one batch of decoding."""

_ROWS = {"cpu": 512, "cuda": 2048}
"""Largest number of rows in one batch of evaluation, by device; a GPU is fast with many."""

_ENTRIES = 50_000_000
"""Largest number of entries in one tensor; long sentences and large vocabularies give smaller
batches."""


Prediction = Hypothesis
"""A predicted target in words."""


@dataclass(frozen=True)
class Alignment:
    """The source position of each target word: ``prob[m][n]`` is p(a_m = n | x, y).

    The source words include BOS and EOS, the target words EOS.
    """

    source: Words
    target: Words
    prob: tuple[tuple[float, ...], ...]

    @property
    def best(self) -> tuple[int, ...]:
        """The likeliest source position of each target word."""
        return tuple(max(range(len(row)), key=row.__getitem__) for row in self.prob)


@dataclass(frozen=True)
class Tally:
    """The number of correctly predicted pairs out of ``pairs``."""

    right: int
    pairs: int


@dataclass(frozen=True)
class Report:
    """Exact match of predictions, sentence by sentence."""

    pairs: tuple[Pair, ...]
    predicted: tuple[Words, ...]
    templates: tuple[Words, ...]
    loss: float | None
    """Mean −log p per pair; None if some target has words that the model does not know."""
    refused: int = 0
    """Number of sources for which the model has no target."""

    @cached_property
    def right(self) -> tuple[bool, ...]:
        """For each pair, whether the prediction is its target."""
        return tuple(p.target == words for p, words in zip(self.pairs, self.predicted, strict=True))

    @property
    def exact_match(self) -> float:
        """The share of pairs predicted exactly."""
        return sum(self.right) / len(self.right)

    @property
    def errors(self) -> tuple[tuple[Pair, Words], ...]:
        """The pairs predicted wrongly, each with its prediction."""
        judged = zip(self.pairs, self.predicted, self.right, strict=True)
        return tuple((pair, words) for pair, words, right in judged if not right)

    def by_length(self) -> dict[int, Tally]:
        """Tallies by the number of target words, shortest first."""
        tallies = self._tallies([len(p.target) for p in self.pairs])
        return {length: tallies[length] for length in sorted(tallies)}

    def by_template(self) -> dict[Words, Tally]:
        """Tallies by the source with class words replaced by their classes, worst first."""
        tallies = self._tallies(self.templates)
        order = sorted(tallies, key=lambda t: (tallies[t].right / tallies[t].pairs, t))
        return {template: tallies[template] for template in order}

    def _tallies(self, keys: Sequence[K]) -> dict[K, Tally]:
        counts: defaultdict[K, list[int]] = defaultdict(lambda: [0, 0])
        for key, right in zip(keys, self.right, strict=True):
            counts[key][0] += right
            counts[key][1] += 1
        return {key: Tally(*count) for key, count in counts.items()}


def rows_together(entries: int, *, most: int) -> int:
    """The number of rows per batch, at most ``most``, if each takes ``entries`` numbers."""
    return max(1, min(most, _ENTRIES // max(entries, 1)))


def in_parts(model: Model, data: Rows) -> Iterator[Batch]:
    """All rows once, in batches that fit into memory, on the model's device."""
    device = next(model.parameters()).device
    width = data.source.shape[1] * max(data.target.shape[1], len(model.symmetry.target))
    rows = rows_together(width, most=_ROWS.get(device.type, _ROWS["cpu"]))
    return (batch.to(device) for batch in in_order(data, rows=rows))


@torch.no_grad()
def mean_loss(model: Model, data: Rows) -> float:
    """Mean −log p(y | x) per pair."""
    model.eval()
    total = sum(float((model.loss(b) * b.weight).sum()) for b in in_parts(model, data))
    return total / float(data.weight.sum())


@torch.no_grad()
def judge(model: Model, data: Rows) -> tuple[float, float]:
    """Mean −log p(y | x) per pair, and the share of pairs that greedy decoding gets right."""
    model.eval()
    loss = right = 0.0
    for batch in in_parts(model, data):
        losses, correct = model.judge(batch)
        loss += float((losses * batch.weight).sum())
        right += float((correct * batch.weight).sum())
    pairs = float(data.weight.sum())
    return loss / pairs, right / pairs


def predict(
    model: Model, sentences: Sequence[Words], *, width: int, max_length: int, n_best: int = 1
) -> list[list[Hypothesis[str]]]:
    """The best targets of each sentence, best first.

    One sentence of each orbit is decoded, and the others get its renamed prediction (theorem 1).
    So predictions commute with the group even if hypotheses tie, except for class words that the
    source does not contain.
    """
    symmetry = model.sharing
    spellings: dict[object, _Spelling] = {}
    renamed: list[tuple[Sentence, _Spelling]] = []
    for sentence in sentences:
        renaming = Renaming(symmetry)
        source = renaming.source(symmetry.source.encode(sentence))
        element = renaming.element
        if element not in spellings:
            spellings[element] = _Spelling(renaming, symmetry)
        renamed.append((source, spellings[element]))
    found = decode_distinct(
        model, (x for x, _ in renamed), width=width, max_length=max_length, n_best=n_best
    )
    return [
        [
            Hypothesis(tuple(map(spelling.__getitem__, h.words)), h.log_prob, h.finished)
            for h in found[source]
        ]
        for source, spelling in renamed
    ]


class _Spelling(dict[int, str]):
    """The original spelling of each target word of a renamed sentence, computed on first use."""

    def __init__(self, renaming: Renaming, symmetry: Symmetry) -> None:
        self._renaming, self._target = renaming, symmetry.target

    def __missing__(self, word: int) -> str:
        (self[word],) = self._target.decode(self._renaming.original_target((word,)))
        return self[word]


def decode_distinct(
    model: Model, sentences: Iterable[Sentence], *, width: int, max_length: int, n_best: int
) -> dict[Sentence, list[Hypothesis[int]]]:
    """The best targets of distinct sentences; sentences of similar length share a batch."""
    model.eval()
    device = next(model.parameters()).device
    found: dict[Sentence, list[Hypothesis[int]]] = {}
    distinct = sorted(set(sentences), key=lambda s: (len(s), s))
    while distinct:
        longest = len(distinct[-1]) + 2
        rows = rows_together(width * longest * len(model.symmetry.target), most=_SENTENCES)
        chunk, distinct = distinct[-rows:], distinct[:-rows]
        source = pad_source(chunk).to(device)
        best = decode(model, source, width=width, max_length=max_length, n_best=n_best)
        found.update(zip(chunk, best, strict=True))
    return found


def evaluate(model: Model, pairs: Sequence[Pair], *, width: int, max_length: int) -> Report:
    """Predict the target of every source and compare it with the pair's target."""
    if not pairs:
        raise DataError("nothing to evaluate: there are no pairs")
    best = predict(model, [p.source for p in pairs], width=width, max_length=max_length)
    symmetry = model.symmetry
    return Report(
        pairs=tuple(pairs),
        predicted=tuple(predictions[0].words for predictions in best),
        templates=tuple(symmetry.template(p.source) for p in pairs),
        loss=None
        if unknown_targets(pairs, symmetry)
        else mean_loss(model, Rows.of(pairs, model.sharing)),
        refused=sum(predictions[0].is_refused for predictions in best),
    )


@torch.no_grad()
def losses(model: Model, pairs: Sequence[Pair]) -> tuple[float, ...]:
    """−log p of each pair, computed without sharing within orbits, so that orbits can be tested."""
    model.eval()
    rows = Rows.of(pairs, Symmetry(model.symmetry.source, model.symmetry.target))
    found = torch.cat([model.loss(batch).cpu() for batch in in_parts(model, rows)])
    return tuple(found[rows.row].tolist())


def unknown_targets(pairs: Iterable[Pair], symmetry: Symmetry) -> dict[str, int]:
    """Target words that a model does not know, with the number of pairs that contain them."""
    counts: defaultdict[str, int] = defaultdict(int)
    for pair in pairs:
        for word in set(pair.target) - symmetry.target.index.keys():
            counts[word] += 1
    return dict(counts)


@torch.no_grad()
def stuck_classes(model: Model, data: Rows) -> tuple[str, ...]:
    """Names of the classes whose target words are not aligned with their source words.

    This is the sign of a training that is stuck: a word outside a class gives all words of the
    class equal probability, so the loss of each stays at log(class size), and a sharp alignment has
    no gradient. A wrong class gives the same picture.
    """
    model.eval()
    device = next(model.parameters()).device
    classes = model.sharing.classes
    if model.learned is not None or model.translation_table(data.source[0, :1].to(device)) is None:
        return ()  # rules do not get stuck, and other models do not align classes
    source_class, target_class = (
        torch.tensor([home.get(word, (none, 0))[0] for word in range(len(side))], device=device)
        for home, side, none in zip(
            model.symmetry.homes,
            (model.symmetry.source, model.symmetry.target),
            (-1, -2),
            strict=True,
        )
    )
    own, total = torch.zeros(len(classes)), torch.zeros(len(classes))
    for batch in in_parts(model, data):
        source = source_class[batch.source]
        target = target_class[batch.target]
        home = model.alignments(batch) * (source[:, None] == target[:, :, None])
        for c in range(len(classes)):
            weight = (target == c) * batch.weight[:, None]
            own[c] += float((home.sum(2) * weight).sum())
            total[c] += float(weight.sum())
    return tuple(c.name for i, c in enumerate(classes) if own[i] < 0.5 * total[i])
