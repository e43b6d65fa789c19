"""Run a list of jobs in local processes or on a Ray cluster. Knows nothing of training.

``work`` is a function at the top level of a module. It takes a job and returns a result, both plain
data. Each outcome is yielded once, in the order in which jobs end. The next job is taken from the
iterable only when a worker is free and all known results were yielded, so that an iterable may
choose its next job by the results.
"""

import os
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, TypeVar

from equitrans.errors import ConfigError, EquitransError

Job = TypeVar("Job")
Result = TypeVar("Result")

GRACE_SECONDS = 2.0
"""Seconds between the request to end a process and its kill."""


@dataclass(frozen=True)
class Failed:
    """Outcome of a job whose function raised an exception."""

    message: str
    details: str
    """The traceback."""

    @classmethod
    def of(cls, error: Exception) -> "Failed":
        """The exception as text; errors of this package are shown without their class."""
        kind = "" if isinstance(error, EquitransError) else f"{type(error).__name__}: "
        return cls(f"{kind}{error}", "".join(traceback.format_exception(error)))


@dataclass(frozen=True)
class Lost:
    """Outcome of a job whose process died at every attempt."""

    reason: str


Outcomes = Iterator[tuple[Job, Result | Failed | Lost]]


def attempt(work: Callable[[Job], Result], job: Job) -> Result | Failed:
    """The result of a job, or Failed.

    >>> attempt(len, "walk")
    4
    >>> attempt(len, 4).message
    "TypeError: object of type 'int' has no len()"
    """
    try:
        return work(job)
    except Exception as error:
        return Failed.of(error)


# --- local processes


def run_locally(
    work: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int, retries: int = 2
) -> Outcomes[Job, Result]:
    """Run jobs in ``workers`` processes of one thread each.

    A job whose process dies is repeated up to ``retries`` times; other jobs continue. Closing the
    iterator, or an interrupt, ends all processes.
    """
    idle: list[Worker] = []
    try:
        yield from run_in(work, jobs, idle, workers=workers, retries=retries)
    finally:
        end_workers(idle)


def run_in(
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    idle: "list[Worker]",
    *,
    workers: int,
    retries: int,
) -> Outcomes[Job, Result]:
    """Run jobs in idle processes and new ones; those that have not died are idle at the end."""
    _check_at_least(1, workers=workers)
    _check_at_least(0, retries=retries)
    new = ((job, 0) for job in jobs)
    again: deque[tuple[Job, int]] = deque()
    busy: dict[Worker, tuple[Job, int]] = {}
    try:
        while True:
            while len(busy) < workers:
                task = again.popleft() if again else next(new, None)
                if task is None:
                    break
                worker = idle.pop() if idle else Worker()
                busy[worker] = task
                worker.send(work, task[0])
            if not busy:
                return
            for worker in _ready(busy):
                job, deaths = busy[worker]
                try:
                    outcome = worker.receive()
                except ChildProcessError as death:
                    del busy[worker]
                    worker.end()
                    if deaths < retries:
                        again.append((job, deaths + 1))
                        continue
                    outcome = Lost(f"{death}; attempts: {deaths + 1}")
                else:
                    del busy[worker]
                    idle.append(worker)
                yield job, outcome
    finally:
        end_workers([*busy])


def end_workers(workers: "Sequence[Worker]") -> None:
    """End processes."""
    for worker in workers:
        worker.process.terminate()  # all at once, before waiting for any
    for worker in workers:
        worker.end()


class Worker:
    """A process of one thread that runs one job after another and ends with its parent."""

    def __init__(self) -> None:
        # spawn: a forked process would inherit the locks of torch, but not its threads
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # else the end of the process would not close the pipe

    def send(self, work: Callable[[Job], Any], job: Job) -> None:
        """Start a job."""
        with suppress(ConnectionError):  # receive() reports a process that died while idle
            self.pipe.send((work, job))

    def receive(self) -> Any:
        """The result or Failed; raise ChildProcessError if the process died."""
        with suppress(EOFError, OSError):
            if self.pipe.poll():
                return self.pipe.recv()
        self.process.join(GRACE_SECONDS)
        code = self.process.exitcode
        if code is not None and code < 0:
            raise ChildProcessError(f"its process was killed by {signal.Signals(-code).name}")
        raise ChildProcessError(f"its process ended with status {code}")

    def end(self) -> None:
        """End the process, by a kill if it does not end within GRACE_SECONDS."""
        self.process.terminate()
        self.process.join(GRACE_SECONDS)
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _ready(workers: Iterable[Worker]) -> list[Worker]:
    """Wait until a worker has answered or died; return all such workers."""
    signs: dict[Any, Worker] = {}
    for worker in workers:
        signs |= {worker.pipe: worker, worker.process.sentinel: worker}
    return list(dict.fromkeys(signs[sign] for sign in wait(signs)))


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
    Thread(target=_end_with_parent, daemon=True).start()
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # torch reads them on import
    if "torch" in sys.modules:  # imported by the main module
        sys.modules["torch"].set_num_threads(1)
    with suppress(EOFError, ConnectionError):  # the parent has ended
        while True:
            try:
                pipe.send(attempt(*pipe.recv()))
            except (EOFError, ConnectionError):
                raise
            except Exception as error:  # the job or the result cannot be pickled
                pipe.send(Failed.of(error))


def _end_with_parent() -> None:
    """End this process when its parent ends, so that a repeated job has its files for itself."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


# --- Ray


def run_on_ray(
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    address: str | None,
    retries: int = 2,
    cpus: float = 1.0,
    gpus: float = 0.0,
) -> Outcomes[Job, Result]:
    """Run jobs on a Ray cluster, as many at once as its CPUs and GPUs allow. A job uses ``cpus``
    CPUs and ``gpus`` GPUs.

    Without an address, Ray is started on this machine and stopped at the end. A process that is
    already connected to Ray stays connected. Closing the iterator, or an interrupt, ends all jobs.
    """
    _check_at_least(0, retries=retries)
    if not cpus > 0:
        raise ConfigError(f"cpus is {cpus}; it must be above 0")
    ray, ours = connected(address)
    remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries)(attempt)
    new = iter(jobs)
    running: dict[Any, Job] = {}
    try:
        while True:
            most = room(ray.cluster_resources(), cpus, gpus)  # machines come and go
            while len(running) < most:
                try:
                    job = next(new)
                except StopIteration:
                    break
                running[remote.remote(work, job)] = job
            if not running:
                return
            for task in ray.wait(list(running))[0]:
                try:
                    outcome = ray.get(task)
                except ray.exceptions.RayTaskError as error:  # the result cannot be pickled
                    outcome = Failed(f"{type(error.cause).__name__}: {error.cause}", str(error))
                except ray.exceptions.RayError as error:
                    outcome = Lost(f"{type(error).__name__}: {error}")
                yield running.pop(task), outcome
    finally:
        for task in running:
            ray.cancel(task, force=True)
        if ours:
            ray.shutdown()


def room(resources: Mapping[str, float], cpus: float, gpus: float) -> int:
    """Number of jobs that a cluster runs at once, at least one.

    >>> room({"CPU": 64.0, "GPU": 4.0}, 1.0, 1.0), room({"CPU": 64.0}, 2.0, 0.0)
    (4, 32)
    """
    asked = {"CPU": cpus, "GPU": gpus}
    rooms = [resources.get(name, 0.0) / share for name, share in asked.items() if share > 0]
    return max(int(min(rooms)), 1)


def connected(address: str | None) -> tuple[Any, bool]:
    """Ray, connected to a cluster, and whether it was not before."""
    try:
        ray: Any = import_module("ray")
    except ModuleNotFoundError:
        raise ConfigError("Ray is not installed: pip install 'equitrans[ray]'") from None
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    return ray, ours


def _connect(ray: Any, address: str | None) -> None:
    quiet = {"logging_level": "WARNING", "log_to_driver": False}
    if address is None:
        ray.init(address="local", include_dashboard=False, **quiet)
        return
    host, colon, port = address.rpartition(":")
    try:
        if colon and port.isdigit() and "/" not in host:
            # Ray itself retries an unreachable address for more than eight minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(
            f"cannot connect to a Ray cluster at {address}: {error}; a cluster with a token needs "
            "the same token here, and RAY_AUTH_MODE=token in the environment"
        ) from None


def _check_at_least(least: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < least:
            raise ConfigError(f"{name} is {value}; it must be {least} or more")
