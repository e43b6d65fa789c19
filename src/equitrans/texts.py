"""Text from files that anyone may have written: decoded, checked, parsed. Whatever they hold, what
comes out is a value, or one of our errors with the place of what is wrong.
"""

import json
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

from equitrans.errors import DataError, EquitransError

UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u2060\ufeff\ud800-\udfff]")
"""Characters that are refused: control characters but those that are space, the zero-width ones
that no script needs, and halves of characters. Joiners stay, since they spell words."""

NAMES = 30_000
"""So many names, dots in names and tables a TOML file may have, since each costs a kilobyte."""
DOTS = 200
"""So many of the dots may stand on one line, since their cost grows with their square."""
DIGITS = 2000
"""So long a name or number may be."""

_LONG = re.compile(rf"[\w.+-]{{{DIGITS + 1}}}")
# strings and comments; what is left of a file without them is names, numbers and punctuation
_QUOTED = re.compile(
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
    r"|'''[^']*+(?:'(?!'')[^']*+)*+'''"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+",
    re.DOTALL,
)


def one_spelling(text: str) -> str:
    r"""A text in Unicode's composed form (NFC), so that what looks the same is the same.

    >>> one_spelling("cafe\u0301") == "café"
    True
    """
    return unicodedata.normalize("NFC", text)


def check_seen(text: str) -> None:
    r"""Refuse characters that cannot be seen: two words would look the same and not be.

    >>> check_seen("a\u200bb")
    Traceback (most recent call last):
    equitrans.errors.DataError: U+200B ZERO WIDTH SPACE at character 2 cannot be seen; remove it
    """
    if found := UNSEEN.search(text):
        code = found[0]
        name = unicodedata.name(code, "NUL" if code == "\0" else "a control character")
        raise DataError(
            f"U+{ord(code):04X} {name} at character {found.start() + 1} cannot be seen; remove it"
        )


def read_text(path: Path, error: type[EquitransError] = DataError) -> str:
    """A whole UTF-8 file, without its byte order mark."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = raw.count(b"\n", 0, wrong.start) + 1
        raise error(f"{path}:{line}: not UTF-8: {wrong.reason}") from None


def read_json(path: Path, error: type[EquitransError] = DataError) -> Any:
    """What a JSON file says."""
    text = read_text(path, error)
    try:
        return json.loads(text)
    except json.JSONDecodeError as wrong:
        raise error(f"{path} is damaged: {wrong}") from None
    except (ValueError, RecursionError) as wrong:
        raise error(f"{path} is damaged: {_reason(wrong)}") from None


def read_toml(path: Path, error: type[EquitransError] = DataError) -> dict[str, Any]:
    """What a TOML file says."""
    text = read_text(path, error)
    if (odd := _oddity(_QUOTED.sub("", text))) is not None:
        raise error(f"{path}: {odd}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise error(f"{path} is not a TOML file: {wrong}") from None
    except (ValueError, RecursionError) as wrong:
        raise error(f"{path} is not a TOML file: {_reason(wrong)}") from None


def _oddity(bare: str) -> str | None:
    """What would cost the parser far more than its length, in a text without its strings."""
    names = bare.count("=") + bare.count(".") + len(re.findall(r"^[ \t]*\[", bare, re.MULTILINE))
    if names > NAMES:
        return f"{names} names and tables; there may be at most {NAMES}"
    if any(line.count(".") > DOTS for line in bare.split("\n")):
        return f"a line with more than {DOTS} dots outside of strings"
    if _LONG.search(bare):
        return f"a name or number of more than {DIGITS} characters"
    return None


def _reason(wrong: Exception) -> str:
    """Why a parser gave up on what its format allows."""
    if isinstance(wrong, RecursionError):
        return "it is nested too deeply"
    return "a number in it is too long"
