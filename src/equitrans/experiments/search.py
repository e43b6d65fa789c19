"""Search spaces, and searches with Optuna's TPE that continue after an interruption.

A random search needs no class of its own: ``Space.draw`` draws all its trials in advance.
"""

import math
import random
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from equitrans.errors import ConfigError, named, shown
from equitrans.files import locked, read_toml, write_atomically
from equitrans.settings import check_seed, from_dict

Choice = bool | int | float | str

LARGEST = 1e300
"""Largest accepted end of a range; the length of a range must be a finite number."""


@dataclass(frozen=True)
class Range:
    """Real numbers from low to high; with ``log``, their logarithms are uniform."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not -LARGEST <= self.low < self.high <= LARGEST:
            raise ConfigError(f"low is {self.low} and high is {self.high}; low must be below high")
        if self.log and self.low <= 0:
            raise ConfigError(f"low is {self.low}; with log it must be above 0")

    def at(self, share: float) -> float:
        """The number at a share of the range, from 0 (low) to 1 (high).

        >>> round(Range(1e-4, 1e-2, log=True).at(0.5), 9)
        0.001
        """
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = low + share * (high - low)
        return min(max(math.exp(value) if self.log else value, self.low), self.high)


@dataclass(frozen=True)
class Space:
    """Choices or a range for each setting, by dotted name."""

    settings: Mapping[str, tuple[Choice, ...] | Range]

    @classmethod
    def of(cls, table: Mapping[str, Any], *, origin: str = "space") -> "Space":
        """A space from a table: for each name, a list of choices or ``{low = 1, high = 2}``.

        >>> Space.of({"model.k": [4, 6], "training.clip": {"low": 0, "high": 1}}).settings
        {'model.k': (4, 6), 'training.clip': Range(low=0.0, high=1.0, log=False)}
        """
        if not table:
            raise ConfigError(f"{origin}: the space is empty; give a setting and its choices")
        return cls({n: _values(f"{origin}: {named(n)}", table[n]) for n in sorted(table)})

    @classmethod
    def read(cls, path: Path | str) -> "Space":
        """The space of a TOML file: the choices in its table ``[space]``, and one choice for each
        setting in its table ``[settings]``.
        """
        try:
            content = read_toml(Path(path), ConfigError)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        if not isinstance(content.get("space"), dict):
            raise ConfigError(f"{path} has no table [space]")
        for key in content:
            if key not in ("space", "settings"):
                raise ConfigError(
                    f"{path}: {shown(key)} is unknown; expected the tables [space] and [settings]"
                )
        space = cls.of(content["space"], origin=str(path)).settings
        if not isinstance(fixed := content.get("settings", {}), dict):
            raise ConfigError(f"{path}: settings is {shown(fixed)}; expected a table")
        for name in fixed:
            if name in space:
                raise ConfigError(f"{path}: {named(name)} is in [space] and in [settings]")
        choices = {name: [value] for name, value in fixed.items()}
        return cls.of(content["space"] | choices, origin=str(path))

    def draw(self, trials: int, *, seed: int) -> list[dict[str, Choice]]:
        """Independent random settings of ``trials`` trials; more trials extend the list."""
        _check_trials(trials, seed)
        source = random.Random(seed)
        return [
            {
                name: values.at(source.random())
                if isinstance(values, Range)
                else values[int(source.random() * len(values))]
                for name, values in self.settings.items()
            }
            for _ in range(trials)
        ]


def _values(where: str, found: Any) -> tuple[Choice, ...] | Range:
    if isinstance(found, dict):
        try:
            return from_dict(Range, {"low": None, "high": None} | found)
        except ConfigError as error:
            raise ConfigError(
                f"{where}: {error}; a range is {{low = 1e-4, high = 1e-2, log = true}}, and the "
                'name of a setting is quoted: "model.k" = [4, 6]'
            ) from None
    if not isinstance(found, list) or not found:
        raise ConfigError(f"{where} is {shown(found)}; expected a list of choices or a range")
    for choice in found:
        if not isinstance(choice, Choice):
            raise ConfigError(f"{where}: {shown(choice)} is neither a number nor a string")
    if len(set(found)) < len(found):
        raise ConfigError(f"{where} is {shown(found)}; a choice is repeated")
    return tuple(found)


def _check_trials(trials: int, seed: int) -> None:
    check_seed(seed)
    if trials < 1:
        raise ConfigError(f"trials is {trials}; it must be 1 or more")


# --- TPE


@dataclass(frozen=True)
class Trial:
    """Settings to try. A trial that is offered again keeps its number."""

    number: int
    settings: dict[str, Choice]


class Search:
    """A search with TPE: each trial is chosen by the values of earlier trials."""

    def __init__(self, optuna: Any, study: Any, space: Space, trials: int) -> None:
        kinds, self._states = optuna.distributions, optuna.trial.TrialState
        self._study, self._trials = study, trials
        self._distributions = {
            name: kinds.FloatDistribution(values.low, values.high, log=values.log)
            if isinstance(values, Range)
            else kinds.CategoricalDistribution(values)
            for name, values in space.settings.items()
        }
        self._interrupted: list[Any] = []
        for trial in study.get_trials(deepcopy=False, states=(self._states.RUNNING,)):
            if trial.params.keys() == self._distributions.keys():
                self._interrupted.append(trial)
            else:  # the process was killed while Optuna chose the settings
                study.tell(trial.number, state=self._states.FAIL)

    @classmethod
    def open(
        cls,
        storage: Path | str,
        *,
        name: str,
        space: Space,
        trials: int,
        seed: int,
        direction: Literal["minimize", "maximize"] = "minimize",
    ) -> "Search":
        """A new search, or the continuation of an earlier one.

        Args:
            storage: a file, which is created if it does not exist, or the URL of a database that
                Optuna supports
            name: name of the search in the storage
            space: the settings to try
            trials: total number of trials
            seed: seed of the sampler
            direction: whether the best value is the smallest or the largest

        """
        _check_trials(trials, seed)
        optuna = _load_optuna()
        study = _open_study(optuna, storage, name, direction)
        begun = len(study.get_trials(deepcopy=False))
        identity = {"space": repr(space), "seed": seed, "sampler": "tpe", "direction": direction}
        for key, value in (study.user_attrs.get("search", identity) if begun else identity).items():
            if value != identity[key]:
                raise ConfigError(
                    f"{storage}: search {name!r} has another {key}; use the same {key}, or another "
                    "--storage"
                )
        study.set_user_attr("search", identity)
        # with the bare seed, a continued search would repeat its first draws
        entropy = random.Random(f"{seed} {begun}").getrandbits(32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.sampler = optuna.samplers.TPESampler(seed=entropy, constant_liar=True)
        return cls(optuna, study, space, trials)

    def pending(self) -> Iterator[Trial]:
        """The trials that are left, each chosen when it is asked for. Interrupted trials of an
        earlier process come first.
        """
        while self._interrupted:
            trial = self._interrupted.pop(0)
            yield Trial(trial.number, dict(trial.params))
        while self._count() < self._trials:
            asked = self._study.ask(self._distributions)
            yield Trial(asked.number, dict(asked.params))

    def _count(self) -> int:
        """The number of trials with settings, running or ended."""
        trials = self._study.get_trials(deepcopy=False)
        return sum(trial.params.keys() == self._distributions.keys() for trial in trials)

    def tell(self, trial: Trial, value: float | None) -> None:
        """End a trial with its value. A trial with None or NaN has failed; it is not repeated."""
        if value is None or not math.isfinite(value):
            self._study.tell(trial.number, state=self._states.FAIL)
        else:
            self._study.tell(trial.number, value)

    @property
    def finished(self) -> list[tuple[Trial, float]]:
        """The trials that have a value, by number."""
        trials = self._study.get_trials(deepcopy=False, states=(self._states.COMPLETE,))
        found = [(Trial(t.number, dict(t.params)), float(t.value)) for t in trials]
        return sorted(found, key=lambda each: each[0].number)

    @property
    def best(self) -> tuple[Trial, float] | None:
        """The first trial with the best value, and the value; None without a finished trial."""
        sign = -1 if self._study.direction.name == "MAXIMIZE" else 1
        return min(self.finished, key=lambda each: sign * each[1], default=None)


@contextmanager
def leading(storage: Path | str) -> Iterator[None]:
    """Lock the file of a search for this process and repair what a killed process left in it.

    A database is not locked.
    """
    if "://" in str(storage) or not Path(storage).parent.is_dir():
        yield
        return
    with locked(f"{storage}.leader", what=f"the search in {storage}"):
        journal = Path(storage)
        Path(f"{storage}.lock").unlink(missing_ok=True)  # Optuna's lock of a single line
        if journal.is_file():
            content = journal.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:  # Optuna would append the next line to the partial one
                write_atomically(journal, whole)
        yield


def _load_optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"a search with TPE needs {missing.name}: pip install 'equitrans[search]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _open_study(optuna: Any, storage: Path | str, name: str, direction: str) -> Any:
    try:
        if "://" in str(storage):
            kept: Any = str(storage)
        else:
            file = optuna.storages.journal.JournalFileBackend(str(storage))
            kept = optuna.storages.JournalStorage(file)
        return optuna.create_study(
            storage=kept, study_name=name, direction=direction, load_if_exists=True
        )
    except Exception as error:  # databases and their drivers raise errors of many kinds
        raise ConfigError(f"cannot open a search in {storage}: {error}") from error
