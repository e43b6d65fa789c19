"""Phrases: source words side by side that translate to one target word."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from equitrans.data.lexicon import places_of, shared_out
from equitrans.data.pairs import Pair
from equitrans.lexical import is_filler

LONGEST = 3
"""Largest number of words of a phrase that is looked for."""

COMMON = 0.5
"""Largest share of the pairs that have a phrase which is looked for."""

SHARED = 20_000
"""Number of pairs from which no target word is looked for that several phrases share out."""

Words = tuple[str, ...]
Place = tuple[int, ...]
Key = tuple[str, Place]
"""A target word, and those of its pairs that have a phrase."""


def find_phrases(pairs: Sequence[Pair]) -> dict[Words, str]:
    """Phrases that are in the same pairs as a target word, or share them out with others, and stand
    where single words stand.

    Every word of a phrase is in the same pairs as the phrase too, or stands in phrases only, or has
    another meaning outside of phrases, but is not in exactly the pairs of another target word. A
    phrase is not one if all that stands in its places contains its words that do not tell it apart:
    ``the lamp``, ``the fan``.
    """
    sources, targets = places_of(p.source for p in pairs), places_of(p.target for p in pairs)
    found = _candidates(pairs, sources, targets)
    most = max(3, len(targets) // 2)
    heads = {(word, key) for g, key in found.items() for word in g if sources[word] == key[1]}
    meant = {*targets.values()}
    while found:
        joins: defaultdict[str, set[Key]] = defaultdict(set)
        for g, key in found.items():
            for word in g:
                joins[word].add(key)
        free, contexts = _outside(pairs, found)

        joined = {
            (word, key)
            for word, some in joins.items()
            for meanings in [_meanings(pairs, free[word], sources[word])]
            for key in some
            if (word, key) in heads
            or (
                len(some) <= most
                and sources[word] not in meant
                and (not free[word] or meanings - {key[0]})
            )
        }
        dropped = {
            g
            for g, key in found.items()
            if not all((word, key) in joined for word in g) or not _stands_for_words(g, contexts)
        }
        if not dropped:
            break
        found = {g: key for g, key in found.items() if g not in dropped}
    longest: dict[Key, Words] = {}
    for g, key in found.items():
        if len(g) > len(longest.get(key, ())):
            longest[key] = g
    return {g: t for (t, _), g in longest.items()}


def _candidates(
    pairs: Sequence[Pair], sources: Mapping[str, Place], targets: Mapping[str, Place]
) -> dict[Words, Key]:
    """Sequences of source words that are in exactly the same pairs as a target word, or share them
    out with others.
    """
    counts: Counter[Words] = Counter()
    for pair in pairs:
        counts.update(set(_sequences(pair.source)))
    sizes = {len(place) for place in targets.values()}
    limit = COMMON * len(pairs)
    few = len(pairs) < SHARED
    wanted = {g for g, n in counts.items() if 2 <= n <= limit and (few or n in sizes)}
    if not wanted:
        return {}
    at: defaultdict[Words, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        for g in set(_sequences(pair.source)):
            if g in wanted:
                at[g].append(number)
    places = {g: tuple(place) for g, place in at.items()}
    by_place: dict[Place, str] = {}
    for word, place in targets.items():
        by_place.setdefault(place, word)
    found = {g: (by_place[place], place) for g, place in places.items() if place in by_place}
    if few:
        explained = {*sources.values(), *places.values()}
        places |= {(word,): place for word, place in sources.items() if 2 <= len(place) <= limit}
        for t, place in targets.items():
            if place not in explained and 4 <= len(place) <= limit:
                found |= _sharing(t, place, places, pairs, len(targets))
    return found


def _sharing(
    t: str,
    place: Place,
    places: Mapping[Words, Place],
    pairs: Sequence[Pair],
    others: int,
) -> dict[Words, Key]:
    """Phrases that share out the pairs of a target word among them, or with single words."""
    inside = {*place}
    near = {g for i in place for g in (*_sequences(pairs[i].source), *zip(pairs[i].source))}
    sets: defaultdict[Place, list[Words]] = defaultdict(list)
    for g in sorted(near & places.keys()):
        if inside.issuperset(places[g]):
            sets[places[g]].append(g)
    parts = shared_out(place, sets, len(pairs), (len(places), others))
    return {g: (t, part) for part in parts for g in sets[part] if len(g) > 1}


def _sequences(sentence: Words) -> Iterator[Words]:
    sequences = (
        sentence[i : i + n] for n in range(2, LONGEST + 1) for i in range(len(sentence) - n + 1)
    )
    if any(map(is_filler, sentence)):
        return (g for g in sequences if not any(map(is_filler, g)))
    return sequences


def _outside(
    pairs: Sequence[Pair], phrases: Container[Words]
) -> tuple[defaultdict[str, set[int]], defaultdict[tuple[str, str], set[Words]]]:
    """The pairs in which each word stands outside all phrases, and what stands between each two
    neighbours: words and phrases.
    """
    free: defaultdict[str, set[int]] = defaultdict(set)
    between: defaultdict[tuple[str, str], set[Words]] = defaultdict(set)
    for number, pair in enumerate(pairs):
        words = ("", *pair.source, "")
        covered: set[int] = set()
        for n in range(1, LONGEST + 1):
            for i in range(1, len(words) - n):
                g = words[i : i + n]
                if n == 1 or g in phrases:
                    between[words[i - 1], words[i + n]].add(g)
                if n > 1 and g in phrases:
                    covered.update(range(i, i + n))
        for i, word in enumerate(words[1:-1], start=1):
            if i not in covered:
                free[word].add(number)
    return free, between


def _meanings(pairs: Sequence[Pair], free: set[int], places: Iterable[int]) -> set[str]:
    """The translations of a word outside of phrases that its phrases do not have."""
    inside = set(places) - free
    if len(free) < 2 or len(inside) < 2:
        return set()
    outer, inner = (
        Counter(word for i in numbers for word in set(pairs[i].target))
        for numbers in (free, inside)
    )
    return {
        word
        for word, n in outer.items()
        if n >= 0.9 * len(free) and inner[word] <= 0.35 * len(inside)
    }


def _stands_for_words(g: Words, between: Mapping[tuple[str, str], set[Words]]) -> bool:
    """Whether something else stands where the phrase stands and shares no word with it; words that
    are in all that stands there are a rule's.
    """
    return any(
        any(not set(g) & set(other) for other in fillers)
        for fillers in between.values()
        if g in fillers
    )
