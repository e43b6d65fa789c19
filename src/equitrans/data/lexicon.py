"""Word translations, found by comparing the pairs in which words occur."""

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from equitrans.data.pairs import Pair
from equitrans.lexical import is_filler

ENOUGH = 5
"""Smallest number of pairs of a target word with which one exception counts as noise."""

KEPT = 0.25
"""Smallest fraction of a word's pairs that has its translation. It is below 1 - tolerance because
some rules drop words, as in ``x instead of y``."""

MOST = 0.8
"""Smallest share of copied words among the words that both sides have, if copying is the rule."""

PARTS = 4
"""Largest number of words and phrases that share out the pairs of a target word."""

SURE = 4.0
"""Bits by which it is no chance that words and phrases share out the pairs of a target word."""

Places = dict[str, tuple[int, ...]]
"""The numbers of the sentences in which each word occurs."""


@dataclass(frozen=True)
class Lexicon:
    """The target word of each source word that has exactly one, and why the others have none.

    >>> walk = Pair(("walk", "twice"), ("WALK", "WALK"))
    >>> lexicon = find_lexicon([walk, Pair(("jump",), ("JUMP",)), Pair(("walk",), ("WALK",))])
    >>> lexicon.target
    {'walk': 'WALK', 'jump': 'JUMP'}
    >>> lexicon.missing
    {'twice': 'no target word occurs in the same pairs'}
    """

    target: dict[str, str]
    missing: dict[str, str]

    @cached_property
    def source(self) -> dict[str, str]:
        """The source word of each target word that has one."""
        return {translation: word for word, translation in self.target.items()}


def find_lexicon(pairs: Sequence[Pair], *, tolerance: float = 0.2) -> Lexicon:
    """The lexicon of some distinct pairs: words that occur in the same or almost the same pairs.

    ``tolerance`` is the largest fraction of a target word's pairs that may lack its source word.
    """
    sources, targets = places_of(p.source for p in pairs), places_of(p.target for p in pairs)
    copied = _copied(sources, targets, tolerance)
    found, missing, settled = _exact(
        {w: p for w, p in sources.items() if w not in copied},
        {w: p for w, p in targets.items() if w not in copied},
    )
    found |= {word: word for word in copied}
    settled |= copied
    open_sources = {w: p for w, p in sources.items() if w not in found and w not in missing}
    open_targets = {w: p for w, p in targets.items() if w not in settled}
    together = count_together(pairs, open_sources, open_targets)
    for word, best in _mutual(together, open_sources, open_targets, tolerance).items():
        if rivals := _rivals(word, open_sources, best, open_targets):
            missing[word] = f"shares its translation {best} with {_list(rivals)}"
        elif others := _rivals(best, open_targets, word, open_sources):
            missing[word] = f"has several translations: {_list([best, *others])}"
        else:
            found[word] = best
    for word, place in open_sources.items():
        if word not in found and word not in missing:
            missing[word] = _why(together[word], len(place), open_targets, len(pairs), tolerance)
    return Lexicon(
        {word: found[word] for word in sources if word in found},
        {word: missing[word] for word in sources if word in missing},
    )


def _why(together: Counter[str], pairs: int, targets: Places, total: int, tolerance: float) -> str:
    """The reason why a word that occurs in ``pairs`` of ``total`` pairs has no translation."""
    together = Counter({t: n for t, n in together.items() if not is_filler(t)})
    own = [t for t, n in together.items() if n == len(targets[t]) and n > 1]
    if len(own) > 1:
        return f"has several translations: {_list(own)}"
    # a target word of almost all pairs occurs with every word and explains nothing
    always = [
        t
        for t, n in together.items()
        if n >= (1 - tolerance) * pairs and len(targets[t]) < (1 - tolerance) * total
    ]
    if always:
        return f"its pairs contain {_list(always)}, but so do other pairs"
    return "no target word occurs in the same pairs"


def places_of(sentences: Iterable[tuple[str, ...]]) -> Places:
    """The numbers of the sentences in which each word occurs."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        for word in dict.fromkeys(sentence):
            places[word].append(number)
    return {word: tuple(numbers) for word, numbers in places.items()}


def _copied(sources: Places, targets: Places, tolerance: float) -> set[str]:
    """The words that are copied, if most source words are, and most words that both sides have:
    then rare ones are too.
    """
    both = sources.keys() & targets.keys()
    copied = {
        word
        for word in both
        if (together := len({*sources[word]} & {*targets[word]})) >= KEPT * len(sources[word])
        and together >= (1 - tolerance / 2) * len(targets[word])
    }
    return copied if len(copied) >= max(MOST * len(both), len(sources) / 2, 1) else set()


def _exact(sources: Places, targets: Places) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """Words in exactly the same pairs: translations, reasons for words that have none because
    several words occur in the same pairs, and the target words of both.
    """
    alike: defaultdict[tuple[int, ...], tuple[list[str], list[str]]]
    alike = defaultdict(lambda: ([], []))
    for side, places in enumerate((sources, targets)):
        for word, place in places.items():
            alike[place][side].append(word)
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    settled: set[str] = set()
    for words, translations in alike.values():
        if not words or not translations:
            continue
        settled.update(translations)
        if len(words) == len(translations) == 1:
            found[words[0]] = translations[0]
        elif len(words) == 1:
            missing[words[0]] = f"has several translations: {_list(translations)}"
        else:
            for word in words:
                missing[word] = (
                    f"always occurs together with {_list(w for w in words if w != word)}; "
                    f"the pairs do not show which of them translates to {_list(translations)}"
                )
    return found, missing, settled


def count_together(
    pairs: Sequence[Pair], sources: Container[str], targets: Container[str]
) -> defaultdict[str, Counter[str]]:
    """The number of pairs in which two words occur together, in order of first appearance."""
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        translations = [word for word in dict.fromkeys(pair.target) if word in targets]
        for word in dict.fromkeys(pair.source):
            if word in sources:
                together[word].update(translations)
    return together


def _mutual(
    together: defaultdict[str, Counter[str]], sources: Places, targets: Places, tolerance: float
) -> dict[str, str]:
    """Words that are each other's best partner and occur in almost the same pairs."""
    best: dict[str, tuple[float, str]] = {}
    for word, counts in together.items():
        for translation, count in counts.items():
            with_word, with_translation = len(sources[word]), len(targets[translation])
            share = count / (with_word + with_translation - count)
            if (
                with_translation >= ENOUGH
                and count >= (1 - tolerance) * with_translation
                and count >= KEPT * with_word
            ):
                best[word] = max(best.get(word, (0.0, "")), (share, translation))
    back: dict[str, tuple[float, str]] = {}
    for word, (share, translation) in best.items():
        back[translation] = max(back.get(translation, (0.0, "")), (share, word))
    return {word: t for word, (_, t) in best.items() if back[t][1] == word}


def _rivals(word: str, words: Places, best: str, partners: Places) -> list[str]:
    """Other words that occur only in pairs with the partner ``best``, in some without ``word``.

    With source and target exchanged, these are other translations of one word.
    """
    with_best = set(partners[best])
    apart = with_best.difference(words[word])
    return [
        other
        for other, place in words.items()
        if other != word and with_best.issuperset(place) and len(apart.intersection(place)) > 1
    ]


def shared_out(
    place: tuple[int, ...],
    parts: Iterable[tuple[int, ...]],
    total: int,
    choices: tuple[int, int],
) -> list[tuple[int, ...]]:
    """The parts of some pairs that share these out; none if there are not from two to four, or if
    chance explains it: there are ``choices`` of parts and of pairs that could be shared out.

    >>> shared_out(tuple(range(8)), [(0, 1, 2, 3), (0, 1), (4, 5, 6, 7)], 80, (100, 30))
    [(0, 1, 2, 3), (4, 5, 6, 7)]
    >>> shared_out(tuple(range(8)), [(0, 1, 2, 3), (4, 5, 6)], 80, (100, 30))
    []
    """
    missing, found = {*place}, list[tuple[int, ...]]()
    for part in sorted(parts, key=lambda part: (-len(part), part)):
        if len(missing.intersection(part)) > max(1, len(part) // 2):
            found.append(part)
            missing.difference_update(part)
    if missing or not 1 < len(found) <= PARTS:
        return []
    bits = math.log2(math.comb(total, len(place)))
    bits -= sum(math.log2(math.comb(len(place), len(part))) for part in found[1:])
    bits -= len(found) * math.log2(choices[0]) + math.log2(choices[1])
    return found if bits >= SURE else []


def _list(words: Iterable[str]) -> str:
    return ", ".join(word for word in words if not is_filler(word))
