"""From pairs to what they say of alignments: for each form, where its target words may come from.

A target word of a class comes from a source word of that class that translates to it; any other is
a constant, which some rule writes. Pairs of one form share their alignment (theorem 2), so each
narrows the others down; pairs that disagree with most of their form are wrong, or their classes
are.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from equitrans.data import Pair
from equitrans.models.recursive.parsing import Target, meet
from equitrans.models.recursive.rules import Form, constant
from equitrans.paper import Symmetry


@dataclass(frozen=True)
class Observation:
    """A form, where its target words may come from, and the distinct pairs that say so."""

    form: Form
    target: Target
    pairs: tuple[Pair, ...]
    count: int
    """How many pairs, copies included."""

    @cached_property
    def symbols(self) -> frozenset[int]:
        """The symbols of the form."""
        return frozenset(self.form)

    @property
    def doubts(self) -> int:
        """How many target words the pairs leave more than one origin."""
        return sum(len(atoms) > 1 for atoms in self.target)


@dataclass(frozen=True)
class Stray:
    """A pair that is not explained, and why."""

    pair: Pair
    reason: str


@dataclass(frozen=True)
class Observations:
    """All that some pairs say: observations, shortest first, and pairs that fit none."""

    all: tuple[Observation, ...]
    minor: tuple[Observation, ...]
    """What pairs say that disagree with more others of their form."""
    exceptions: tuple[Stray, ...]
    count: int
    """How many pairs there are, copies included."""
    strays: int
    """How many of them fit no observation in ``all``."""
    symbols: int
    targets: int


def observe(pairs: Iterable[Pair], symmetry: Symmetry) -> Observations:
    """Group pairs by form and intersect what they say."""
    counts = Counter(pairs)
    forms: dict[Form, list[tuple[Target, Pair]]] = {}
    exceptions: list[Stray] = []
    classes = symmetry.source_classes
    for pair in counts:
        source = symmetry.source.encode(pair.source)
        target = _atoms(source, symmetry.target.encode(pair.target), symmetry)
        if all(target):
            forms.setdefault(tuple(classes[word] for word in source), []).append((target, pair))
        else:
            alien = next(w for w, atoms in zip(pair.target, target, strict=True) if not atoms)
            exceptions.append(Stray(pair, f"no source word of its class translates to {alien!r}"))
    found: list[Observation] = []
    minor: list[Observation] = []
    for form, group in forms.items():
        clusters = _clusters(group, counts)
        sizes = [sum(counts[pair] for pair in members) for _, members in clusters]
        largest = max(range(len(clusters)), key=lambda c: (sizes[c], -c))
        for c, (target, members) in enumerate(clusters):
            here = found if c == largest else minor
            here.append(Observation(form, target, tuple(members), sizes[c]))
            if c != largest:
                reason = f"disagrees with {sizes[largest]} other pairs of its form"
                exceptions += [Stray(pair, reason) for pair in members]
    found.sort(key=lambda o: (len(o.form) + o.doubts, len(o.target), o.form))
    return Observations(
        all=tuple(found),
        minor=tuple(sorted(minor, key=lambda o: (-o.count, o.form, o.target))),
        exceptions=tuple(exceptions),
        count=sum(counts.values()),
        strays=sum(counts[stray.pair] for stray in exceptions),
        symbols=max(2, len({s for form in forms for s in form})),
        targets=max(2, len({word for pair in counts for word in pair.target})),
    )


def _atoms(source: tuple[int, ...], target: tuple[int, ...], symmetry: Symmetry) -> Target:
    """For every target word its possible origins; none if it is of a class and no source word
    translates to it.
    """
    at_home, homes = symmetry.homes
    places: dict[tuple[int, int], str] = {}
    for n, word in enumerate(source):
        if word in at_home:
            places[at_home[word]] = places.get(at_home[word], "") + chr(n)
    return tuple(
        places.get(homes[word], "") if word in homes else constant(word) for word in target
    )


def _clusters(
    group: list[tuple[Target, Pair]], counts: Counter[Pair]
) -> list[tuple[Target, list[Pair]]]:
    """Pairs of one form that can share an alignment; the clearest pairs found the clusters."""
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
