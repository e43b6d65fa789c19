"""One process at a time: a lock that ends with the process that holds it, however that ends."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from equitrans.errors import RunError

POLL_SECONDS = 0.05


@contextmanager
def locked(path: Path | str, *, what: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of something while others are refused, after so many seconds of waiting.

    The lock is the kernel's and not the file, so a file that was left by a process that was killed
    locks nothing. Where there is no such lock (on Windows) nobody is refused.
    """
    if sys.platform == "win32":
        yield
        return
    opened = _acquire(Path(path), what, patience)
    try:
        os.ftruncate(opened, 0)
        os.pwrite(opened, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        with suppress(FileNotFoundError):  # removed with its folder
            os.unlink(path)
        os.close(opened)


def _acquire(path: Path, what: str, patience: float) -> int:
    import fcntl

    deadline = time.monotonic() + patience
    while True:
        # no link is followed: what is written here is written here
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_at(path, opened):
                return opened
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(opened, 200, 0).decode(errors="replace").strip()
                os.close(opened)
                raise RunError(
                    f"{what} is in use by {holder or 'another process'}; "
                    "wait until it ends, or end it"
                ) from None
            time.sleep(POLL_SECONDS)
        except BaseException:
            os.close(opened)
            raise
        os.close(opened)


def _is_still_at(path: Path, opened: int) -> bool:
    """Whether the file that was locked is the one that others find; its holder before may have
    removed it between our opening and our locking it.
    """
    try:
        found, held = os.stat(path), os.fstat(opened)
    except FileNotFoundError:
        return False
    return (found.st_ino, found.st_dev) == (held.st_ino, held.st_dev)
