"""Lexemes of pairs: numbers that are copied, phrases, and forms that share a translation.

Each step reads the pairs as the steps before it write them: numbers, phrases, forms.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from equitrans.data.forms import find_forms, find_marks, split_columns, tell_apart
from equitrans.data.insertions import Inserted, find_inserted, mark_inserted
from equitrans.data.lexicon import Lexicon, find_lexicon
from equitrans.data.pairs import Pair
from equitrans.data.phrases import find_phrases
from equitrans.data.reading import Reading
from equitrans.lexical import LexicalClass, marked

NUMBER = re.compile(r"[0-9]+|[0-9]+[.,][0-9]+")
"""A source word that is a number."""

COPIED = 0.9
"""Smallest share of the numbers of sources that their targets have, if numbers are a class."""

OTHER = "other"
"""The name of a discovered column of the target."""

Words = tuple[str, ...]


@dataclass(frozen=True)
class Lexemes:
    """How pairs are written for the comparison of words: one source word for each lexeme."""

    numbers: LexicalClass | None = None
    phrases: Mapping[Words, str] = field(default_factory=dict)
    """The words of each phrase, and its translation."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Forms that are read as another form."""
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Forms that are read as another form, the stem, with a mark: the name of their column."""
    inflected: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The same for forms of the target."""
    inserted: Inserted = (frozenset(), frozenset())
    """Sequences of target words that are not copied, and their words that are copied elsewhere."""

    @property
    def reading(self) -> Reading:
        """The reading of numbers and phrases."""
        found = [] if self.numbers is None else [self.numbers]
        if self.phrases:
            texts = tuple(map(" ".join, self.phrases))
            found.append(LexicalClass("phrases", texts, tuple(f"‹{t} t›" for t in texts)))
        return Reading(tuple(found))

    def write(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs with one source word for each lexeme, and marks after forms of columns."""
        if self == Lexemes():
            return list(pairs)
        reading, out = self.reading, []
        for pair in map(reading.pair, pairs):
            source: list[str] = []
            for word in pair.source:
                word = self.aliases.get(word, word)
                stem, *mark = self.columns.get(word, (word,))
                source += [stem, *map(marked, mark)]
            target: list[str] = []
            for word in mark_inserted(pair.source, pair.target, *self.inserted):
                stem, *mark = self.inflected.get(word, (word,))
                target += [stem, *map(marked, mark)]
            out.append(Pair(tuple(source), tuple(target)))
        return out


def find_numbers(pairs: Iterable[Pair]) -> LexicalClass | None:
    """The open class of numbers, if two or more are copied to the target and few are not."""
    copied: Counter[str] = Counter()
    total = 0
    for pair in pairs:
        for word in {word for word in pair.source if NUMBER.fullmatch(word)}:
            total += 1
            copied[word] += word in pair.target
    if sum(n > 0 for n in copied.values()) < 2 or copied.total() < COPIED * total:
        return None
    decimal = any(not word.isdigit() for word in copied)
    return LexicalClass("numbers", (), (), pattern=NUMBER.pattern if decimal else "[0-9]+")


def find_lexemes(pairs: Sequence[Pair], *, tolerance: float) -> tuple[Lexemes, Lexicon]:
    """Numbers, phrases, other spellings and columns of some distinct pairs, and the lexicon of the
    pairs that they write.
    """
    found, lexicon = _find_sources(pairs, tolerance=tolerance)
    written = list(dict.fromkeys(found.write(pairs)))
    inflected = find_target_forms(written, lexicon, tolerance=tolerance)
    if not inflected:
        return found, lexicon
    found = replace(found, inflected=inflected)
    return found, find_lexicon(list(dict.fromkeys(found.write(pairs))), tolerance=tolerance)


def find_target_forms(
    pairs: Sequence[Pair], lexicon: Lexicon, *, tolerance: float
) -> dict[str, tuple[str, str]]:
    """Target words of a second column, each with its stem and the name of the column: two or more
    source words have two translations, which share out their pairs.
    """
    turned = [Pair(pair.target, pair.source) for pair in pairs]
    forms = find_forms(turned, Lexicon(lexicon.source, {}), tolerance=tolerance)
    two = {word: some for word, some in forms.items() if len(some) == 2}
    if len(two) < 2:
        return {}
    return {form: (stem, OTHER) for form, stem in split_columns(turned, two).items()}


def _find_sources(pairs: Sequence[Pair], *, tolerance: float) -> tuple[Lexemes, Lexicon]:
    """The lexemes without columns of the target, and the lexicon of the pairs that they write."""
    found = Lexemes(find_numbers(pairs), inserted=find_inserted(pairs, tolerance=tolerance))
    found = replace(found, phrases=find_phrases(found.write(pairs)))
    written = found.write(pairs)
    lexicon = find_lexicon(written, tolerance=tolerance)
    forms = find_forms(written, lexicon, tolerance=tolerance)
    if not forms:
        return found, lexicon
    counts = Counter(word for pair in written for word in set(pair.source))
    marks = find_marks(written, forms, lexicon)
    columns: dict[str, tuple[str, str]] = {}
    aliases: dict[str, str] = {}
    plain: dict[str, list[str]] = {}
    for t, words in forms.items():
        words = tuple(sorted(words, key=lambda w: -counts[w]))
        plain[t] = [word for word in words if word not in marks]
        stem = plain[t][0] if plain[t] else f"‹{words[0]} stem›"
        first: dict[str, str] = {}
        for word in words:
            if word in marks and first.setdefault(marks[word], word) == word:
                columns[word] = stem, marks[word]
            elif word in marks:
                aliases[word] = first[marks[word]]
    found = replace(found, columns=columns, aliases=aliases)
    row = {word: t for t, words in forms.items() for word in words} | lexicon.target
    alike, others = tell_apart(found.write(pairs), plain, row, tolerance=tolerance)
    columns |= {w: (stem, "second") for w, stem in others.items()}
    found = replace(found, columns=columns, aliases=aliases | alike)
    return found, find_lexicon(list(dict.fromkeys(found.write(pairs))), tolerance=tolerance)
