"""The models of the page, each loaded once: requests name them and never reach the disk."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from equitrans.analysis import Prediction, Words
from equitrans.data import Data, Read, Renaming, read_pairs
from equitrans.errors import ConfigError, DataError, EquitransError, nearest
from equitrans.explorer import views
from equitrans.explorer.entry import LARGEST_TABLE, Entry
from equitrans.explorer.queue import Cache, Key
from equitrans.explorer.schema import Answer
from equitrans.files import read_json
from equitrans.training import PAIRS, Extension, Run, Trained, extend

CACHE_BYTES = 64_000_000
"""Size of the cache of predictions and responses, in bytes."""
EXTENSION_BYTES = 256_000_000
"""Size of the cache of extended models, in bytes."""
WORD_BYTES = 500
"""Memory of a word in the vocabulary and the classes of an extended model, in bytes."""
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


class Orbit:
    """A sentence as the representative of its orbit (theorem 3), and the way back."""

    def __init__(self, trained: Trained, read: Read) -> None:
        self._sharing, self._reading, self._read = trained.model.sharing, trained.reading, read
        self._renaming = Renaming(self._sharing)
        source = self._sharing.source
        self.words: Words = source.decode(self._renaming.source(source.encode(read.symbols)))

    def back(self, best: Prediction) -> Prediction:
        """Return a prediction of the representative as a prediction of the sentence."""
        target = self._sharing.target
        symbols = target.decode(self._renaming.original_target(target.encode(best.words)))
        return replace(best, words=self._reading.write(symbols, self._read))


class Registry:
    """Models by name, models with added words, and the cache of their predictions."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = {entry.name: entry for entry in entries}
        self.cache = Cache(CACHE_BYTES)
        self.extensions = Cache(EXTENSION_BYTES)

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
            run = Run.open(path) if has_run else None
            entries[name] = Entry(name, trained, run, None if has_run else _given(path, trained))
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

    def extension(self, run: str, add: tuple[str, ...]) -> Extension:
        """Return a model with one or more words added, one after the other."""
        key = (run, *add)
        found: Extension | None = self.extensions.get(key)
        if found is None:
            first = add[:-1]
            before = self.extension(run, first).trained if first else self.find(run).trained
            found = _extend(before, add[-1])
            weights = found.trained.model.state_dict().values()
            size = sum(tensor.numel() * tensor.element_size() for tensor in weights)
            symmetry = found.trained.symmetry
            words = len(symmetry.source) + len(symmetry.target)
            self.extensions.put(key, found, size + WORD_BYTES * words)
        return found

    def answer(self, question: Question) -> Answer:
        """Return the best targets of a command, or the reason why there are none."""
        trained = self.model(question.run, question.add)
        words = views.read_command(trained, question.command)
        if (read := _read(trained, words)) is not None:
            orbit = Orbit(trained, read)
            key = _key(question, orbit)
            best: list[Prediction] | None = self.cache.get(key)
            if best is None:
                (best,) = self._predict(trained, {key: orbit.words})
            if not best[0].refused and not any(p.tied for p in best):
                return views.answer(trained, words, [orbit.back(p) for p in best])
        # a reason may quote the command, and a tie goes by its words: the orbit shares neither
        (best,) = trained.n_best([words], n=N_BEST, width=N_BEST)
        return views.answer(trained, words, best)

    def answer_together(self, questions: Iterable[Question]) -> None:
        """Predict the targets of several commands in one batch per model, for ``answer``."""
        batches: dict[Key, tuple[Trained, dict[Key, Words]]] = {}
        for question in questions:
            with suppress(EquitransError):  # answer() reports it
                trained = self.model(question.run, question.add)
                words = views.read_command(trained, question.command)
                if (symbols := _read(trained, words)) is not None:
                    orbit = Orbit(trained, symbols)
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
        while self.cache.size < self.cache.limit // 2:
            begun = time.thread_time()
            batch: dict[Key, Words] = {}
            read = 0
            for command in islice(waiting, WARM_UP_COMMANDS):
                read += 1
                words = trained.words(command)
                if (symbols := _read(trained, words)) is not None:
                    orbit = Orbit(trained, symbols)
                    key = _key(Question(run, (), command), orbit)
                    if self.cache.get(key) is None:
                        batch[key] = orbit.words
                if len(batch) == WARM_UP_BATCH:
                    break
            self._predict(trained, batch)
            if not read or time.thread_time() - begun > WARM_UP_SECONDS:
                break
            yield

    def _predict(self, trained: Trained, sentences: dict[Key, Words]) -> list[list[Prediction]]:
        """Predict sentences and cache their predictions."""
        found = trained.decode(list(sentences.values()), n=N_BEST, width=N_BEST)
        for key, best in zip(sentences, found, strict=True):
            self.cache.put(key, best, sum(400 + 8 * len(p.words) for p in best))
        return found


def _given(path: Path, trained: Trained) -> Data | None:
    """The pairs that equitrans learn keeps in a model directory, if they are there."""
    if not (path / PAIRS).is_file():
        return None
    pairs = tuple(read_pairs(path / PAIRS, characters=trained.characters))
    classes = trained.symmetry.classes
    return Data(pairs, (), (), classes, PAIRS, "", reading=trained.reading)


def _extend(trained: Trained, added: str) -> Extension:
    """Add a word to a model; raise DataError if the table of its translator is too large."""
    sides = len(trained.symmetry.source), len(trained.symmetry.target)
    if sides[0] * sides[1] > LARGEST_TABLE:
        raise DataError(
            f"the model has {sides[0]} source words and {sides[1]} target words, too many to add "
            "one here; equitrans extend can"
        )
    parts = added.split(maxsplit=2)
    if len(parts) != 3:
        raise DataError(f"{added!r} is not a word to add; write: word translation class")
    source, target, name = parts
    found = extend(trained, name, {source: target})
    longest = min(trained.max_length, views.LONGEST_TARGET)
    return replace(found, trained=replace(found.trained, max_length=longest))


def _read(trained: Trained, words: Words) -> Read | None:
    """The symbols of a sentence, or None if it has unknown words or two readings."""
    with suppress(DataError):
        read = trained.reading.source(words)
        if trained.symmetry.source.index.keys() >= {*read.symbols}:
            return read
    return None


def _key(question: Question, orbit: Orbit) -> Key:
    return (question.run, str(len(question.add)), *question.add, *orbit.words)
