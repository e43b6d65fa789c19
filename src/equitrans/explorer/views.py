"""Views of a model as response models. Nothing here knows about HTTP."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.analysis import Prediction, Words, family, observed_orbits, theoretical_orbits
from equitrans.data import Pair, Rows, in_order, representative
from equitrans.errors import DataError
from equitrans.explorer.schema import (
    Aligned,
    Answer,
    Block,
    Derivation,
    Fact,
    Family,
    Guess,
    Matrix,
    Member,
    Model,
    Moment,
    Node,
    Recorded,
    Swap,
    Table,
    Word,
)
from equitrans.models import name_of
from equitrans.paper import EOS, N_SPECIAL, Model as AnyModel, Symmetry
from equitrans.training import Trained

LONGEST = 64
"""Largest number of words of a command; longer commands are refused."""
FAMILY = 1024
"""Largest number of pairs of a family; for larger families the view says why it is empty."""
SHOWN = 120
"""Largest number of words per side of a table; words of classes come first."""

ABOUT = {
    "transducer": "transducer with an LSTM aligner",
    "gordon": "Gordon et al. 2020, an equivariant seq2seq",
    "russin": "Russin et al. 2019, syntactic attention",
    "wu": "Wu et al. 2018, hard attention without symmetry",
    "attention": "LSTM with soft attention",
}


def describe(name: str, trained: Trained, *, has_data: bool, recorded: str | None) -> Model:
    """Describe a model."""
    model, symmetry = trained.model, trained.symmetry
    kind, has_rules = name_of(trained.config), model.learned is not None
    return Model(
        name=name,
        kind=kind,
        about="transducer with a recursive aligner" if has_rules else ABOUT[kind],
        parameters=sum(p.numel() for p in model.parameters()),
        classes=symmetry.classes,
        words=symmetry.source.words[:SHOWN],
        equivariant=bool(model.sharing.classes),
        has_table=_rows(model, []) is not None,
        has_derivations=has_rules,
        has_data=has_data,
        characters=trained.characters,
        recorded=recorded,
    )


def read_command(trained: Trained, command: str) -> Words:
    """Return the words of a command; raise an error if one is unknown or there are too many."""
    words = trained.words(command)
    if len(words) > LONGEST:
        raise DataError(f"the command has {len(words)} words; at most {LONGEST} are shown")
    trained.symmetry.source.encode(words)
    return words


def read_target(trained: Trained, target: str) -> Words:
    """Return the words of a target; raise an error if one is unknown or there are too many."""
    words = trained.words(target)
    longest = max(trained.max_length, LONGEST)
    if len(words) > longest:
        raise DataError(f"the target has {len(words)} words; at most {longest} are shown")
    trained.symmetry.target.encode(words)
    return words


def answer(trained: Trained, words: Words, best: Sequence[Prediction]) -> Answer:
    """Return a command with its best targets."""
    home = {word: c.name for c in trained.symmetry.classes for word in c.source}
    return Answer(
        command=trained.text(words),
        words=tuple(Word(word, home.get(word)) for word in words),
        template=" ".join(trained.symmetry.template(words)),
        best=tuple(
            Guess(p.words, p.log_prob, math.exp(p.log_prob), p.finished)
            for p in best
            if not p.refused
        ),
    )


def best_pair(answer: Answer) -> Pair:
    """Return a command with its prediction, which is empty if the model refuses the command."""
    target = answer.best[0].words if answer.best else ()
    return Pair(tuple(word.text for word in answer.words), target)


@torch.no_grad()
def align(trained: Trained, pair: Pair) -> Aligned:
    """Return the probabilities of the source positions of each target word."""
    model = trained.model.eval()
    (batch,) = in_order(Rows.of([pair], model.sharing))
    parts = model.parts(batch)
    return Aligned(
        source=("BOS", *pair.source, "EOS"),
        target=(*pair.target, "EOS"),
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
    blocks, at = [], 0
    for c in symmetry.classes:
        size = min(len(c.source), SHOWN - at)
        if size > 0:
            blocks.append(Block(c.name, top=at, left=at, height=size, width=size))
        at += len(c.source)
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
    sizes = {word: len(c.source) for c in trained.symmetry.classes for word in c.source}
    size = math.prod(sizes.get(word, 1) for word in pair.source)
    promised = bool(trained.model.sharing.classes)
    if not sizes:
        return Family((), promised, "This model has no classes: no command has a family.")
    if size > FAMILY:
        return Family(
            (), promised, f"The family has {size:,} pairs; families up to {FAMILY:,} are shown."
        )
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
    """Return the likeliest derivation of a command by a recursive aligner."""
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


def swap(trained: Trained, before: Answer, after: Answer) -> Swap:
    """Compare two commands of one form; raise DataError if their forms differ."""
    if before.template != after.template:
        raise DataError(
            f"{before.command!r} and {after.command!r} have different forms; "
            "swap a word for another word of its class"
        )
    facts = [
        Fact(
            "the form",
            before.template,
            after.template,
            same=True,
            promised=True,
            why="a swap stays within classes, by definition",
        )
    ]
    pairs = best_pair(before), best_pair(after)
    if before.best and after.best:
        facts += _alignment(trained, *pairs)
        facts.append(_likelihood(trained, before.best[0], after.best[0], *pairs))
    source_changes, target_changes = (_differences(*side) for side in zip(*pairs, strict=True))
    return Swap(before, after, source_changes, target_changes, tuple(facts))


def _differences(one: Words, other: Words) -> tuple[int, ...]:
    """Return the positions where two sequences of words differ, also in length."""
    short, long = sorted((len(one), len(other)))
    return (*(i for i in range(short) if one[i] != other[i]), *range(short, long))


@torch.no_grad()
def _alignment(trained: Trained, one: Pair, other: Pair) -> list[Fact]:
    """Compare p(a) of two pairs, if the model has an aligner that sees classes only."""
    model, symmetry = trained.model, trained.symmetry
    # encoded without classes, so that the equality is measured and not assumed
    rows = Rows.of([one, other], Symmetry(symmetry.source, symmetry.target))
    (batch,) = in_order(rows)
    parts = model.parts(batch)
    if parts is None or not model.sharing.classes:
        return []
    of = symmetry.target_classes
    forms = [tuple(of[w] for w in symmetry.target.encode(pair.target)) for pair in (one, other)]
    comparable = forms[0] == forms[1]
    gap, values = math.inf, ""
    if comparable:
        prior = parts.aligned.exp()[rows.row]
        gap = float((prior[0] - prior[1]).abs().max())
        values = f"largest difference {gap:.1g}" if gap else "no difference at all"
    return [
        Fact(
            "p(a), the alignment",
            "",
            values,
            same=gap <= 1e-6,
            promised=comparable,
            why="the aligner sees classes only (theorem 2)"
            if comparable
            else "the outputs have different forms and cannot be compared",
        )
    ]


def _likelihood(trained: Trained, before: Guess, after: Guess, one: Pair, other: Pair) -> Fact:
    """Compare p(y | x) of two pairs, and say whether theory promises that they are equal."""
    sharing = trained.model.sharing
    orbit = [
        representative(
            sharing, sharing.source.encode(pair.source), sharing.target.encode(pair.target)
        )
        for pair in (one, other)
    ]
    promised = bool(sharing.classes) and orbit[0] == orbit[1]
    if promised:
        why = "the group takes one pair to the other (theorem 3)"
    elif sharing.classes:
        why = "no element of the group takes one pair to the other, so they may differ"
    else:
        why = "this model is not equivariant, so nothing is promised"
    p, q = before.log_prob, after.log_prob
    return Fact(
        "p(y | x)",
        f"{before.prob:.6f}",
        f"{after.prob:.6f}",
        same=abs(p - q) <= 1e-6 + 1e-5 * abs(p),
        promised=promised,
        why=why,
    )
