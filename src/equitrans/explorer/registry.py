"""The models of the page, each loaded once: requests name them and never reach the disk."""

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.analysis import Words
from equitrans.data import Data, Renaming
from equitrans.errors import ConfigError, DataError, EquitransError, nearest
from equitrans.explorer import views
from equitrans.explorer.evaluation import Evaluation
from equitrans.explorer.queue import Cache, Key
from equitrans.explorer.schema import Answer, Model, Recorded
from equitrans.files import read_json
from equitrans.paper import EOS, Hypothesis
from equitrans.training import Extension, Run, Trained, extend

CACHE_BYTES = 64_000_000
"""Size of the cache of predictions and responses, in bytes."""
LARGEST_TABLE = 4_000_000
"""Number of entries of a translator's table; a larger table is not kept in memory."""
EXTENSIONS = 32
"""Number of extended models in memory; the least recently used is dropped first."""
SUGGESTED = 12
"""Number of commands suggested at once."""
N_BEST = 5
"""Number of targets per command."""
WARM_UP_COMMANDS, WARM_UP_BATCH, WARM_UP_SECONDS = 500, 16, 0.15
"""The warm-up reads at most 500 commands and predicts at most 16 orbits per step, and ends when a
step takes longer than 0.15 s: a request waits for at most one step."""


class MissingRunError(EquitransError):
    """No run has this name."""


class Question(NamedTuple):
    """A command to a model with added words, each written ``word translation class``."""

    run: str
    add: tuple[str, ...]
    command: str


class FixedTranslator(nn.Module):
    """A translator's table, computed once: alignments take a third less time."""

    table: Float[Tensor, "x y"]

    def __init__(self, translator: nn.Module, words: int) -> None:
        super().__init__()
        self.register_buffer("table", translator(torch.arange(words)))

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b y"]:
        """Return rows of the table."""
        return self.table[words]

    def pairs(
        self, source: Int[Tensor, "b n"], target: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m n"]:
        """Return log p(y_m | x_n)."""
        return self.table[source[:, None], target[:, :, None]]


@torch.no_grad()
def fix_translator(trained: Trained) -> Trained:
    """Return a model with a FixedTranslator, or the model itself if it has no table or a large
    one.
    """
    model, words = trained.model, len(trained.symmetry.source)
    has_table = model.translation_table(torch.tensor([EOS])) is not None
    if not has_table or words * len(trained.symmetry.target) > LARGEST_TABLE:
        return trained
    fixed = deepcopy(model)
    fixed.register_module("translator", FixedTranslator(model.get_submodule("translator"), words))
    return replace(trained, model=fixed.eval())


class Orbit:
    """A sentence as the representative of its orbit (theorem 3), and the way back."""

    def __init__(self, trained: Trained, words: Words) -> None:
        self._sharing = trained.model.sharing
        self._renaming = Renaming(self._sharing)
        source = self._sharing.source
        self.words: Words = source.decode(self._renaming.source(source.encode(words)))

    def back(self, best: Hypothesis[str]) -> Hypothesis[str]:
        """Return a prediction of the representative as a prediction of the sentence."""
        target = self._sharing.target
        words = self._renaming.original_target(target.encode(best.words))
        return replace(best, words=target.decode(words))


@dataclass(frozen=True)
class Entry:
    """A model by its name, and its run if the directory has one."""

    name: str
    trained: Trained
    run: Run | None

    @cached_property
    def fixed(self) -> Trained:
        """The model for predictions and alignments."""
        return fix_translator(self.trained)

    @cached_property
    def data(self) -> Data | str:
        """The run's pairs, or why there are none."""
        if self.run is None:
            return "This model was exported without its data."
        try:
            return self.run.load_data()
        except (EquitransError, OSError) as error:
            return f"The data cannot be read: {error}."

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Commands of the data, test pairs first."""
        if isinstance(self.data, str):
            return ()
        pairs = self.data.test + self.data.valid + self.data.train
        return tuple(dict.fromkeys(self.trained.text(pair.source) for pair in pairs))

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.commands)

    def suggest(self, like: str) -> tuple[str, ...]:
        """Return commands that begin with a text, or else contain it; for the empty text, commands
        spread evenly over the data.
        """
        like = " ".join(like.split()) if not self.trained.characters else like
        if not like:
            step = max(1, len(self.commands) // SUGGESTED)
            return self.commands[step // 2 :: step][:SUGGESTED]
        start = bisect_left(self._sorted, like)
        found = [c for c in self._sorted[start : start + SUGGESTED] if c.startswith(like)]
        return tuple(found or islice((c for c in self.commands if like in c), SUGGESTED))

    @cached_property
    def records(self) -> Recorded:
        """The orbits recorded through training."""
        if self.run is None or self.run.config.orbits is None:
            return Recorded(None, (), (), (), "Nothing was recorded through training.")
        try:
            return views.recorded(self.trained, self.run.config.orbits, self.run.orbit_records())
        except EquitransError as error:
            return Recorded(None, (), (), (), f"The record cannot be read: {error}.")

    @cached_property
    def evaluation(self) -> Evaluation | str:
        """An evaluation on the test pairs, or else the validation pairs; or why there is none."""
        if isinstance(self.data, str):
            return self.data
        if self.data.test:
            return Evaluation(self.fixed, self.data.test, "test")
        if self.data.valid:
            return Evaluation(self.fixed, self.data.valid, "validation")
        return "The run has neither test nor validation pairs."

    def describe(self) -> Model:
        """Describe the model."""
        has_data, recorded = self.run is not None, self.records.sentence
        return views.describe(self.name, self.trained, has_data=has_data, recorded=recorded)


class Registry:
    """Models by name, models with added words, and the cache of their predictions."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = {entry.name: entry for entry in entries}
        self.cache = Cache(CACHE_BYTES)
        self.extension = lru_cache(maxsize=EXTENSIONS)(self._extend)

    @classmethod
    def load(cls, paths: Iterable[Path | str]) -> "Registry":
        """Load the models of some directories; equal names get numbers."""
        entries: dict[str, Entry] = {}
        for path in map(Path, paths):
            stem = os.path.basename(os.path.realpath(path)) or "model"
            names = (stem if n == 1 else f"{stem}-{n}" for n in count(1))
            name = next(name for name in names if name not in entries)
            trained = Trained.load(path)
            has_run = "data" in read_json(path / "config.json")
            entries[name] = Entry(name, trained, Run.open(path) if has_run else None)
        if not entries:
            raise ConfigError("no model to show: give one run directory or more")
        return cls(entries.values())

    def find(self, run: str) -> Entry:
        """Return the model of a name; raise MissingRunError if there is none."""
        if run not in self.entries:
            raise MissingRunError(f"there is no run {run!r} here{nearest(run, self.entries)}")
        return self.entries[run]

    def model(self, run: str, add: tuple[str, ...]) -> Trained:
        """Return a model, with words added to it."""
        return self.extension(run, add).trained if add else self.find(run).fixed

    def _extend(self, run: str, add: tuple[str, ...]) -> Extension:
        """Add one or more words to a model, one after the other."""
        first = add[:-1]
        before = self.extension(run, first).trained if first else self.find(run).trained
        parts = add[-1].split(maxsplit=2)
        if len(parts) != 3:
            raise DataError(f"{add[-1]!r} is not a word to add; write: word translation class")
        source, target, name = parts
        return extend(before, name, {source: target})

    def answer(self, question: Question) -> Answer:
        """Return the best targets of a command."""
        trained = self.model(question.run, question.add)
        words = views.read_command(trained, question.command)
        orbit = Orbit(trained, words)
        key = _key(question, orbit)
        if (best := self.cache.get(key)) is None:
            (best,) = self._predict(trained, {key: orbit.words})
        return views.answer(trained, words, [orbit.back(p) for p in best])

    def cached_answer(self, question: Question) -> Answer | None:
        """Return an answer whose prediction is cached, or None. It takes less than 0.1 ms, so the
        event loop may call it.
        """
        entry = self.entries.get(question.run)
        if entry is None or question.add:
            return None
        words = entry.trained.words(question.command)
        if len(words) > views.LONGEST or not entry.trained.symmetry.source.index.keys() >= {*words}:
            return None
        orbit = Orbit(entry.trained, words)
        best = self.cache.get(_key(question, orbit))
        if best is None:
            return None
        return views.answer(entry.trained, words, [orbit.back(p) for p in best])

    def answer_together(self, questions: Iterable[Question]) -> None:
        """Predict the targets of several commands in one batch per model, for ``answer``."""
        batches: dict[Key, tuple[Trained, dict[Key, Words]]] = {}
        for question in questions:
            with suppress(EquitransError):  # answer() reports it
                trained = self.model(question.run, question.add)
                orbit = Orbit(trained, views.read_command(trained, question.command))
                key = _key(question, orbit)
                if self.cache.get(key) is None:
                    batch = batches.setdefault((question.run, *question.add), (trained, {}))
                    batch[1][key] = orbit.words
        for trained, sentences in batches.values():
            self._predict(trained, sentences)

    def warm_up(self, run: str) -> Iterator[None]:
        """Predict the commands of a model's data, one batch per step, until half the cache is
        full.
        """
        trained, waiting = self.find(run).fixed, iter(self.find(run).commands)
        known = trained.symmetry.source.index.keys()
        while self.cache.size < self.cache.limit // 2:
            begun = time.thread_time()
            batch: dict[Key, Words] = {}
            read = 0
            for command in islice(waiting, WARM_UP_COMMANDS):
                read += 1
                words = trained.words(command)
                if known >= set(words):
                    orbit = Orbit(trained, words)
                    key = _key(Question(run, (), command), orbit)
                    if self.cache.get(key) is None:
                        batch[key] = orbit.words
                if len(batch) == WARM_UP_BATCH:
                    break
            self._predict(trained, batch)
            if not read or time.thread_time() - begun > WARM_UP_SECONDS:
                break
            yield

    def _predict(
        self, trained: Trained, sentences: dict[Key, Words]
    ) -> list[list[Hypothesis[str]]]:
        """Predict sentences and cache their predictions."""
        found = trained.n_best(list(sentences.values()), n=N_BEST, width=N_BEST)
        for key, best in zip(sentences, found, strict=True):
            self.cache.put(key, best, sum(300 + 8 * len(p.words) for p in best))
        return found


def _key(question: Question, orbit: Orbit) -> Key:
    return (question.run, str(len(question.add)), *question.add, *orbit.words)
