"""The learner of each model: ``start`` gives it; rules with a second model combine two learners."""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
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
    build,
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

FOLDS = 3
"""Number of parts of a cross-validation by targets."""


class BackoffLearning(Learning):
    """Rules from all pairs in the first step; then a second model from the training pairs. At the
    end, the validation pairs decide how likely an answer of the second model must be.

    Hybrid trees need no validation pairs and learn in seconds. They learn from all pairs, and a
    cross-validation decides: each part has targets that the other parts do not have.
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
        self._training, self._seed = training, seed
        pairs = data.train + data.valid
        self._rules = RuleLearning(model.rules, config.rules, pairs, seed=seed, device=device)
        self._second = self._learning(model.second, data)
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

    def _learning(self, second: Model, data: Data) -> GradientLearning:
        """The learning of a second model."""
        if self._config.second == "trees":
            data = replace(data, train=data.train + data.valid, valid=())
        asked = second, self._config.backing, self._training, data
        return GradientLearning(*asked, seed=self._seed, device=self._device)

    def _choose_confidence(self) -> None:
        """Set the confidence by the answers of the second model to pairs that it has not seen."""
        data, second = self._data, self.model.second
        if self._config.second == "trees":
            answers = [each for part in self._parts() for each in self._answers(*part)]
        else:
            now = deepcopy(second.state_dict())
            second.load_state_dict(self._second.best)
            answers = self._answers(second, data.valid)
            second.load_state_dict(now)
        self.model.confidence.fill_(least_confidence(answers, self._config.wrong))

    def _parts(self) -> Iterator[tuple[Model, tuple[Pair, ...]]]:
        """Each part of the pairs, with a model that learned from the others."""
        pairs = self._data.train + self._data.valid
        targets = sorted({pair.target for pair in pairs})
        random.Random(self._seed).shuffle(targets)
        for k in range(FOLDS):
            held = set(targets[k::FOLDS])
            others = tuple(pair for pair in pairs if pair.target not in held)
            if held and others:
                model = build(self._config.backing, self.model.symmetry)
                learning = self._learning(model, replace(self._data, train=others, valid=()))
                for _ in learning:
                    pass
                yield learning.best_model(), tuple(pair for pair in pairs if pair.target in held)

    def _answers(self, model: Model, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        """The probability of the answer to each pair, and whether it is right."""
        length = longest_prediction(self._data.train + self._data.valid, self._config)
        best = predict(model, [pair.source for pair in pairs], width=3, max_length=length)
        return [
            (math.exp(found[0].log_prob), found[0].gives(pair.target))
            for pair, found in zip(pairs, best, strict=True)
            if not found[0].refused
        ]

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
