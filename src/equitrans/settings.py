"""Settings are checked when they are made, whoever makes them: a command, a file or a program."""

import sys
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from equitrans.errors import ConfigError, nearest, shown

T = TypeVar("T")
LARGEST = sys.float_info.max
"""Whole numbers beyond it are none of the real ones, and neither is infinity."""


def from_dict(cls: type[T], content: Any, *, section: str | None = None) -> T:
    """A settings dataclass from what should be a dictionary; an unknown name is answered with the
    nearest one.
    """
    if not isinstance(content, dict):
        raise ConfigError(f"{shown(content)} are no settings")
    hints = get_type_hints(cls)
    names = {f.name: hints[f.name] for f in fields(cls)}  # type: ignore[arg-type]
    for name in content:
        if name not in names:
            raise ConfigError(f"{shown(name)} is not a setting{nearest(name, names)}")
    # 1 and 1.0 are one setting, and have one name wherever they are written down
    values = {name: _as_real(value, names[name]) for name, value in content.items()}
    for name, value in values.items():
        if not _fits(value, names[name]):
            where = name if section is None else f"{section}.{name}"
            raise ConfigError(f"{where} is {shown(value)}{_expected(value, names[name])}")
    return cls(**values)


def _as_real(value: Any, hint: Any) -> Any:
    """A whole number as a real one where only real ones are expected."""
    kinds = get_args(hint) or (hint,)
    whole = type(value) is int and float in kinds and int not in kinds
    return float(value) if whole and abs(value) <= LARGEST else value


def check_settings(section: str, settings: Any) -> None:
    """Refuse a value that is not of the kind that its field declares."""
    hints = get_type_hints(type(settings))
    for field in fields(settings):
        value, hint = getattr(settings, field.name), hints[field.name]
        if not _fits(value, hint):
            raise ConfigError(f"{section}.{field.name} is {shown(value)}{_expected(value, hint)}")


def check_counts(section: str, settings: Any, *names: str) -> None:
    """Refuse numbers below 1, and those that count nothing real; null stands for no number."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ConfigError(f"{section}.{name} is {shown(value)}; it must be 1 or more")
        if value is not None and value >= 2**31:
            raise ConfigError(f"{section}.{name} is {shown(value)}; it must be below 2**31")


def check_shares(section: str, settings: Any, *names: str) -> None:
    """Refuse what is not a part of one."""
    for name in names:
        value = getattr(settings, name)
        if not 0 <= value < 1:
            raise ConfigError(f"{section}.{name} is {shown(value)}; it must lie in [0, 1)")


def check_seed(seed: int) -> None:
    """Refuse what is no seed."""
    if not _fits(seed, int) or not 0 <= seed < 2**63:
        raise ConfigError(f"seed is {shown(seed)}; it must be a whole number from 0 to 2**63 - 1")


def _fits(value: object, hint: Any) -> bool:
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
    if get_origin(hint) is Literal:
        return nearest(value if isinstance(value, str) else shown(value), get_args(hint))
    kinds = [part for part in get_args(hint) or (hint,) if part is not NoneType]
    return "; expected " + " or ".join(kind.__name__ for kind in kinds)
