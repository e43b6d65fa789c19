"""Two commands of one form: what changes between them, and what provably stays."""

import math

import torch

from equitrans.analysis import Words
from equitrans.data import Pair, Rows, in_order, representative
from equitrans.errors import DataError
from equitrans.explorer.schema import Answer, Fact, Guess, Swap
from equitrans.explorer.views import best_pair
from equitrans.paper import Symmetry
from equitrans.training import Trained


def swap(trained: Trained, before: Answer, after: Answer) -> Swap:
    """Compare two commands of one form; raise DataError if their forms differ or one is refused."""
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
    read = trained.reading.pairs(pairs)
    facts += _alignment(trained, *read)
    facts.append(_likelihood(trained, before.best[0], after.best[0], *read))
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
