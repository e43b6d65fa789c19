"""Observations: for each form of the pairs, the possible origins of its target words.

A target word of a class comes from a source word of that class that translates to it; any other
target word is a constant that some rule writes. Pairs of one form share their alignment (theorem
2), so each pair narrows the origins further. If a pair disagrees with most pairs of its form, the
pair or its classes are wrong.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from equitrans.data import Pair
from equitrans.models.recursive.chart import Target, meet
from equitrans.models.recursive.rules import Form, constant
from equitrans.paper import Symmetry


@dataclass(frozen=True)
class Observation:
    """A form, the possible origins of its target words, and the distinct pairs as evidence."""

    form: Form
    target: Target
    pairs: tuple[Pair, ...]
    count: int
    """Number of pairs, copies included."""

    def __hash__(self) -> int:
        # not of the pairs, which may be many thousands
        return hash((self.form, self.target))

    @cached_property
    def symbols(self) -> frozenset[int]:
        """The symbols of the form."""
        return frozenset(self.form)

    @property
    def ambiguous(self) -> int:
        """Number of target words with more than one possible origin."""
        return sum(len(atoms) > 1 for atoms in self.target)


@dataclass(frozen=True)
class Outlier:
    """A pair that disagrees with its form or its classes, and the reason."""

    pair: Pair
    reason: str


@dataclass(frozen=True)
class Observations:
    """The observations of all pairs, shortest first, and the pairs that fit none of them."""

    all: tuple[Observation, ...]
    minority: tuple[Observation, ...]
    """Observations of the smaller groups of pairs of a form, largest group first."""
    outliers: tuple[Outlier, ...]
    count: int
    """Number of pairs, copies included."""
    wrong: int
    """Number of outliers, copies included."""
    symbols: int
    """Number of distinct source symbols, at least 2."""
    targets: int
    """Number of distinct target words, at least 2."""

    @property
    def noise(self) -> float:
        """The estimated share of wrong pairs, above 0 and at most a half."""
        return min((self.wrong + 0.1) / (self.count + 1), 0.5)


def observe(pairs: Iterable[Pair], symmetry: Symmetry) -> Observations:
    """Group pairs by form and intersect the possible origins of their target words."""
    counts = Counter(pairs)
    forms: dict[Form, list[tuple[Target, Pair]]] = {}
    outliers: list[Outlier] = []
    classes = symmetry.source_classes
    for pair in counts:
        source = symmetry.source.encode(pair.source)
        target = _atoms(source, symmetry.target.encode(pair.target), symmetry)
        if all(target):
            forms.setdefault(tuple(classes[word] for word in source), []).append((target, pair))
        else:
            unknown = next(w for w, atoms in zip(pair.target, target, strict=True) if not atoms)
            outliers.append(Outlier(pair, f"no source word of its class translates to {unknown!r}"))
    found: list[Observation] = []
    minority: list[Observation] = []
    for form, group in forms.items():
        clusters = _clusters(group, counts)
        sizes = [sum(counts[pair] for pair in members) for _, members in clusters]
        largest = max(range(len(clusters)), key=lambda c: (sizes[c], -c))
        for c, (target, members) in enumerate(clusters):
            here = found if c == largest else minority
            here.append(Observation(form, target, tuple(members), sizes[c]))
            if c != largest:
                reason = f"disagrees with {sizes[largest]} other pairs of its form"
                outliers += [Outlier(pair, reason) for pair in members]
    found.sort(key=lambda o: (len(o.form) + o.ambiguous, len(o.target), o.form))
    return Observations(
        all=tuple(found),
        minority=tuple(sorted(minority, key=lambda o: (-o.count, o.form, o.target))),
        outliers=tuple(outliers),
        count=sum(counts.values()),
        wrong=sum(counts[outlier.pair] for outlier in outliers),
        symbols=max(2, len({s for form in forms for s in form})),
        targets=max(2, len({word for pair in counts for word in pair.target})),
    )


def _atoms(source: tuple[int, ...], target: tuple[int, ...], symmetry: Symmetry) -> Target:
    """The possible origins of every target word; empty for a class word that no source word
    translates to.
    """
    source_homes, target_homes = symmetry.homes
    places: dict[tuple[int, int], str] = {}
    for n, word in enumerate(source):
        if word in source_homes:
            home = source_homes[word][:2]
            places[home] = places.get(home, "") + chr(n)
    return tuple(
        places.get(target_homes[word][:2], "") if word in target_homes else constant(word)
        for word in target
    )


def _clusters(
    group: list[tuple[Target, Pair]], counts: Counter[Pair]
) -> list[tuple[Target, list[Pair]]]:
    """Groups of pairs of one form that can share an alignment, starting from the least ambiguous
    pairs.
    """
    clusters: list[tuple[Target, list[Pair]]] = []
    group.sort(key=lambda item: (sum(map(len, item[0])), -counts[item[1]]))
    for target, pair in group:
        for c, (common, members) in enumerate(clusters):
            if (both := meet(common, target)) is not None:
                clusters[c] = (both, [*members, pair])
                break
        else:
            clusters.append((target, [pair]))
    return clusters
