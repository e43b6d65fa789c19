"""Files of lexical classes: TOML that people write, JSON in model directories."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from equitrans.errors import ConfigError, DataError, SymmetryError, nearest, shown
from equitrans.files import check_visible, normalized, read_toml
from equitrans.lexical import Columns, is_filler
from equitrans.paper import GroupKind, LexicalClass, Symmetry, Vocabulary

KEYS = (
    "name", "source", "target", "source_forms", "target_forms", "pattern", "open", "after",
    "inserted",
)  # fmt: skip


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
        check_together(classes)
    except SymmetryError as error:
        raise SymmetryError(f"{path}: {error}") from None
    return classes


def check_classes(classes: Iterable[LexicalClass]) -> tuple[LexicalClass, ...]:
    """The classes as a tuple; raise ConfigError for anything else."""
    if not isinstance(classes, Iterable) or isinstance(classes, str):
        raise ConfigError(f'classes are {shown(classes)}; expected a list of classes or "discover"')
    classes = tuple(classes)
    for found in classes:
        if not isinstance(found, LexicalClass):
            raise ConfigError(f"{shown(found)} is not a class; expected a LexicalClass")
    return classes


def check_together(classes: tuple[LexicalClass, ...]) -> None:
    """Raise SymmetryError if classes share a word or a spelling, or two are open without a pattern:
    it would be unknown which of them a new word joins.
    """
    Symmetry.of(classes, [])
    spellings: dict[tuple[bool, str], str] = {}
    for c in classes:
        source, target = c.words
        for word in (*source, *(s for s, word in c.aliases if word in source)):
            _claim(spellings, (True, word), c.name)
        for word in (*target, *(s for s, word in c.aliases if word in target)):
            _claim(spellings, (False, word), c.name)
    if len(without := [c.name for c in classes if c.open and c.pattern is None]) > 1:
        raise SymmetryError(
            f"classes {' and '.join(map(shown, without))} are open; one can be open without a "
            "pattern, because an unknown word joins it"
        )


def _claim(spellings: dict[tuple[bool, str], str], key: tuple[bool, str], name: str) -> None:
    if (first := spellings.setdefault(key, name)) != name:
        raise SymmetryError(
            f"the spelling {shown(key[1])} is in two classes, {shown(first)} and {shown(name)}"
        )


def _read_class(path: Path, number: int, table: dict[str, object]) -> LexicalClass:
    for key in table:
        if key not in KEYS:
            raise DataError(f"{path}: class {number}: unknown key {shown(key)}{nearest(key, KEYS)}")
    name = table.get("name", f"class{number}")
    if not isinstance(name, str):
        raise DataError(f"{path}: class {number}: name is {shown(name)}; expected a string")
    where = f"{path}: class {shown(name)}"
    pattern, is_open = table.get("pattern"), table.get("open", False)
    if pattern is not None and not isinstance(pattern, str):
        raise DataError(f"{where}: pattern is {shown(pattern)}; expected a string")
    if not isinstance(is_open, bool):
        raise DataError(f"{where}: open is {shown(is_open)}; expected true or false")
    lists: list[list[str]] = []
    for key in ("after", "inserted"):
        words = table.get(key, [])
        if not isinstance(words, list) or not all(isinstance(text, str) for text in words):
            raise DataError(f"{where}: {key} is {shown(words)}; expected a list of words")
        lists.append(words)
    after, inserted = lists
    default: list[str] | None = [] if pattern is not None or is_open else None
    aliases: list[tuple[str, str]] = []
    sides = [
        _column(where, side, table.get(side, default), aliases) for side in ("source", "target")
    ]
    forms = [_forms(where, key, table.get(key, {}), aliases) for key in KEYS[3:5]]
    for text in (name, *after, *inserted, *(part for spelling in aliases for part in spelling)):
        _check(where, text)
    try:
        return LexicalClass(
            name,
            sides[0],
            sides[1],
            forms[0],
            forms[1],
            tuple(aliases),
            pattern,
            is_open,
            tuple(map(normalized, after)),
            tuple(map(normalized, inserted)),
        )
    except SymmetryError as error:
        raise SymmetryError(f"{path}: {error}") from None


def _forms(where: str, key: str, columns: object, aliases: list[tuple[str, str]]) -> Columns:
    if not isinstance(columns, dict):
        raise DataError(
            f"{where}: {key} is {shown(columns)}; expected columns, such as "
            f'{key}.plural = ["dogs", "cats"]'
        )
    for name in columns:
        _check(where, name)
    return tuple(
        (normalized(name), _column(where, f"{key}.{name}", cells, aliases))
        for name, cells in columns.items()
    )


def _column(where: str, key: str, cells: object, aliases: list[tuple[str, str]]) -> tuple[str, ...]:
    """The words of a column; other spellings of a cell are added to ``aliases``."""
    words = []
    for cell in cells if isinstance(cells, list) else [None]:
        spellings = cell if isinstance(cell, list) else [cell]
        if not spellings or not all(isinstance(word, str) for word in spellings):
            found = "missing" if cells is None else shown(cells)
            raise DataError(
                f"{where}: {key} is {found}; it must be a list of words in double quotes; a list "
                "in it has several spellings of one word"
            )
        for word in spellings:
            _check(where, str(word))
        first, *others = (normalized(str(word)) for word in spellings)
        words.append(first)
        aliases += [(other, first) for other in others]
    return tuple(words)


def _check(where: str, text: str) -> None:
    try:
        check_visible(text)
    except DataError as error:
        raise DataError(f"{where}: {shown(text)}: {error}") from None
    if is_filler(text):
        raise DataError(f"{where}: {shown(text)}: words in ‹ › are reserved")


def format_classes(classes: Iterable[LexicalClass]) -> str:
    """TOML text of some classes, which ``read_classes`` reads.

    >>> print(format_classes([LexicalClass("d", ("left",), ("L",))]), end="")
    [[class]]
    name = "d"
    source = ["left"]
    target = ["L"]
    """
    return "\n".join(map(_format, classes))


def _format(c: LexicalClass) -> str:
    lines = ["[[class]]", f"name = {_toml(c.name)}"]
    places = sum(1 for word in c.source if word.startswith(f"‹{c.name} ")) if c.is_open else 0
    for side, columns in zip(("source", "target"), c.columns, strict=True):
        for name, words in columns:
            key = f"{side}_forms.{_toml(name)}" if name else side
            rows = words[: len(words) - places]
            if rows or not c.is_open:
                lines.append(f"{key} = {_toml([_spellings(c, word) for word in rows])}")
    if c.pattern is not None:
        lines.append(f"pattern = {_toml(c.pattern)}")
    if c.open:
        lines.append("open = true")
    if c.after:
        lines.append(f"after = {_toml(c.after)}")
    if c.inserted:
        lines.append(f"inserted = {_toml(c.inserted)}")
    return "\n".join(lines) + "\n"


def _spellings(c: LexicalClass, word: str) -> str | list[str]:
    """A cell: a word, or all its spellings."""
    others = [spelling for spelling, of in c.aliases if of == word]
    return [word, *others] if others else "" if is_filler(word) else word


def _toml(value: object) -> str:
    """TOML of a string or of a list of strings: like JSON, except that TOML escapes U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def symmetry_to_json(symmetry: Symmetry) -> dict[str, Any]:
    """The vocabularies and classes of a symmetry as JSON values."""
    return {
        "source": symmetry.source.words,
        "target": symmetry.target.words,
        "classes": [class_to_json(c) for c in symmetry.classes],
    }


def class_to_json(c: LexicalClass) -> dict[str, Any]:
    """A class as JSON values; what a class of the paper does not have is left out."""
    content = asdict(c)
    return {k: v for k, v in content.items() if k in KEYS[:3] or v not in ((), None, False)}


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
        pattern = table.get("pattern")
        if not isinstance(pattern, str | None) or not isinstance(table.get("open", False), bool):
            raise DataError(f"class {number} is {shown(table)}; its pattern or open is wrong")
        classes.append(
            LexicalClass(
                name,
                _words(table, "source"),
                _words(table, "target"),
                _named_columns(table, "source_forms"),
                _named_columns(table, "target_forms"),
                tuple((a, b) for a, b in _lists(table, "aliases", str)),
                pattern,
                table.get("open", False),
                _words(table, "after", empty=True) if "after" in table else (),
                _words(table, "inserted") if "inserted" in table else (),
            )
        )
    return Symmetry(source, target, tuple(classes), kind)


def _named_columns(table: dict[str, Any], key: str) -> Columns:
    return tuple((name, _words({key: words}, key)) for name, words in _lists(table, key, list))


def _lists(table: dict[str, Any], key: str, second: type) -> list[Any]:
    """A list of lists of a text and a value of the type ``second``; else raise DataError."""
    found = table.get(key, [])
    if not isinstance(found, list) or not all(
        isinstance(two, list) and [type(value) for value in two] == [str, second] for two in found
    ):
        raise DataError(f"its {key} are {shown(found)}; expected a list of pairs")
    return found


def _words(table: dict[str, Any], side: str, *, empty: bool = False) -> tuple[str, ...]:
    """The words of one side, which may be ``empty``; anything else raises DataError."""
    words = table.get(side)
    if not isinstance(words, list) or not all(isinstance(w, str) and (w or empty) for w in words):
        raise DataError(f"its {side} words are {shown(words)}; expected a list of words")
    try:
        check_visible("".join(words))
    except DataError as error:
        raise DataError(f"its {side} words: {error}") from None
    return tuple(words)
