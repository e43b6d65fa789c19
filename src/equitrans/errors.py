"""The one exception tree; every member is the user's to act on, and says how::

    EquitransError
    ├── DataError         a file or a sentence is not what it should be
    ├── VocabularyError   a word is not known
    ├── SymmetryError     classes or permutations do not fit together
    ├── ConfigError       a setting has no such name or no such value
    └── RunError          a run directory cannot be made, read or continued
        └── DivergenceError   a loss is no number

Anything else that is raised is a bug of ours.
"""

import difflib
import reprlib
from collections.abc import Iterable


class EquitransError(Exception):
    """An error whose message says where, what was found, and what would be right."""


class DataError(EquitransError):
    """A file or a sentence is not what it should be."""


class VocabularyError(EquitransError):
    """A word is not known."""


class SymmetryError(EquitransError):
    """Classes or permutations do not fit together."""


class ConfigError(EquitransError):
    """A setting has no such name or no such value."""


class RunError(EquitransError):
    """A run directory cannot be made, read or continued."""


class DivergenceError(RunError):
    """A loss is no number, and no more training will mend it.

    ``breakdown`` is the batch that it was met at, where that is known.
    """

    def __init__(self, message: str, breakdown: object = None) -> None:
        super().__init__(message)
        self.breakdown = breakdown


class _Short(reprlib.Repr):
    """Values cut where they are long, at a cost that does not grow with them."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 100
        self.maxdict = self.maxlist = self.maxtuple = 8
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write very long numbers down
        return super().repr_int(x, level) if x.bit_length() < 400 else "a very long number"


def shown(value: object) -> str:
    """A value as it is shown in a message.

    >>> shown("walk"), len(shown("walk" * 10**6)), shown(10**5000)
    ("'walk'", 100, 'a very long number')
    """
    return _SHORT.repr(value)


_SHORT = _Short()


def named(name: str) -> str:
    r"""A name as it is, or as it is shown if it is long or cannot be printed.

    >>> named("walk"), named("two\nlines")
    ('walk', "'two\\nlines'")
    """
    return name if name.isprintable() and len(name) <= 60 else shown(name)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name.

    >>> "unknown word 'junp'" + nearest("junp", ["jump", "walk"])
    "unknown word 'junp'; did you mean 'jump'?"
    >>> "unknown split 'q'" + nearest("q", ["length", "simple"])
    "unknown split 'q'; known: length, simple"
    """
    known = sorted(known)
    # comparing takes the product of two lengths, and nobody misspells a name that long
    close = difflib.get_close_matches(name, known, n=1) if len(name) <= 1000 else []
    if close:
        return f"; did you mean {close[0]!r}?"
    some = ", ".join(map(named, known[:20])) + (", …" if len(known) > 20 else "")
    return f"; known: {some}" if known else ""
