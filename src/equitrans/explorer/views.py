"""Views of a model as response models. Nothing here knows about HTTP."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.analysis import Prediction, Words, family, observed_orbits, theoretical_orbits
from equitrans.data import TIE, Pair, Read, Rows, in_order
from equitrans.errors import DataError
from equitrans.explorer.schema import (
    Aligned,
    Answer,
    Block,
    Column,
    Derivation,
    Family,
    Guess,
    Matrix,
    Member,
    Model,
    Moment,
    Node,
    Recorded,
    Table,
    Word,
)
from equitrans.lexical import written
from equitrans.models import name_of
from equitrans.paper import EOS, N_SPECIAL, PAD, Model as AnyModel
from equitrans.settings import LONGEST_SENTENCE
from equitrans.training import Trained

LONGEST = 64
"""Largest number of words of a command; longer commands are refused."""
LONGEST_TARGET = LONGEST_SENTENCE
"""Largest number of words of a prediction; longer predictions end there or are refused."""
FAMILY, FAMILY_WORDS = 1_024, 50_000
"""Largest number of pairs of a family, and of the words of all its pairs; for larger families the
view says why it is empty."""
MOMENTS = 200
"""Largest number of epochs of a recorded family; of more, evenly spaced ones are shown."""
SHOWN = 120
"""Largest number of words per side of a table; words of classes come first."""

ABOUT = {
    "rules": "transducer with a recursive aligner",
    "transducer": "transducer with an LSTM aligner",
    "gordon": "Gordon et al. 2020, an equivariant seq2seq",
    "russin": "Russin et al. 2019, syntactic attention",
    "wu": "Wu et al. 2018, hard attention without symmetry",
    "attention": "LSTM with soft attention",
    "trees": "hybrid trees",
    "backoff": "rules, with a second model where they do not derive",
    "lane": "Liu et al. 2020, learned expressions (LANE)",
}


def describe(name: str, trained: Trained, *, has_data: bool, recorded: str | None) -> Model:
    """Describe a model."""
    model, symmetry = trained.model, trained.symmetry
    kind, has_rules = name_of(trained.config), model.learned is not None
    return Model(
        name=name,
        kind=kind,
        about=ABOUT["rules" if kind == "transducer" and has_rules else kind],
        parameters=sum(p.numel() for p in model.parameters()),
        classes=columns(trained),
        words=written(symmetry.source.words)[:SHOWN],
        equivariant=bool(model.sharing.classes),
        has_table=_rows(model, []) is not None,
        has_derivations=_derives(model),
        has_data=has_data,
        characters=trained.characters,
        recorded=recorded,
    )


def read_command(trained: Trained, command: str) -> Words:
    """Return the words of a command; raise DataError if there are none or too many."""
    words = trained.words(command)
    if len(words) > LONGEST:
        raise DataError(f"the command has {len(words)} words; at most {LONGEST} are shown")
    return words


def columns(trained: Trained) -> tuple[Column, ...]:
    """Return the source columns of all classes, each with the translations of its words."""
    found = []
    for c in trained.symmetry.classes:
        for label, (_, words) in zip(c.labels, c.columns[0], strict=True):
            rows = [two for two in zip(words, c.target, strict=True) if written(two) == two]
            targets = (target.strip(TIE) for _, target in rows)
            found.append(Column(label, tuple(s for s, _ in rows), tuple(targets)))
    return tuple(found)


def read_target(trained: Trained, command: Words, target: str) -> Words:
    """Return the words of a target; raise an error if one is unknown or there are too many."""
    words, reading = trained.words(target), trained.reading
    trained.symmetry.target.encode(reading.target(words, reading.source(command)))
    return words


def homes(trained: Trained, symbols: Words) -> list[str | None]:
    """Return the name of each symbol's column, or None; its time depends on the symbols only."""
    number, (home, _) = trained.symmetry.source.index, trained.symmetry.homes
    places = [home.get(number.get(symbol, PAD)) for symbol in symbols]
    return [None if place is None else trained.symmetry.labels[place.column] for place in places]


def answer(trained: Trained, words: Words, best: Sequence[Prediction]) -> Answer:
    """Return a command with its best targets, or the reason why there are none."""
    read = Read(words)
    with suppress(DataError):
        read = trained.reading.source(words)
    return Answer(
        command=trained.text(words),
        words=tuple(
            Word(text, home, home is not None or best[0].reason is None or _knows(trained, text))
            for text, home in zip(
                map(read.spell, read.symbols), homes(trained, read.symbols), strict=True
            )
        ),
        template=" ".join(trained.symmetry.template(read.symbols)),
        best=tuple(
            Guess(p.words, p.log_prob, math.exp(p.log_prob), p.finished, p.by)
            for p in best
            if not p.refused
        ),
        reason=best[0].reason,
    )


def _knows(trained: Trained, word: str) -> bool:
    """Whether a model can read a word that stands alone."""
    try:
        symbols = trained.reading.source((word,)).symbols
    except DataError:
        return False
    return all(symbol in trained.symmetry.source.index for symbol in symbols)


def best_pair(answer: Answer) -> Pair:
    """Return a command with its prediction; raise DataError if the model refuses the command."""
    if answer.reason is not None:
        raise DataError(answer.reason)
    return Pair(tuple(word.text for word in answer.words), answer.best[0].words)


@torch.no_grad()
def align(trained: Trained, pair: Pair) -> Aligned:
    """Return the probabilities of the source positions of each target word."""
    model, read = trained.model.eval(), trained.reading.source(pair.source)
    target = trained.reading.target(pair.target, read)
    (batch,) = in_order(Rows.of([Pair(read.symbols, target)], model.sharing))
    parts = model.parts(batch)
    return Aligned(
        source=("BOS", *map(read.spell, read.symbols), "EOS"),
        target=(*map(read.spell, target), "EOS"),
        posterior=_matrix(model.alignments(batch)[0]),
        prior=None if parts is None else _matrix(parts.aligned[0].exp()),
        emitted=None if parts is None else _matrix(parts.emitted[0].exp()),
        soft=parts is None,
    )


def _matrix(prob: Tensor) -> Matrix:
    """Return probabilities with six decimals: the page shows three, and it halves the bytes."""
    return tuple(tuple(round(p, 6) for p in row) for row in prob.tolist())


@torch.no_grad()
def table(trained: Trained) -> Table:
    """Return the translator's table, words of classes first."""
    model, symmetry = trained.model, trained.symmetry
    if _rows(model, []) is None:
        return _no_table(
            "This model has no translator: the translation of a word depends on its sentence."
        )
    sources, targets = ([w for words in side for w in words] for side in symmetry.members)
    if model.learned is None:
        sources += [w for w in range(N_SPECIAL, len(symmetry.source)) if w not in set(sources)]
    elif not sources:
        return _no_table("This model has no classes: its rules write every word themselves.")
    targets += [w for w in range(N_SPECIAL, len(symmetry.target)) if w not in set(targets)]
    left_out = max(0, len(sources) - SHOWN) + max(0, len(targets) - SHOWN)
    sources, targets = sources[:SHOWN], targets[:SHOWN]
    rows = _rows(model, sources)
    assert rows is not None
    blocks, top, left = [], 0, 0
    for c in symmetry.classes:
        height, width = (len(words) for words in c.words)
        shown = min(height, SHOWN - top), min(width, SHOWN - left)
        if min(shown) > 0:
            blocks.append(Block(c.name, top=top, left=left, height=shown[0], width=shown[1]))
        top, left = top + height, left + width
    return Table(
        sources=symmetry.source.decode(sources),
        targets=(*symmetry.target.decode(targets), "EOS"),
        prob=_matrix(rows[:, [*targets, EOS]].exp()),
        blocks=tuple(blocks),
        left_out=left_out,
        missing=None,
    )


def _rows(model: AnyModel, words: Sequence[int]) -> Float[Tensor, "x y"] | None:
    """Return rows of the translator's table, or None if the model has no translator."""
    return model.translation_table(torch.tensor(words, dtype=torch.long))


def _no_table(why: str) -> Table:
    return Table((), (), (), (), left_out=0, missing=why)


def orbits(trained: Trained, pair: Pair) -> Family:
    """Return the family of a pair and its orbits."""
    sizes: dict[str | None, int] = {c.name: len(c.source) for c in columns(trained)}
    symbols = trained.reading.source(pair.source).symbols
    size = math.prod(max(1, sizes.get(name, 1)) for name in homes(trained, symbols))
    promised = bool(trained.model.sharing.classes)
    if not sizes:
        return Family((), promised, "This model has no classes: no command has a family.")
    words = size * (len(pair.source) + len(pair.target))
    if size > FAMILY or words > FAMILY_WORDS:
        limits = f"up to {FAMILY:,} pairs and {FAMILY_WORDS:,} words are shown"
        return Family((), promised, f"The family has {size:,} pairs and {words:,} words; {limits}.")
    try:
        found = trained.orbits(pair.source, pair.target)
    except DataError as error:
        return Family((), promised, f"The command has no family: {error}.")
    theoretical, observed = _numbers(found.theoretical), _numbers(found.observed)
    members = (
        Member(
            trained.text(member.source),
            trained.text(member.target),
            _finite(loss),
            theoretical[i],
            observed[i],
        )
        for i, (member, loss) in enumerate(zip(found.family, found.losses, strict=True))
    )
    return Family(tuple(members), promised, None)


def recorded(trained: Trained, sentence: str, records: Sequence[dict[str, Any]]) -> Recorded:
    """Return the family of a run's sentence through training."""
    read = trained.reading.source(trained.words(sentence))
    members = family(Pair(read.symbols, ()), trained.symmetry)
    if len(members) > FAMILY:
        raise DataError(f"a family of {len(members)} pairs; at most {FAMILY} are shown")
    theoretical = _numbers(theoretical_orbits(members, trained.symmetry))
    return Recorded(
        sentence,
        tuple(trained.text(member.source) for member in members),
        tuple(theoretical[i] for i in range(len(members))),
        tuple(_moment(record, len(members)) for record in records[:: _step(len(records))]),
        None,
    )


def _step(records: int) -> int:
    return math.ceil(records / MOMENTS) or 1


def _moment(record: dict[str, Any], size: int) -> Moment:
    epoch, losses = record["epoch"], record["losses"]
    if len(losses) != size:
        raise DataError(f"epoch {epoch} has {len(losses)} losses; expected {size}")
    observed = _numbers(observed_orbits(losses))
    return Moment(epoch, tuple(observed[i] for i in range(size)), tuple(map(_finite, losses)))


def _numbers(orbits: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the number of each member's orbit."""
    return {i: n for n, orbit in enumerate(orbits) for i in orbit}


def _finite(number: float) -> float | None:
    """Return a number, or None for a NaN or an infinity, which JSON does not have."""
    return number if math.isfinite(number) else None


def derive(trained: Trained, words: Words) -> Derivation:
    """Return the likeliest derivation of a command by a model that has derivations."""
    model = trained.model
    if not _derives(model):
        return Derivation(
            words, (), 0, "This model aligns word by word; derivations need a recursive aligner."
        )
    (best,) = trained.predict([words])
    if best.refused:
        return Derivation(words, (), 0, f"The model refuses this command: {best.reason}")
    read = trained.reading.source(words)
    found = None if best.by == "second" else model.derivation(read.symbols)
    if found is None:
        return Derivation(words, (), 0, "No rules derive this command; the second model answered.")
    words = tuple(map(read.spell, read.symbols))
    nodes = (Node(depth, n.start, n.stop, n.rule, n.support) for depth, n in found.root.walk())
    return Derivation(words, tuple(nodes), found.alignments, None)


def _derives(model: AnyModel) -> bool:
    """Return whether a model of this kind has derivations."""
    return type(model).derivation is not AnyModel.derivation
