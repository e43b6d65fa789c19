"""Two commands of one form: what changes from one to the other, and what cannot."""

import torch

from equitrans.data import Pair, Rows, in_order, representative
from equitrans.errors import DataError
from equitrans.explorer.schema import Answer, Fact, Swap
from equitrans.paper import Symmetry
from equitrans.training import Trained


def compare(trained: Trained, before: Answer, after: Answer) -> Swap:
    """What follows from a swap of classmates."""
    if before.template != after.template:
        raise DataError(
            f"{before.command!r} and {after.command!r} are of different forms; "
            "swap words for others of their class"
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
    if before.best and after.best:
        pairs = [Pair(tuple(w.text for w in a.words), a.best[0].words) for a in (before, after)]
        facts += _alignment(trained, *pairs)
        facts.append(_likelihood(trained, before, after, *pairs))
    one, other = (a.best[0].words if a.best else () for a in (before, after))
    changed = tuple(m for m, (y, z) in enumerate(zip(one, other, strict=False)) if y != z)
    if len(one) != len(other):
        changed += tuple(range(min(len(one), len(other)), max(len(one), len(other))))
    return Swap(
        before,
        after,
        tuple(
            n
            for n, (x, z) in enumerate(zip(before.words, after.words, strict=True))
            if x.text != z.text
        ),
        changed,
        tuple(facts),
    )


@torch.no_grad()
def _alignment(trained: Trained, one: Pair, other: Pair) -> list[Fact]:
    """The aligner's opinion of both, where there is an aligner that sees classes alone."""
    model, symmetry = trained.model, trained.symmetry
    # encoded without classes, so that the equality is measured and not presupposed
    rows = Rows.of([one, other], Symmetry(symmetry.source, symmetry.target))
    (batch,) = in_order(rows)
    parts = model.parts(batch)
    if parts is None or not model.sharing.classes:
        return []
    of = symmetry.target_classes
    forms = [tuple(of[w] for w in symmetry.target.encode(pair.target)) for pair in (one, other)]
    if forms[0] != forms[1]:
        return [
            Fact(
                "p(a), the alignment",
                "",
                "",
                same=False,
                promised=False,
                why="the outputs are of different forms, so there is nothing to compare",
            )
        ]
    prior = parts.aligned.exp()[rows.row]
    gap = float((prior[0] - prior[1]).abs().max())
    return [
        Fact(
            "p(a), the alignment",
            "",
            f"largest difference {gap:.1g}" if gap else "no difference at all",
            same=gap <= 1e-6,
            promised=True,
            why="the aligner sees classes only (theorem 2)",
        )
    ]


def _likelihood(trained: Trained, before: Answer, after: Answer, one: Pair, other: Pair) -> Fact:
    """p(y | x) of both, and whether theory says that they are equal."""
    sharing = trained.model.sharing
    orbit = [
        representative(
            sharing, sharing.source.encode(pair.source), sharing.target.encode(pair.target)
        )
        for pair in (one, other)
    ]
    promised = bool(sharing.classes) and orbit[0] == orbit[1]
    p, q = (a.best[0].log_prob for a in (before, after))
    if promised:
        why = "the group takes one pair to the other (theorem 3)"
    elif sharing.classes:
        why = "no single element of the group takes one pair to the other, so they may differ"
    else:
        why = "this model is not equivariant, so nothing is promised"
    return Fact(
        "p(y | x)",
        f"{before.best[0].prob:.6f}",
        f"{after.best[0].prob:.6f}",
        same=abs(p - q) <= 1e-6 + 1e-5 * abs(p),
        promised=promised,
        why=why,
    )
