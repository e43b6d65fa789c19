"""A process that does one job after another, and may die without taking another with it."""

import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, TypeVar

from equitrans.errors import EquitransError

Job = TypeVar("Job")
Result = TypeVar("Result")

GRACE_SECONDS = 2.0
"""So long does a process that is asked to end have before it is killed."""


@dataclass(frozen=True)
class Failed:
    """In place of a result: the work raised an exception."""

    message: str
    details: str
    """The traceback."""

    @classmethod
    def of(cls, error: Exception) -> "Failed":
        """What is known of an exception; only unforeseen ones need their kind to be understood."""
        kind = "" if isinstance(error, EquitransError) else f"{type(error).__name__}: "
        return cls(f"{kind}{error}", "".join(traceback.format_exception(error)))


def attempt(work: Callable[[Job], Result], job: Job) -> Result | Failed:
    """The result, or why there is none.

    >>> attempt(len, "walk")
    4
    >>> attempt(len, 4).message
    "TypeError: object of type 'int' has no len()"
    """
    try:
        return work(job)
    except Exception as error:
        return Failed.of(error)


class Worker:
    """A process of one thread. It does nothing until work is sent, and ends with its parent."""

    def __init__(self) -> None:
        # spawned, since a forked process would have the locks, but not the threads, of torch
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _one_thread():
            self._process.start()
        theirs.close()  # or its end would not be noticed

    def send(self, work: Callable[[Job], Any], job: Job) -> None:
        """Begin a job; the one before must have been received."""
        with suppress(ConnectionError):  # died while idle: found out on receiving
            self._pipe.send((work, job))

    def receive(self) -> Any:
        """The result, or Failed; ChildProcessError if the process died."""
        with suppress(EOFError, OSError):
            if self._pipe.poll():
                return self._pipe.recv()
        self._process.join(GRACE_SECONDS)
        code = self._process.exitcode
        if code is not None and code < 0:
            raise ChildProcessError(f"its process was killed by {signal.Signals(-code).name}")
        raise ChildProcessError(f"its process ended with status {code}")

    def terminate(self) -> None:
        """Ask the process to end, and do not wait."""
        self._process.terminate()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.terminate()
        self._process.join(GRACE_SECONDS)
        self._process.kill()
        self._process.join()
        self._pipe.close()

    @staticmethod
    def ready(workers: Iterable["Worker"]) -> list["Worker"]:
        """Those that can be received from, since they answered or died; waits for one."""
        signs: dict[Any, Worker] = {}
        for worker in workers:
            signs |= {worker._pipe: worker, worker._process.sentinel: worker}
        return list(dict.fromkeys(signs[sign] for sign in wait(signs)))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started within have one thread: torch reads this when it is imported, which is
    before any line of ours is run there.
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ |= dict.fromkeys(names, "1")
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ |= before


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):  # the parent is gone
        while True:
            try:
                pipe.send(attempt(*pipe.recv()))
            except (EOFError, ConnectionError):
                raise
            except Exception as error:  # what cannot go through a pipe
                pipe.send(Failed.of(error))


def _end_with_parent() -> None:
    """Nobody is left to take the result, and whoever begins anew must be alone with the files."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
