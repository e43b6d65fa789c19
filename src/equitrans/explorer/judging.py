"""Predictions for a whole set of pairs, a few at a time, and the errors among them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from equitrans.analysis import Words
from equitrans.data import Pair, representative
from equitrans.training import Trained

CHUNK = 24
"""So many sentences that are decoded apart go together: whoever asks meanwhile waits for one
chunk."""
PAGE = 25
"""So many errors are on a page."""
TEMPLATES = 200
"""So many templates with errors can be chosen from, worst first."""


@dataclass(frozen=True)
class Mistake:
    """A pair that was not predicted, with what was; None if the model refuses it."""

    command: str
    template: str
    target: Words
    predicted: Words | None


@dataclass(frozen=True)
class Template:
    """How many pairs of a template are right."""

    template: str
    right: int
    pairs: int


@dataclass(frozen=True)
class Judged:
    """How far judging has come, and a page of the mistakes found."""

    state: Literal["missing", "working", "done"]
    which: str
    done: int
    of: int
    right: int
    templates: tuple[Template, ...]
    mistakes: tuple[Mistake, ...]
    matching: int
    page: int
    pages: int
    missing: str | None


class Judge:
    """Judges a model by some pairs, those of one orbit together."""

    def __init__(self, trained: Trained, pairs: Sequence[Pair], which: str) -> None:
        self.trained, self.which, self.of = trained, which, len(pairs)
        self.done = self.right = 0
        self.mistakes: list[Mistake] = []
        self._right: Counter[str] = Counter()
        self._pairs: Counter[str] = Counter()
        sharing = trained.model.sharing
        orbits: dict[object, list[Pair]] = {}
        for pair in pairs:
            known = set(pair.source) <= sharing.source.index.keys()
            key = representative(sharing, sharing.source.encode(pair.source))[0] if known else pair
            orbits.setdefault(key, []).append(pair)
        self._waiting = list(orbits.values())[::-1]

    def step(self) -> bool:
        """Judge some more; whether there is more to do."""
        chunk = [
            pair for _ in range(min(CHUNK, len(self._waiting))) for pair in self._waiting.pop()
        ]
        known = self.trained.symmetry.source.index.keys()
        asked = [pair.source for pair in chunk if set(pair.source) <= known]
        said = iter(self.trained.predict(asked))
        for pair in chunk:
            predicted: Words | None = None
            if set(pair.source) <= known:
                best = next(said)
                predicted = None if best.is_refused else best.words
            template = " ".join(self.trained.symmetry.template(pair.source))
            right = predicted == pair.target
            self.right += right
            self._right[template] += right
            self._pairs[template] += 1
            if not right:
                command = self.trained.text(pair.source)
                self.mistakes.append(Mistake(command, template, pair.target, predicted))
        self.done += len(chunk)
        return bool(self._waiting)

    def report(self, template: str | None, page: int) -> Judged:
        """What is known by now; a page of the mistakes of a template, or of all."""
        matching = [m for m in self.mistakes if template in (None, m.template)]
        wrong = Counter(m.template for m in self.mistakes)
        worst = sorted(wrong, key=lambda t: (self._right[t] / self._pairs[t], -wrong[t], t))
        pages = max(1, math.ceil(len(matching) / PAGE))
        page = min(page, pages)
        return Judged(
            state="working" if self._waiting else "done",
            which=self.which,
            done=self.done,
            of=self.of,
            right=self.right,
            templates=tuple(Template(t, self._right[t], self._pairs[t]) for t in worst[:TEMPLATES]),
            mistakes=tuple(matching[(page - 1) * PAGE : page * PAGE]),
            matching=len(matching),
            page=page,
            pages=pages,
            missing=None,
        )


def nothing_to_judge(why: str) -> Judged:
    """In place of a report."""
    return Judged("missing", "", 0, 0, 0, (), (), 0, 1, 1, why)
