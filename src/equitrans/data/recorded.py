"""Data that a model directory names. A stranger may have chosen the name: a file is read only if it
is a regular file of limited size, and nothing of it is shown unless its digest is the recorded one.
"""

import stat
from pathlib import Path

from equitrans.data.pairs import Split
from equitrans.data.scan import RULES, load_split
from equitrans.data.source import Data, DataConfig, load_data
from equitrans.errors import DataError, RunError, shown
from equitrans.paper import LexicalClass

LARGEST_FILE = 256_000_000
"""Largest size of a file that a model directory names, in bytes."""


def recorded_data(
    config: DataConfig, *, seed: int, classes: tuple[LexicalClass, ...], digest: str
) -> Data | None:
    """The data of a training, or None if they have changed. The classes come from the model, so
    their file is not read.
    """
    if config.file is not None:
        _check_file(Path(config.file))
    elif config.split is not None:
        _check_folder(config.split, config.scan_dir)
    try:
        data = load_data(config, seed=seed, classes=classes)
    except DataError:  # its message may quote the file
        return None
    return data if data.digest == digest else None


def recorded_split(name: str, scan_dir: str | None) -> Split:
    """The split of a training; raise RunError if its folder lacks the official files."""
    _check_folder(name, scan_dir)
    try:
        return load_split(name, scan_dir)
    except DataError:  # its message may quote the file
        raise RunError(
            f"{scan_dir} does not have the official files of {name}, with which the "
            "model was trained; give --scan-dir DIR"
        ) from None


def _check_folder(split: str, scan_dir: str | None) -> None:
    if scan_dir is not None and split in RULES:
        for part in ("train", "test"):
            path = Path(scan_dir) / RULES[split].files.format(part)
            if path.is_file():  # load_split opens no others
                _check_file(path)


def _check_file(path: Path) -> None:
    """Raise RunError unless a path is a regular file of limited size. Devices, pipes and the files
    of /proc, whose size is 0, are not read: some of them have no end.
    """
    try:
        found = path.stat()
    except ValueError:  # NUL or a lone surrogate in the name
        raise RunError(f"{shown(str(path))} is not the name of a file") from None
    if not stat.S_ISREG(found.st_mode) or not found.st_size:
        raise RunError(f"{path} is not a regular file, or it is empty; it is not read")
    if found.st_size > LARGEST_FILE:
        raise RunError(f"{path} has {found.st_size} bytes; the limit is {LARGEST_FILE}")
