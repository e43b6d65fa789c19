"""One worker thread for all work on models, and one cache for its results.

Work that has begun is never interrupted: limits on the size of a request bound its duration.
"""

import asyncio
import logging
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from equitrans.errors import EquitransError

SECONDS = 10.0
"""Timeout of a request in seconds; then the client gets BusyError."""
WAITING = 256
"""Number of requests that may wait; one more gets BusyError."""
BATCH = 32
"""Number of waiting requests whose predictions are made in one batch."""

ENTRY_BYTES = 300
"""Memory of an entry of the cache in bytes, besides its key and its value."""

Key = tuple[str, ...]
Value = TypeVar("Value")


class BusyError(EquitransError):
    """Too many requests are waiting, or one takes too long."""


class Cache:
    """Values by key, of limited total size; the least recently used are dropped first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._values: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Any | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Key, value: Any, size: int) -> None:
        """Store a value of ``size`` bytes, unless it would take more than an eighth of the cache.

        Keys count as well: a client chooses them.
        """
        size += ENTRY_BYTES + sum(map(sys.getsizeof, key))
        if size > self.limit // 8:
            return
        with self._lock:
            if key in self._values:
                self.size -= self._values.pop(key)[1]
            self._values[key] = value, size
            self.size += size
            while self.size > self.limit:
                self.size -= self._values.popitem(last=False)[1][1]


@dataclass(frozen=True)
class Job:
    """A function to call, the questions that it will ask, and where its result goes."""

    function: Callable[[], Any]
    questions: tuple[Any, ...]
    future: Future[Any]


class WorkQueue:
    """Calls functions in one worker thread, first come, first served.

    ``prepare`` gets the questions of all waiting jobs at once before the jobs run, because a beam
    search over ten sentences takes little longer than over one.
    """

    def __init__(self, prepare: Callable[[list[Any]], None] = lambda _: None) -> None:
        self._prepare = prepare
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="explorer")
        self._jobs: deque[Job] = deque()
        self._waiting = 0

    async def run(self, function: Callable[[], Value], *questions: Any) -> Value:
        """Return what a function returns; raise BusyError if that would take too long."""
        if self._waiting >= WAITING:
            raise BusyError("too many requests are waiting; try again")
        future: Future[Value] = Future()
        self._jobs.append(Job(function, questions, future))
        self._thread.submit(self._work)
        self._waiting += 1
        try:
            async with asyncio.timeout(SECONDS):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise BusyError(
                f"the request took longer than {SECONDS:g} seconds; ask for less"
            ) from None
        finally:
            self._waiting -= 1

    def advance(self, steps: Iterator[None]) -> None:
        """Advance an iterator between requests until it ends."""

        def step() -> None:
            try:
                next(steps)
            except StopIteration:
                return
            except Exception:
                logging.getLogger(__name__).exception("background work stopped")
                return
            self.advance(steps)

        with suppress(RuntimeError):  # the queue is closed
            self._thread.submit(step)

    def close(self) -> None:
        """Drop all waiting jobs."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _work(self) -> None:
        """Do the waiting jobs, up to BATCH of them; a job whose client has given up is skipped."""
        jobs = [self._jobs.popleft() for _ in range(min(BATCH, len(self._jobs)))]
        questions = [q for job in jobs if not job.future.cancelled() for q in job.questions]
        if questions:
            with suppress(Exception):  # the job meets the same error and reports it
                self._prepare(questions)
        for job in jobs:
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                job.future.set_result(job.function())
            except Exception as error:
                job.future.set_exception(error)
