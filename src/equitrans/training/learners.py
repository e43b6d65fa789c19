"""The learner of each model: ``start`` gives it; rules with a second model combine two learners."""

import math
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from equitrans.analysis import predict
from equitrans.data import Data, Pair
from equitrans.models import (
    Backoff,
    BackoffConfig,
    ModelConfig,
    RecursiveTransducer,
    least_confidence,
)
from equitrans.paper import Model
from equitrans.settings import LONGEST_PREDICTION
from equitrans.training.cards import Figures
from equitrans.training.config import TrainingConfig
from equitrans.training.learning import (
    GradientLearning,
    Learning,
    LessonLearning,
    RuleLearning,
    Step,
)
from equitrans.training.loop import TrainState


class BackoffLearning(Learning):
    """Rules from all pairs in the first step; then a second model from the training pairs. At the
    end, the validation pairs decide how likely an answer of the second model must be.
    """

    model: Backoff

    def __init__(
        self,
        model: Backoff,
        config: BackoffConfig,
        training: TrainingConfig,
        data: Data,
        *,
        seed: int,
        device: str | torch.device = "cpu",
    ) -> None:
        self.model, self._config, self._data, self._device = model, config, data, device
        pairs = data.train + data.valid
        self._rules = RuleLearning(model.rules, config.rules, pairs, seed=seed, device=device)
        backing = (model.second, config.backing, training, data)
        self._second = GradientLearning(*backing, seed=seed, device=device)
        self.model.to(device)
        self._has_rules = False

    def __iter__(self) -> Iterator[Step]:
        if not self._has_rules:
            self._rules.report = self.report
            for rules in self._rules:
                assert isinstance(self._rules.model, RecursiveTransducer)
                self.model.take_rules(self._rules.model)
                self._has_rules = True
                yield rules
        for epoch in self._second:
            if self._second.finished:
                self._choose_confidence()
            yield epoch

    def _choose_confidence(self) -> None:
        """Set the confidence by the answers of the second model to the validation pairs."""
        second, now = self.model.second, deepcopy(self.model.second.state_dict())
        second.load_state_dict(self._second.best)
        valid = self._data.valid
        length = longest_prediction((*self._data.train, *valid), self._config)
        best = predict(second, [pair.source for pair in valid], width=3, max_length=length)
        answers = [
            (math.exp(found[0].log_prob), found[0].gives(pair.target))
            for pair, found in zip(valid, best, strict=True)
            if not found[0].refused
        ]
        self.model.confidence.fill_(least_confidence(answers, self._config.wrong))
        second.load_state_dict(now)

    def restored(self, best: dict[str, Tensor]) -> None:
        prefix = "second."
        kept = {k.removeprefix(prefix): v for k, v in best.items() if k.startswith(prefix)}
        self._second.restored(kept if self._second.step else {})
        self._has_rules = True

    @property
    def step(self) -> int:
        return self._has_rules + self._second.step

    @property
    def best_step(self) -> int:
        return self.step if self.finished else self._has_rules + self._second.best_step

    @property
    def best(self) -> Mapping[str, Tensor]:
        second = {f"second.{name}": value for name, value in self._second.best.items()}
        return deepcopy(self.model.state_dict()) | second

    @property
    def finished(self) -> bool:
        return self._has_rules and self._second.finished

    @property
    def figures(self) -> Figures:
        return self._second.figures

    @property
    def settings(self) -> dict[str, Any]:
        return self._second.settings

    @property
    def state(self) -> TrainState:
        return self._second.state


def start(
    model: Model,
    config: ModelConfig,
    training: TrainingConfig,
    data: Data,
    *,
    seed: int,
    device: str | torch.device = "cpu",
    quick: bool = False,
) -> Learning:
    """The learning of a new model, by the learner that its settings name; ``quick`` searches less
    for rules.
    """
    data = data.read
    if config.learner == "rules":
        pairs = data.train + data.valid
        return RuleLearning(model, config, pairs, seed=seed, device=device, quick=quick)
    if isinstance(config, BackoffConfig):
        assert isinstance(model, Backoff)
        return BackoffLearning(model, config, training, data, seed=seed, device=device)
    kind = LessonLearning if config.learner == "lessons" else GradientLearning
    return kind(model, config, training, data, seed=seed, device=device)


def longest_prediction(pairs: Iterable[Pair], config: ModelConfig) -> int:
    """The length limit of predictions: well beyond the targets seen, to allow longer ones. Rules
    know the length of a target before they build it, so they have no other limit than that of all
    models.
    """
    if config.learner == "rules":
        return LONGEST_PREDICTION
    return 4 * max(len(pair.target) for pair in pairs) + 10
