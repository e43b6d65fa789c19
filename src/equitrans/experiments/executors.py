"""Many jobs at once: in this process, in local processes, or on a Ray cluster.

``work`` is a function at the top of a module, from a job to a result, both plain data. Jobs are
pulled one at a time, whenever a worker is free and all results there are have been given out: what
decides on the next job may wait until then. Knows nothing of training.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from equitrans.errors import ConfigError
from equitrans.experiments.workers import Failed, Worker, attempt

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Lost:
    """In place of a result: whatever did the work died, and so did those that tried again."""

    reason: str


Outcomes = Iterator[tuple[Job, Result | Failed | Lost]]
"""Every job once, with what came of it, in the order in which they end."""


def run_here(work: Callable[[Job], Result], jobs: Iterable[Job]) -> Outcomes[Job, Result]:
    """One job after another, in this process.

    >>> list(run_here(len, ["walk", "jump twice"]))
    [('walk', 4), ('jump twice', 10)]
    """
    for job in jobs:
        yield job, attempt(work, job)


def run_locally(
    work: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int, retries: int = 2
) -> Outcomes[Job, Result]:
    """So many processes at once, of one thread each.

    A process that dies takes no other with it, and its job is begun anew up to so many times.
    Closing the iterator, or an interrupt, ends all processes, whatever they are doing.
    """
    _check_at_least(1, workers=workers)
    _check_at_least(0, retries=retries)
    return _run_locally(work, jobs, workers=workers, retries=retries)


def _run_locally(
    work: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int, retries: int
) -> Outcomes[Job, Result]:
    new = (_Task(job) for job in jobs)
    again: deque[_Task[Job]] = deque()
    crew: list[Worker] = []
    busy: dict[Worker, _Task[Job]] = {}
    try:
        while True:
            while len(busy) < workers:
                task = again.popleft() if again else next(new, None)
                if task is None:
                    break
                if len(busy) == len(crew):
                    crew.append(Worker())
                worker = next(worker for worker in crew if worker not in busy)
                busy[worker] = task
                worker.send(work, task.job)
            if not busy:
                return
            for worker in Worker.ready(busy):
                task = busy.pop(worker)
                try:
                    outcome = worker.receive()
                except ChildProcessError as death:
                    worker.end()
                    crew.remove(worker)
                    task.deaths += 1
                    if task.deaths <= retries:
                        again.append(task)
                        continue
                    outcome = Lost(f"{death}, {task.deaths} times in all")
                yield task.job, outcome
    finally:
        for worker in crew:
            worker.terminate()  # all of them, before any is waited for
        for worker in crew:
            worker.end()


@dataclass(eq=False)
class _Task(Generic[Job]):
    job: Job
    deaths: int = 0


def run_on_ray(
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    address: str | None,
    retries: int = 2,
    cpus: float = 1.0,
    gpus: float = 0.0,
) -> Outcomes[Job, Result]:
    """The same on a Ray cluster, as many jobs at once as it has room for, of so many CPUs and GPUs
    each.

    Without an address, a Ray of this machine's own is started, and ended afterwards. A process that
    is connected to Ray already stays so. Closing the iterator, or an interrupt, ends all jobs.
    """
    _check_at_least(0, retries=retries)
    if not cpus > 0:
        raise ConfigError(f"cpus is {cpus}; it must be above 0")
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError("Ray is not installed: pip install 'equitrans[ray]'") from None
    return _run_on_ray(ray, work, jobs, address=address, retries=retries, cpus=cpus, gpus=gpus)


def _run_on_ray(
    ray: Any,
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    address: str | None,
    retries: int,
    cpus: float,
    gpus: float,
) -> Outcomes[Job, Result]:
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries)(attempt)
    new = iter(jobs)
    running: dict[Any, Job] = {}
    try:
        while True:
            room = int(ray.cluster_resources().get("CPU", 0) / cpus)  # machines come and go
            while len(running) < max(room, 1):
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
                except ray.exceptions.RayTaskError as error:  # what cannot be pickled
                    outcome = Failed(f"{type(error.cause).__name__}: {error.cause}", str(error))
                except ray.exceptions.RayError as error:
                    outcome = Lost(f"{type(error).__name__}: {error}")
                yield running.pop(task), outcome
    finally:
        for task in running:
            ray.cancel(task, force=True)
        if ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    quiet = {"logging_level": "WARNING", "log_to_driver": False}
    if address is None:
        ray.init(address="local", include_dashboard=False, **quiet)
        return
    host, colon, port = address.rpartition(":")
    try:
        if colon and port.isdigit() and "/" not in host:
            # Ray itself was still trying after eight minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(
            f"no Ray cluster can be used at {address}: {error}; if it was started with a token,"
            " this side needs the same one, and RAY_AUTH_MODE=token in its environment"
        ) from None


def _check_at_least(least: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < least:
            raise ConfigError(f"{name} is {value}; it must be {least} or more")
