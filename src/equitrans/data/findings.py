"""Findings about the words of pairs: words that look alike, made of others, rare, or in a class."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from shlex import quote

from equitrans.data.pairs import Pair
from equitrans.data.reading import Reading
from equitrans.errors import DataError, few, named
from equitrans.lexical import LexicalClass, is_filler

ENDS = ".,;:!?…"
"""Punctuation that ends a word."""

COMPOUNDS = 2
"""Largest number of compound words that is not reported."""

_BREAK = re.compile(r"[._:/+-]")
"""Characters that join the parts of a compound word."""

_JOINED = re.compile(r"(\w+)([^\w\s()\[\]{}<>\"'‹›⁀-])(\w+)")
"""A word of two parts that a sign joins, such as rose@north; _ and - are parts of names."""

ALMOST = 0.9
"""Share of the lines of a part that have its source word; wrong lines may be among them."""

_CALL = re.compile(r"\w[(\[{]|[(\[{][\"']?\w")
"""A bracket at a word, as in on(lamp): the target is written as code."""

_SIGN = re.compile(r"(?<=\w)[.:;,/=|&](?=\w)|[(){}\[\]\"',;:=|&]")
"""Characters that are words of their own in a target that is written as code."""


@dataclass(frozen=True)
class Finding:
    """Something in a file of pairs that a user should know."""

    kind: str
    message: str
    lines: tuple[int, ...]
    """Numbers of the lines, if the finding has lines."""
    advice: str
    serious: bool
    """Whether it stops training or makes the model learn something wrong."""
    sign: str | None = None
    """The signs at which compound words can be read apart."""


@dataclass(frozen=True)
class Side:
    """The sentences of one side, with their line numbers."""

    name: str
    sentences: Sequence[tuple[int, tuple[str, ...]]]

    @cached_property
    def words(self) -> Counter[str]:
        """Number of lines of each word."""
        return Counter(word for _, sentence in self.sentences for word in dict.fromkeys(sentence))

    def lines(self, words: Collection[str]) -> tuple[int, ...]:
        """The lines with one of the words."""
        wanted = set(words)
        return tuple(n for n, sentence in self.sentences if not wanted.isdisjoint(sentence))


def about_words(side: Side, *, characters: bool) -> Iterator[Finding]:
    """Findings about the words of one side."""
    yield from _alike(side)
    if not characters:
        yield from _cases(side)
        yield from _punctuation(side)
    yield from _rare(side)


def _alike(side: Side) -> Iterator[Finding]:
    """Words that look the same and are spelled with different characters."""

    def look(word: str) -> str:
        if word.isascii():
            return word
        seen = (letter for letter in word if unicodedata.category(letter) != "Cf")
        return unicodedata.normalize("NFKC", "".join(seen))

    groups = _groups(side.words, look)
    if groups:
        pairs = [" and ".join(map(ascii, group)) for group in groups]
        message = f"{side.name} words that look alike are different words: {few(pairs, 3)}"
        rare = [word for group in groups for word in group[1:]]
        advice = "spell each word in one way"
        yield Finding("look-alike", message, side.lines(rare), advice, serious=True)


def _cases(side: Side) -> Iterator[Finding]:
    """Words that differ in upper and lower case. Capitals that begin sentences are not serious:
    then one spelling mostly comes first in a sentence, and the other one later.
    """
    first = Counter(sentence[0] for _, sentence in side.sentences if sentence)
    mixed: dict[bool, list[list[str]]] = {True: [], False: []}
    for group in _groups(side.words, str.casefold):
        places = {2 * first[word] > side.words[word] for word in group}
        mixed[len(places) < len(group)].append(group)
    for serious, groups in mixed.items():
        if groups:
            pairs = few([" and ".join(group) for group in groups], 3)
            message = f"{side.name} words that differ in case are different words: {pairs}"
            advice = "write each word in one way"
            if not serious:
                advice = "train with --capitals, which reads the first word in lower case"
            rare = [word for group in groups for word in group[1:]]
            yield Finding("case", message, side.lines(rare), advice, serious=serious)


def _punctuation(side: Side) -> Iterator[Finding]:
    """Words that occur with punctuation at their end and without."""
    found = [w for w in side.words if (bare := w.rstrip(ENDS)) and bare != w and bare in side.words]
    if found:
        message = f"{side.name} words occur with punctuation and without: {few(found)}"
        advice = "remove the punctuation, or write it as a word of its own"
        yield Finding("punctuation", message, side.lines(found), advice, serious=True)


def _rare(side: Side) -> Iterator[Finding]:
    """Words of a single line."""
    once = [word for word, count in side.words.items() if count == 1]
    if once:
        message = (
            f"{count(once, f'{side.name} word is', f'{side.name} words are')} in one line only: "
            f"{few(once)}"
        )
        advice = (
            "check the spelling; a word that is seen once is learned only as a member of a class"
        )
        yield Finding("once", message, side.lines(once), advice, serious=False)


def about_compounds(source: Side, target: Side) -> Iterator[Finding]:
    """Target words that join words of the source which also occur in other combinations. A few may
    be names, such as FRONT_DOOR, and are not reported. A target that is written as code, such as
    on(kitchen.lamp), has several signs.
    """
    code = [word for word in target.words if _CALL.search(word)]
    if len(code) > COMPOUNDS:
        signs = "".join(sorted({sign for word in target.words for sign in _SIGN.findall(word)}))
        message = f"{len(code)} target words are written as code, such as {named(code[0])}"
        advice = (
            f"write their parts apart, or read them apart with --split-words {quote(signs)}; a "
            "model knows nothing of the parts of a word"
        )
        yield Finding("compound", message, target.lines(code), advice, True, signs)
        return
    known = {word.casefold() for word in source.words}
    parts = {
        word: [part for part in _BREAK.split(word.casefold()) if part in known]
        for word in target.words
        if _BREAK.search(word)
    }
    uses = Counter(part for found in parts.values() for part in set(found))
    made = {
        word: free
        for word, found in parts.items()
        if len(free := [part for part in dict.fromkeys(found) if uses[part] > 1]) > 1
    }
    if len(made) > COMPOUNDS:
        word, free = next(iter(made.items()))
        message = (
            f"{len(made)} target words join several words: {named(word)} looks made of "
            f"{' and '.join(map(named, free))}"
        )
        (sign, _), *_ = Counter(s for w in made for s in set(_BREAK.findall(w))).most_common(1)
        advice = (
            f"write them apart, or read them apart with --split-words {sign}; a model knows "
            "nothing of the parts of a word"
        )
        yield Finding("compound", message, target.lines(made), advice, True, sign)
        return
    if products := _products(source, target):
        sign, words = products
        first, last = words[0].split(sign)
        message = (
            f"{len(words)} target words join two parts with {sign}: {named(words[0])} looks made "
            f"of {named(first)} and {named(last)}, which other words have too"
        )
        advice = (
            f"write them apart, or read them apart with --split-words {quote(sign)}; a model "
            "knows nothing of the parts of a word"
        )
        yield Finding("compound", message, target.lines(words), advice, True, sign)


def _products(source: Side, target: Side) -> tuple[str, list[str]] | None:
    """A sign with the target words in which it joins two parts that also occur in other
    combinations; words of the source must tell the parts apart.
    """
    lines: defaultdict[str, set[int]] = defaultdict(set)
    for number, sentence in target.sentences:
        for word in sentence:
            lines[word].add(number)
    sources = dict(source.sentences)
    halves: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for word in target.words:
        if found := _JOINED.fullmatch(word):
            first, sign, last = found.groups()
            if not (first.isdigit() and last.isdigit()):
                halves[sign][word] = first, last
    for sign, parts in sorted(halves.items(), key=lambda item: -len(item[1])):
        uses = [Counter(two[side] for two in parts.values()) for side in (0, 1)]
        made = [w for w, two in parts.items() if min(uses[0][two[0]], uses[1][two[1]]) > 1]
        if len(made) <= COMPOUNDS or 2 * len(made) < len(parts):
            continue
        if all(_told_apart(made, parts, side, lines, sources) for side in (0, 1)):
            return sign, made
    return None


def _told_apart(
    made: Sequence[str],
    parts: Mapping[str, tuple[str, str]],
    side: int,
    lines: Mapping[str, set[int]],
    sources: Mapping[int, tuple[str, ...]],
) -> bool:
    """Whether most first or last parts have a source word of their own: it is in almost all lines
    of the part, and not in almost all lines of every other part.
    """
    of: defaultdict[str, set[int]] = defaultdict(set)
    for word in made:
        of[parts[word][side]] |= lines[word]
    near = {
        part: {
            w
            for w, n in Counter(w for k in ks for w in set(sources[k])).items()
            if n >= ALMOST * len(ks)
        }
        for part, ks in of.items()
    }
    common = set.intersection(*near.values())
    return len(near) > 1 and 2 * sum(bool(words - common) for words in near.values()) > len(near)


def about_classes(
    classes: tuple[LexicalClass, ...], pairs: Sequence[tuple[int, Pair]], *, characters: bool
) -> Iterator[Finding]:
    """Class words that are in no sentence, and sentences that the classes read in two ways."""
    if not classes:
        return
    reading = Reading(classes, characters)
    seen: tuple[set[str], set[str]] = (set(), set())
    wrong: list[int] = []
    reason = ""
    for number, pair in pairs:
        try:
            for known, side in zip(seen, reading.pair(pair), strict=True):
                known.update(side)
        except DataError as error:
            wrong.append(number)
            reason = reason or str(error)
    if wrong:
        message = f"{count(wrong, 'line has', 'lines have')} two readings: {reason}"
        advice = "change the phrases of the classes so that none overlap"
        yield Finding("class", message, tuple(wrong), advice, serious=True)
    for c in classes:
        for name, words, known in zip(("source", "target"), c.words, seen, strict=True):
            if unseen := [w for w in words if w not in known and not is_filler(w)]:
                message = f"class {named(c.name)}: no {name} has {few(unseen)}"
                advice = "check the spelling; a correct word is known by symmetry alone"
                yield Finding("class", message, (), advice, serious=False)


def _groups(words: Mapping[str, int], key: Callable[[str], str]) -> list[list[str]]:
    """Words that have an equal key, in each group the most frequent first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        found[key(word)].append(word)
    return [sorted(g, key=lambda word: (-words[word], word)) for g in found.values() if len(g) > 1]


def count(found: Collection[object], one: str, many: str) -> str:
    """A number with its noun.

    >>> count([1, 2], "line", "lines")
    '2 lines'
    """
    return f"{len(found)} {one if len(found) == 1 else many}"
