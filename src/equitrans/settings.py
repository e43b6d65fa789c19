"""Checks of settings, and limits.

Settings are checked when they are created, by a command, from a file or by a program. Limits are
checked before memory is allocated.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from equitrans.errors import ConfigError, DataError, nearest, shown

T = TypeVar("T")

LARGEST = sys.float_info.max
"""Largest accepted number; larger integers and infinities are rejected."""

LONGEST_SENTENCE = 1_000
"""Largest number of words of a source or target; longer sentences raise DataError."""

LONGEST_PREDICTION = 4 * LONGEST_SENTENCE + 10
"""Largest number of words of a predicted target."""

LARGEST_VOCABULARY = 100_000
"""Largest number of source words, and of target words, of a model."""

LARGEST_CLASS = 10_000
"""Largest number of words of one class."""

MOST_CLASSES = 1_000
"""Largest number of classes of a model."""

LARGEST_GROUP = 1_000
"""Largest number of group elements, for models that store one weight per element."""

LARGEST_TABLE = 30_000_000
"""Largest product of source words and target words, for a translator that is a table."""

LARGEST_SIZE = 1_000_000
"""Largest value of a size in the settings of a model, such as ``hidden``."""

MOST_WEIGHTS = 250_000_000
"""Largest number of weights of a model: 1 GB in float32, and four times as much in training."""

LARGEST_JSON = 64_000_000
"""Largest size of a JSON file of a model, in bytes; the largest vocabulary needs a fifth."""


def check_sentence(words: Sequence[str]) -> None:
    """Raise DataError if a sentence has more than LONGEST_SENTENCE words."""
    if len(words) > LONGEST_SENTENCE:
        start = " ".join(words[:5])[:60]
        raise DataError(
            f"a sentence of {len(words)} words ({start} …); the limit is {LONGEST_SENTENCE}"
        )


def check_iterable(what: str, value: object) -> None:
    """Raise DataError unless a value can be iterated over; a string is one value, not several."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise DataError(f"{what} are {shown(value)}; expected a list")


def check_count(name: str, value: object) -> None:
    """Raise ConfigError unless a value is an integer of 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{name} is {shown(value)}; it must be an integer, 1 or more")


def check_pairs(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Raise DataError with the position of the first pair that is too long."""
    for number, pair in enumerate(pairs, start=1):
        try:
            for sentence in pair:
                check_sentence(sentence)
        except DataError as error:
            raise DataError(f"pair {number}: {error}") from None


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """The types of the fields of a settings class; to find them takes longer than to check them."""
    return get_type_hints(cls)


def from_dict(cls: type[T], content: Any, *, section: str | None = None) -> T:
    """A settings dataclass from a dictionary. An unknown name or a value of the wrong type raises
    ConfigError.
    """
    if not isinstance(content, dict):
        raise ConfigError(f"{shown(content)} is not a table of settings")
    hints = _hints(cls)  # type: ignore[arg-type]
    known = fields(cls)  # type: ignore[arg-type]
    names = {f.name: hints[f.name] for f in known}
    for name in content:
        if name not in names:
            raise ConfigError(f"{shown(name)} is not a setting{nearest(name, names)}")
    # 1 and 1.0 are the same setting and must have the same hash in records
    values = {name: _as_real(value, names[name]) for name, value in content.items()}
    for name, value in values.items():
        if not _fits(value, names[name]):
            where = name if section is None else f"{section}.{name}"
            raise ConfigError(f"{where} is {shown(value)}{_expected(value, names[name])}")
    for field in known:
        if field.name not in content and field.default is field.default_factory is MISSING:
            raise ConfigError(f"{field.name} is missing")
    return cls(**values)


def _as_real(value: Any, hint: Any) -> Any:
    """An integer as a float where only floats are expected."""
    kinds = get_args(hint) or (hint,)
    whole = type(value) is int and float in kinds and int not in kinds
    return float(value) if whole and abs(value) <= LARGEST else value


def check_settings(section: str, settings: Any) -> None:
    """Raise ConfigError if a value does not have the type of its field."""
    hints = _hints(type(settings))  # type: ignore[arg-type]
    for field in fields(settings):
        value, hint = getattr(settings, field.name), hints[field.name]
        if not _fits(value, hint):
            raise ConfigError(f"{section}.{field.name} is {shown(value)}{_expected(value, hint)}")


def check_counts(section: str, settings: Any, *names: str) -> None:
    """Raise ConfigError unless each named field is None or an integer from 1 to 2**31 - 1."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ConfigError(f"{section}.{name} is {shown(value)}; it must be 1 or more")
        if value is not None and value >= 2**31:
            raise ConfigError(f"{section}.{name} is {shown(value)}; it must be below 2**31")


def check_fractions(section: str, settings: Any, *names: str) -> None:
    """Raise ConfigError unless each named field lies in [0, 1]."""
    for name in names:
        if not 0 <= (value := getattr(settings, name)) <= 1:
            raise ConfigError(f"{section}.{name} is {shown(value)}; it must lie in [0, 1]")


def check_shares(section: str, settings: Any, *names: str) -> None:
    """Raise ConfigError unless each named field lies in [0, 1)."""
    for name in names:
        value = getattr(settings, name)
        if not 0 <= value < 1:
            raise ConfigError(f"{section}.{name} is {shown(value)}; it must lie in [0, 1)")


def check_seed(seed: object) -> None:
    """Raise ConfigError unless the seed is an integer from 0 to 2**63 - 1."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ConfigError(f"seed is {shown(seed)}; it must be an integer from 0 to 2**63 - 1")


def _fits(value: object, hint: Any) -> bool:
    """Whether a value has the type of a field."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_args(hint):
        return any(_fits(value, part) for part in get_args(hint))
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    if hint is float:
        return isinstance(value, int | float) and abs(value) <= LARGEST
    return isinstance(value, hint)


def _expected(value: object, hint: Any) -> str:
    """The end of a message about a value of the wrong type."""
    if get_origin(hint) is Literal:
        return nearest(value if isinstance(value, str) else shown(value), get_args(hint))
    kinds = [part for part in get_args(hint) or (hint,) if part is not NoneType]
    return "; expected " + " or ".join(kind.__name__ for kind in kinds)
