"""Target words that are not copied though their spelling is: the letters of suffixes."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from difflib import SequenceMatcher

from equitrans.data.pairs import Pair
from equitrans.lexical import by_itself

ALIGNED = 2000
"""Largest number of pairs that show which words are copied in order."""

Words = tuple[str, ...]
Inserted = tuple[frozenset[Words], frozenset[str]]
"""Sequences of words, and words in them."""


def mark_inserted(
    source: Words, target: Words, runs: Container[Words], words: Container[str]
) -> Words:
    """The target with other symbols for the ``words`` that are not copied. The longest parts that
    both sides have are copied, in order. A copied word may be doubled, if one of the ``runs``
    follows and the doubled word with what follows is none of them.

    >>> suffix = frozenset({("e", "d")})
    >>> " ".join(mark_inserted(tuple("need"), tuple("needed"), suffix, "ed"))
    'n e e d ‹e +› ‹d +›'
    >>> " ".join(mark_inserted(tuple("bed"), tuple("bedded"), suffix, "ed"))
    'b e d d ‹e +› ‹d +›'
    """
    if not any(word in words for word in target):
        return target
    out = list(target)
    for start, end in uncopied_runs(source, target):
        run = target[start:end]
        doubled = start > 0 and run[0] == target[start - 1]
        if doubled and run not in runs and run[1:] in runs:
            start += 1
        out[start:end] = [by_itself(w) if w in words else w for w in target[start:end]]
    return tuple(out)


def uncopied_runs(source: Words, target: Words) -> Iterator[tuple[int, int]]:
    """The start and end of each longest part of the target that is not copied in order."""
    before = 0
    for _, start, size in matching_blocks(source, target):
        if before < start:
            yield before, start
        before = start + size


def matching_blocks(source: Words, target: Words) -> list[tuple[int, int, int]]:
    """The parts that both sides have in order: start in the source, in the target, and length. The
    last one is empty and at the ends.
    """
    return [*SequenceMatcher(None, source, target, autojunk=False).get_matching_blocks()]


def find_inserted(pairs: Sequence[Pair], *, tolerance: float) -> Inserted:
    """Sequences of target words that are not copied, such as suffixes, and their words that are
    copied elsewhere. There are none unless most source words, and most words that both sides have,
    are copied in order, next to another copied word or at their place in the source.
    """
    sources = {word for pair in pairs for word in pair.source}
    if 2 * len(sources.intersection(w for pair in pairs for w in pair.target)) < len(sources):
        return frozenset(), frozenset()
    seen, kept, having, extra = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    runs = Counter[Words]()
    for source, target in pairs[:: -(-len(pairs) // ALIGNED)]:
        seen.update(source)
        having.update({*target})
        for a, b, size in matching_blocks(source, target):
            if size > 1 or a == b:
                kept.update(source[a : a + size])
        some = [
            target[a:b]
            for a, b in uncopied_runs(source, target)
            if a == 0 or target[a] != target[a - 1]
        ]
        runs.update(some)
        extra.update({word for run in some for word in run})
    copies = {word for word, n in seen.items() if kept[word] >= (1 - tolerance) * n}
    if len(copies) < max((1 - tolerance) * len(seen.keys() & having.keys()), len(seen) / 2):
        return frozenset(), frozenset()
    words = frozenset(w for w in copies if extra[w] > max(2, tolerance / 2 * having[w]))
    frequent = (run for run, n in runs.items() if n > 2 and words.issuperset(run))
    return frozenset(frequent), words
