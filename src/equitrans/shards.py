"""Work on many items by shards, in this process or where ``spread`` sends the shards."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""A function that applies a function to each shard and gives the results in order."""

LEAST = 200
"""Number of items from which on work is divided; to send fewer takes longer than to do it here."""


@dataclass(frozen=True)
class Spread:
    """Where shards are worked on, and how many there are."""

    run: Run
    shards: int
    least: int = LEAST


_current: ContextVar[Spread | None] = ContextVar("spread", default=None)


@contextmanager
def spread(how: Spread | None) -> Iterator[None]:
    """Let ``by_shards`` divide its work inside this block; None works here."""
    token = _current.set(how)
    try:
        yield
    finally:
        _current.reset(token)


def is_spread() -> bool:
    """Whether work is divided into shards."""
    return _current.get() is not None


def by_shards(
    work: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item]
) -> list[Result]:
    """What ``work`` gives for each item, in the order of the items.

    The result of an item must not depend on the other items. So it is the same for every number of
    shards. Other processes need a ``work`` at the top level of a module, or a partial of one.

    >>> with spread(Spread(lambda work, parts: [work(part) for part in parts], shards=2, least=1)):
    ...     by_shards(lambda part: [len(word) for word in part], ["a", "bb", "ccc"])
    [1, 2, 3]
    """
    how = _current.get()
    if how is None or how.shards < 2 or len(items) < how.least:
        return work(items)
    shards = min(how.shards, len(items))
    found = how.run(work, [items[k::shards] for k in range(shards)])
    results: list[Any] = [None] * len(items)
    for k, some in enumerate(found):
        results[k::shards] = some
    return results
