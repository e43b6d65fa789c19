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

from equitrans.analysis.evaluation import align, losses
from equitrans.data import Pair, join_words, representative
from equitrans.errors import DataError
from equitrans.lexical import is_filler
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
    homes, turned = _homes(symmetry)
    places = [n for n, word in enumerate(pair.source) if word in homes]
    origin = _origins(pair, symmetry, places) if alignment is None else alignment
    for word, n in zip(pair.target, origin, strict=True):
        here = homes.get(pair.source[n]) if n >= 0 else None
        if word in turned and (here is None or here.c != turned[word].c):
            raise DataError(
                f"{join_words(pair.target)!r}: {word!r} does not come from a word of its class, "
                "so it is unknown how it changes with the source"
            )
    changing = [
        [w for w, n in zip(pair.target, origin, strict=True) if n == place] for place in places
    ]
    rows = [
        _rows([homes[pair.source[n]], *(turned[w] for w in words if w in turned)])
        for n, words in zip(places, changing, strict=True)
    ]
    if (size := prod(map(len, rows))) > LARGEST:
        raise DataError(
            f"{join_words(pair.source)!r} has a family of {size} pairs; the limit is {LARGEST}"
        )
    out = []
    for chosen in product(*rows):
        shift = dict(zip(places, chosen, strict=True))
        source = tuple(
            homes[w].shifted(shift[n]) if n in shift else w for n, w in enumerate(pair.source)
        )
        target = tuple(
            turned[w].shifted(shift[n]) if n in shift and w in turned else w
            for w, n in zip(pair.target, origin, strict=True)
        )
        out.append(Pair(source, target))
    return out


@dataclass(frozen=True)
class _Home:
    """A class word: its class, its column, and its row."""

    c: int
    column: tuple[str, ...]
    row: int

    def shifted(self, shift: int) -> str:
        """The word ``shift`` rows further in the column."""
        return self.column[(self.row + shift) % len(self.column)]


def _homes(symmetry: Symmetry) -> tuple[dict[str, _Home], dict[str, _Home]]:
    """For source and target: the home of every class word."""
    source, target = (
        {
            word: _Home(i, words, row)
            for i, c in enumerate(symmetry.classes)
            for _, words in c.columns[side]
            for row, word in enumerate(words)
        }
        for side in (0, 1)
    )
    return source, target


def _rows(homes: Sequence[_Home]) -> list[int]:
    """The shifts to the rows that have all these columns, no shift first."""
    shifts = range(len(homes[0].column))
    return [s for s in shifts if s == 0 or not any(is_filler(h.shifted(s)) for h in homes)]


def is_plain(pair: Pair, symmetry: Symmetry) -> bool:
    """Whether no two class words of the source are of one row, so that the origin of every target
    word is known without an alignment.
    """
    homes, _ = _homes(symmetry)
    rows = [(homes[w].c, homes[w].row) for w in pair.source if w in homes]
    return len(set(rows)) == len(rows)


def _origins(pair: Pair, symmetry: Symmetry, places: Sequence[int]) -> list[int]:
    """The source position of each target word, or −1 for words that come from no class word."""
    if not is_plain(pair, symmetry):
        raise DataError(
            f"{join_words(pair.source)!r} has a class word twice, so it is unknown which of them "
            "a target word comes from; use different words, or give an alignment"
        )
    homes, turned = _homes(symmetry)
    position = {(homes[pair.source[n]].c, homes[pair.source[n]].row): n for n in places}
    at = (turned.get(word) for word in pair.target)
    return [-1 if home is None else position.get((home.c, home.row), -1) for home in at]


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


def sharpness(model: Model, pairs: Sequence[Pair]) -> float:
    """The mean of the largest p(a = n | x, y) over the target words and EOS of pairs.

    It is 1 if the model is certain of every alignment.
    """
    rows = [row for pair in pairs for row in align(model, pair).prob]
    return min(1.0, sum(map(max, rows)) / len(rows))  # rounding can exceed 1


def orbits(
    model: Model, pair: Pair, symmetry: Symmetry, alignment: Sequence[int] | None = None
) -> Orbits:
    """The family of a pair under a symmetry, and its orbits under a model."""
    pairs = family(pair, symmetry, alignment)
    found = losses(model, pairs)
    return Orbits(tuple(pairs), found, theoretical_orbits(pairs, symmetry), observed_orbits(found))
