"""Learning again from the page: a run's pairs with answers to suggested sentences.

Nothing is written to disk. A thread of its own learns, one model after the other, while the worker
thread goes on answering requests.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count

from equitrans.data import Data, Pair, as_pairs
from equitrans.errors import DataError, EquitransError
from equitrans.explorer.entry import Entry
from equitrans.explorer.queue import BusyError
from equitrans.explorer.registry import Registry
from equitrans.explorer.schema import Changed, Relearned
from equitrans.models import TransducerConfig
from equitrans.settings import check_pairs
from equitrans.training import Trained, fitted

MOST_PAIRS = 2_000
"""Largest number of pairs that the page learns from; more take minutes."""
MOST_MODELS = 8
"""Largest number of models that the page learns before the server is started again."""
SHOWN = 50
"""Largest number of changed answers in a response."""

Key = tuple[str, tuple[str, ...]]
"""A model, and answers, each written ``source<TAB>target``."""


class Lessons:
    """The models that were learned from the page, and those that are being learned."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lessons")
        self._found: dict[Key, Future[Relearned]] = {}

    def ask(self, run: str, answers: tuple[str, ...]) -> Relearned:
        """Return what changed, or that learning has not ended; the first call starts it."""
        key = run, answers
        if key not in self._found:
            pairs = self._pairs(self._registry.find(run), answers)
            if len(self._found) >= MOST_MODELS:
                raise BusyError(
                    f"the page has learned {MOST_MODELS} models; start equitrans explore again"
                )
            self._found[key] = self._thread.submit(self._learn, run, pairs)
        future = self._found[key]
        if not future.done():
            return Relearned("working")
        try:
            return future.result()
        except EquitransError as error:
            return Relearned("failed", problem=str(error))

    def close(self) -> None:
        """Drop what has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _pairs(self, entry: Entry, answers: tuple[str, ...]) -> tuple[Pair, ...]:
        """The pairs of a run and the answers; an answer replaces the pair of its sentence."""
        if entry.trained.grammar is None:
            raise DataError("only a model with rules is learned again here")
        data = self._data(entry)
        parts = [answer.partition("\t") for answer in answers]
        if not all(source.strip() and target.strip() for source, _, target in parts):
            raise DataError("an answer is a sentence, a tab and its target")
        sides = [(source, target) for source, _, target in parts]
        new = as_pairs(sides, characters=entry.trained.characters)
        check_pairs(new)
        sources = {pair.source for pair in new}
        old = (*data.train, *data.valid)
        found = (*(pair for pair in old if pair.source not in sources), *new)
        if len(found) > MOST_PAIRS:
            raise DataError(
                f"there are {len(found)} pairs, too many to learn here (at most {MOST_PAIRS}); "
                "add the lines to the file and learn with the command"
            )
        return found

    def _data(self, entry: Entry) -> Data:
        if isinstance(entry.data, str):
            raise DataError(entry.data)
        return entry.data

    def _learn(self, run: str, pairs: tuple[Pair, ...]) -> Relearned:
        """Learn, add the new model to the page and return what changed."""
        entry = self._registry.find(run)
        before = entry.trained
        after, _ = fitted(
            pairs,
            "discover",
            model=TransducerConfig(aligner="recursive"),
            characters=before.characters,
            split_words=before.split,
        )
        names = (f"{run}+{n}" for n in count(1))
        name = next(name for name in names if name not in self._registry.entries)
        given = replace(self._data(entry), train=pairs, valid=())
        self._registry.entries[name] = Entry(name, after, None, given)
        sources = list(dict.fromkeys(pair.source for pair in pairs))
        texts = [
            [
                f"refused: {p.reason}" if p.refused else model.text(p.words)
                for p in model.predict(sources)
            ]
            for model in (before, after)
        ]
        changed = [
            Changed(before.text(source), one, other)
            for source, one, other in zip(sources, *texts, strict=True)
            if one != other
        ]
        return Relearned(
            "done",
            name=name,
            classes_gained=_new(_classes, after, before),
            classes_lost=_new(_classes, before, after),
            rules_gained=_new(_rules, after, before),
            rules_lost=_new(_rules, before, after),
            unexplained=(_unexplained(before), _unexplained(after)),
            asked=len(sources),
            differing=len(changed),
            changed=tuple(changed[:SHOWN]),
        )


def _new(parts: Callable[[Trained], list[str]], model: Trained, other: Trained) -> tuple[str, ...]:
    known = set(parts(other))
    return tuple(text for text in parts(model) if text not in known)


def _classes(trained: Trained) -> list[str]:
    """The words of each class; its name does not matter."""
    return [", ".join(c.source) for c in trained.symmetry.classes if c.source]


def _rules(trained: Trained) -> list[str]:
    return [] if trained.grammar is None else list(trained.grammar.texts)


def _unexplained(trained: Trained) -> int:
    return 0 if trained.grammar is None else len(trained.grammar.exceptions)
