"""Lexemes of pairs: numbers that are copied, phrases, and forms that share a translation.

Each step reads the pairs as the steps before it write them: numbers, phrases, forms.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from equitrans.data.insertions import Inserted, find_inserted, mark_inserted
from equitrans.data.lexicon import Lexicon, find_lexicon, places_of
from equitrans.data.pairs import Pair
from equitrans.data.phrases import find_phrases
from equitrans.data.reading import Reading
from equitrans.lexical import LexicalClass, marked

NUMBER = re.compile(r"[0-9]+|[0-9]+[.,][0-9]+")
"""A source word that is a number."""

COPIED = 0.9
"""Smallest share of the numbers of sources that their targets have, if numbers are a class."""

SURE = 4.0
"""Bits by which the pairs of a form and of its translation agree more than by chance, beyond the
number of forms that could agree."""

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


# --- forms that share a translation


def find_forms(
    pairs: Sequence[Pair], lexicon: Lexicon, *, tolerance: float
) -> dict[str, tuple[str, ...]]:
    """Target words whose pairs several source words share out among them, with these forms.

    Only words that the lexicon does not explain are forms. A form is in no pair without its
    translation, except for noise, and the forms together are in all its pairs.
    """
    sources, targets = places_of(p.source for p in pairs), places_of(p.target for p in pairs)
    open_sources = {w: set(place) for w, place in sources.items() if w not in lexicon.target}
    open_targets = {t: set(place) for t, place in targets.items() if t not in lexicon.source}
    total = len(pairs)
    alone = {p.source[0]: p.target[0] for p in pairs if len(p.source) == len(p.target) == 1}
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        translations = [t for t in set(pair.target) if t in open_targets]
        for word in set(pair.source):
            if word in open_sources:
                together[word].update(translations)
    chance = math.log2(max(1, len(open_sources)) * max(1, len(open_targets)))
    best: defaultdict[str, list[str]] = defaultdict(list)
    for word, counts in together.items():
        n = len(open_sources[word])
        possible = [
            t
            for t, count in counts.items()
            if count >= (1 - tolerance / 2) * n
            and (
                alone.get(word) == t
                or count * math.log2(total / len(open_targets[t])) > chance + SURE
            )
        ]
        if possible:
            best[min(possible, key=lambda t: (len(open_targets[t]), t))].append(word)
    found = {}
    for t, words in best.items():
        missing, kept = set(open_targets[t]), []
        for word in sorted(words, key=lambda w: (-len(open_sources[w] & open_targets[t]), w)):
            if len(missing & open_sources[word]) >= min(2, len(open_targets[t])) or (
                alone.get(word) == t
            ):
                kept.append(word)
                missing -= open_sources[word]
        if len(kept) > 1 and len(missing) <= tolerance / 2 * len(open_targets[t]):
            found[t] = tuple(kept)
    return found


def find_marks(
    pairs: Sequence[Pair], forms: Mapping[str, tuple[str, ...]], lexicon: Lexicon
) -> dict[str, str]:
    """The mark of forms that a target word without a source word goes with, and not with another
    form of the same translation: ``PL`` of ``cats``. A mark marks two forms or more.
    """
    sources, targets = places_of(p.source for p in pairs), places_of(p.target for p in pairs)
    signs = sorted(
        (
            t
            for t, place in targets.items()
            if t not in lexicon.source and t not in forms and len(place) < 0.9 * len(pairs)
        ),
        key=lambda t: (len(targets[t]), t),
    )
    at = {t: set(targets[t]) for t in signs}
    chance = math.log2(max(1, len(signs)) * max(1, sum(map(len, forms.values()))))
    found: dict[str, str] = {}
    for words in forms.values():
        for word in words:
            n = len(sources[word])
            for sign in signs:
                if len(at[sign].intersection(sources[word])) < 0.9 * n:
                    continue
                mates = [len(sources[m]) for m in words if m != word]
                with_sign = [len(at[sign].intersection(sources[m])) for m in words if m != word]
                share = min((k + 1) / (m + 2) for k, m in zip(with_sign, mates, strict=True))
                if n * -math.log2(share) > chance + SURE:
                    found[word] = sign
                    break
    uses = Counter(found.values())
    return {word: sign for word, sign in found.items() if uses[sign] > 1}


def compare_forms(
    pairs: Sequence[Pair], one: str, other: str, row: Mapping[str, str]
) -> tuple[int, int]:
    """The numbers of contexts in which two forms of a translation have the same target, and other
    targets; the words of other rows are written alike.
    """
    views: tuple[dict[object, set[object]], ...] = ({}, {})
    for pair in pairs:
        for views_of, word, mate in ((views[0], one, other), (views[1], other, one)):
            if word in pair.source and mate not in pair.source:
                source, target = _view(pair, word, row)
                views_of.setdefault(source, set()).add(target)
    common = views[0].keys() & views[1].keys()
    same = sum(bool(views[0][key] & views[1][key]) for key in common)
    return same, len(common) - same


def _view(pair: Pair, word: str, row: Mapping[str, str]) -> tuple[object, object]:
    """A pair in which the row of a word, and rows of other words, are numbered."""
    numbers: dict[str, int] = {row[word]: -1}
    source = [numbers.setdefault(row[w], len(numbers)) if w in row else w for w in pair.source]
    return tuple(source), tuple([numbers.get(t, t) for t in pair.target])


# --- columns by distribution


def split_columns(pairs: Sequence[Pair], forms: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Forms of a second column, each with its stem of the first, by the neighbours of the words:
    the forms of each translation go to the columns in which they cost the fewest bits.
    """
    profiles = neighbours(pairs, {word for words in forms.values() for word in words})
    rows = sorted(
        (tuple(words[:2]) for words in forms.values()),
        key=lambda two: -loss(profiles[two[0]], profiles[two[1]]),
    )
    columns: tuple[Counter[object], Counter[object]] = (Counter(), Counter())
    chosen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for _, two in product(range(3), rows):
        if two in chosen:
            for column, word in zip(columns, chosen[two], strict=True):
                column.subtract(profiles[word])
        orders = (two, two[::-1])
        chosen[two] = min(
            orders,
            key=lambda order: sum(
                loss(+column, profiles[word]) for column, word in zip(columns, order, strict=True)
            ),
        )
        for column, word in zip(columns, chosen[two], strict=True):
            column.update(profiles[word])
    first = 0 if columns[0].total() >= columns[1].total() else 1
    return {two[1 - first]: two[first] for two in chosen.values()}


def neighbours(pairs: Iterable[Pair], words: Iterable[str]) -> defaultdict[str, Counter[object]]:
    """The left and right neighbours of some words in the sources."""
    wanted = set(words)
    found: defaultdict[str, Counter[object]] = defaultdict(Counter)
    for pair in pairs:
        padded = ("", *pair.source, "")
        for i, word in enumerate(pair.source, start=1):
            if word in wanted:
                found[word].update([("left", padded[i - 1]), ("right", padded[i + 1])])
    return found


def loss(one: Counter[object], other: Counter[object]) -> float:
    """Bits that are lost if two counts get one distribution.

    >>> loss(Counter(a=2), Counter(a=1)), loss(Counter(a=1), Counter(b=1))
    (0.0, 2.0)
    """
    return _entropy(one + other) - _entropy(one) - _entropy(other)


def _entropy(counts: Counter[object]) -> float:
    total = counts.total()
    return -math.fsum(n * math.log2(n / total) for n in counts.values() if n > 0)


# --- all of them


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
    read = found.write(pairs)
    apart: set[str] = set()
    alike: dict[str, str] = {}
    for t, (head, *others) in ((t, words) for t, words in plain.items() if words):
        for word in others:
            same, different = compare_forms(read, head, word, row)
            if different > tolerance * (same + different):
                apart.add(t)
            elif same:
                alike[word] = head
    if len(apart) > 1:  # two columns
        alike = {}
        several = {t: words for t, words in plain.items() if len(words) > 1}
        columns |= {w: (stem, "second") for w, stem in split_columns(read, several).items()}
    aliases |= {word: head for word, head in alike.items() if row[word] not in apart}
    found = replace(found, columns=columns, aliases=aliases)
    return found, find_lexicon(list(dict.fromkeys(found.write(pairs))), tolerance=tolerance)
