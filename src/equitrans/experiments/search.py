"""A search over settings that can be interrupted; the only room that knows Optuna.

With the random sampler every configuration is drawn before the first is tried, so that a search
which is opened again has the same list. A trial that was begun and not ended when its process died
is offered again under its own number. One process at a time leads a search.
"""

import math
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from equitrans.errors import ConfigError
from equitrans.experiments.spaces import Choice, Range, Space
from equitrans.files import locked, write_atomically
from equitrans.settings import check_seed

Sampler = Literal["random", "tpe"]
Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True)
class Trial:
    """A configuration to try. Its number stays the same when it is begun anew."""

    number: int
    settings: dict[str, Choice]


class Search:
    """Trials of a study, offered until each has ended."""

    def __init__(self, optuna: Any, study: Any, *, space: Space, trials: int) -> None:
        self._study, self._trials = study, trials
        self._states = optuna.trial.TrialState
        kinds = optuna.distributions
        self._distributions = {
            name: kinds.FloatDistribution(values.low, values.high, log=values.log)
            if isinstance(values, Range)
            else kinds.CategoricalDistribution(values)
            for name, values in space.settings.items()
        }
        self._running: dict[int, Any] = {}

    @classmethod
    def open(
        cls,
        storage: Path | str,
        *,
        name: str,
        space: Space,
        trials: int,
        seed: int,
        sampler: Sampler = "random",
        direction: Direction = "minimize",
    ) -> "Search":
        """A new search, or one that was begun before, for as many trials or more.

        Args:
            storage: a file, which is made if need be, or the URL of a database that Optuna can use
            name: what the search is called there
            space: what is tried
            trials: how many trials there are in all
            seed: decides on the draws
            sampler: draws without regard to results, or Optuna's TPE, which learns from them
            direction: whether the best value is the least or the greatest

        """
        check_seed(seed)
        if trials < 1:
            raise ConfigError(f"trials is {trials}; it must be 1 or more")
        optuna = _load_optuna()
        study = _open_study(optuna, storage, name, direction)
        begun = len(study.get_trials(deepcopy=False))
        identity = {"space": repr(space), "seed": seed, "sampler": sampler, "direction": direction}
        for key, value in (study.user_attrs.get("search", identity) if begun else identity).items():
            if value != identity[key]:
                raise ConfigError(
                    f"{storage}: search {name!r} was begun with another {key}; "
                    "go on with that one, or give another --storage"
                )
        study.set_user_attr("search", identity)
        if sampler == "random":
            drawn = dict(enumerate(space.draw(trials, seed=seed)))
        else:
            # reseeded by what has been done, or it would begin with the same draws again
            entropy = random.Random(f"{seed} {begun}").getrandbits(32)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                study.sampler = optuna.samplers.TPESampler(seed=entropy, constant_liar=True)
            drawn = {}
        search = cls(optuna, study, space=space, trials=trials)
        search._recover(drawn)
        return search

    def _recover(self, drawn: dict[int, dict[str, Choice]]) -> None:
        """Whatever has been drawn is over or waits, and waits once, however often this was cut
        short.
        """
        for trial in self._study.get_trials(deepcopy=False, states=(self._states.RUNNING,)):
            self._study.tell(trial.number, state=self._states.FAIL)
        wanted, settled = dict(drawn), set()
        for trial in self._study.get_trials(deepcopy=False):
            number = trial.user_attrs.get("number")
            wanted.setdefault(number, trial.params)
            if trial.state == self._states.WAITING or _is_over(trial, self._states):
                settled.add(number)
        if drawn and (more := wanted.keys() - drawn.keys() - {None}):
            raise ConfigError(
                f"trials is {len(drawn)}; the search has a list of {len(drawn) + len(more)} already"
            )
        for number, settings in wanted.items():
            if number is not None and number not in settled:
                self._study.enqueue_trial(settings, user_attrs={"number": number})

    def pending(self) -> Iterator[Trial]:
        """The trials that are left, each decided on only when it is asked for."""
        while len(self._over()) + len(self._running) < self._trials:
            asked = self._study.ask(self._distributions)
            number = asked.user_attrs.get("number")
            if number is None:
                known = [t.user_attrs.get("number", -1) for t in self._study.get_trials(False)]
                number = max(known) + 1
                asked.set_user_attr("number", number)
            self._running[number] = asked
            yield Trial(number, dict(asked.params))

    def tell(self, trial: Trial, value: float | None) -> None:
        """End a trial with its value; None if it has none, and it will not be offered again."""
        asked = self._running[trial.number]
        if value is None or not math.isfinite(value):
            asked.set_user_attr("failed", True)
            self._study.tell(asked, state=self._states.FAIL)
        else:
            self._study.tell(asked, value)
        del self._running[trial.number]

    @property
    def finished(self) -> list[tuple[Trial, float]]:
        """The trials that have a value, by number."""
        found = [t for t in self._over() if t.state == self._states.COMPLETE]
        trials = [(Trial(t.user_attrs["number"], dict(t.params)), float(t.value)) for t in found]
        return sorted(trials, key=lambda each: each[0].number)

    @property
    def best(self) -> tuple[Trial, float] | None:
        """The best trial and its value, the first of equals; None before any has one."""
        maximize = self._study.direction.name == "MAXIMIZE"
        finished = self.finished
        return min(finished, key=lambda each: -each[1] if maximize else each[1], default=None)

    def _over(self) -> list[Any]:
        return [t for t in self._study.get_trials(deepcopy=False) if _is_over(t, self._states)]


def _is_over(trial: Any, states: Any) -> bool:
    return trial.state == states.COMPLETE or "failed" in trial.user_attrs


@contextmanager
def leading(storage: Path | str) -> Iterator[None]:
    """Be the one process that leads a search; what one that was killed has left in its file is
    mended first. Of a database others are not kept out.
    """
    if "://" in str(storage) or not Path(storage).parent.is_dir():
        yield
        return
    with locked(f"{storage}.leader", what=f"the search in {storage}"):
        journal = Path(storage)
        Path(f"{storage}.lock").unlink(missing_ok=True)  # Optuna's, held for single lines
        if journal.is_file():
            content = journal.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:  # a half line, to which Optuna would add the next
                write_atomically(journal, whole)
        yield


def _load_optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"a search needs {missing.name}: pip install 'equitrans[search]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _open_study(optuna: Any, storage: Path | str, name: str, direction: Direction) -> Any:
    try:
        if "://" in str(storage):
            kept: Any = str(storage)
        else:
            file = optuna.storages.journal.JournalFileBackend(str(storage))
            kept = optuna.storages.JournalStorage(file)
        return optuna.create_study(
            storage=kept, study_name=name, direction=direction, load_if_exists=True
        )
    except Exception as error:  # of any database and its driver
        raise ConfigError(f"no search can be kept in {storage}: {error}") from error
