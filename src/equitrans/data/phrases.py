"""Phrases: source words side by side that translate to one target word."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from equitrans.data.lexicon import places_of
from equitrans.data.pairs import Pair
from equitrans.lexical import is_filler

LONGEST = 3
"""Largest number of words of a phrase that is looked for."""

COMMON = 0.5
"""Largest share of the pairs that have a phrase which is looked for."""

Words = tuple[str, ...]


def find_phrases(pairs: Sequence[Pair]) -> dict[Words, str]:
    """Phrases that are in the same pairs as a target word and stand where single words stand.

    Every word of a phrase is in the same pairs as the target word too, or stands in phrases only,
    or has another meaning outside of phrases. A phrase is not one if all that stands in its places
    contains its words that do not tell it apart: ``the lamp``, ``the fan``.
    """
    sources, targets = places_of(p.source for p in pairs), places_of(p.target for p in pairs)
    found = _candidates(pairs, targets)
    most = max(3, len(targets) // 2)
    heads = {(word, t) for (g, t) in found.items() for word in g if sources[word] == targets[t]}
    while found:
        joins: defaultdict[str, set[str]] = defaultdict(set)
        for g, t in found.items():
            for word in g:
                joins[word].add(t)
        free, contexts = _outside(pairs, found)

        joined = {
            (word, t)
            for word, some in joins.items()
            for meanings in [_meanings(pairs, free[word], sources[word])]
            for t in some
            if (word, t) in heads or (len(some) <= most and (not free[word] or meanings - {t}))
        }
        dropped = {
            g
            for g, t in found.items()
            if not all((word, t) in joined for word in g) or not _stands_for_words(g, contexts)
        }
        if not dropped:
            break
        found = {g: t for g, t in found.items() if g not in dropped}
    longest: dict[str, Words] = {}
    for g, t in found.items():
        if len(g) > len(longest.get(t, ())):
            longest[t] = g
    return {g: t for t, g in longest.items()}


def _candidates(pairs: Sequence[Pair], targets: Mapping[str, tuple[int, ...]]) -> dict[Words, str]:
    """Sequences of source words that are in exactly the same pairs as a target word."""
    counts: Counter[Words] = Counter()
    for pair in pairs:
        counts.update(set(_sequences(pair.source)))
    sizes = {len(place) for place in targets.values()}
    wanted = {g for g, n in counts.items() if 2 <= n <= COMMON * len(pairs) and n in sizes}
    if not wanted:
        return {}
    at: defaultdict[Words, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        for g in set(_sequences(pair.source)):
            if g in wanted:
                at[g].append(number)
    by_place: dict[tuple[int, ...], str] = {}
    for word, place in targets.items():
        by_place.setdefault(place, word)
    return {g: by_place[tuple(place)] for g, place in at.items() if tuple(place) in by_place}


def _sequences(sentence: Words) -> Iterator[Words]:
    sequences = (
        sentence[i : i + n] for n in range(2, LONGEST + 1) for i in range(len(sentence) - n + 1)
    )
    if any(map(is_filler, sentence)):
        return (g for g in sequences if not any(map(is_filler, g)))
    return sequences


def _outside(
    pairs: Sequence[Pair], phrases: Mapping[Words, str]
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
