"""Files written whole or not at all, and still there after the power has failed."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: Path | str, content: bytes | str) -> None:
    """Write under another name, flush, rename into place, and flush the folder: a reader sees the
    old file or the new one.

    A link is followed, and what is no plain file, such as a device, is written to as it is.
    """
    path = Path(path).resolve()
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.write(content)
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _naming(path):
        _write(path, temporary, content)
        flush(path.parent)


def _write(path: Path, temporary: Path, content: bytes) -> None:
    """Write the one, and make it the other."""
    try:
        temporary.unlink(missing_ok=True)  # of a process of this number that was killed
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an error say which file could not be written: the system names none when a disk is full,
    and the temporary one when a folder may not be written to.
    """
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def append_line(path: Path, line: str) -> None:
    """Add a line to a log. Whoever is killed here leaves half a line, which no reader takes for a
    whole one.
    """
    with _naming(path), path.open("ab") as log:
        log.write(line.encode() + b"\n")


def flush(path: Path) -> None:
    """Bring what was written to a file, or the names in a folder, to the disk itself."""
    if sys.platform == "win32":
        return  # where folders cannot be opened, and renaming is flushed by itself
    try:
        opened = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # a folder that may be written to but not looked into
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # nothing to flush there
            raise
    finally:
        os.close(opened)


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed while writing have left; nobody may be writing."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
