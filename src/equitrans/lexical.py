"""Lexical classes as tables of words.

A row of a table is a lexeme: its source forms and its target forms, one per column. A cell is a
word, a phrase of several words, or empty. Words that mean the same are aliases of one cell.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields

from equitrans.errors import SymmetryError, shown

Columns = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns of a table: the name of each, and its word in every row."""

REPEATS, LONGEST_PATTERN = 4, 100
"""Largest number of repeating signs in a pattern, and its largest length: matching a word then
takes microseconds, also if a stranger wrote the pattern."""

PLACES = 16
"""Number of rows of an open class for words that it does not list: the largest number of different
such words in one sentence."""


@dataclass(frozen=True, repr=False)
class LexicalClass:
    """Exchangeable lexemes; ``source[i]`` translates to ``target[i]``.

    An empty cell is filled with a word that never occurs, so that permuting rows permutes words. An
    open class gets rows of such words, its *places*, for words that join it in a sentence.

    >>> nouns = LexicalClass("nouns", ("dog", "fish"), ("DOG", "FISH"), (("many", ("dogs", "")),))
    >>> nouns.source_forms
    (('many', ('dogs', '‹fish many›')),)
    """

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    source_forms: Columns = ()
    """Further source columns, by name."""
    target_forms: Columns = ()
    """Further target columns, by name. The form of a source column of the same name is in it; if
    there is no such source column, the words around it choose the form."""
    aliases: tuple[tuple[str, str], ...] = ()
    """Other spellings, each with the word of the table that is read instead."""
    pattern: str | None = None
    """A regular expression; a source word that matches it joins the class and is copied."""
    open: bool = False
    """Whether an unknown source word joins the class and is copied."""
    after: tuple[str, ...] = ()
    """The words, and names of classes in angle brackets, after which an unknown word joins; the
    empty text is the start of a sentence. Without any, unknown words join everywhere."""
    inserted: tuple[str, ...] = ()
    """Sequences of target words, such as suffixes, with copied words of the class that do not
    belong to a source word: these are read as other symbols, which the group leaves alone."""

    def __repr__(self) -> str:
        values = ((f.name, f.default, getattr(self, f.name)) for f in fields(self))
        shown = (f"{name}={value!r}" for name, default, value in values if value != default)
        return f"LexicalClass({', '.join(shown)})"

    def __post_init__(self) -> None:
        this = f"class {shown(self.name)}"
        if self.pattern is not None:
            _check_pattern(this, self.pattern)
        if self.after and not self.open:
            raise SymmetryError(f"{this}: after is for classes that are open; write open = true")
        sides = [*zip(("source", "target"), self.columns, strict=True)]
        for side, columns in sides:
            for _, words in columns:
                if isinstance(words, str):
                    found = f"{this}: {shown(words)} is a string"
                    raise SymmetryError(f"{found}; give a tuple of words")
                if len(words) != len(self.source):
                    raise SymmetryError(
                        f"{this}: {len(self.source)} source words but {len(words)} {side} words; "
                        "the i-th of each side must belong together"
                    )
        for side, columns in sides:
            self._fill(side, columns)
        if not self.source:
            raise SymmetryError(f"{this} is empty; it needs at least one word on each side")
        copied = {x for x, y in zip(self.source, self.target, strict=True) if x == y}
        for text in self.inserted:
            if copied.isdisjoint(text.split()):
                raise SymmetryError(
                    f"{this}: inserted {shown(text)}; expected a word of the class that is copied"
                )
        for spelling, word in self.aliases:
            if not any(word in side and spelling not in side for side in self.words):
                raise SymmetryError(
                    f"{this}: alias {shown(spelling)} of {shown(word)}; expected a new spelling of "
                    "a word of the class"
                )

    def _fill(self, side: str, columns: Columns) -> None:
        """Fill empty cells, and add the places of an open class if they are missing."""
        this = f"class {shown(self.name)}"
        rows = [*zip(*(words for _, words in columns), strict=True)]
        lexemes = [next(filter(None, row), "") for row in rows]
        if not all(lexemes):
            raise SymmetryError(f"{this}: row {lexemes.index('') + 1} has no {side} word")
        places = [f"‹{self.name} {i}›" for i in range(1, PLACES + 1)] if self.is_open else []
        new = [place for place in places if place not in lexemes]
        filled = []
        for k, (name, words) in enumerate(columns):
            cells = zip(
                (*words, *(new if k == 0 else [""] * len(new))), [*lexemes, *new], strict=True
            )
            filled.append((name, tuple(word or f"‹{lexeme} {name}›" for word, lexeme in cells)))
        if (again := duplicate(word for _, words in filled for word in words)) is not None:
            raise SymmetryError(f"{this}: duplicate {side} word {shown(again)}")
        object.__setattr__(self, side, filled[0][1])
        object.__setattr__(self, f"{side}_forms", tuple(filled[1:]))

    @property
    def is_open(self) -> bool:
        """Whether words join the class when a sentence is read."""
        return self.open or self.pattern is not None

    @property
    def columns(self) -> tuple[Columns, Columns]:
        """All columns of source and target; the first of each has no name."""
        return (("", self.source), *self.source_forms), (("", self.target), *self.target_forms)

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """All words of source and target, column by column."""
        source, target = self.columns
        return tuple(w for _, ws in source for w in ws), tuple(w for _, ws in target for w in ws)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each source column: that of the class, and after a dot its own."""
        return tuple(f"{self.name}.{name}" if name else self.name for name, _ in self.columns[0])

    @property
    def rows(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The source and target words of each lexeme that has words; of empty cells none."""
        sides = (zip(*(words for _, words in columns), strict=True) for columns in self.columns)
        rows = [(written(source), written(target)) for source, target in zip(*sides, strict=True)]
        return [(source, target) for source, target in rows if source and target]

    @property
    def inflected(self) -> dict[str, tuple[str, str]]:
        """The target forms that the words around them choose: each with the word of its row in the
        first column, and the mark of its column.

        >>> LexicalClass("nouns", ("dog",), ("DER",), target_forms=(("acc", ("DEN",)),)).inflected
        {'DEN': ('DER', '‹+ acc›')}
        """
        by_word = {name for name, _ in self.source_forms}
        return {
            form: (stem, marked(name))
            for name, forms in self.target_forms
            if name not in by_word
            for form, stem in zip(forms, self.target, strict=True)
            if not is_filler(form)
        }


def marked(column: str) -> str:
    """The mark of a column: a symbol that is read after the first word of a row for its form."""
    return f"‹+ {column}›"


def by_itself(word: str) -> str:
    """The symbol of a target word that does not belong to a source word, though others do."""
    return f"‹{word} +›"


def _check_pattern(this: str, pattern: str) -> None:
    """Raise SymmetryError if a pattern is wrong, or if matching it could take long."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise SymmetryError(f"{this}: pattern {shown(pattern)}: {error}") from None
    repeats = sum(pattern.count(sign) for sign in "*+?{")
    if "(" in pattern or repeats > REPEATS or len(pattern) > LONGEST_PATTERN:
        raise SymmetryError(
            f"{this}: pattern {shown(pattern)}; expected at most {LONGEST_PATTERN} characters, "
            f"{REPEATS} of the signs * + ? {{, and no parentheses"
        )


def is_filler(word: str) -> bool:
    """Whether a word fills an empty cell or is a place of an open class.

    >>> is_filler("‹numbers 1›"), is_filler("living room")
    (True, False)
    """
    return word[:1] == "‹" and word[-1:] == "›" and " " in word


def written(words: Iterable[str]) -> tuple[str, ...]:
    """The words that can be written: all but fillers."""
    return tuple(word for word in words if not is_filler(word))


def duplicate(words: Iterable[str]) -> str | None:
    """The first word that occurs twice, or None."""
    return next((word for word, count in Counter(words).items() if count > 1), None)
