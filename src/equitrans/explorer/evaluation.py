"""The mistakes of a model on the pairs of its run, found in the background."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from equitrans.data import Pair, representative
from equitrans.explorer.schema import Errors, Mistake, Template
from equitrans.training import Trained

CHUNK = 24
"""Number of orbits that an evaluation decodes at once: a request waits for at most one chunk."""
PAGE = 25
"""Number of mistakes per page."""
TEMPLATES = 200
"""Number of templates to choose from, those with the largest share of mistakes first."""


class Evaluation:
    """Finds the mistakes of a model on some pairs, step by step, one orbit after the other."""

    def __init__(self, trained: Trained, pairs: Sequence[Pair], which: str) -> None:
        self.which, self.of = which, len(pairs)
        self.started = False
        self._trained = trained
        self._mistakes: list[Mistake] = []
        self._right: Counter[str] = Counter()
        self._pairs: Counter[str] = Counter()
        self._known = trained.symmetry.source.index.keys()
        sharing = trained.model.sharing
        orbits: dict[object, list[Pair]] = {}
        for pair in pairs:
            key: object = pair
            if self._known >= set(pair.source):
                key = representative(sharing, sharing.source.encode(pair.source))[0]
            orbits.setdefault(key, []).append(pair)
        self._waiting = list(orbits.values())[::-1]

    def steps(self) -> Iterator[None]:
        """Evaluate one chunk per step."""
        while self._waiting:
            size = min(CHUNK, len(self._waiting))
            self._evaluate([pair for _ in range(size) for pair in self._waiting.pop()])
            yield

    def _evaluate(self, chunk: Sequence[Pair]) -> None:
        known = [pair.source for pair in chunk if self._known >= set(pair.source)]
        best = zip(known, self._trained.predict(known), strict=True)
        predicted = {source: None if p.refused else p.words for source, p in best}
        for pair in chunk:
            template = " ".join(self._trained.symmetry.template(pair.source))
            words = predicted.get(pair.source)
            self._pairs[template] += 1
            self._right[template] += words == pair.target
            if words != pair.target:
                command = self._trained.text(pair.source)
                self._mistakes.append(Mistake(command, template, pair.target, words))

    def report(self, template: str | None, page: int) -> Errors:
        """Return a page of the mistakes found so far, of one template or of all."""
        matching = [m for m in self._mistakes if template in (None, m.template)]
        wrong = Counter(m.template for m in self._mistakes)
        worst = sorted(wrong, key=lambda t: (self._right[t] / self._pairs[t], -wrong[t], t))
        pages = max(1, math.ceil(len(matching) / PAGE))
        page = min(page, pages)
        return Errors(
            state="working" if self._waiting else "done",
            which=self.which,
            done=self._pairs.total(),
            of=self.of,
            right=self._right.total(),
            templates=tuple(Template(t, self._right[t], self._pairs[t]) for t in worst[:TEMPLATES]),
            mistakes=tuple(matching[(page - 1) * PAGE : page * PAGE]),
            matching=len(matching),
            page=page,
            pages=pages,
            missing=None,
        )
