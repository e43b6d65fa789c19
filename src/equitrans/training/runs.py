"""A training run is a directory.

Its files::

    config.json         settings, seed, version
    vocabulary.json     words and classes
    epochs.jsonl        one line per epoch
    orbits.jsonl        the orbits of one sentence during training, if asked for
    model.safetensors   the weights of the best epoch
    grammar.json        the rules of a recursive aligner
    state.safetensors   the checkpoint that training continues from
    broken.safetensors  the batch whose loss is NaN or infinite: its tensors (batch.*), the weights
                        before the update (weights.*), torch's random state (random), the loss,
                        and in training the number of updates and the share done (moment)
    lock                exists while a process trains, and names it
"""

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from equitrans.analysis import family, orbits, sharpness
from equitrans.data import Data, Pair, recorded_data, split_words
from equitrans.errors import (
    ConfigError,
    DataError,
    DivergenceError,
    RunError,
    shown,
)
from equitrans.files import (
    LOCK,
    append_line,
    as_path,
    flush,
    locked,
    read_part,
    refuse_links,
    refuse_used,
    remove_leftovers,
    write_atomically,
)
from equitrans.paper import Symmetry
from equitrans.settings import check_seed
from equitrans.training.cards import Figures
from equitrans.training.checkpoints import Checkpoint
from equitrans.training.config import RunConfig
from equitrans.training.directories import WEIGHTS, model_settings, write_grammar
from equitrans.training.learners import longest_prediction, start
from equitrans.training.learning import Learning, Report, Step
from equitrans.training.logs import check_orbits, check_step, read_log, trim_log
from equitrans.training.tensors import pack
from equitrans.training.trained import Trained

STATE, LOG, ORBITS = "state.safetensors", "epochs.jsonl", "orbits.jsonl"
BROKEN = "broken.safetensors"

CHECKPOINT_SECONDS = 5.0
"""Seconds between two checkpoints: a crash loses at most this much training and one epoch."""


@dataclass(frozen=True)
class Run:
    """A training run on disk."""

    path: Path
    config: RunConfig
    trained: Trained
    """The model, with random weights until it is trained or loaded."""
    digest: str
    """SHA-256 of the data."""

    @classmethod
    def create(cls, path: Path | str, config: RunConfig, data: Data) -> "Run":
        """Create a run in an empty or absent directory."""
        path = Path(path)
        refuse_used(path, resumable=True)
        pairs = data.read.train + data.read.valid
        trained = Trained.new(
            config.model,
            Symmetry.of(data.classes, pairs, config.model.group),
            max_length=longest_prediction(pairs, config.model),
            characters=config.data.characters,
            split=config.data.split_words,
            capitals=config.data.capitals,
            seed=config.seed,
        )
        if config.orbits is not None:
            family(_pair(config.orbits, data, trained), trained.symmetry)
        path.mkdir(parents=True, exist_ok=True)
        run = cls(path, config, trained, data.digest)
        with run._lock():
            refuse_used(path, resumable=True)  # another process may have created it
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
                shutil.rmtree(path, ignore_errors=True)  # it was empty or absent before
                raise
        return run

    @classmethod
    def open(cls, path: Path | str) -> "Run":
        """The run in a directory."""
        path = as_path(path)
        refuse_links(path)
        content = read_part(path / "config.json")
        try:
            content["model"] = model_settings(content)
            # without a checkpoint training starts again, from the same random weights
            check_seed(content["seed"])
            trained = Trained.load_description(path, seed=content["seed"])
            settings = {
                f"{section}.{name}": value
                for section in ("data", "model", "training")
                for name, value in _table(content, section).items()
            }
            settings |= {"kind": content.get("kind", "transducer"), "seed": content["seed"]}
            settings |= {n: content[n] for n in ("orbits", "orbits_every") if n in content}
            config = RunConfig.from_settings(settings)
            if not isinstance(digest := content["digest"], str):
                raise ConfigError(f"digest is {shown(digest)}; expected a text")
            return cls(path, config, trained, digest)
        except KeyError as missing:
            raise RunError(
                f"{path} is a model, not a training run: no {missing} in config.json"
            ) from None
        except ConfigError as error:
            raise RunError(f"{path / 'config.json'} is damaged: {error}") from None

    def load_data(self) -> Data:
        """The data of the run; raise RunError if they have changed since it was created."""
        config, classes = self.config.data, self.trained.symmetry.classes
        data = recorded_data(config, seed=self.config.seed, classes=classes, digest=self.digest)
        if data is None:
            where = config.file or config.scan_dir or config.split
            raise RunError(
                f"{where} has changed since {self.path} was created; the run cannot continue"
            )
        return data

    @property
    def is_finished(self) -> bool:
        """Whether the training has ended."""
        return self._checkpoint.is_finished

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a complete epoch to continue from."""
        return self._checkpoint.exists

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.path / STATE)

    def _lock(self) -> AbstractContextManager[None]:
        return locked(self.path / LOCK, what=str(self.path))

    def repair(self) -> None:
        """Write the best weights again if their file is missing or differs from the checkpoint."""
        if self._checkpoint.exists:
            with self._lock():
                best, weights = self._checkpoint.best(self.trained.model), self.path / WEIGHTS
                content = pack(best)
                if best and (not weights.is_file() or weights.read_bytes() != content):
                    write_atomically(weights, content)

    def learning(self, data: Data, *, device: str | torch.device = "cpu") -> Learning:
        """The learning of the run, from its last checkpoint or from its start."""
        config = self.config
        learning = start(
            self.trained.model,
            config.model,
            config.training,
            data,
            seed=config.seed,
            device=device,
        )
        if self._checkpoint.exists and learning.state is not None:
            self._checkpoint.load(learning)
        return learning

    def train(
        self, data: Data, *, device: str | torch.device = "cpu", report: Report | None = None
    ) -> Iterator[Step]:
        """Continue the run to its end; every step is logged before it is yielded."""
        with self._lock(), self._saving_divergence():
            remove_leftovers(self.path)
            if self.is_finished:
                return
            learning = self.learning(data, device=device)
            learning.report = report
            trim_log(self.path / LOG, learning.step)
            record = self._orbit_recorder(data, learning)
            # the first step is saved at once, so that an interrupt loses no complete epoch of a
            # short training
            saved_at, saved_best = -math.inf, learning.best_step
            for step in learning:
                append_line(self.path / LOG, json.dumps(asdict(step)))
                finished = learning.finished
                record(finished=finished)
                if finished or time.monotonic() - saved_at > CHECKPOINT_SECONDS:
                    if learning.best_step > saved_best:
                        write_grammar(self.path, learning.model)
                        write_atomically(self.path / WEIGHTS, pack(learning.best))
                    self._save_checkpoint(learning, finished=finished)
                    saved_at, saved_best = time.monotonic(), learning.best_step
                yield step

    @contextmanager
    def _saving_divergence(self) -> Iterator[None]:
        """Save the batch whose loss is NaN or infinite, and name the file in the error."""
        try:
            yield
        except DivergenceError as error:
            if not isinstance(error.breakdown, dict):
                raise
            path = self.path / BROKEN
            write_atomically(path, pack(error.breakdown))
            raise DivergenceError(f"{error}; the batch is saved in {path}") from error

    def _save_checkpoint(self, learning: Learning, *, finished: bool) -> None:
        for name in (LOG, ORBITS):  # a checkpoint needs the lines before it
            if (self.path / name).is_file():
                flush(self.path / name)
        self._checkpoint.save(learning, finished=finished)

    def _orbit_recorder(self, data: Data, learning: Learning) -> Callable[..., None]:
        """A function that records the orbits of the run's sentence every few epochs."""
        if self.config.orbits is None:
            return lambda *, finished: None
        pair = _pair(self.config.orbits, data, self.trained)
        symmetry, every = self.trained.symmetry, self.config.orbits_every

        def record(*, finished: bool) -> None:
            if finished or learning.step % every == 0:
                found = orbits(learning.model, pair, symmetry)
                sizes = [len(orbit) for orbit in found.observed]
                line = {"epoch": learning.step, "observed": sizes, "losses": found.losses}
                line["sharpness"] = sharpness(learning.model, found.family)
                append_line(self.path / ORBITS, json.dumps(line))

        if learning.step == 0:
            trim_log(self.path / ORBITS, 0)
            record(finished=False)
        else:
            trim_log(self.path / ORBITS, learning.step // every + 1)
        return record

    def epochs(self) -> list[dict[str, Any]]:
        """All steps so far, from the log."""
        path = self.path / LOG
        return read_log(path, check_step) if path.is_file() else []

    def figures(self) -> Figures:
        """The figures of a finished run, from its log; before, the log may be ahead of the weights
        and there are none.
        """
        if not self.is_finished:
            return Figures()
        steps = self.epochs()
        if not steps:
            raise RunError(f"{self.path / LOG} is damaged: it is empty, but the run has finished")
        if "rules" in steps[-1]:
            return Figures(seconds=steps[-1]["seconds"])
        best = next((step for step in reversed(steps) if step["is_best"]), steps[-1])
        return Figures(
            epochs=steps[-1]["number"],
            best_epoch=best["number"],
            seconds=steps[-1]["seconds"],
            valid_loss=best["valid_loss"],
            valid_accuracy=best["valid_accuracy"],
        )

    def orbit_records(self) -> list[dict[str, Any]]:
        """The observed orbits of the run's sentence and the sharpness of its alignments during
        training.
        """
        path = self.path / ORBITS
        if not path.is_file():
            raise RunError(
                f"{self.path} has no record of orbits; train with --orbits SENTENCE to get one"
            )
        return read_log(path, check_orbits)


def _table(content: dict[str, Any], section: str) -> dict[str, Any]:
    """A table of config.json; raise ConfigError if it is something else."""
    if not isinstance(table := content[section], dict):
        raise ConfigError(f"{section} is {shown(table)}; expected a table of settings")
    return table


def _pair(sentence: str, data: Data, trained: Trained) -> Pair:
    """The pair of the data with a source sentence; raise DataError if there is none."""
    words = split_words(sentence, characters=trained.characters)
    source = trained.reading.source(words).symbols
    for pair in (*data.read.train, *data.read.valid, *data.read.test):
        if pair.source == source:
            return pair
    raise DataError(f"{sentence!r} is not in the data, so its target is unknown")
