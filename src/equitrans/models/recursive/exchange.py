"""Classes of words that stand in the same places of the rules from bracketed targets."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from equitrans.data import Pair
from equitrans.lexical import LexicalClass
from equitrans.models.recursive.decompose import decompose
from equitrans.models.recursive.licences import Place
from equitrans.paper import Symmetry

ENOUGH = 5
"""Smallest number of uses of a word in a class; a rarer word has types of its own."""

ALIKE = 0.9
"""Smallest cosine of the places of a word and of its class."""


def exchangeable_words(pairs: Sequence[Pair]) -> tuple[LexicalClass, ...]:
    """Classes of words with a translation of their own that stand in the same places equally often.

    Unknown words join the largest class if all its words are copied.
    """
    symmetry = Symmetry.of((), pairs)
    found = decompose(pairs, symmetry)
    if found is None:
        return ()
    places: defaultdict[int, Counter[Place]] = defaultdict(Counter)
    for (r, k, child), n in found.words.items():
        places[child][r, k] += n
    numbers = {number: word for word, number in symmetry.source.index.items()}
    rules = [
        (rule.left[0], ~rule.right[0], places[r])
        for r, rule in enumerate(found.grammar.rules)
        if r >= found.grammar.parents
    ]
    sources = Counter(target for _, target, _ in rules)
    own = [
        (numbers[source], symmetry.target.decode([target])[0], where)
        for source, target, where in rules
        if sources[target] == 1 and where.total() >= ENOUGH
    ]
    groups: list[tuple[Counter[Place], list[tuple[str, str]]]] = []
    for source, target, where in sorted(own, key=lambda word: (-word[2].total(), word[0])):
        best = max(groups, key=lambda group: _cosine(group[0], where), default=None)
        if best is not None and _cosine(best[0], where) >= ALIKE:
            best[0].update(where)
            best[1].append((source, target))
        else:
            groups.append((Counter(where), [(source, target)]))
    words = [members for _, members in groups if len(members) > 1]
    words.sort(key=lambda members: -len(members))
    return tuple(
        LexicalClass(
            f"class{number}",
            tuple(source for source, _ in members),
            tuple(target for _, target in members),
            open=number == 1 and all(source == target for source, target in members),
        )
        for number, members in enumerate(words, start=1)
    )


def _cosine(one: Mapping[Place, int], other: Mapping[Place, int]) -> float:
    """The cosine of two vectors of counts."""
    product = sum(n * one.get(place, 0) for place, n in other.items())
    lengths = (math.sqrt(sum(n * n for n in counts.values())) for counts in (one, other))
    return product / math.prod(lengths)
