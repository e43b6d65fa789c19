"""Checked fields of JSON objects."""

from typing import Any

from equitrans.errors import DataError, shown
from equitrans.files import check_visible

LARGEST = 2**53
"""Largest accepted number; floats are exact for all integers up to it."""

_KINDS = {object: "", dict: " of objects", list: " of lists", str: " of strings"}


def list_field(table: dict[str, Any], name: str, kind: Any = object) -> list[Any]:
    """The list under a name; raise DataError unless it is a list of that kind."""
    found = table.get(name)
    if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
        raise DataError(f"{name} is {shown(found)}; it must be a list{_KINDS[kind]}")
    if kind is str:
        for text in found:
            check_visible(text)
    return found


def number_field(table: dict[str, Any], name: str, kind: Any, most: int | float = LARGEST) -> Any:
    """The number under a name; raise DataError unless it is from 0 to ``most``."""
    found = table.get(name)
    if isinstance(found, bool) or not isinstance(found, kind) or not 0 <= found <= most:
        raise DataError(f"{name} is {shown(found)}; it must be a number from 0 to {most}")
    return found
