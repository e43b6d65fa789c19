"""Work for other processes: at the top of a module that imports little."""

import os
import signal
import time
from pathlib import Path

from equitrans.errors import DataError


def square(number: int) -> int:
    return number * number


def square_and_log(job: tuple[int, str]) -> tuple[int, int]:
    """Leave a mark for every time that a job is begun."""
    number, folder = job
    (Path(folder) / f"{number}.{time.monotonic_ns()}").touch()
    return number * number, os.getpid()


def die_once(job: tuple[int, str]) -> int:
    """The third job, in its first try, kills the process that it is in."""
    number, folder = job
    first = not list(Path(folder).glob(f"{number}.*"))
    square_and_log(job)
    if number == 3 and first:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die_at_three(job: tuple[int, str]) -> int:
    """The third job kills its process, whenever it is tried."""
    square_and_log(job)
    if job[0] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return job[0] ** 2


def fail_at_odd(number: int) -> int:
    if number == 1:
        raise DataError("tasks.txt:1: no such thing")
    if number == 3:
        return 1 // 0
    if number == 5:
        return lambda: None  # type: ignore[return-value]
    return number


def threads(_: int) -> int:
    import torch

    return torch.get_num_threads()


def announce_and_sleep(job: tuple[int, str]) -> None:
    """Refuse to end when asked to, as a process deep in native code may."""
    number, folder = job
    if number == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)


def exit_quietly(_: int) -> None:
    os._exit(3)
