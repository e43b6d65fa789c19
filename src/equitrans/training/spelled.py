"""Answers of a model in words: a model reads and writes symbols, and a reading translates."""

from collections.abc import Iterable
from dataclasses import replace

from equitrans import analysis
from equitrans.analysis import Alignment, Orbits, Prediction
from equitrans.data import Pair, Read, Reading
from equitrans.paper import Model


def spell_predictions(
    found: Iterable[Prediction], reading: Reading, read: Read
) -> list[Prediction]:
    """Predictions of a source that was read, in words."""
    return [
        replace(
            prediction,
            words=reading.write(prediction.words, read),
            rival=None if prediction.rival is None else reading.write(prediction.rival, read),
            reason=_told(prediction.reason, read),
            remark=_told(prediction.remark, read),
        )
        for prediction in found
    ]


def _told(text: str | None, read: Read) -> str | None:
    """A text about a source, with its words in the places of open classes."""
    if text is None:
        return None
    for symbol, word in read.names.items():
        text = text.replace(symbol, word)
    return text


def align(model: Model, reading: Reading, pair: Pair) -> Alignment:
    """Which source word each target word of a pair comes from."""
    read = reading.source(pair.source)
    found = analysis.align(model, Pair(read.symbols, reading.target(pair.target, read)))
    source, target = (tuple(map(read.spell, side)) for side in (found.source, found.target))
    return Alignment(source, target, found.prob)


def orbits(model: Model, reading: Reading, pair: Pair) -> Orbits:
    """The family of a pair and its orbits."""
    read, alignment = reading.source(pair.source), None
    symbols = Pair(read.symbols, reading.target(pair.target, read))
    if not analysis.is_plain(symbols, model.symmetry):
        alignment = [n - 1 for n in analysis.align(model, symbols).best[:-1]]
    found = analysis.orbits(model, symbols, model.symmetry, alignment)
    family = (Pair(tuple(map(read.spell, x)), reading.write(y, read)) for x, y in found.family)
    return replace(found, family=tuple(family))
