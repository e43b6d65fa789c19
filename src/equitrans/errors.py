"""The exceptions of equitrans; each message tells the user what to change::

    EquitransError
    ├── DataError         a file or a sentence is invalid
    ├── VocabularyError   a word is unknown or invalid
    ├── SymmetryError     classes or permutations do not fit together
    ├── ConfigError       a setting is unknown or has an invalid value
    └── RunError          a run directory cannot be created, read or continued
        └── DivergenceError   a loss is NaN or infinite

Any other exception is a bug in equitrans.
"""

import difflib
import re
import reprlib
from collections.abc import Iterable
from functools import lru_cache


class EquitransError(Exception):
    """An error whose message gives the place, the value found and the value expected."""


class DataError(EquitransError):
    """A file or a sentence is invalid."""


class VocabularyError(EquitransError):
    """A word is unknown or invalid."""


class SymmetryError(EquitransError):
    """Classes or permutations do not fit together."""


class ConfigError(EquitransError):
    """A setting is unknown or has an invalid value."""


class RunError(EquitransError):
    """A run directory cannot be created, read or continued."""


class DivergenceError(RunError):
    """A loss is NaN or infinite; training stops.

    ``breakdown`` describes the batch with this loss, or is None.
    """

    def __init__(self, message: str, breakdown: object = None) -> None:
        super().__init__(message)
        self.breakdown = breakdown


class LearningWarning(UserWarning):
    """A model was trained, but it may not have learned what the pairs show."""


def few(words: Iterable[str], most: int = 5) -> str:
    """The first words and the number of the others, for a message.

    >>> few(["walk", "look", "run"], 2)
    'walk, look and 1 more'
    """
    words = list(words)
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(map(named, words[:most])) + more


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that a terminal obeys or does not show: control characters, line separators, changes
of direction, zero-width spaces; and lone surrogates, which cannot be encoded."""


class _Short(reprlib.Repr):
    """Shortened values; the cost does not grow with the size of a value."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 100
        self.maxdict = self.maxlist = self.maxtuple = 8
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:
        # Python raises ValueError for the digits of very long integers
        return super().repr_int(x, level) if x.bit_length() < 400 else "a very long number"


def shown(value: object) -> str:
    """The text of a value in a message, shortened if it is long.

    >>> shown("walk"), len(shown("walk" * 10**6)), shown(10**5000)
    ("'walk'", 100, 'a very long number')
    """
    return _SHORT.repr(value)


_SHORT = _Short()


def printable(text: str, longest: int = 2000) -> str:
    r"""The text of a message without terminal escapes and other control characters, and cut if it
    is long. Line breaks and TABs stay.

    >>> printable("walk \x1b[31m\n"), printable("walk" * 1000, 10)
    ('walk \\x1b[31m\n', 'walkwalkwa… (4000 characters)')
    """
    start = _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text[:longest])
    if max(len(start), len(text)) <= longest:
        return start
    return f"{start[:longest]}… ({len(text)} characters)"


def named(name: str) -> str:
    r"""The name itself, or ``shown(name)`` if it is long or not printable.

    >>> named("walk"), named("two\nlines")
    ('walk', "'two\\nlines'")
    """
    return name if name.isprintable() and len(name) <= 60 else shown(name)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known name, or all of them.

    >>> "unknown split 'lenght'" + nearest("lenght", ["length", "simple"])
    "unknown split 'lenght'; did you mean 'length'?"
    >>> "unknown split 'q'" + nearest("q", ["length", "simple"])
    "unknown split 'q'; known: length, simple"
    """
    known = sorted(known)
    # comparing takes time proportional to the product of two lengths
    short = [other for other in known if len(other) <= 100][:1000]
    close = difflib.get_close_matches(name, short, n=1) if len(name) <= 100 else []
    if close:
        return f"; did you mean {close[0]!r}?"
    some = ", ".join(map(named, known[:20])) + (", …" if len(known) > 20 else "")
    return f"; known: {some}" if known else ""


def spelling(word: str, known: tuple[str, ...]) -> str:
    """The end of a message about an unknown word: a known word with almost the same spelling, or
    nothing.

    Almost the same: the case differs, or one letter after the first is wrong, missing, added or
    exchanged with its neighbour, in words of four letters or more. A greater difference makes a
    different word, for which the model has a different answer.

    >>> spelling("junp", ("jump", "walk")), spelling("toaster", ("heater", "lamp"))
    ("; did you mean 'jump'?", '')
    """
    if not isinstance(word, str) or not 2 <= len(word) <= _LONGEST_SPELLING:
        return ""
    words, letters = _words_and_letters(known)
    close = {word.lower(), word.upper(), word.capitalize()} & words
    if not close and len(word) >= 4 and len(word) * len(letters) <= _MOST_SPELLINGS:
        close = {w for w in _one_edit(word, letters) if len(w) >= 4 and w in words}
    return f"; did you mean {min(close)!r}?" if close else ""


_LONGEST_SPELLING = 40
"""Number of letters; longer words get no suggestion."""

_MOST_SPELLINGS = 10_000
"""Largest product of word length and number of letters: a search takes a few milliseconds."""


@lru_cache(maxsize=4)
def _words_and_letters(known: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """The words that may be suggested, and their letters."""
    words = frozenset(word for word in known if len(word) <= _LONGEST_SPELLING + 1)
    return words, frozenset().union(*words)


def _one_edit(word: str, letters: Iterable[str]) -> Iterable[str]:
    """All spellings that differ from a word by one edit after the first letter."""
    for i in range(1, len(word) + 1):
        left, right = word[:i], word[i:]
        yield left + right[1:]
        yield left + right[1:2] + right[:1] + right[2:]
        for letter in letters:
            yield left + letter + right
            yield left + letter + right[1:]
