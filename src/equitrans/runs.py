"""One directory = one training run, and everything known of it.

config.json       settings, seed, version
vocabulary.json   words and classes
epochs.jsonl      a line per epoch
orbits.jsonl      the orbits of one sentence through training, if asked for
model.safetensors the weights of the best epoch
grammar.json      the rules of a recursive aligner
state.safetensors all that is needed to go on
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from equitrans.batches import Rows
from equitrans.config import RunConfig
from equitrans.data import Data, DataConfig, load_data
from equitrans.errors import ConfigError, DataError, RunError
from equitrans.files import write_atomically
from equitrans.fitting import learn_rules, longest_prediction
from equitrans.models.base import mean_loss
from equitrans.models.catalog import is_recursive
from equitrans.orbits import family, orbits
from equitrans.pairs import Pair, split_words
from equitrans.settings import from_dict
from equitrans.symmetry import Symmetry
from equitrans.trained import WEIGHTS, Trained, read_json, refuse_used
from equitrans.training import Epoch, TrainingConfig, TrainState, ended, train

STATE, LOG, ORBITS = "state.safetensors", "epochs.jsonl", "orbits.jsonl"

CHECKPOINT_SECONDS = 5.0
"""At most so much training is lost when the machine goes down, beside the epoch it was in."""

JUDGED = 2000
"""The loss of a recursive aligner is taken over the first so many pairs, since it says little and
takes long."""

_COUNTERS = ("epoch", "updates", "seconds", "best_epoch", "best_loss")


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
        refuse_used(path)
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
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)  # it was empty or absent
            raise
        return cls(path, config, trained, data.digest)

    @classmethod
    def open(cls, path: Path | str) -> "Run":
        """A run that was created before."""
        path = Path(path)
        content = read_json(path / "config.json")
        trained = Trained.load_description(path)
        try:
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
        path = self.path / STATE
        if not path.is_file():
            return False
        with _open_state(path) as file:
            return bool(_counters(file, path)["finished"])

    def repair(self) -> None:
        """Write the best weights again if they are not there as they were saved."""
        path = self.path / STATE
        if path.is_file():
            with _open_state(path) as file:
                names = [name for name in file.keys() if name.startswith("best.")]  # noqa: SIM118
                best = {name.removeprefix("best."): file.get_tensor(name) for name in names}
            content, weights = save(best), self.path / WEIGHTS
            if best and (not weights.is_file() or weights.read_bytes() != content):
                write_atomically(weights, content)

    def train(self, data: Data, *, device: str | torch.device = "cpu") -> Iterator[Epoch]:
        """Train from where the run stands to its end; every epoch is logged before it is given
        out.
        """
        config = self.config.training
        if is_recursive(self.config.model):
            yield self._learn(data)
            return
        state = self.state(device=device)
        rows = Rows.of(data.train, state.model.sharing)
        valid = Rows.of(data.valid, state.model.sharing) if data.valid else None
        self._trim_log(LOG, state.epoch)
        record = self._orbit_recorder(data, state)
        saved_at, saved_best = time.monotonic(), state.best_epoch
        for epoch in train(state, rows, valid, config):
            with (self.path / LOG).open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(epoch)) + "\n")
            finished = ended(state, rows, config)
            record(finished=finished)
            if finished or time.monotonic() - saved_at > CHECKPOINT_SECONDS:
                if state.best_epoch > saved_best:
                    write_atomically(self.path / WEIGHTS, save(state.best))
                self._save_state(state, finished=finished)
                saved_at, saved_best = time.monotonic(), state.best_epoch
            yield epoch

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
        with (self.path / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(epoch)) + "\n")
        trained.save_grammar(self.path)
        write_atomically(self.path / WEIGHTS, save(trained.model.state_dict()))
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
        if (self.path / STATE).is_file():
            self._load_state(state)
        return state

    def _save_state(self, state: TrainState, *, finished: bool) -> None:
        """One file, so that no two of its parts can be of different epochs."""
        tensors = {f"model.{name}": value for name, value in state.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in state.best.items()}
        for i, values in state.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{i}.{key}": value for key, value in values.items()}
        counters = {name: getattr(state, name) for name in _COUNTERS} | {"finished": finished}
        content = save(tensors, metadata={"counters": json.dumps(counters)})
        write_atomically(self.path / STATE, content)

    def _load_state(self, state: TrainState) -> None:
        path = self.path / STATE
        with _open_state(path) as file:
            counters = _counters(file, path)
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in _part(tensors, "optimizer.").items():
            i, key = name.split(".")
            moments.setdefault(int(i), {})[key] = value
        groups = state.optimizer.state_dict()["param_groups"]
        if moments.keys() != set(range(len(list(state.model.parameters())))):
            raise RunError(f"{path} is damaged: a part of the optimizer's state is missing")
        try:
            state.model.load_state_dict(_part(tensors, "model."))
            state.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        except (RuntimeError, ValueError):
            raise RunError(f"{path} is not the state of the model that config.json has") from None
        state.best = _part(tensors, "best.")
        for name in _COUNTERS:
            setattr(state, name, counters[name])

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
                with (self.path / ORBITS).open("a", encoding="utf-8") as log:
                    log.write(json.dumps(line) + "\n")

        if state.epoch == 0:
            self._trim_log(ORBITS, 0)
            record(finished=False)
        else:
            self._trim_log(ORBITS, state.epoch // every + 1)
        return record

    def epochs(self) -> list[dict[str, Any]]:
        """All epochs so far, as they were logged."""
        path = self.path / LOG
        return _logged(path) if path.is_file() else []

    def orbit_records(self) -> list[dict[str, Any]]:
        """The observed orbits of the run's sentence through training."""
        path = self.path / ORBITS
        if not path.is_file():
            raise RunError(
                f"{self.path} has no record of orbits; train with --orbits SENTENCE to get one"
            )
        return _logged(path)

    def _trim_log(self, name: str, lines: int) -> None:
        """Forget what was logged but not saved: it will come again."""
        path = self.path / name
        if path.is_file():
            kept = path.read_bytes().splitlines(keepends=True)[:lines]
            write_atomically(path, b"".join(kept))


def _logged(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; the last one may be half written while a run goes on."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    try:
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except json.JSONDecodeError as error:
        raise RunError(f"{path} is damaged: {error}") from None


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _open_state(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except SafetensorError as error:
        raise RunError(f"{path} is damaged: {error}") from None


def _pair(sentence: str, data: Data, characters: bool) -> Pair:
    """The pair of a source sentence, which must be in the data."""
    source = split_words(sentence, characters=characters)
    for pair in (*data.train, *data.valid, *data.test):
        if pair.source == source:
            return pair
    raise DataError(f"{sentence!r} is not in the data, so its target is not known")


def _counters(file: Any, path: Path) -> dict[str, Any]:
    try:
        counters = json.loads(file.metadata()["counters"])
        return {name: counters[name] for name in (*_COUNTERS, "finished")}
    except (TypeError, KeyError, ValueError):
        raise RunError(f"{path} is damaged: it does not say where training stands") from None
