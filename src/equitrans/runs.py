"""One directory = one training run, and everything known of it.

config.json       settings, seed, version
vocabulary.json   words and classes
epochs.jsonl      a line per epoch
orbits.jsonl      the orbits of one sentence through training, if asked for
model.safetensors the weights of the best epoch
grammar.json      the rules of a recursive aligner
state.safetensors all that is needed to go on
broken.safetensors the batch at which a loss was no number, and the weights that it met
lock              there while a process trains, which it names
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from equitrans.batches import Rows
from equitrans.breakdowns import Breakdown
from equitrans.checkpoints import Checkpoint
from equitrans.config import RunConfig
from equitrans.data import Data, DataConfig, load_data
from equitrans.errors import (
    ConfigError,
    DataError,
    DivergenceError,
    EquitransError,
    RunError,
    shown,
)
from equitrans.files import append_line, flush, remove_leftovers, write_atomically
from equitrans.fitting import learn_rules, longest_prediction
from equitrans.folders import LOCK, read_json, refuse_links, refuse_used
from equitrans.locks import locked
from equitrans.models.base import mean_loss
from equitrans.models.catalog import is_recursive
from equitrans.orbits import family, orbits
from equitrans.pairs import Pair, split_words
from equitrans.settings import check_seed, from_dict
from equitrans.symmetry import Symmetry
from equitrans.tensors import pack
from equitrans.texts import read_text
from equitrans.trained import WEIGHTS, Trained
from equitrans.training import Epoch, TrainingConfig, TrainState, ended, train

STATE, LOG, ORBITS = "state.safetensors", "epochs.jsonl", "orbits.jsonl"
BROKEN = "broken.safetensors"

CHECKPOINT_SECONDS = 5.0
"""At most so much training is lost when the machine goes down, beside the epoch it was in."""

JUDGED = 2000
"""The loss of a recursive aligner is taken over the first so many pairs, since it says little and
takes long."""


@dataclass(frozen=True)
class Run:
    """A training run on disk."""

    path: Path
    config: RunConfig
    trained: Trained
    """The model, with random weights until it is trained or loaded."""
    digest: str

    @classmethod
    def create(cls, path: Path | str, config: RunConfig, data: Data) -> "Run":
        """A new run in an empty or absent directory."""
        path = Path(path)
        refuse_used(path, resumable=True)
        pairs = data.train + data.valid
        trained = Trained.new(
            config.model,
            Symmetry.of(data.classes, pairs, config.model.group),
            max_length=longest_prediction(pairs),
            characters=config.data.characters,
            seed=config.seed,
        )
        if config.orbits is not None:
            family(_pair(config.orbits, data, config.data.characters), trained.symmetry)
        path.mkdir(parents=True, exist_ok=True)
        run = cls(path, config, trained, data.digest)
        with run._lock():
            refuse_used(path, resumable=True)  # another process may have been quicker
            try:
                trained.save_description(
                    path,
                    data=asdict(config.data),
                    training=asdict(config.training),
                    seed=config.seed,
                    orbits=config.orbits,
                    orbits_every=config.orbits_every,
                    digest=data.digest,
                )
                flush(path.parent)
            except BaseException:
                shutil.rmtree(path, ignore_errors=True)  # it was empty or absent
                raise
        return run

    @classmethod
    def open(cls, path: Path | str) -> "Run":
        """A run that was created before."""
        path = Path(path)
        refuse_links(path)
        content = read_json(path / "config.json")
        try:
            # before the first checkpoint training begins anew, from the same weights as before
            check_seed(content["seed"])
            trained = Trained.load_description(path, seed=content["seed"])
            config = RunConfig(
                data=from_dict(DataConfig, content["data"]),
                model=trained.config,
                training=from_dict(TrainingConfig, content["training"]),
                seed=content["seed"],
                orbits=content.get("orbits"),
                orbits_every=content.get("orbits_every", 5),
            )
            return cls(path, config, trained, content["digest"])
        except KeyError as missing:
            raise RunError(
                f"{path} is a model, not a training run: no {missing} in config.json"
            ) from None
        except ConfigError as error:
            raise RunError(f"{path / 'config.json'} is damaged: {error}") from None

    def load_data(self) -> Data:
        """The data that the run was created with, found to be still the same."""
        known = self.trained.symmetry.classes
        data = load_data(self.config.data, seed=self.config.seed, classes=known)
        if data.digest != self.digest:
            raise RunError(
                f"{data.origin} has changed since {self.path} was created; the run cannot go on"
            )
        return data

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self._checkpoint.is_finished

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.path / STATE)

    def _lock(self) -> AbstractContextManager[None]:
        return locked(self.path / LOCK, what=str(self.path))

    def repair(self) -> None:
        """Write the best weights again if they are not there as they were saved."""
        if self._checkpoint.exists and not is_recursive(self.config.model):
            with self._lock():
                best, weights = self._checkpoint.best(self.trained.model), self.path / WEIGHTS
                content = pack(best)
                if best and (not weights.is_file() or weights.read_bytes() != content):
                    write_atomically(weights, content)

    def train(self, data: Data, *, device: str | torch.device = "cpu") -> Iterator[Epoch]:
        """Train from where the run stands to its end; every epoch is logged before it is given
        out.
        """
        with self._lock(), self._keeping_what_breaks():
            remove_leftovers(self.path)
            if is_recursive(self.config.model):
                yield self._learn(data)
            else:
                yield from self._train(data, device)

    def _train(self, data: Data, device: str | torch.device) -> Iterator[Epoch]:
        config, state = self.config.training, self.state(device=device)
        rows = Rows.of(data.train, state.model.sharing)
        valid = Rows.of(data.valid, state.model.sharing) if data.valid else None
        self._trim_log(LOG, state.epoch)
        record = self._orbit_recorder(data, state)
        saved_at, saved_best = time.monotonic(), state.best_epoch
        for epoch in train(state, rows, valid, config):
            append_line(self.path / LOG, json.dumps(asdict(epoch)))
            finished = ended(state, rows, config)
            record(finished=finished)
            if finished or time.monotonic() - saved_at > CHECKPOINT_SECONDS:
                if state.best_epoch > saved_best:
                    write_atomically(self.path / WEIGHTS, pack(state.best))
                self._save_state(state, finished=finished)
                saved_at, saved_best = time.monotonic(), state.best_epoch
            yield epoch

    @contextmanager
    def _keeping_what_breaks(self) -> Iterator[None]:
        """Save the batch at which a loss is no number, and say where it is."""
        try:
            yield
        except DivergenceError as error:
            if not isinstance(error.breakdown, Breakdown):
                raise
            path = self.path / BROKEN
            error.breakdown.save(path)
            raise DivergenceError(f"{error}; the batch is kept in {path}") from error

    def _learn(self, data: Data) -> Epoch:
        """Learn a recursive aligner, from all pairs at once: description length needs none to
        choose by.
        """
        started = time.monotonic()
        pairs = data.train + data.valid
        trained = learn_rules(self.trained, pairs, seed=self.config.seed)
        self._trim_log(LOG, 0)
        epoch = Epoch(
            number=1,
            of=1,
            updates=1,
            train_loss=mean_loss(trained.model, Rows.of(pairs[:JUDGED], trained.symmetry)),
            valid_loss=None,
            valid_accuracy=None,
            is_best=True,
            seconds=time.monotonic() - started,
        )
        append_line(self.path / LOG, json.dumps(asdict(epoch)))
        trained.save_grammar(self.path)
        write_atomically(self.path / WEIGHTS, pack(trained.model.state_dict()))
        state = TrainState.new(trained.model, self.config.training, seed=self.config.seed)
        state.epoch = state.updates = state.best_epoch = 1
        state.seconds = epoch.seconds
        self._orbit_recorder(data, state)(finished=True)
        self._save_state(state, finished=True)
        return epoch

    def state(self, *, device: str | torch.device = "cpu") -> TrainState:
        """Where training stands: as last saved, or at its beginning."""
        model = self.trained.model.to(device)
        state = TrainState.new(model, self.config.training, seed=self.config.seed)
        if self._checkpoint.exists:
            self._checkpoint.load(state)
        return state

    def _save_state(self, state: TrainState, *, finished: bool) -> None:
        for name in (LOG, ORBITS):  # before a state that counts on their lines
            if (self.path / name).is_file():
                flush(self.path / name)
        self._checkpoint.save(state, finished=finished)

    def _orbit_recorder(self, data: Data, state: TrainState) -> Callable[..., None]:
        """What records the orbits of the run's sentence, before training and every few epochs."""
        if self.config.orbits is None:
            return lambda *, finished: None
        pair = _pair(self.config.orbits, data, self.config.data.characters)
        symmetry, every = self.trained.symmetry, self.config.orbits_every

        def record(*, finished: bool) -> None:
            if finished or state.epoch % every == 0:
                found = orbits(state.model, pair, symmetry)
                sizes = [len(orbit) for orbit in found.observed]
                line = {"epoch": state.epoch, "observed": sizes, "losses": found.losses}
                append_line(self.path / ORBITS, json.dumps(line))

        if state.epoch == 0:
            self._trim_log(ORBITS, 0)
            record(finished=False)
        else:
            self._trim_log(ORBITS, state.epoch // every + 1)
        return record

    def epochs(self) -> list[dict[str, Any]]:
        """All epochs so far, as they were logged."""
        path = self.path / LOG
        return _logged(path, partial(from_dict, Epoch)) if path.is_file() else []

    def orbit_records(self) -> list[dict[str, Any]]:
        """The observed orbits of the run's sentence through training."""
        path = self.path / ORBITS
        if not path.is_file():
            raise RunError(
                f"{self.path} has no record of orbits; train with --orbits SENTENCE to get one"
            )
        return _logged(path, _check_orbits)

    def _trim_log(self, name: str, lines: int) -> None:
        """Forget what was logged but not saved: it will come again."""
        path = self.path / name
        if path.is_file():
            kept = path.read_bytes().splitlines(keepends=True)[:lines]
            write_atomically(path, b"".join(kept))


def _logged(path: Path, check: Callable[[Any], object]) -> list[dict[str, Any]]:
    """The lines of a log; the last one may be half written while a run goes on."""
    found = []
    for number, line in enumerate(read_text(path, RunError).split("\n")[:-1], start=1):
        try:
            found.append(json.loads(line))
            check(found[-1])
        except (EquitransError, RecursionError, ValueError) as error:
            raise RunError(f"{path} is damaged: line {number}: {error}") from None
    return found


def _check_orbits(line: Any) -> None:
    """An error unless a line says what orbits were observed when."""
    kinds = {"epoch": int, "observed": list, "losses": list}
    for name, kind in kinds.items():
        value = line.get(name) if isinstance(line, dict) else None
        if not isinstance(value, kind):
            raise RunError(f"{name} is {shown(value)}")
    for value in (*line["observed"], *line["losses"]):
        if not isinstance(value, int | float):
            raise RunError(f"{shown(value)} is not a number")


def _pair(sentence: str, data: Data, characters: bool) -> Pair:
    """The pair of a source sentence, which must be in the data."""
    source = split_words(sentence, characters=characters)
    for pair in (*data.train, *data.valid, *data.test):
        if pair.source == source:
            return pair
    raise DataError(f"{sentence!r} is not in the data, so its target is not known")
