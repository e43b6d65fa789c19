"""The sentences that two models answer differently, found in the background."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from equitrans.analysis import Prediction
from equitrans.data import Pair
from equitrans.explorer.entry import Entry
from equitrans.explorer.evaluation import in_chunks
from equitrans.training import Trained

CHUNK = 16
"""Largest number of sentences asked at once."""
SHOWN = 100
"""Largest number of sentences in a response."""


@dataclass(frozen=True)
class Differing:
    """A sentence, its target, and two answers, or the reasons why there are none."""

    command: str
    target: str
    one: str
    other: str
    right: tuple[bool, bool]


@dataclass(frozen=True)
class Differences:
    """The sentences of a test set that two models answer differently, found so far."""

    state: Literal["missing", "working", "done", "failed"]
    missing: str | None = None
    test_set: str = ""
    done: int = 0
    of: int = 0
    right: tuple[int, int] = (0, 0)
    differing: int = 0
    sentences: tuple[Differing, ...] = ()


class Comparison:
    """Asks two models the sentences of the first one's test set, step by step."""

    def __init__(self, one: Entry, other: Entry) -> None:
        evaluation = one.evaluation
        self.missing = evaluation if isinstance(evaluation, str) else None
        self._pairs: Sequence[Pair] = () if isinstance(evaluation, str) else evaluation.pairs
        which = "" if isinstance(evaluation, str) else evaluation.which
        self._test_set = f"{which} pairs of {one.name}"
        self._models = one.fixed, other.fixed
        self._state: Literal["working", "done", "failed"] = "working"
        self._done = self._differing = 0
        self._right = [0, 0]
        self._found: list[Differing] = []

    def steps(self) -> Iterator[None]:
        """Ask one chunk per step. An exception ends the comparison, and the report says so."""
        try:
            yield from in_chunks(self._pairs, self._compare, CHUNK)
            self._state = "done"
        except Exception:
            self._state = "failed"
            logging.getLogger(__name__).exception("a comparison stopped")

    def _compare(self, chunk: Sequence[Pair]) -> None:
        sources = [pair.source for pair in chunk]
        found = [model.predict(sources) for model in self._models]
        for pair, one, other in zip(chunk, *found, strict=True):
            right = one.gives(pair.target), other.gives(pair.target)
            self._done += 1
            self._right = [n + r for n, r in zip(self._right, right, strict=True)]
            if (one.words, one.refused) == (other.words, other.refused):
                continue
            self._differing += 1
            if len(self._found) < SHOWN:
                (first, second), text = self._models, self._models[0].text
                said = _said(first, one), _said(second, other)
                self._found.append(
                    Differing(text(pair.source), text(pair.target), said[0], said[1], right)
                )

    def report(self) -> Differences:
        """Return what was found so far."""
        return Differences(
            state=self._state,
            missing="The comparison failed; the terminal shows the details."
            if self._state == "failed"
            else None,
            test_set=self._test_set,
            done=self._done,
            of=len(self._pairs),
            right=(self._right[0], self._right[1]),
            differing=self._differing,
            sentences=tuple(self._found),
        )


def _said(model: Trained, p: Prediction) -> str:
    return f"refused: {p.reason}" if p.refused else model.text(p.words)
