"""Folders that models are kept in: what is read from them, and what must not be in them."""

import os
from pathlib import Path
from typing import Any

from equitrans import limits, texts
from equitrans.errors import RunError, shown

FORMAT = 2
"""The format of a model directory; one of another is refused."""

LOCK = "lock"
"""There while a process trains in the folder, and after one was killed."""


def refuse_links(directory: Path) -> None:
    """An error if a file of a directory is a link that leads out of it: whoever made the directory
    would decide what else is read here, or written.
    """
    home = os.path.realpath(directory)
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.is_symlink() and os.path.dirname(os.path.realpath(path)) != home:
            raise RunError(f"{path} is a link to {path.readlink()}, outside of the directory")


def refuse_used(path: Path | str, *, resumable: bool = False) -> None:
    """An error if there is something where a new model is to go; what a process has left that was
    killed as it began is nothing.
    """
    path = Path(path)
    names = {p.name for p in path.iterdir()} if path.is_dir() else set()
    begun = {name for name in names if name.startswith(".") and name.endswith(".tmp")}
    begun |= {LOCK, "vocabulary.json"} if LOCK in names else set()
    if (path.exists() and not path.is_dir()) or names - begun:
        run = f", or continue it with equitrans train --resume {path}"
        hint = run if resumable and "epochs.jsonl" in names else ""
        raise RunError(f"{path} is there already; choose another directory{hint}")


def read_json(path: Path, *, expected: int | None = FORMAT) -> dict[str, Any]:
    """A JSON file of a run directory, in the format that this version reads, or in any."""
    find_file(path)
    if (size := path.stat().st_size) > limits.FILE:
        raise RunError(f"{path} has {size} bytes; at most {limits.FILE} are read")
    content = texts.read_json(path, RunError)
    if not isinstance(content, dict):
        raise RunError(f"{path} is damaged: expected an object")
    if expected is not None:
        check_format(path, content, expected)
    return content


def check_format(path: Path, content: dict[str, Any], expected: int) -> None:
    """An error if a file is not in the format that this version reads."""
    found = content.get("format", expected)
    if not isinstance(found, int):
        raise RunError(f"{path} is damaged: its format is {shown(found)}")
    if found != expected:
        version = shown(content.get("version")).strip("'")
        advice = "please upgrade" if found > expected else "please train it again"
        raise RunError(
            f"{path.parent} was written by equitrans {version} in format "
            f"{shown(found)}; this version reads format {expected}: {advice}"
        )


def find_file(path: Path) -> None:
    """An error if a file of a run directory is not there."""
    if not path.parent.is_dir():
        raise RunError(f"{path.parent}: no such run directory")
    if not path.is_file():
        raise RunError(f"{path.parent} is not a complete run directory: {path.name} is missing")
