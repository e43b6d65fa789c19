"""Which target word translates which source word, told by the pairs they come and go with."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from equitrans.data.pairs import Pair

ENOUGH = 5
"""Pairs that a word must be seen in before one that does not fit can be put down to noise."""

KEPT = 0.25
"""The share of a word's pairs that must have its translation: some rules drop what they govern."""

Places = dict[str, tuple[int, ...]]
"""The numbers of the sentences in which each word stands."""


@dataclass(frozen=True)
class Lexicon:
    """Source words with their one target word each, and why others have none.

    >>> walk = Pair(("walk", "twice"), ("WALK", "WALK"))
    >>> lexicon = find_lexicon([walk, Pair(("jump",), ("JUMP",)), Pair(("walk",), ("WALK",))])
    >>> lexicon.target
    {'walk': 'WALK', 'jump': 'JUMP'}
    >>> lexicon.missing
    {'twice': 'no target word comes and goes with it'}
    """

    target: dict[str, str]
    missing: dict[str, str]

    @cached_property
    def source(self) -> dict[str, str]:
        """The source word of every target word that has one."""
        return {translation: word for word, translation in self.target.items()}


def find_lexicon(pairs: Sequence[Pair], *, tolerance: float = 0.2) -> Lexicon:
    """Words that come and go together: in exactly the same pairs, or in all but a few.

    ``tolerance`` is the share of a word's pairs in which it may stand without its partner. The
    pairs are taken to be distinct.
    """
    sources, targets = _places(p.source for p in pairs), _places(p.target for p in pairs)
    found, missing, settled = _exact(sources, targets)
    open_sources = {w: p for w, p in sources.items() if w not in found and w not in missing}
    open_targets = {w: p for w, p in targets.items() if w not in settled}
    together = _together(pairs, open_sources, open_targets)
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
    """Why a word that stands in some of the pairs has no translation."""
    own = [t for t, n in together.items() if n == len(targets[t]) and n > 1]
    if len(own) > 1:
        return f"has several translations: {_list(own)}"
    # a word that is nearly everywhere comes with all others
    always = [
        t
        for t, n in together.items()
        if n >= (1 - tolerance) * pairs and len(targets[t]) < (1 - tolerance) * total
    ]
    if always:
        return f"{_list(always)} comes with it, but with other words too"
    return "no target word comes and goes with it"


def _places(sentences: Iterable[tuple[str, ...]]) -> Places:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        for word in dict.fromkeys(sentence):
            places[word].append(number)
    return {word: tuple(numbers) for word, numbers in places.items()}


def _exact(sources: Places, targets: Places) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """Words in exactly the same pairs: entries, words for which that is no use, and all target
    words with such a partner.
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
                    f"always stands together with {_list(w for w in words if w != word)}, "
                    f"so nothing tells which of them {_list(translations)} translates"
                )
    return found, missing, settled


def _together(
    pairs: Sequence[Pair], sources: Places, targets: Places
) -> defaultdict[str, Counter[str]]:
    """In how many pairs two words stand together, in order of first appearance."""
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
    """Words that are one another's best partner, and apart in no more than a few pairs."""
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
    """Other words that never stand without this one's partner, and do where this one is missing.

    With the sides exchanged these are other translations of one word.
    """
    with_best = set(partners[best])
    apart = with_best.difference(words[word])
    return [
        other
        for other, place in words.items()
        if other != word and with_best.issuperset(place) and len(apart.intersection(place)) > 1
    ]


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)
