"""Predictions in words, and their exact match."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equitrans.analysis.decoding import decode, rounding
from equitrans.analysis.refusals import Unreadable, known_pairs
from equitrans.analysis.reports import Alignment, Prediction, Report, Words
from equitrans.data import Pair, Renaming, Rows, in_order, pad_source
from equitrans.errors import DataError
from equitrans.models import Answer, Backoff, Direct, Hypothesis
from equitrans.paper import PAD, Autoregressive, Batch, Model, Sentence, Symmetry

_SENTENCES = 4096
"""Largest number of sentences in one batch of decoding."""

_ROWS = {"cpu": 512, "cuda": 2048}
"""Largest number of rows in one batch of evaluation, by device; a GPU is fast with many."""

_ENTRIES = 50_000_000
"""Largest number of entries in one tensor; long sentences and large vocabularies give smaller
batches."""


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
    """Mean −log p(y | x) per pair, and the share of pairs that greedy decoding gets right.

    A tie counts as wrong: every word of the target must be likelier than all other words, by more
    than rounding error. So the share is the same for all pairs of an orbit.
    """
    model.eval()
    loss = right = 0.0
    for batch in in_parts(model, data):
        losses, correct = _judged(model, batch)
        loss += float((losses * batch.weight).sum())
        right += float((correct * batch.weight).sum())
    pairs = float(data.weight.sum())
    return loss / pairs, right / pairs


def _judged(model: Model, batch: Batch) -> tuple[Float[Tensor, " b"], Bool[Tensor, " b"]]:
    """The loss of each row, and whether greedy decoding gives its target without a tie."""
    if isinstance(model, Direct):
        return model.judge(batch)
    assert isinstance(model, Autoregressive)
    losses, scores = model.score_words(batch)
    gold = batch.target[:, :, None]
    rival = scores.scatter(2, gold, -torch.inf).amax(2, keepdim=True)
    ahead = (scores.gather(2, gold) - rival).squeeze(2) > rounding(scores)
    return losses, (ahead | (batch.target == PAD)).all(1)


def predict(
    model: Model,
    sentences: Sequence[Words],
    *,
    width: int,
    max_length: int,
    n_best: int = 1,
    lenient: bool = False,
) -> list[list[Prediction]]:
    """The best targets of each sentence, best first; a refused sentence has one prediction without
    words that gives the reason. A sentence that needs a combination that no training pair suggests
    is refused, or, if ``lenient``, its predictions have a remark.

    Predictions are those of every sentence decoded by itself. One sentence of each orbit is
    decoded, and the others get its renamed prediction (theorem 1), which commutes with the group.
    If a prediction is tied, all sentences of the orbit are decoded: a tie goes to the word that
    comes first in the vocabulary, whatever the words of the source.
    """
    symmetry = model.sharing
    nothing = _Spelling(Renaming(symmetry), symmetry)
    spellings: dict[object, _Spelling] = {}
    asked: dict[int, Sentence] = {}
    renamed: dict[int, tuple[Sentence, _Spelling]] = {}
    reasons: dict[int, str] = {}
    unreadable = Unreadable(symmetry.source)
    for i, sentence in enumerate(sentences):
        if (reason := unreadable.reason(sentence)) is not None:
            reasons[i] = reason
            continue
        renaming = Renaming(symmetry)
        asked[i] = symmetry.source.encode(sentence)
        source = renaming.source(asked[i])
        element = renaming.element
        if element not in spellings:
            spellings[element] = _Spelling(renaming, symmetry)
        renamed[i] = source, spellings[element]
    settings = {"width": width, "max_length": max_length, "n_best": n_best}
    found = decode_distinct(model, (x for x, _ in renamed.values()), **settings)
    for i, encoded in asked.items():
        if any(h.tied for h in found[renamed[i][0]]):
            renamed[i] = encoded, nothing
    found |= decode_distinct(model, {x for x, _ in renamed.values()} - found.keys(), **settings)

    def answers(i: int, sentence: Words) -> list[Prediction]:
        if i in reasons:
            return [Prediction.refusal(reasons[i])]
        source, spelling = renamed[i]
        best, remark = [], None
        for h in found[source]:
            if h.is_refused:
                continue
            words = tuple(map(spelling.__getitem__, h.words))
            prediction = Prediction(words, h.log_prob, h.finished, h.tied)
            if isinstance(h, Answer) and isinstance(model, Direct | Backoff):
                if not h.licensed and remark is None:
                    remark = model.refusal(sentence, max_length=max_length)
                    if not lenient:
                        return [Prediction.refusal(remark)]
                rival = None if h.rival is None else tuple(map(spelling.__getitem__, h.rival))
                prediction = replace(
                    prediction, margin=h.margin, rival=rival, remark=remark, by=h.by
                )
            best.append(prediction)
        if best:
            return best
        reason = "no target has a positive probability"
        if isinstance(model, Direct | Backoff):
            reason = model.refusal(sentence, max_length=max_length)
        return [Prediction.refusal(reason)]

    return [answers(i, sentence) for i, sentence in enumerate(sentences)]


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
    templates = [model.symmetry.template(p.source) for p in pairs]
    return report(model, pairs, [predictions[0] for predictions in best], templates, pairs)


def report(
    model: Model,
    pairs: Sequence[Pair],
    best: Sequence[Prediction],
    templates: Sequence[Words],
    read: Sequence[Pair],
) -> Report:
    """Compare predictions with targets; ``read`` are the pairs in symbols, for the loss."""
    known = known_pairs(read, model.symmetry)
    return Report(
        pairs=tuple(pairs),
        predictions=tuple(best),
        templates=tuple(templates),
        loss=mean_loss(model, Rows.of(known, model.sharing)) if known else None,
        scored=len(known),
    )


@torch.no_grad()
def align(model: Model, pair: Pair) -> Alignment:
    """The source position of each target word of a pair."""
    model.eval()
    # the row may be another member of the pair's orbit, which has the same alignment
    (batch,) = in_order(Rows.of([pair], model.sharing))
    prob = model.alignments(batch.to(next(model.parameters()).device))[0].tolist()
    return Alignment(
        source=("BOS", *pair.source, "EOS"),
        target=(*pair.target, "EOS"),
        prob=tuple(tuple(row) for row in prob),
    )


@torch.no_grad()
def losses(model: Model, pairs: Sequence[Pair]) -> tuple[float, ...]:
    """−log p of each pair, computed without sharing within orbits, so that orbits can be tested."""
    if not pairs:
        return ()
    model.eval()
    rows = Rows.of(pairs, Symmetry(model.symmetry.source, model.symmetry.target))
    found = torch.cat([model.loss(batch).cpu() for batch in in_parts(model, rows)])
    return tuple(found[rows.row].tolist())


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
