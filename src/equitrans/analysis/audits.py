"""Measure the equivariance of a model: theorem 3 on given pairs, in floating point.

Pairs share no computation here, and every sentence is decoded by itself, so that a model that is
not equivariant is found out.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equitrans.analysis.evaluation import decode_distinct, losses
from equitrans.data import Pair
from equitrans.errors import DataError, shown
from equitrans.paper import Group, Model, Permutation, Symmetry, compose, identity

ALL_ELEMENTS = 1000
"""Largest group of which all elements are tried. Of a larger group, the powers of its generators
are tried, which move every word to every other word of its class, and random elements."""

RANDOM_ELEMENTS = 48
"""Number of random elements that are drawn from a group with more than ALL_ELEMENTS elements."""


@dataclass(frozen=True)
class Deviation:
    """The distance of log p(g∘y | g∘x) and log p(y | x), relative to it where it is above one."""

    pair: Pair
    image: Pair
    deviation: float


@dataclass(frozen=True)
class Mismatch:
    """A prediction that does not commute with the group: the image of the prediction for x
    (``expected``) differs from the prediction for the image of x (``predicted``).
    """

    source: tuple[str, ...]
    moved: tuple[str, ...]
    expected: tuple[str, ...]
    predicted: tuple[str, ...]


@dataclass(frozen=True)
class Audit:
    """Deviations and mismatches of a model under a group."""

    group: Group
    pairs: int
    elements: int
    """Number of group elements that were tried."""
    sampled: bool
    """Whether only powers of the generators and random elements were tried."""
    moved: dict[str, int]
    """For each class with two or more words, the number of pairs that its group moves."""
    tolerance: float
    max_deviation: float
    mean_deviation: float
    worst: Deviation
    mismatches: tuple[Mismatch, ...]
    ties: int
    """Number of predictions that do not commute but are equally likely within the tolerance."""

    @property
    def passed(self) -> bool:
        """Whether all losses are finite, no deviation exceeds the tolerance, and there are no
        mismatches.
        """
        if not math.isfinite(self.max_deviation):
            return False
        return self.max_deviation <= self.tolerance and not self.mismatches


def audit(
    model: Model,
    pairs: Sequence[Pair],
    symmetry: Symmetry,
    *,
    tolerance: float = 1e-5,
    width: int = 3,
    max_length: int,
) -> Audit:
    """Compare a model on pairs with itself on their images under the group of a symmetry.

    ``symmetry`` has the model's vocabularies; its classes may differ from those of the model. Raise
    DataError if a class has two or more words and no pair has one of them: its group would move
    no pair, and every model would pass.
    """
    if not pairs:
        raise DataError("nothing to audit: there are no pairs")
    group = symmetry.group
    if group.order == 1:
        raise DataError("nothing to audit: the group moves no word")
    sampled = group.order > ALL_ELEMENTS
    elements = _sample(symmetry) if sampled else group.elements
    distinct = list(dict.fromkeys(pairs))
    counts = _moved(symmetry, distinct)
    for name, count in counts.items():
        if not count:
            raise DataError(
                f"no pair has a word of class {shown(name)}, so the audit cannot test it; "
                "add such pairs or leave out the class"
            )
    images = {pair: [move(symmetry, g, pair) for g in elements] for pair in distinct}
    loss = _losses(model, [*distinct, *(i for moved in images.values() for i in moved)])
    deviations = [
        Deviation(pair, image, _distance(loss[pair], loss[image]))
        for pair, moved in images.items()
        for image in moved
    ]
    worst = max(deviations, key=lambda d: d.deviation)
    mismatches, ties = _mismatches(model, images, symmetry, elements, tolerance, width, max_length)
    return Audit(
        group=group,
        pairs=len(distinct),
        elements=len(elements),
        sampled=sampled,
        moved=counts,
        tolerance=tolerance,
        max_deviation=worst.deviation,
        mean_deviation=sum(d.deviation for d in deviations) / len(deviations),
        worst=worst,
        mismatches=mismatches,
        ties=ties,
    )


def _moved(symmetry: Symmetry, pairs: Sequence[Pair]) -> dict[str, int]:
    """The number of pairs with a word of each class that has two or more words."""
    return {
        c.name: sum(bool({*c.words[0]} & {*x} or {*c.words[1]} & {*y}) for x, y in pairs)
        for c in symmetry.classes
        if len(c.source) > 1
    }


def _sample(symmetry: Symmetry) -> tuple[Permutation, ...]:
    """All powers of each generator, and random elements, the same in every call."""
    group, draw = symmetry.group, random.Random(0)
    found = dict.fromkeys([identity(group.degree)])
    for g in group.generators:
        power = g
        while power not in found:
            found[power] = None
            power = compose(g, power)
    for _ in range(RANDOM_ELEMENTS):
        element: list[int] = []
        for c, kind in zip(symmetry.classes, symmetry.kinds, strict=True):
            n, start = len(c.source), len(element)
            shift = draw.randrange(n)
            places = [(i + shift) % n for i in range(n)]
            if kind == "symmetric":
                draw.shuffle(places)
            element += [start + place for place in places]
        found[tuple(element)] = None
    return tuple(found)


def move(symmetry: Symmetry, g: Permutation, pair: Pair) -> Pair:
    """``(g∘x, g∘y)``."""
    source, target = symmetry.source, symmetry.target
    return Pair(
        source.decode(symmetry.source_action(g, source.encode(pair.source))),
        target.decode(symmetry.target_action(g, target.encode(pair.target))),
    )


def _distance(a: float, b: float) -> float:
    """The difference of two losses, relative where both are above one; infinite if a loss is NaN or
    infinite.
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(1.0, min(abs(a), abs(b)))


def _losses(model: Model, pairs: Sequence[Pair]) -> dict[Pair, float]:
    distinct = list(dict.fromkeys(pairs))
    return dict(zip(distinct, losses(model, distinct), strict=True))


def _mismatches(
    model: Model,
    images: Mapping[Pair, Sequence[Pair]],
    symmetry: Symmetry,
    elements: Sequence[Permutation],
    tolerance: float,
    width: int,
    max_length: int,
) -> tuple[tuple[Mismatch, ...], int]:
    """Predictions that do not commute, and the number of those that are ties."""
    sources = dict.fromkeys(p.source for pair, moved in images.items() for p in (pair, *moved))
    encoded = [symmetry.source.encode(source) for source in sources]
    found = decode_distinct(model, encoded, width=width, max_length=max_length, n_best=1)
    best = {
        source: symmetry.target.decode(found[sentence][0].words)
        for source, sentence in zip(sources, encoded, strict=True)
    }
    seen: dict[Mismatch, None] = {}
    for pair, moved in images.items():
        for g, image in zip(elements, moved, strict=True):
            expected = move(symmetry, g, Pair(pair.source, best[pair.source])).target
            if expected != best[image.source]:
                seen[Mismatch(pair.source, image.source, expected, best[image.source])] = None
    rivals = [Pair(m.moved, y) for m in seen for y in (m.expected, m.predicted)]
    loss = _losses(model, rivals) if rivals else {}
    real = tuple(
        m
        for m in seen
        if _distance(loss[Pair(m.moved, m.expected)], loss[Pair(m.moved, m.predicted)]) > tolerance
    )
    return real, len(seen) - len(real)
