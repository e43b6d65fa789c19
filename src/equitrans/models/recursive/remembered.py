"""Inductions that are asked for twice: to choose between classes, and to learn with the best."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from equitrans.models.recursive.induce import Induction, induce
from equitrans.models.recursive.observe import Observations
from equitrans.models.recursive.passes import Report

_KNOWN: ContextVar[dict[Hashable, Induction] | None] = ContextVar("known", default=None)


@contextmanager
def inductions_remembered() -> Iterator[None]:
    """Induce a grammar once from the same observations, as long as the context is open."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def induce_once(
    seen: Observations, report: Report | None = None, *, quick: bool = False
) -> Induction:
    """What ``induce`` returns; remembered within ``inductions_remembered``."""
    known = _KNOWN.get()
    if known is None:
        return induce(seen, report, quick=quick)
    # the order of the pairs of an observation does not matter
    asked = tuple((o.form, o.target, o.count) for o in seen.all)
    key = asked, seen.symbols, seen.targets, seen.noise, quick
    if key not in known:
        known[key] = induce(seen, report, quick=quick)
    return _with_observations(known[key], seen)


def _with_observations(induced: Induction, seen: Observations) -> Induction:
    """The induction with the observations that have the same forms."""
    now = {o.form: o for o in seen.all}
    return replace(
        induced,
        lost=tuple(now[o.form] for o in induced.lost),
        others=tuple(_with_observations(other, seen) for other in induced.others),
    )
