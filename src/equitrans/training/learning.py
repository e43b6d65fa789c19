"""One interface of learning for every model: iterate over a ``Learning`` until it has finished.

A model's settings name its learner: *gradient* yields an ``Epoch`` per pass over the data, *rules*
yields one ``Rules`` for the grammar that it induced.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from equitrans.analysis import mean_loss
from equitrans.data import Data, Pair, Rows
from equitrans.models import ModelConfig, build, learn_rules
from equitrans.paper import Model
from equitrans.training.cards import Figures
from equitrans.training.config import TrainingConfig
from equitrans.training.loop import Epoch, TrainState, ended, train

LOSS_PAIRS = 2000
"""The loss of a rule model is measured on this many pairs: it says little and takes long."""


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
"""What a learning reports."""


class Learning(ABC):
    """A training in progress. Iterating over it goes on from where it stands."""

    model: Model
    """The model as it stands."""
    step: int = 0
    """Number of steps so far."""
    best_step: int = 0
    """The step with the best weights; 0 before the first step."""

    @abstractmethod
    def __iter__(self) -> Iterator[Step]:
        """Learn, and report after every step."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether nothing is left to learn."""

    @property
    @abstractmethod
    def best(self) -> Mapping[str, Tensor]:
        """The weights of the best step."""

    @property
    @abstractmethod
    def figures(self) -> Figures:
        """How many pairs and steps the learning took."""

    @property
    def state(self) -> TrainState | None:
        """The state that a checkpoint restores; None if there is nothing between the steps."""
        return None

    def best_model(self) -> Model:
        """The model with the weights of the best step."""
        self.model.load_state_dict(self.best)
        return self.model.eval()


class GradientLearning(Learning):
    """Gradient descent; the epoch of lowest validation loss is the best."""

    def __init__(
        self,
        model: Model,
        training: TrainingConfig,
        data: Data,
        *,
        seed: int,
        device: str | torch.device = "cpu",
    ) -> None:
        self.training, self.data = training, data
        self.model = model.to(device)
        self._state = TrainState.new(self.model, training, seed=seed)
        self._rows = Rows.of(data.train, model.sharing)
        self._valid = Rows.of(data.valid, model.sharing) if data.valid else None

    def __iter__(self) -> Iterator[Epoch]:
        return train(self._state, self._rows, self._valid, self.training)

    @property
    def step(self) -> int:  # type: ignore[override]
        return self._state.epoch

    @property
    def best_step(self) -> int:  # type: ignore[override]
        return self._state.best_epoch

    @property
    def finished(self) -> bool:
        return ended(self._state, self._rows, self.training)

    @property
    def best(self) -> Mapping[str, Tensor]:
        return self._state.best

    @property
    def state(self) -> TrainState:
        return self._state

    @property
    def figures(self) -> Figures:
        return Figures(
            train_pairs=len(self.data.train),
            valid_pairs=len(self.data.valid),
            epochs=self._state.epoch,
            best_epoch=self._state.best_epoch,
            seconds=self._state.seconds,
        )


class RuleLearning(Learning):
    """Rules by description length, from all pairs at once: there are no validation pairs."""

    def __init__(
        self,
        model: Model,
        config: ModelConfig,
        pairs: Sequence[Pair],
        *,
        seed: int,
        device: str | torch.device = "cpu",
    ) -> None:
        self.model = model
        self._config, self._pairs, self._seed, self._device = config, pairs, seed, device
        self._seconds = 0.0

    def __iter__(self) -> Iterator[Rules]:
        started = time.monotonic()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            symmetry = self.model.symmetry
            model = learn_rules(self._pairs, symmetry, partial(build, self._config, symmetry))
        learned = model.learned
        some = Rows.of(self._pairs[:LOSS_PAIRS], model.sharing)
        loss = mean_loss(model, some)
        self.model = model.to(self._device)
        self.step = self.best_step = 1
        self._seconds = time.monotonic() - started
        yield Rules(
            rules=len(learned.grammar),
            pairs=learned.pairs,
            explained=learned.pairs - len(learned.exceptions),
            bits=learned.bits,
            train_loss=loss,
            seconds=self._seconds,
        )

    @property
    def finished(self) -> bool:
        return self.step == 1

    @property
    def best(self) -> Mapping[str, Tensor]:
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    @property
    def figures(self) -> Figures:
        return Figures(train_pairs=len(self._pairs), seconds=self._seconds)


def start(
    model: Model,
    config: ModelConfig,
    training: TrainingConfig,
    data: Data,
    *,
    seed: int,
    device: str | torch.device = "cpu",
) -> Learning:
    """The learning of a new model, as its settings say."""
    if config.learner == "rules":
        return RuleLearning(model, config, data.train + data.valid, seed=seed, device=device)
    return GradientLearning(model, training, data, seed=seed, device=device)


def longest_prediction(pairs: Iterable[Pair]) -> int:
    """The length limit of predictions: well beyond the targets seen, to allow longer ones."""
    return 4 * max(len(pair.target) for pair in pairs) + 10
