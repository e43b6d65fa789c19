"""Learning in lessons, as LANE does: gradient descent on samples of longer and longer sentences.

A lesson has the training pairs with up to n source words. It ends when the model predicts enough of
the validation pairs with up to n words, or after a number of epochs.
"""

import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from equitrans.data import Data, Pair
from equitrans.models import Lane, LaneConfig
from equitrans.paper import Sentence, Symmetry
from equitrans.training.config import TrainingConfig
from equitrans.training.loop import Epoch, TrainState, check_weights, divergence, epoch_seed

EPOCHS = (30, 30, 20, 10, 5)
"""Largest number of epochs of the first lessons; every later lesson has one epoch."""

REPEATED = ((100, 8), (500, 2))
"""A lesson with fewer pairs than the first number repeats them in an epoch."""

CHECK_EVERY, LONG = 250, 500
"""Number of updates between two validations in an epoch with more updates than the second number;
shorter epochs are validated at their end."""

Row = tuple[Sentence, str]
"""Numbers of the source words, and the target with one character per word."""


@dataclass(frozen=True)
class LessonEpoch(Epoch):
    """The figures of an epoch of a lesson. The training loss is 1 − the mean reward.

    >>> print(LessonEpoch(3, None, 30, 0.75, 0.5, 0.6, True, 2.0, 1, 4, 0.25, 0.9))
    epoch 3, lesson of 4 words: reward 0.250, accuracy 90.0 % there, 60.0 % in all, best so far
    """

    lesson: int = 0
    """Largest number of source words in the lesson."""
    reward: float = 0.0
    lesson_accuracy: float = 0.0

    def __str__(self) -> str:
        again = f", start {self.start}" if self.start > 1 else ""
        text = (
            f"epoch {self.number}{again}, lesson of {self.lesson} words: reward {self.reward:.3f}, "
            f"accuracy {100 * self.lesson_accuracy:.1f} % there"
        )
        if self.valid_accuracy is not None:
            text += f", {100 * self.valid_accuracy:.1f} % in all"
        return text + (", best so far" if self.is_best else "")


@dataclass(frozen=True)
class Lessons:
    """The distinct pairs of a training, by the number of their source words."""

    train: tuple[Row, ...]
    valid: tuple[Row, ...]
    config: LaneConfig

    @classmethod
    def of(cls, data: Data, symmetry: Symmetry, config: LaneConfig) -> "Lessons":
        """The lessons of some data; short validation pairs are training pairs too."""
        valid = _rows(data.valid, symmetry)
        short = tuple(row for row in valid if len(row[0]) <= config.short)
        train = tuple(dict.fromkeys(_rows(data.train, symmetry) + short))
        return cls(train, valid, config)

    @cached_property
    def words(self) -> tuple[int, ...]:
        """For each lesson, the largest number of source words; every lesson adds sentences."""
        return tuple(sorted({max(len(source), self.config.first) for source, _ in self.train}))

    def rows(self, lesson: int) -> list[Row]:
        """The training rows of an epoch of a lesson, repeated if there are few."""
        found = _up_to(self.train, self.words[lesson])
        times = next((times for fewer, times in REPEATED if len(found) < fewer), 1)
        return found * times

    @property
    def checked(self) -> tuple[Row, ...]:
        """The rows whose accuracy decides: validation pairs, or without any the training pairs."""
        return self.valid or self.train

    def epochs(self, lesson: int) -> int:
        """Largest number of epochs of a lesson."""
        if lesson == len(self.words) - 1:
            return sys.maxsize if self.config.last is None else self.config.last
        return EPOCHS[lesson] if lesson < len(EPOCHS) else 1

    def entropy(self, lesson: int) -> float:
        """The weight of the entropy bonus in a lesson."""
        config = self.config
        return max(config.entropy * config.entropy_fall**lesson, config.entropy_floor)


def _rows(pairs: Sequence[Pair], symmetry: Symmetry) -> tuple[Row, ...]:
    source, target = symmetry.source, symmetry.target
    encoded = ((source.encode(x), "".join(map(chr, target.encode(y)))) for x, y in pairs)
    return tuple(dict.fromkeys(encoded))


def _up_to(rows: Sequence[Row], words: int) -> list[Row]:
    return [row for row in rows if len(row[0]) <= words]


def teach(state: TrainState, lessons: Lessons, config: TrainingConfig) -> Iterator[LessonEpoch]:
    """Train epoch by epoch, from the state given, through all lessons.

    The best epoch is the one of highest accuracy on all validation pairs, the later of equals.
    """
    while not taught(state, lessons, config):
        started = time.monotonic() - state.seconds
        state.epoch += 1
        state.lesson_epochs += 1
        lesson = state.lesson
        reward = _epoch(state, lessons, config, started)
        check_weights(state)
        losses, right = _model(state).judged(*_columns(lessons.checked))
        accuracy, in_lesson = _mean(right), _lesson_accuracy(state, lessons, right)
        is_best = not lessons.valid or state.best_epoch == 0 or accuracy >= state.best_accuracy
        if is_best:
            state.best_epoch = state.epoch
            state.best_loss, state.best_accuracy = _mean(losses), accuracy
            state.best = {k: v.detach().clone() for k, v in state.model.state_dict().items()}
        if in_lesson >= lessons.config.passing <= accuracy:
            state.lesson, state.lesson_epochs = len(lessons.words), 0
        elif in_lesson >= lessons.config.passing or state.lesson_epochs >= lessons.epochs(lesson):
            state.lesson, state.lesson_epochs = lesson + 1, 0
        state.seconds = time.monotonic() - started
        yield LessonEpoch(
            number=state.epoch,
            of=None,
            updates=state.updates,
            train_loss=1 - reward,
            valid_loss=_mean(losses) if lessons.valid else None,
            valid_accuracy=accuracy if lessons.valid else None,
            is_best=is_best,
            seconds=state.seconds,
            start=state.start,
            lesson=lessons.words[lesson],
            reward=reward,
            lesson_accuracy=in_lesson,
        )


def taught(state: TrainState, lessons: Lessons, config: TrainingConfig) -> bool:
    """Whether the last lesson is over, or a limit of epochs, updates or seconds is reached."""
    epochs, updates = state.epoch - state.epochs_before, state.updates - state.updates_before
    return (
        state.lesson >= len(lessons.words)
        or (config.epochs is not None and epochs >= config.epochs)
        or (config.updates is not None and updates >= config.updates)
        or (config.seconds is not None and state.seconds >= config.seconds)
    )


def _epoch(state: TrainState, lessons: Lessons, config: TrainingConfig, started: float) -> float:
    """Train one epoch, or until the lesson is passed or a limit is reached; return the mean
    reward.
    """
    model, weight = _model(state).train(), lessons.entropy(state.lesson)
    draw = random.Random(epoch_seed(state))
    generator = torch.Generator().manual_seed(epoch_seed(state))
    rows = lessons.rows(state.lesson)
    draw.shuffle(rows)
    batches = [rows[at : at + config.batch] for at in range(0, len(rows), config.batch)]
    total, pairs = 0.0, 0
    for number, batch in enumerate(batches, start=1):
        loss, reward = model.sample_loss(batch, entropy=weight, draw=draw, generator=generator)
        _descend(state, config, loss)
        total, pairs = total + reward * len(batch), pairs + len(batch)
        timed_out = config.seconds is not None and time.monotonic() - started >= config.seconds
        if timed_out or state.updates - state.updates_before == config.updates:
            break
        if len(batches) > LONG and number % CHECK_EVERY == 0:
            _, right = model.judged(*_columns(lessons.checked))
            if _lesson_accuracy(state, lessons, right) >= lessons.config.passing:
                break
    return total / pairs


def _descend(state: TrainState, config: TrainingConfig, loss: Tensor) -> None:
    """Update the weights; the gradients of Composer and Solver are clipped separately, each by its
    largest entry.
    """
    state.updates += 1
    where = f"epoch {state.epoch}, update {state.updates}"
    if not math.isfinite(value := float(loss.detach())):
        raise divergence(where, "training loss", value, None)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    model = _model(state)
    for part in (model.composer, model.solver):
        gradients = [p.grad for p in part.parameters() if p.grad is not None]
        largest = float(torch.stack([g.abs().amax() for g in gradients]).max())
        if not math.isfinite(largest):
            raise divergence(where, "gradient", largest, None)
        if config.clip is not None and largest > config.clip:
            torch._foreach_mul_(gradients, config.clip / largest)
    state.optimizer.step()


def _lesson_accuracy(state: TrainState, lessons: Lessons, right: Sequence[bool]) -> float:
    """The share of the lesson's validation pairs that are right, or without any of its training
    pairs.
    """
    words = lessons.words[state.lesson]
    checked = zip(lessons.checked, right, strict=True)
    if short := [ok for (source, _), ok in checked if len(source) <= words]:
        return _mean(short)
    return _mean(_model(state).judged(*_columns(_up_to(lessons.train, words)))[1])


def _model(state: TrainState) -> Lane:
    assert isinstance(state.model, Lane)
    return state.model


def _columns(rows: Sequence[Row]) -> tuple[list[Sentence], list[str]]:
    return [source for source, _ in rows], [target for _, target in rows]


def _mean(numbers: Sequence[float | bool]) -> float:
    return sum(numbers) / len(numbers)
