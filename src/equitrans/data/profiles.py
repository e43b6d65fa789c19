"""Profiles of words: what stands beside them, beside their translations, and in their pairs."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair

PLACES = 7
"""Before and after the word, before and after its translation, both for each, and anywhere."""

BOTH = (4, 5)
"""The places that are two neighbours at once."""

ANYWHERE = 6
"""The place of all words of the pair that have no translation."""

LEXEME = "‹a lexeme›"
"""A neighbour that has a translation."""

LARGE = 20
"""Smallest number of words of a group that neighbours are told apart by."""

OFTEN, FREQUENT = 8, 0.1
"""Smallest number, and share, of the pairs that have a word of no class which neighbours are told
apart by."""

Profile = tuple[Counter[object], ...]
"""The neighbours of a word, by place."""


def profiles_of(
    pairs: Sequence[Pair], group: Mapping[str, int], lexicon: Lexicon
) -> dict[str, Profile]:
    """The profile of every word of a group. Neighbours of a large group look alike, and so do those
    of all small ones but for frequent words of no class; a neighbour in the target stands before
    the word in the source, or does not.
    """
    size = Counter(group.values())
    seen = Counter(word for pair in pairs for word in {*pair.source})
    looks: dict[str, object] = {
        w: w
        if size[g] == 1 and seen[w] >= max(OFTEN, FREQUENT * len(pairs))
        else (g if size[g] >= LARGE else LEXEME)
        for w, g in group.items()
    }
    found: defaultdict[str, Profile]
    found = defaultdict(lambda: tuple(Counter() for _ in range(PLACES)))
    for pair in pairs:
        back = [lexicon.source.get(t, t) for t in pair.target]
        others = {word for word in (*pair.source, *back) if looks.get(word, word) == word}
        order = {word: i for i, word in enumerate(pair.source)}
        for side, sentence in enumerate((pair.source, back)):
            padded = ["", *(looks.get(word, word) for word in sentence), ""]
            at = [order.get(word, -1) for word in ("", *sentence, "")] if side else []
            for i, word in enumerate(sentence):
                if word in group and word in order:
                    before, after = padded[i], padded[i + 2]
                    if side:  # which of two words comes first in the source
                        before, after = (before, at[i] < at[i + 1]), (after, at[i + 2] < at[i + 1])
                    found[word][2 * side][before] += 1
                    found[word][2 * side + 1][after] += 1
                    found[word][BOTH[side]][before, after] += 1
        for word in group.keys() & order.keys():
            found[word][ANYWHERE].update(others - {word})
    return found


def saved(one: Counter[object], other: Counter[object], kinds: int) -> float:
    """Bits that one code for the neighbours of two groups saves; the code learns the shares of all
    kinds as it goes.

    >>> round(saved(Counter(a=3), Counter(a=3), 2), 2)
    1.21
    >>> round(saved(Counter(a=3), Counter(b=3), 2), 2)
    -4.32
    """
    a, b = one.total(), other.total()
    bits = math.lgamma(kinds / 2 + a) - math.lgamma(kinds / 2)
    bits += math.lgamma(kinds / 2 + b) - math.lgamma(kinds / 2 + a + b)
    for neighbour, n in one.items():
        m = 0.5 + other[neighbour]
        bits += math.lgamma(m + n) - math.lgamma(m) - math.lgamma(0.5 + n) + math.lgamma(0.5)
    return bits / math.log(2)
