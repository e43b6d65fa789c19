"""Observations: for each form of the pairs, the possible origins of its target words.

A target word of a class comes from a source word of that class that translates to it; any other
target word is a constant that some rule writes. Pairs of one form share their alignment (theorem
2), so each pair narrows the origins further. If a pair disagrees with most pairs of its form, the
pair or its classes are wrong.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from equitrans.data import Pair
from equitrans.models.recursive.chart import Target, meet
from equitrans.models.recursive.rules import Form, constant
from equitrans.paper import Symmetry
from equitrans.shards import by_shards


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
    by_form: dict[Form, list[Pair]] = {}
    classes, encode = symmetry.source_classes, symmetry.source.encode
    for pair in counts:
        form = tuple([classes[word] for word in encode(pair.source)])
        by_form.setdefault(form, []).append(pair)
    groups = [[(pair, counts[pair]) for pair in some] for some in by_form.values()]
    outliers: list[Outlier] = []
    found: list[Observation] = []
    minority: list[Observation] = []
    shared = by_shards(partial(_shared, symmetry), groups)
    for (form, same), (clusters, strangers) in zip(by_form.items(), shared, strict=True):
        for i, word in strangers:
            reason = f"no source word of its class translates to {word!r}"
            outliers.append(Outlier(same[i], reason))
        sizes = [sum(counts[same[i]] for i in members) for _, members in clusters]
        largest = max(range(len(clusters)), key=lambda c: (sizes[c], -c), default=-1)
        for c, (target, members) in enumerate(clusters):
            here = found if c == largest else minority
            here.append(Observation(form, target, tuple(same[i] for i in members), sizes[c]))
            if c != largest:
                reason = f"disagrees with {sizes[largest]} other pairs of its form"
                outliers += [Outlier(same[i], reason) for i in members]
    found.sort(key=lambda o: (len(o.form) + o.ambiguous, len(o.target), o.form))
    return Observations(
        all=tuple(found),
        minority=tuple(sorted(minority, key=lambda o: (-o.count, o.form, o.target))),
        outliers=tuple(outliers),
        count=sum(counts.values()),
        wrong=sum(counts[outlier.pair] for outlier in outliers),
        symbols=max(2, len({s for o in found for s in o.form})),
        targets=max(2, len({word for pair in counts for word in pair.target})),
    )


Clusters = list[tuple[Target, list[int]]]
"""Groups of pairs that can share an alignment: the origins of their target words, and the numbers
of the pairs."""


def _shared(
    symmetry: Symmetry, groups: Sequence[Sequence[tuple[Pair, int]]]
) -> list[tuple[Clusters, list[tuple[int, str]]]]:
    """For the pairs of each form, with their numbers of copies: clusters, and the pairs with a
    target word that no source word translates to.
    """
    results = []
    for group in groups:
        fitting, strangers = [], []
        for i, (pair, count) in enumerate(group):
            source = symmetry.source.encode(pair.source)
            target = _atoms(source, symmetry.target.encode(pair.target), symmetry)
            if all(target):
                fitting.append((target, i, count))
            else:
                words = zip(pair.target, target, strict=True)
                strangers.append((i, next(word for word, atoms in words if not atoms)))
        results.append((_clusters(fitting), strangers))
    return results


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


def _clusters(group: list[tuple[Target, int, int]]) -> Clusters:
    """Groups of pairs of one form, from origins, numbers and numbers of copies, starting from the
    least ambiguous pairs.
    """
    clusters: Clusters = []
    group.sort(key=lambda item: (sum(map(len, item[0])), -item[2]))
    for target, i, _ in group:
        for c, (common, members) in enumerate(clusters):
            if (both := meet(common, target)) is not None:
                members.append(i)
                clusters[c] = both, members
                break
        else:
            clusters.append((target, [i]))
    return clusters
