"""The mistakes of a model on the pairs of its run, found in the background."""

import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, TypeVar

from equitrans.data import Pair, representative
from equitrans.errors import DataError
from equitrans.explorer.schema import Errors, Mistake, Template
from equitrans.training import Trained

CHUNK = 24
"""Largest number of orbits that an evaluation decodes at once."""
CHUNK_SECONDS = 0.15
"""A chunk that takes longer halves the next one: a request waits for at most one chunk."""
GROUPED = 1_000
"""Number of pairs that are grouped into orbits at once."""
PAGE = 25
"""Number of mistakes per page."""
TEMPLATES = 200
"""Number of templates to choose from, those with the largest share of mistakes first."""

Which = Literal["test", "validation", "training"]
Item = TypeVar("Item")


def in_chunks(
    items: Iterable[Item], work: Callable[[list[Item]], None], size: int
) -> Iterator[None]:
    """Work on up to ``size`` items per step, and on half of them after a step that took long."""
    waiting = iter(items)
    while chunk := list(islice(waiting, size)):
        begun = time.thread_time()
        work(chunk)
        if time.thread_time() - begun > CHUNK_SECONDS:
            size = max(1, size // 2)
        yield


class Evaluation:
    """Finds the mistakes of a model on some pairs, step by step, one orbit after the other."""

    def __init__(self, trained: Trained, pairs: Sequence[Pair], which: Which) -> None:
        self.which, self.of = which, len(pairs)
        self.started = False
        self._trained, self.pairs = trained, pairs
        self._state: Literal["working", "done", "failed"] = "working"
        self._mistakes: defaultdict[str | None, list[Mistake]] = defaultdict(list)
        self._right: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._worst: tuple[Template, ...] | None = None

    def steps(self) -> Iterator[None]:
        """Evaluate one chunk per step. An exception ends the evaluation, and the report says so."""
        try:
            yield from self._steps()
            self._state = "done"
        except Exception:
            self._state = "failed"
            logging.getLogger(__name__).exception("an evaluation stopped")

    def _steps(self) -> Iterator[None]:
        sharing, reading = self._trained.model.sharing, self._trained.reading
        known = sharing.source.index.keys()
        orbits: dict[object, list[Pair]] = {}
        for number, pair in enumerate(self.pairs, start=1):
            key: object = pair
            with suppress(DataError):
                symbols = reading.source(pair.source).symbols
                if known >= {*symbols}:
                    key = representative(sharing, sharing.source.encode(symbols))[0]
            orbits.setdefault(key, []).append(pair)
            if number % GROUPED == 0:
                yield
        yield from in_chunks(
            orbits.values(),
            lambda some: self._evaluate([pair for orbit in some for pair in orbit]),
            CHUNK,
        )

    def _evaluate(self, chunk: Sequence[Pair]) -> None:
        best = self._trained.predict([pair.source for pair in chunk])
        for pair, p in zip(chunk, best, strict=True):
            name = " ".join(self._trained.template(pair.source))
            right = p.gives(pair.target)
            self._done[name] += 1
            self._right[name] += right
            if not right:
                command = self._trained.text(pair.source)
                mistake = Mistake(command, name, pair.target, p.words, p.reason)
                self._mistakes[None].append(mistake)
                self._mistakes[name].append(mistake)
        self._worst = None

    def _templates(self) -> tuple[Template, ...]:
        """Return the templates with mistakes, the largest share of mistakes first."""
        right, done = self._right, self._done
        names = (name for name in self._mistakes if name is not None)
        worst = sorted(names, key=lambda t: (right[t] / done[t], right[t] - done[t], t))
        return tuple(Template(t, right[t], done[t]) for t in worst[:TEMPLATES])

    def report(self, template: str | None, page: int) -> Errors:
        """Return a page of the mistakes found so far, of one template or of all."""
        if self._worst is None:  # computed once per chunk, and not for every request
            self._worst = self._templates()
        matching = self._mistakes.get(template, [])
        pages = max(1, math.ceil(len(matching) / PAGE))
        page = min(page, pages)
        failed = "The evaluation failed; the terminal of equitrans explore shows the details."
        return Errors(
            state=self._state,
            which=self.which,
            done=self._done.total(),
            of=self.of,
            right=self._right.total(),
            templates=self._worst,
            mistakes=tuple(matching[(page - 1) * PAGE : page * PAGE]),
            matching=len(matching),
            page=page,
            pages=pages,
            missing=failed if self._state == "failed" else None,
        )
