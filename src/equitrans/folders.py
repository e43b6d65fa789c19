"""Folders that models are kept in: what must not be in them, before they are read or written."""

import os
from pathlib import Path

from equitrans.errors import RunError

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


def refuse_used(path: Path | str) -> None:
    """An error if there is something where a new model is to go; what a process has left that was
    killed as it began is nothing.
    """
    path = Path(path)
    names = {p.name for p in path.iterdir()} if path.is_dir() else set()
    begun = {name for name in names if name.startswith(".") and name.endswith(".tmp")}
    begun |= {LOCK, "vocabulary.json"} if LOCK in names else set()
    if (path.exists() and not path.is_dir()) or names - begun:
        run = f", or continue it with equitrans train --resume {path}"
        hint = run if "epochs.jsonl" in names else ""
        raise RunError(f"{path} is in use; choose another directory{hint}")
