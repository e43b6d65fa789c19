"""One job by shards, in local processes or on a Ray cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from equitrans.errors import ConfigError, RunError
from equitrans.experiments.executors import (
    Failed,
    Lost,
    Outcomes,
    Worker,
    connected,
    end_workers,
    room,
    run_in,
    run_on_ray,
)
from equitrans.shards import LEAST, Spread, spread


@contextmanager
def spread_locally(workers: int, *, retries: int = 2, least: int = LEAST) -> Iterator[None]:
    """Inside this block, rules are learned by shards of forms in ``workers`` processes, which
    stay until its end. Fewer than ``least`` forms are not sent.
    """
    if workers < 1:
        raise ConfigError(f"workers is {workers}; it must be 1 or more")
    idle: list[Worker] = []

    def run(work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        jobs = enumerate(parts)
        return _in_order(
            run_in(partial(_second, work), jobs, idle, workers=workers, retries=retries)
        )

    try:
        with spread(Spread(run, workers, least)):
            yield
    finally:
        end_workers(idle)


@contextmanager
def spread_on_ray(address: str | None, *, retries: int = 2, least: int = LEAST) -> Iterator[None]:
    """Inside this block, rules are learned by shards of forms on a Ray cluster, one for each of its
    CPUs. Without an address, Ray is started on this machine and stopped at the end.
    """
    ray, ours = connected(address)

    def run(work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        jobs = enumerate(parts)
        return _in_order(run_on_ray(partial(_second, work), jobs, address=address, retries=retries))

    try:
        with spread(Spread(run, room(ray.cluster_resources(), 1.0, 0.0), least)):
            yield
    finally:
        if ours:
            ray.shutdown()


def _second(work: Callable[[Any], Any], job: tuple[int, Any]) -> Any:
    """The result for a shard with its number."""
    return work(job[1])


def _in_order(outcomes: Outcomes[tuple[int, Any], Any]) -> list[Any]:
    """The results of numbered shards."""
    results = {}
    for (number, _), outcome in outcomes:
        if isinstance(outcome, Failed):
            raise RunError(f"shard {number} failed: {outcome.message}\n{outcome.details}")
        if isinstance(outcome, Lost):
            raise RunError(f"shard {number} was lost: {outcome.reason}")
        results[number] = outcome
    return [results[number] for number in sorted(results)]
