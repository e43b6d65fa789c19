"""What the page shows, worked out: models and words in, values out. Knows nothing of HTTP."""

import math
from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.analysis import Words, family, observed_orbits, theoretical_orbits
from equitrans.data import Pair, Rows, in_order
from equitrans.errors import DataError, SymmetryError
from equitrans.explorer.schema import (
    Added,
    Aligned,
    Answer,
    Block,
    Class,
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
from equitrans.models import name_of
from equitrans.paper import EOS, N_SPECIAL, Hypothesis, Model as AnyModel
from equitrans.training import Trained, extend

LONGEST = 64
"""A command may have so many words."""
FAMILY = 1024
"""So large a family is shown; a larger one says so."""
SHOWN = 120
"""So many words of each side are in a table; class words come first."""


def describe(name: str, trained: Trained, *, has_data: bool, recorded: str | None) -> Model:
    """A model at a glance."""
    model, symmetry = trained.model, trained.symmetry
    kind = name_of(trained.config)
    abouts = {
        "transducer": "transducer with an LSTM aligner",
        "gordon": "Gordon et al. 2020, an equivariant seq2seq",
        "russin": "Russin et al. 2019, syntactic attention",
        "wu": "Wu et al. 2018, hard attention without symmetry",
        "attention": "LSTM with soft attention",
    }
    has_rules = model.learned is not None
    return Model(
        name=name,
        kind=kind,
        about="transducer with a recursive aligner" if has_rules else abouts[kind],
        parameters=sum(p.numel() for p in model.parameters()),
        classes=_classes(trained),
        words=symmetry.source.words[:SHOWN],
        equivariant=bool(model.sharing.classes),
        has_table=_rows(model, []) is not None,
        has_derivations=has_rules,
        has_data=has_data,
        characters=trained.characters,
        recorded=recorded,
    )


def _classes(trained: Trained) -> tuple[Class, ...]:
    return tuple(Class(c.name, c.source, c.target) for c in trained.symmetry.classes)


def read_command(trained: Trained, command: str) -> Words:
    """The words of a command, all of them known and not too many."""
    words = trained.words(command)
    if len(words) > LONGEST:
        raise DataError(f"the command has {len(words)} words; up to {LONGEST} can be shown")
    trained.symmetry.source.encode(words)
    return words


def answer(trained: Trained, words: Words, best: Sequence[Hypothesis[str]]) -> Answer:
    """A command with its best targets."""
    home = {word: c.name for c in trained.symmetry.classes for word in c.source}
    return Answer(
        command=trained.text(words),
        words=tuple(Word(word, home.get(word)) for word in words),
        template=" ".join(trained.symmetry.template(words)),
        best=tuple(
            Guess(p.words, p.log_prob, math.exp(p.log_prob), p.finished)
            for p in best
            if not p.is_refused
        ),
    )


def read_target(trained: Trained, target: str) -> Words:
    """The words of a target, all of them known and not too many."""
    words = trained.words(target)
    longest = max(trained.max_length, LONGEST)
    if len(words) > longest:
        raise DataError(f"the target has {len(words)} words; up to {longest} can be shown")
    trained.symmetry.target.encode(words)
    return words


@torch.no_grad()
def align(trained: Trained, pair: Pair) -> Aligned:
    """Which source word each target word comes from, and why."""
    model = trained.model.eval()
    (batch,) = in_order(Rows.of([pair], model.sharing))
    parts = model.parts(batch)
    posterior = model.alignments(batch)
    return Aligned(
        source=("BOS", *pair.source, "EOS"),
        target=(*pair.target, "EOS"),
        posterior=_rounded(posterior[0].tolist()),
        prior=None if parts is None else _matrix(parts.aligned[0]),
        emitted=None if parts is None else _matrix(parts.emitted[0]),
        soft=parts is None,
    )


def _matrix(log_prob: Tensor) -> Matrix:
    return _rounded(log_prob.exp().tolist())


def _rounded(rows: Sequence[Sequence[float]]) -> Matrix:
    """Six places are more than a page shows, and half the bytes."""
    return tuple(tuple(round(p, 6) for p in row) for row in rows)


@torch.no_grad()
def table(trained: Trained) -> Table:
    """The translator's table, classes first."""
    model, symmetry = trained.model, trained.symmetry
    if _rows(model, []) is None:
        return _no_table(
            "This model has no translator: what a word becomes depends on its sentence."
        )
    sources = [word for words in symmetry.members[0] for word in words]
    targets = [word for words in symmetry.members[1] for word in words]
    if model.learned is None:
        sources += [w for w in range(N_SPECIAL, len(symmetry.source)) if w not in set(sources)]
    elif not sources:
        return _no_table("This model has no classes: its rules write every word themselves.")
    rows = _rows(model, sources[:SHOWN])
    assert rows is not None
    targets += [w for w in range(N_SPECIAL, len(symmetry.target)) if w not in set(targets)]
    left_out = max(0, len(sources) - SHOWN) + max(0, len(targets) - SHOWN)
    sources, targets = sources[:SHOWN], targets[:SHOWN]
    blocks, at = [], 0
    for c in symmetry.classes:
        size = min(len(c.source), SHOWN - at)
        if size > 0:
            blocks.append(Block(c.name, top=at, left=at, height=size, width=size))
        at += len(c.source)
    return Table(
        sources=symmetry.source.decode(sources),
        targets=(*symmetry.target.decode(targets), "EOS"),
        prob=_matrix(rows[:SHOWN, [*targets, EOS]]),
        blocks=tuple(blocks),
        left_out=left_out,
        missing=None,
    )


def _rows(model: AnyModel, words: Sequence[int]) -> Float[Tensor, "x y"] | None:
    """Rows of the translator's table, where a model has one."""
    return model.translation_table(torch.tensor(words, dtype=torch.long))


def _no_table(why: str) -> Table:
    return Table((), (), (), (), left_out=0, missing=why)


def orbits(trained: Trained, pair: Pair) -> Family:
    """The family of a pair and its orbits; a reason where there is none."""
    sizes = {word: len(c.source) for c in trained.symmetry.classes for word in c.source}
    size = prod(sizes.get(word, 1) for word in pair.source)
    promised = bool(trained.model.sharing.classes)
    if not sizes:
        return Family((), promised, "This model has no classes, so every command is alone.")
    if size > FAMILY:
        return Family(
            (), promised, f"The family has {size:,} pairs; up to {FAMILY:,} are shown here."
        )
    try:
        found = trained.orbits(pair.source, pair.target)
    except DataError as error:
        return Family((), promised, f"No family can be made: {error}.")
    theoretical, observed = _numbers(found.theoretical), _numbers(found.observed)
    return Family(
        tuple(
            Member(
                trained.text(member.source),
                trained.text(member.target),
                finite(loss),
                theoretical[i],
                observed[i],
            )
            for i, (member, loss) in enumerate(zip(found.family, found.losses, strict=True))
        ),
        promised,
        None,
    )


def recorded(trained: Trained, sentence: str, records: Sequence[dict[str, Any]]) -> Recorded:
    """The family of a run's sentence through training."""
    members = family(Pair(trained.words(sentence), ()), trained.symmetry)
    theoretical = _numbers(theoretical_orbits(members, trained.symmetry))
    return Recorded(
        sentence,
        tuple(trained.text(member.source) for member in members),
        tuple(theoretical[i] for i in range(len(members))),
        tuple(_moment(record, len(members)) for record in records),
        None,
    )


def _moment(record: dict[str, Any], size: int) -> Moment:
    """A line of the record."""
    epoch, losses = record["epoch"], record["losses"]
    if len(losses) != size:
        raise DataError(f"epoch {epoch} has {len(losses)} losses, not {size}")
    observed = _numbers(observed_orbits(losses))
    return Moment(epoch, tuple(observed[i] for i in range(size)), tuple(map(finite, losses)))


def _numbers(parts: Sequence[Sequence[int]]) -> dict[int, int]:
    """The number of the part that each member is in."""
    return {i: n for n, part in enumerate(parts) for i in part}


def finite(number: float) -> float | None:
    """A number that JSON can hold."""
    return number if math.isfinite(number) else None


def derive(trained: Trained, words: Words) -> Derivation:
    """How a recursive aligner derives a command."""
    model = trained.model
    if model.learned is None:
        return Derivation(
            words, (), 0, "This model aligns word by word; derivations need a recursive aligner."
        )
    found = model.derivation(words)
    if found is None:
        return Derivation(words, (), 0, "No rule derives this command, so the model refuses it.")
    nodes = (Node(depth, n.start, n.stop, n.rule, n.support) for depth, n in found.root.walk())
    return Derivation(words, tuple(nodes), found.alignments, None)


def add_word(trained: Trained, home: str, source: str, target: str) -> tuple[Trained, Added]:
    """A model with one more word in a class."""
    for word in (source, target):
        if not word or (word != word.strip() or len(word.split()) != 1):
            raise SymmetryError(f"{word!r} is not one word")
    found = extend(trained, home, {source: target})
    return found.trained, Added(
        _classes(found.trained), found.symmetrised, found.in_class, found.diluted
    )
