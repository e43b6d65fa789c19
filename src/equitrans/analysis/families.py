"""Orbits of a pair (definitions 3, 8 and 9): what one pair teaches a model about others.

The *family* of a pair is all pairs of its form: each class word of the source is replaced by any
word of its class, and the target words that come from it are replaced alike. It is the pair's orbit
under G^N for a given alignment (theorem 4). Under G, which moves all positions together, the family
splits into *theoretical* orbits. *Observed* orbits are sets of pairs with the same likelihood.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from equitrans.analysis.evaluation import losses
from equitrans.data import Pair, join_words, representative
from equitrans.errors import DataError
from equitrans.paper import Model, Symmetry

LARGEST = 10_000
"""Largest number of pairs of a family; a larger family raises DataError."""


@dataclass(frozen=True)
class Orbits:
    """A family, −log p of its pairs, and its orbits.

    An orbit is a tuple of positions in ``family``; each pair is in one theoretical and in one
    observed orbit.
    """

    family: tuple[Pair, ...]
    losses: tuple[float, ...]
    theoretical: tuple[tuple[int, ...], ...]
    observed: tuple[tuple[int, ...], ...]


def family(pair: Pair, symmetry: Symmetry, alignment: Sequence[int] | None = None) -> list[Pair]:
    """All pairs of a pair's form, the pair itself first.

    ``alignment`` is the source position of every target word, from 0. It is optional if the class
    words of the source are all different.

    >>> from equitrans.paper.symmetry import LexicalClass
    >>> verbs = LexicalClass("verbs", ("walk", "run"), ("WALK", "RUN"))
    >>> pair = Pair(("walk", "after", "run"), ("RUN", "WALK"))
    >>> for x, y in family(pair, Symmetry.of([verbs], [pair])):
    ...     print(*x, "→", *y)
    walk after run → RUN WALK
    walk after walk → WALK WALK
    run after run → RUN RUN
    run after walk → WALK RUN
    """
    home = {w: (c, i) for c in symmetry.classes for i, w in enumerate(c.source)}
    places = [n for n, word in enumerate(pair.source) if word in home]
    size = prod(len(home[pair.source[n]][0].source) for n in places)
    if size > LARGEST:
        raise DataError(
            f"{join_words(pair.source)!r} has a family of {size} pairs; the limit is {LARGEST}"
        )
    origin = _origins(pair, symmetry, places) if alignment is None else alignment
    for word, n in zip(pair.target, origin, strict=True):
        c = next((c for c in symmetry.classes if word in c.target), None)
        if c is not None and (n < 0 or pair.source[n] not in c.source):
            raise DataError(
                f"{join_words(pair.target)!r}: {word!r} does not come from a word of its class, "
                "so it is unknown how it changes with the source"
            )
    shifts = [range(len(home[pair.source[n]][0].source)) for n in places]
    out = []
    for chosen in product(*shifts):
        shift = dict(zip(places, chosen, strict=True))
        source = tuple(
            _shifted(w, home[w][0].source, shift[n]) if n in shift else w
            for n, w in enumerate(pair.source)
        )
        target = tuple(
            _shifted(w, home[pair.source[n]][0].target, shift[n]) if n in shift else w
            for w, n in zip(pair.target, origin, strict=True)
        )
        out.append(Pair(source, target))
    return out


def is_plain(pair: Pair, symmetry: Symmetry) -> bool:
    """Whether no class word occurs twice in the source, so that the origin of every target word is
    known without an alignment.
    """
    words = [w for w in pair.source for c in symmetry.classes if w in c.source]
    return len(set(words)) == len(words)


def _shifted(word: str, words: Sequence[str], shift: int) -> str:
    """The word ``shift`` places further in its class; a word outside the class stays."""
    return words[(words.index(word) + shift) % len(words)] if word in words else word


def _origins(pair: Pair, symmetry: Symmetry, places: Sequence[int]) -> list[int]:
    """The source position of each target word, or −1 for words that come from no class word."""
    position = {pair.source[n]: n for n in places}
    if not is_plain(pair, symmetry):
        raise DataError(
            f"{join_words(pair.source)!r} has a class word twice, so it is unknown which of them "
            "a target word comes from; use different words, or give an alignment"
        )
    word_of = {t: s for c in symmetry.classes for s, t in zip(c.source, c.target, strict=True)}
    return [position.get(word_of.get(word, ""), -1) for word in pair.target]


def theoretical_orbits(pairs: Sequence[Pair], symmetry: Symmetry) -> tuple[tuple[int, ...], ...]:
    """The sets of pairs that G maps to one another (definition 8)."""
    parts: defaultdict[object, list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        key = representative(
            symmetry, symmetry.source.encode(pair.source), symmetry.target.encode(pair.target)
        )
        parts[key].append(i)
    return tuple(map(tuple, parts.values()))


def observed_orbits(
    losses: Sequence[float], *, rtol: float = 1e-5, atol: float = 1e-6
) -> tuple[tuple[int, ...], ...]:
    """The sets of pairs with the same −log p up to rounding (definition 9).

    >>> observed_orbits([1.0, 2.0, 1.0000001])
    ((0, 2), (1,))
    """
    parts: list[list[int]] = []
    for i in sorted(range(len(losses)), key=losses.__getitem__):
        if parts and losses[i] - losses[parts[-1][0]] <= atol + rtol * abs(losses[i]):
            parts[-1].append(i)
        else:
            parts.append([i])
    return tuple(tuple(sorted(part)) for part in sorted(parts, key=min))


def orbits(
    model: Model, pair: Pair, symmetry: Symmetry, alignment: Sequence[int] | None = None
) -> Orbits:
    """The family of a pair under a symmetry, and its orbits under a model."""
    pairs = family(pair, symmetry, alignment)
    found = losses(model, pairs)
    return Orbits(tuple(pairs), found, theoretical_orbits(pairs, symmetry), observed_orbits(found))
