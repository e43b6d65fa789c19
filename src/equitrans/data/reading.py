"""Reading and writing: from the words of a sentence to the symbols that a model sees, and back.

The classes say how. A phrase becomes one symbol, by longest match; another spelling becomes the
word that it stands for; a word that joins an open class becomes one of the places of the class, in
order of appearance. A target form that the words around it choose becomes the first word of its row
and a mark. Writing spells the symbols out again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from zlib import crc32

from equitrans.data.insertions import Inserted, mark_inserted
from equitrans.data.pairs import Pair, join_words
from equitrans.errors import DataError, few, shown, spelling
from equitrans.lexical import PLACES, LexicalClass, by_itself, is_filler

TIE = "⁀"
"""Ends a target word that is written together with the next one, and begins a sign that is written
together with the word before it."""

LONGEST = 100
"""Largest number of characters of a word that a pattern matches."""

Words = tuple[str, ...]
Phrases = Mapping[str, Sequence[tuple[Words, str]]]
"""By first word: the words of phrases, longest first, each with the symbol that is read."""


def lower_first_words(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with the first words of sources in lower case, if they are words in lower case too
    and stand nowhere else with a capital, as names do.

    >>> pairs = [("The cat ran", "run"), ("Ann saw the cat", "see"), ("Ann ran", "run")]
    >>> made = lower_first_words([Pair(tuple(x.split()), (y,)) for x, y in pairs])
    >>> [pair.source[0] for pair in made]
    ['the', 'Ann', 'Ann']
    """
    known = {word for pair in pairs for word in pair.source}
    inside = {word for pair in pairs for word in pair.source[1:]}
    first = {pair.source[0] for pair in pairs if pair.source}
    lower = {word: word.lower() for word in first - inside if word.lower() in known}
    return tuple(Pair((*(lower.get(word, word) for word in x[:1]), *x[1:]), y) for x, y in pairs)


@dataclass(frozen=True)
class Read:
    """The symbols of a source, and the words at the places of open classes."""

    symbols: Words
    names: Mapping[str, str] = field(default_factory=dict)

    def spell(self, symbol: str) -> str:
        """A symbol as it was written."""
        return self.names.get(symbol, symbol).strip(TIE)


@dataclass(frozen=True)
class Reading:
    """How the sentences of a model are read and written.

    >>> rooms = LexicalClass("rooms", ("living room", "attic"), ("LIVING", "ATTIC"),
    ...     aliases=(("loft", "attic"),))
    >>> Reading((rooms,)).source(("the", "living", "room", "loft")).symbols
    ('the', 'living room', 'attic')
    >>> numbers = LexicalClass("numbers", (), (), pattern="[0-9]+")
    >>> reading = Reading((numbers,))
    >>> read = reading.source(("dim", "to", "37"))
    >>> read.symbols, reading.write(("level", "‹numbers 1›"), read)
    (('dim', 'to', '‹numbers 1›'), ('level', '37'))
    """

    classes: tuple[LexicalClass, ...] = ()
    characters: bool = False
    """Whether words are single characters."""
    split: str | None = None
    """One sign, or several, at which target words are read apart."""
    known: frozenset[str] | None = None
    """The source words of the model; others may join an open class. None in training."""
    spread: bool = False
    """Whether each word has a place of its own, if it is free, so that pairs which differ in a
    number stay different pairs; otherwise the first place is for the first word."""
    capitals: bool = False
    """Whether the first word of a source is read in lower case, if the model knows it only so."""

    def source(self, words: Words) -> Read:
        """Read a source; raise DataError if it has two readings or too many new words."""
        if self.capitals and words:
            words = (self._lowered(words[0]), *words[1:])
        if not self.classes:
            return Read(words)
        names: dict[str, str] = {}
        return Read(self._symbols(words, self._phrases[0], names), {p: w for w, p in names.items()})

    def _lowered(self, word: str) -> str:
        """The first word of a source as the model knows it."""
        lower, known = word.lower(), self.known or frozenset()
        return lower if word not in known and lower in {*known, *self._phrases[0]} else word

    def attempt(self, words: Words) -> Read | str:
        """Read a source, or return the reason why it cannot be read."""
        try:
            return self.source(words)
        except DataError as error:
            return str(error)

    def target(self, words: Words, read: Read) -> Words:
        """Read a target of a source that was read."""
        if self.split is not None:
            words = tuple(p for word in words for p in _parts(word, self.split, tied=self._tied))
        if not self.classes:
            return words
        names = {word: place for place, word in read.names.items()}
        symbols = self._symbols(words, self._phrases[1], names, joining=False)
        symbols = mark_inserted(read.symbols, symbols, *self._inserted)
        return tuple(part for symbol in symbols for part in self.inflected.get(symbol, (symbol,)))

    def pair(self, pair: Pair) -> Pair:
        """Read both sides of a pair."""
        read = self.source(pair.source)
        return Pair(read.symbols, self.target(pair.target, read))

    def pairs(self, pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        """Read pairs."""
        if not self.classes and self.split is None:
            return tuple(pairs)
        return tuple(map(self.pair, pairs))

    def readable(self, pairs: Iterable[Pair]) -> tuple[Pair, ...]:
        """Read pairs; leave out those that cannot be read."""
        reads = ((pair, self.attempt(pair.source)) for pair in pairs)
        return tuple(
            Pair(read.symbols, self.target(pair.target, read))
            for pair, read in reads
            if isinstance(read, Read)
        )

    def write(self, symbols: Words, read: Read) -> Words:
        """The words of a target, given its source."""
        return glued(
            word
            for symbol in join_forms(symbols, self.inflected)
            for word in self._spelled.get(symbol) or (read.names.get(symbol, symbol),)
        )

    def _symbols(
        self, words: Words, phrases: Phrases, names: dict[str, str], *, joining: bool = True
    ) -> Words:
        out: list[str] = []
        i = 0
        while i < len(words):
            found = _longest(words, i, phrases)
            if found is None:
                before = out[-1] if out else ""
                out.append(
                    self._joined(words[i], names, before)
                    if joining
                    else names.get(words[i], words[i])
                )
                i += 1
                continue
            size, symbol = found
            for j in range(i + 1, i + size if joining else 0):
                later = _longest(words, j, phrases)
                if later is not None and j + later[0] > i + size and later[0] > 1:
                    both = (words[i : i + size], words[j : j + later[0]])
                    one, other = (
                        shown(join_words(part, characters=self.characters)) for part in both
                    )
                    raise DataError(f"{one} and {other} overlap; the sentence has two readings")
            out.append(symbol)
            i += size
        return tuple(out)

    def _joined(self, word: str, names: dict[str, str], before: str) -> str:
        """The symbol of a word that is in no table: a place of an open class, or the word."""
        if word in names or word in self._listed or is_filler(word):
            return names.get(word, word)
        for c, pattern in self._open:
            if pattern is None:
                joins = self.known is not None and word not in self.known
                if joins and before not in self.before.get(c.name, (before,)):
                    raise DataError(self._misplaced(word, c))
            else:
                joins = len(word) <= LONGEST and pattern.fullmatch(word) is not None
            if joins:
                taken = [place for place in names.values() if place in c.source]
                if len(taken) == PLACES:
                    raise DataError(
                        f"{shown(word)}: more than {PLACES} new words of class {shown(c.name)}"
                    )
                places = [w for w in c.source if is_filler(w)]
                first = crc32(word.encode()) % len(places) if self.spread else 0
                order = places[first:] + places[:first]
                names[word] = next(place for place in order if place not in taken)
                return names[word]
        return word

    @cached_property
    def _open(self) -> list[tuple[LexicalClass, re.Pattern[str] | None]]:
        """The open classes, those with a pattern first."""
        found = [(c, c.pattern and re.compile(c.pattern)) for c in self.classes if c.is_open]
        return sorted(((c, pattern or None) for c, pattern in found), key=lambda it: not it[1])

    def _misplaced(self, word: str, c: LexicalClass) -> str:
        """The reason to refuse an unknown word where no word of an open class stands."""
        hint = spelling(word, tuple(sorted(self.known or ())))
        places = few([text or "the start" for text in c.after])
        where = f"; words of class {shown(c.name)} stand only after {places}"
        return f"unknown word {shown(word)}{hint or where}"

    @cached_property
    def before(self) -> dict[str, frozenset[str]]:
        """By name of a class: the symbols after which unknown words join it, if not all."""
        words = {f"<{c.name}>": c.words[0] for c in self.classes}
        return {
            c.name: frozenset(s for text in c.after for s in words.get(text, (text,)))
            for c in self.classes
            if c.after
        }

    @cached_property
    def _tied(self) -> bool:
        """Whether classes have words with their sign, as models before version 1.0 do."""
        sign = f"{self.split}{TIE}"
        return any(word.endswith(sign) for c in self.classes for word in c.words[1])

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(word for c in self.classes for word in c.words[0])

    @cached_property
    def _phrases(self) -> tuple[Phrases, Phrases]:
        """Phrases and other spellings, for source and target."""
        source, target = (self._phrases_of(side) for side in (0, 1))
        return source, target

    def _phrases_of(self, side: int) -> Phrases:
        found: dict[str, list[tuple[Words, str]]] = {}
        for c in self.classes:
            symbols = {word: word for word in c.words[side] if not is_filler(word)}
            symbols |= {spelling: word for spelling, word in c.aliases if word in symbols}
            for text, symbol in symbols.items():
                words = self.spelled(text)
                if words != (symbol,):
                    found.setdefault(words[0], []).append((words, symbol))
        return {word: sorted(some, key=lambda it: -len(it[0])) for word, some in found.items()}

    @cached_property
    def inflected(self) -> dict[str, tuple[str, str]]:
        """The target forms that the words around them choose, each as two symbols."""
        return {form: two for c in self.classes for form, two in c.inflected.items()}

    @cached_property
    def _spelled(self) -> dict[str, Words]:
        """The words of target symbols that are phrases."""
        words = {w: self.spelled(w) for c in self.classes for w in c.words[1] if not is_filler(w)}
        words |= {by_itself(word): self.spelled(word) for word in self._inserted[1]}
        return {symbol: spelled for symbol, spelled in words.items() if spelled != (symbol,)}

    @cached_property
    def _inserted(self) -> Inserted:
        """The sequences of words that targets have by themselves, and their words that classes
        have.
        """
        runs = frozenset(tuple(text.split()) for c in self.classes for text in c.inserted)
        words = {word for c in self.classes for word in c.words[1]}
        return runs, frozenset(word for run in runs for word in run if word in words)

    def spelled(self, text: str) -> Words:
        """The words of a cell of a class."""
        return tuple(text) if self.characters else tuple(text.split()) or (text,)


def glued(words: Iterable[str]) -> Words:
    """The words with those that are tied written as one.

    >>> glued(["set", "kitchen.⁀", "lamp", "⁀(⁀", "3", "⁀)"])
    ('set', 'kitchen.lamp(3)')
    """
    out: list[str] = []
    tied = False
    for word in words:
        before = out.pop() if out and (tied or word.startswith(TIE)) else ""
        out.append(before + word.removeprefix(TIE).removesuffix(TIE))
        tied = word.endswith(TIE)
    return tuple(out)


def join_forms(symbols: Words, inflected: Mapping[str, tuple[str, str]]) -> Words:
    """The symbols with one form for each word and the mark after it; other marks are left out.

    >>> join_forms(("SEE", "DER", "‹+ acc›"), {"DEN": ("DER", "‹+ acc›")})
    ('SEE', 'DEN')
    """
    if not inflected:
        return symbols
    forms = {two: form for form, two in inflected.items()}
    marks = {mark for _, mark in forms}
    pairs = zip(symbols, (*symbols, "")[1:], strict=True)
    return tuple(forms.get(two, two[0]) for two in pairs if two[0] not in marks)


def _longest(words: Words, i: int, phrases: Phrases) -> tuple[int, str] | None:
    """The longest phrase at a position: its number of words and its symbol."""
    for phrase, symbol in phrases.get(words[i], ()):
        if words[i : i + len(phrase)] == phrase:
            return len(phrase), symbol
    return None


def _parts(word: str, at: str, *, tied: bool = False) -> list[str]:
    """A word read apart at signs, except within a number; each sign is a word, or the end of the
    word before it if it is ``tied``.

    >>> _parts("kitchen.lamp", "."), _parts("3.5", "."), _parts("etc.", ".")
    (['kitchen', '⁀.⁀', 'lamp'], ['3.5'], ['etc.'])
    >>> _parts("on(lamp)", "()")
    ['on', '⁀(⁀', 'lamp', '⁀)']
    """
    if TIE in word:
        return [word]
    if len(at) > 1:
        signs = re.escape(at)
        parts = re.findall(rf"[0-9]+\.[0-9]+|[{signs}]|[^{signs}]+", word)
        around = zip(["", *parts], parts, [*parts[1:], at], strict=False)
        return [
            f"{TIE if before else ''}{part}{'' if after in at else TIE}" if part in at else part
            for before, part, after in around
        ]
    parts = word.split(at)
    if not all(parts) or all(part.isdigit() for part in parts):
        return [word]
    if tied:
        return [*(part + at + TIE for part in parts[:-1]), parts[-1]]
    return [piece for part in parts for piece in (f"{TIE}{at}{TIE}", part)][1:]
