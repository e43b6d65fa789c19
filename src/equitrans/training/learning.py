"""One interface of learning for every model: iterate over a ``Learning`` until it has finished.

A model's settings name its learner: *gradient* yields an ``Epoch`` per pass over the data, *rules*
yields one ``Rules`` for the grammar that it induced, *lessons* yields an ``Epoch`` per pass over a
lesson, *backoff* yields one ``Rules`` and then an ``Epoch`` per pass of its second model.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from equitrans.analysis import mean_loss
from equitrans.data import Data, Pair, Rows
from equitrans.models import (
    LaneConfig,
    ModelConfig,
    Trees,
    build,
    learn_rules,
)
from equitrans.paper import Model
from equitrans.training.cards import Figures
from equitrans.training.config import TrainingConfig
from equitrans.training.lessons import Lessons, taught, teach
from equitrans.training.loop import Epoch, TrainState, ended, epoch_seed, train
from equitrans.training.trained import Trained
from equitrans.training.translations import start_translator

LOSS_PAIRS = 2000
"""Number of pairs on which the loss of a rule model is measured; more of them take long."""


@dataclass(frozen=True)
class Rules:
    """The result of learning rules from all pairs at once."""

    rules: int
    pairs: int
    explained: int
    bits: float
    train_loss: float
    seconds: float

    def __str__(self) -> str:
        explained = f"explain {self.explained} of {self.pairs} pairs"
        return f"{self.rules} rules, {self.bits:.0f} bits, {explained}"


Step = Epoch | Rules
"""What a learning yields."""

Report = Callable[[str], None]
"""A function that shows a text."""


class Learning(ABC):
    """A training in progress; iterating over it continues it."""

    model: Model
    """The model with its current weights."""

    report: Report | None = None
    """Receives a text about each stage of a step that takes long."""

    @abstractmethod
    def __iter__(self) -> Iterator[Step]:
        """Learn, and report every step."""

    @property
    @abstractmethod
    def step(self) -> int:
        """Number of steps so far."""

    @property
    @abstractmethod
    def best_step(self) -> int:
        """Number of the step with the best weights; 0 before the first step."""

    @property
    @abstractmethod
    def best(self) -> Mapping[str, Tensor]:
        """The weights of the best step."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether all steps are done."""

    @property
    @abstractmethod
    def figures(self) -> Figures:
        """Numbers of pairs and steps, and the time they took."""

    @property
    def settings(self) -> dict[str, Any]:
        """The training settings that the learning uses."""
        return {}

    @property
    def state(self) -> TrainState | None:
        """The state that a checkpoint restores; None if a step is all or nothing."""
        return None

    def restored(self, best: dict[str, Tensor]) -> None:
        """Continue from a checkpoint that has filled the model and the state; ``best`` are the
        weights of the best step.
        """
        assert self.state is not None
        self.state.best = best

    def best_model(self) -> Model:
        """The model with the weights of the best step."""
        self.model.load_state_dict(self.best)
        return self.model.eval()


class GradientLearning(Learning):
    """Gradient descent; the epoch of lowest validation loss is the best.

    A start that ends without an epoch that predicts all validation pairs may be stuck: training
    starts again from new random weights, ``training.restarts`` times at most.
    """

    def __init__(
        self,
        model: Model,
        config: ModelConfig,
        training: TrainingConfig,
        data: Data,
        *,
        seed: int,
        device: str | torch.device = "cpu",
    ) -> None:
        self._config, self._training, self._data = config, training, data
        self.model = model.to(device)
        self._state = TrainState.new(self.model, training, seed=seed)
        self._prepare()

    def _prepare(self) -> None:
        """Bring the data into the form that one start needs."""
        self._rows = Rows.of(self._data.train, self.model.sharing)
        self._valid = Rows.of(self._data.valid, self.model.sharing) if self._data.valid else None
        self._begin(self.model)

    def _begin(self, model: Model) -> None:
        """Give a model with random weights what the training pairs show without training."""
        if self._training.lexicon:
            start_translator(model, self._data.train)
        if isinstance(model, Trees):
            x, y = model.symmetry.source, model.symmetry.target
            model.observe((x.encode(p.source), y.encode(p.target)) for p in self._data.train)

    def _train(self) -> Iterator[Epoch]:
        """Continue the current start to its end."""
        return train(self._state, self._rows, self._valid, self._training)

    def _has_ended(self) -> bool:
        """Whether the current start has ended."""
        return ended(self._state, self._rows, self._training)

    def _missed(self) -> bool:
        """Whether the best epoch is not good enough, so that another start may help."""
        return self._data.alike and self._state.best_accuracy < 1

    def __iter__(self) -> Iterator[Epoch]:
        while not self.finished:
            if self._has_ended():
                self._restart()
            yield from self._train()

    def _restart(self) -> None:
        """Set new random weights and a new optimizer; the best weights so far are kept."""
        seed = epoch_seed(self._state)
        model = Trained.new(self._config, self.model.symmetry, max_length=1, seed=seed).model
        self._begin(model)
        self.model.load_state_dict(model.state_dict())
        self._state.restart(self._training)

    @property
    def step(self) -> int:
        return self._state.epoch

    @property
    def best_step(self) -> int:
        return self._state.best_epoch

    @property
    def best(self) -> Mapping[str, Tensor]:
        return self._state.best

    @property
    def finished(self) -> bool:
        state, training = self._state, self._training
        if not self._has_ended():
            return False
        in_time = training.seconds is None or state.seconds < training.seconds
        return not (in_time and self._missed() and state.start < training.most_starts)

    @property
    def figures(self) -> Figures:
        return Figures(
            train_pairs=len(self._data.train),
            valid_pairs=len(self._data.valid),
            epochs=self._state.epoch,
            best_epoch=self._state.best_epoch,
            seconds=self._state.seconds,
        )

    @property
    def settings(self) -> dict[str, Any]:
        return asdict(self._training)

    @property
    def state(self) -> TrainState:
        return self._state


class LessonLearning(GradientLearning):
    """LANE's lessons; the epoch of highest validation accuracy is the best."""

    def _prepare(self) -> None:
        assert isinstance(self._config, LaneConfig)
        self._lessons = Lessons.of(self._data, self.model.symmetry, self._config)

    def _train(self) -> Iterator[Epoch]:
        return teach(self._state, self._lessons, self._training)

    def _has_ended(self) -> bool:
        return taught(self._state, self._lessons, self._training)

    def _missed(self) -> bool:
        return self._state.best_accuracy < self._lessons.config.passing


class RuleLearning(Learning):
    """Rules by description length, learned from all pairs in one step, without validation."""

    def __init__(
        self,
        model: Model,
        config: ModelConfig,
        pairs: Sequence[Pair],
        *,
        seed: int,
        device: str | torch.device = "cpu",
        quick: bool = False,
    ) -> None:
        self.model, self._quick = model, quick
        self._config, self._pairs, self._seed, self._device = config, pairs, seed, device
        self._seconds: float | None = None

    def __iter__(self) -> Iterator[Rules]:
        started = time.monotonic()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            symmetry = self.model.symmetry
            new = partial(build, self._config, symmetry)
            model = learn_rules(self._pairs, symmetry, new, self.report, quick=self._quick)
        learned = model.learned
        loss = mean_loss(model, Rows.of(self._pairs[:LOSS_PAIRS], model.sharing))
        self.model = model.to(self._device)
        self._seconds = time.monotonic() - started
        yield Rules(
            rules=learned.grammar.parents,
            pairs=learned.pairs,
            explained=learned.pairs - len(learned.exceptions),
            bits=learned.bits,
            train_loss=loss,
            seconds=self._seconds,
        )

    @property
    def step(self) -> int:
        return int(self.finished)

    @property
    def best_step(self) -> int:
        return self.step

    @property
    def best(self) -> Mapping[str, Tensor]:
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    @property
    def finished(self) -> bool:
        return self._seconds is not None

    @property
    def figures(self) -> Figures:
        return Figures(train_pairs=len(self._pairs), seconds=self._seconds)
