"""Translations of single words, several source words to one target word, from co-occurrence.

The strongest associations are settled first. What they explain is taken out of the pairs, so rare
forms of a word are found in what is left over. A target word that occurs often without any of its
source words is a constant: rules write it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

SPOILED = 0.03
"""Assumed share of pairs in which the translation of a word is missing by mistake."""

COVERED = 0.9
"""Smallest share of a target word's pairs that have one of its source words."""

ROUNDS, REVISIONS = 12, 6
"""Largest number of rounds of elimination, and of restarts without the constants found."""

Sentences = Sequence[tuple[int, ...]]


def find_translations(
    sources: Sentences,
    targets: Sentences,
    known: Mapping[int, int],
    constants: Collection[int] = (),
) -> dict[int, int]:
    """The target word of each source word that has one. ``known`` translations are kept, and target
    words in ``constants`` are nobody's translation.
    """
    fixed = set(constants)
    counts = [Counter(y) for y in targets]
    words = [Counter(x) for x in sources]
    for _ in range(REVISIONS):
        found = _eliminate(words, counts, known, fixed)
        uncovered = _uncovered(words, counts, found) - set(known.values())
        if not uncovered:
            break
        fixed |= uncovered
    return found


def _eliminate(
    sources: list[Counter[int]],
    targets: list[Counter[int]],
    known: Mapping[int, int],
    fixed: set[int],
) -> dict[int, int]:
    """Settle translations in rounds, each from what the rounds before leave unexplained."""
    found = dict(known)
    pairs_with = Counter(word for source in sources for word in source)
    kinds = math.log(max(2, len({word for target in targets for word in target})))
    for _ in range(ROUNDS):
        together: defaultdict[int, Counter[int]] = defaultdict(Counter)
        left, unexplained = Counter[int](), Counter[int]()
        for source, target in zip(sources, targets, strict=True):
            explained = Counter[int]()
            for word, n in source.items():
                if word in found:
                    explained[found[word]] += n
            rest = {t: n - explained[t] for t, n in target.items() if t not in fixed}
            rest = {t: n for t, n in rest.items() if n > 0}
            left.update(rest.keys())
            unexplained.update(t for t in rest if not explained[t])
            for word, n in source.items():
                if word not in found:
                    together[word].update(t for t, more in rest.items() if more >= n)
        best: dict[int, tuple[float, int]] = {}
        back: dict[int, tuple[float, int]] = {}
        for word, row in together.items():
            n = pairs_with[word]
            for t, both in row.items():
                # the share of the other pairs, or of all pairs if there are no others
                base = (left[t] - both + left[t] / len(sources)) / (len(sources) - n + 1)
                if unexplained[t] and _associated(both, n, min(base, 0.999), kinds):
                    score = 2 * both / (n + unexplained[t])
                    best[word] = max(best.get(word, (0.0, 0)), (score, t))
                    back[t] = max(back.get(t, (0.0, 0)), (score, word))
        new = {word: t for word, (_, t) in best.items() if back[t][1] == word}
        if not new:
            break
        found |= new
    return found


def _associated(both: int, n: int, base: float, least: float) -> bool:
    """Whether a target word in ``both`` of the ``n`` pairs of a source word is its translation,
    given the target word's share of the other pairs: misses may be mistakes, and the ratio of the
    likelihoods must pay for naming the word.
    """
    missed = n - both
    if missed > SPOILED * n + 3 * math.sqrt(SPOILED * n):
        return False
    ratio = both * math.log((1 - SPOILED) / base) + missed * math.log(SPOILED / (1 - base))
    return ratio > least


def _uncovered(
    sources: list[Counter[int]], targets: list[Counter[int]], found: Mapping[int, int]
) -> set[int]:
    """The translations that occur too often without any of their source words."""
    total, covered = Counter[int](), Counter[int]()
    for source, target in zip(sources, targets, strict=True):
        here = {found[word] for word in source if word in found}
        total.update(target.keys())
        covered.update(here & target.keys())
    return {
        t for t in set(found.values()) if covered[t] < COVERED * total[t] - 2 * math.sqrt(total[t])
    }
