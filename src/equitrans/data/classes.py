"""Files of lexical classes: TOML that people write, JSON in model directories."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from equitrans.errors import DataError, SymmetryError, nearest, shown
from equitrans.files import check_visible, normalized, read_toml
from equitrans.paper import GroupKind, LexicalClass, Symmetry, Vocabulary


def read_classes(path: Path | str) -> tuple[LexicalClass, ...]:
    """The classes of a TOML file: ``[[class]]`` tables with ``name``, ``source`` and ``target``."""
    path = Path(path)
    content = read_toml(path)
    for key in content:
        if key != "class":
            raise DataError(f"{path}: {shown(key)} is unknown; expected [[class]] tables")
    tables = content.get("class", [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise DataError(f"{path}: expected [[class]] tables, with double brackets")
    if not tables:
        raise DataError(f"{path}: no [[class]] table; use --classes none for no classes")
    classes = tuple(_read_class(path, i, table) for i, table in enumerate(tables, start=1))
    try:
        Symmetry.of(classes, [])
    except SymmetryError as error:
        raise SymmetryError(f"{path}: {error}") from None
    return classes


def _read_class(path: Path, number: int, table: dict[str, object]) -> LexicalClass:
    fields = ("name", "source", "target")
    for key in table:
        if key not in fields:
            raise DataError(
                f"{path}: class {number}: unknown key {shown(key)}{nearest(key, fields)}"
            )
    name = table.get("name", f"class{number}")
    if not isinstance(name, str):
        raise DataError(f"{path}: class {number}: name is {shown(name)}; expected a string")
    sides: list[tuple[str, ...]] = []
    for side in ("source", "target"):
        words = table.get(side)
        if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
            found = "missing" if words is None else shown(words)
            raise DataError(
                f"{path}: class {shown(name)}: {side} is {found}; it must be a list of words "
                "in double quotes"
            )
        sides.append(tuple(map(normalized, words)))
    for text in (name, *sides[0], *sides[1]):
        try:
            check_visible(text)
        except DataError as error:
            raise DataError(f"{path}: class {shown(name)}: {shown(text)}: {error}") from None
    try:
        return LexicalClass(name, sides[0], sides[1])
    except SymmetryError as error:
        raise SymmetryError(f"{path}: {error}") from None


def format_classes(classes: Iterable[LexicalClass]) -> str:
    """TOML text of some classes, which ``read_classes`` reads.

    >>> print(format_classes([LexicalClass("d", ("left",), ("L",))]), end="")
    [[class]]
    name = "d"
    source = ["left"]
    target = ["L"]
    """
    return "\n".join(
        f"[[class]]\nname = {_toml(c.name)}\n"
        f"source = {_toml(c.source)}\ntarget = {_toml(c.target)}\n"
        for c in classes
    )


def _toml(value: str | tuple[str, ...]) -> str:
    """TOML of a string or of a list of strings: like JSON, except that TOML escapes U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def symmetry_to_json(symmetry: Symmetry) -> dict[str, Any]:
    """The vocabularies and classes of a symmetry as JSON values."""
    return {
        "source": symmetry.source.words,
        "target": symmetry.target.words,
        "classes": [asdict(c) for c in symmetry.classes],
    }


def symmetry_from_json(content: dict[str, Any], kind: GroupKind) -> Symmetry:
    """The inverse of ``symmetry_to_json``; content of the wrong shape raises DataError."""
    source, target = (Vocabulary(_words(content, side)) for side in ("source", "target"))
    if not isinstance(tables := content.get("classes"), list):
        raise DataError("its classes are not a list")
    classes = []
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict) or not isinstance(name := table.get("name"), str):
            raise DataError(f"class {number} is {shown(table)}; it must have a name")
        check_visible(name)
        classes.append(LexicalClass(name, _words(table, "source"), _words(table, "target")))
    return Symmetry(source, target, tuple(classes), kind)


def _words(table: dict[str, Any], side: str) -> tuple[str, ...]:
    """The words of one side; anything else raises DataError."""
    words = table.get(side)
    if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
        raise DataError(f"its {side} words are {shown(words)}; expected a list of words")
    try:
        check_visible("".join(words))
    except DataError as error:
        raise DataError(f"its {side} words: {error}") from None
    return tuple(words)
