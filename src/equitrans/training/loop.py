"""Gradient descent as an iterator of epochs.

All randomness of an epoch comes from the seed and the epoch's number, so a state that is saved
after an epoch and loaded again continues bit for bit.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.analysis import in_parts, judge
from equitrans.data import Rows, by_form, by_pair
from equitrans.errors import DivergenceError
from equitrans.models import Lane
from equitrans.paper import Batch, Model, Moment
from equitrans.training.config import TrainingConfig
from equitrans.training.cuda_graphs import STEP, FixedBatch, Recorder


@dataclass(frozen=True)
class Epoch:
    """The figures of one epoch. Losses are −log p per pair; the training loss has the weights of
    the batches, and validation figures are None without validation pairs.

    >>> print(Epoch(3, 10, 30, 1.25, 0.5, 0.75, True, 2.0))
    epoch 3 of 10: loss 1.2500, validation 0.5000, accuracy 75.0 %, best so far
    """

    number: int
    of: int | None
    """Total number of epochs, or None if only time limits it."""
    updates: int
    train_loss: float
    valid_loss: float | None
    valid_accuracy: float | None
    is_best: bool
    seconds: float
    start: int = 1

    def __str__(self) -> str:
        of = "" if self.of is None else f" of {self.of}"
        again = f", start {self.start}" if self.start > 1 else ""
        text = f"epoch {self.number}{of}{again}: loss {self.train_loss:.4f}"
        if self.valid_loss is not None and self.valid_accuracy is not None:
            text += (
                f", validation {self.valid_loss:.4f}, accuracy {100 * self.valid_accuracy:.1f} %"
            )
        return text + (", best so far" if self.is_best else "")


@dataclass
class TrainState:
    """Everything that changes in training; saved and restored, training continues bit for bit."""

    model: Model
    optimizer: torch.optim.Optimizer
    seed: int
    epoch: int = 0
    updates: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    best_loss: float = math.inf
    best_accuracy: float = 1.0
    """Validation accuracy of the best epoch; 1 without validation pairs."""
    start: int = 1
    """Number of the start: a stuck training starts again with new random weights."""
    epochs_before: int = 0
    updates_before: int = 0
    """Epochs and updates of the earlier starts."""
    lesson: int = 0
    lesson_epochs: int = 0
    """Number of the lesson, from 0, and its epochs so far; for models that learn in lessons."""
    best: dict[str, Tensor] = field(default_factory=dict)
    recorder: Recorder | None = None
    """The CUDA graph of an update, for models that allow it; checkpoints do not contain it."""

    @classmethod
    def new(cls, model: Model, config: TrainingConfig, *, seed: int) -> "TrainState":
        """The state before the first epoch."""
        return cls(model, _optimizer(model, config), seed)

    def restart(self, config: TrainingConfig) -> None:
        """Begin a new start of a model that has new weights."""
        self.optimizer, self.recorder = _optimizer(self.model, config), None
        self.start += 1
        self.epochs_before, self.updates_before = self.epoch, self.updates
        self.lesson = self.lesson_epochs = 0


def _optimizer(model: Model, config: TrainingConfig) -> torch.optim.Optimizer:
    if config.optimizer == "adadelta":
        return torch.optim.Adadelta(
            _groups(model, config), lr=config.learning_rate, weight_decay=config.weight_decay
        )
    make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.optimizer]
    device = next(model.parameters()).device
    recorded = _can_record(model)
    rate: float | Tensor = config.learning_rate
    if recorded:  # a CUDA graph reads the rate from memory, and fused Adam reads float32
        rate = torch.tensor(rate, device=device, dtype=torch.float32)
    return make(
        _groups(model, config),
        lr=rate,
        weight_decay=config.weight_decay,
        capturable=recorded,
        fused=True,
    )


def _groups(model: Model, config: TrainingConfig) -> list[dict[str, Any]]:
    """The parameters of a model in their order, in groups by learning rate."""
    if not isinstance(model, Lane):
        return [{"params": list(model.parameters())}]
    rate = config.learning_rate * model.composer_rate
    return [
        {"params": list(model.composer.parameters()), "lr": rate},
        {"params": list(model.solver.parameters())},
    ]


def _can_record(model: Model) -> bool:
    """Whether a CUDA graph can record the updates of a model."""
    return next(model.parameters()).is_cuda and model.static


def updates_to_train(data: Rows, config: TrainingConfig) -> int | None:
    """The number of updates of one start; None if only time limits it."""
    limits = [] if config.updates is None else [config.updates]
    if config.epochs is not None:
        limits.append(config.epochs * _updates_per_epoch(data, config))
    if not limits and config.seconds is None:
        limits = [min(max(100 * data.n_forms, 500), 7500)]
    return min(limits, default=None)


def epochs_to_train(data: Rows, config: TrainingConfig) -> int | None:
    """The number of epochs of one start, of which the last may be partial; None if only time
    limits it.
    """
    updates = updates_to_train(data, config)
    return None if updates is None else math.ceil(updates / _updates_per_epoch(data, config))


def _updates_per_epoch(data: Rows, config: TrainingConfig) -> int:
    units = data.n_forms if config.batching == "forms" else len(data.row)
    return config.passes * math.ceil(units / config.batch)


def train(
    state: TrainState, data: Rows, validation: Rows | None, config: TrainingConfig
) -> Iterator[Epoch]:
    """Train epoch by epoch, from the state given, until the budget or the patience is used up.

    The best epoch is the one of lowest validation loss, or the last without validation data.
    """
    while not ended(state, data, config):
        started = time.monotonic() - state.seconds
        state.epoch += 1
        train_loss = _epoch(state, data, config, started)
        # a CPU checks every batch; a GPU is only checked here, because reading a loss waits for it
        _check_epoch(state, "training loss", train_loss, data)
        valid_loss = accuracy = None
        if validation is not None:
            valid_loss, accuracy = judge(state.model, validation)
            _check_epoch(state, "validation loss", valid_loss, validation)
        check_weights(state)
        is_best = valid_loss is None or valid_loss < state.best_loss
        if is_best:
            state.best_epoch = state.epoch
            state.best_loss = math.inf if valid_loss is None else valid_loss
            state.best_accuracy = 1.0 if accuracy is None else accuracy
            state.best = {k: v.detach().clone() for k, v in state.model.state_dict().items()}
        state.seconds = time.monotonic() - started
        epochs = epochs_to_train(data, config)
        yield Epoch(
            number=state.epoch,
            of=None if epochs is None else state.epochs_before + epochs,
            updates=state.updates,
            train_loss=train_loss,
            valid_loss=valid_loss,
            valid_accuracy=accuracy,
            is_best=is_best,
            seconds=state.seconds,
            start=state.start,
        )


def _epoch(state: TrainState, data: Rows, config: TrainingConfig, started: float) -> float:
    """Train one epoch, or as much of it as time allows; return the mean loss."""
    updates = updates_to_train(data, config)
    seed = epoch_seed(state)
    generator = torch.Generator().manual_seed(seed)
    one = partial(by_form, forms=config.batch)
    if config.batching == "pairs":
        one = partial(by_pair, pairs=config.batch)
    batches = chain.from_iterable(one(data, generator=generator) for _ in range(config.passes))
    device = next(state.model.parameters()).device
    total, weight = torch.zeros((), device=device), 0.0
    state.model.train()
    if state.recorder is None and _can_record(state.model):
        room = partial(FixedBatch.for_training, data, config.batching, config.batch, device=device)
        step = STEP if config.batch == 1 else data.target.shape[1]
        state.recorder = Recorder(lambda words: room(words=words), step=step)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # for dropout
        for batch in batches:
            done = 0.0 if updates is None else (state.updates - state.updates_before) / updates
            if config.seconds is not None:
                done = max(done, (time.monotonic() - started) / config.seconds)
            if done >= 1:
                break
            share = float(batch.weight.sum())
            # the sum stays on its device: reading it would wait for the GPU
            total += update(state, batch, config, Moment(state.updates, done)) * share
            weight += share
    return float(total) / weight if weight else 0.0


def epoch_seed(state: TrainState) -> int:
    """The seed of all randomness of the current epoch."""
    return (state.seed * 1_000_003 + state.epoch) % 2**63


def ended(state: TrainState, data: Rows, config: TrainingConfig) -> bool:
    """Whether the budget or the patience of the current start is used up."""
    updates = updates_to_train(data, config)
    waited = state.epoch - max(state.best_epoch, state.epochs_before)
    return (
        (updates is not None and state.updates - state.updates_before >= updates)
        or (config.seconds is not None and state.seconds >= config.seconds)
        or (config.patience is not None and waited >= config.patience)
    )


def update(state: TrainState, batch: Batch, config: TrainingConfig, moment: Moment) -> Tensor:
    """Make one step of the optimiser; return the mean loss of the batch."""
    if config.schedule == "cosine":
        rate = config.learning_rate * (0.02 + 0.98 * (1 + math.cos(math.pi * moment.done)) / 2)
        for group in state.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
    state.updates += 1
    if state.recorder is not None:
        descend = partial(_descend, state, config, moment)
        return state.recorder(batch, descend, phase=state.model.phase(moment))
    device = next(state.model.parameters()).device
    return _descend(state, config, moment, batch.to(device))


def _descend(state: TrainState, config: TrainingConfig, moment: Moment, batch: Batch) -> Tensor:
    """Update the weights by the gradient of a batch; return its mean loss before the update."""
    model, random = state.model, torch.get_rng_state()
    state.optimizer.zero_grad(set_to_none=True)
    loss = _mean(model.loss(batch, moment=moment), batch)

    def check(kind: str, value: Tensor) -> None:
        """Raise DivergenceError before the weights change, except on a GPU."""
        if not value.is_cuda and not math.isfinite(value):
            where = f"epoch {state.epoch}, update {state.updates}"
            broken = _broken(model, batch, random, loss, moment)
            raise divergence(where, kind, float(value), broken)

    check("training loss", loss.detach())
    loss.backward()
    largest = math.inf if config.clip is None else config.clip
    check("gradient", torch.nn.utils.clip_grad_norm_(model.parameters(), largest))
    state.optimizer.step()
    return loss.detach()


def _mean(losses: Float[Tensor, " b"], batch: Batch) -> Float[Tensor, ""]:
    return (losses * batch.weight).sum() / batch.weight.sum()


# --- a loss that is NaN or infinite


@torch.no_grad()
def _check_epoch(state: TrainState, kind: str, value: float, data: Rows) -> None:
    """Raise DivergenceError if the loss of an epoch is NaN or infinite, with the first batch of
    the data whose loss is so under the current weights, if there is one.
    """
    if math.isfinite(value):
        return
    model, broken = state.model.eval(), None
    for batch in in_parts(model, data):
        random, loss = torch.get_rng_state(), _mean(model.loss(batch), batch)
        if not math.isfinite(loss):
            broken = _broken(model, batch, random, loss)
            break
    raise divergence(f"epoch {state.epoch}", kind, value, broken)


def check_weights(state: TrainState) -> None:
    """Raise DivergenceError if a weight is NaN or infinite after the last update of an epoch."""
    for name, weight in state.model.named_parameters():
        if not bool(weight.isfinite().all()):
            value = float(weight.detach()[~weight.isfinite()][0])
            raise divergence(f"epoch {state.epoch}", f"weight {name}", value, None)


def divergence(
    where: str, kind: str, value: float, broken: dict[str, Tensor] | None
) -> DivergenceError:
    """The error of a number that is NaN or infinite, with advice."""
    advice = "a smaller training.learning_rate or training.clip may help"
    return DivergenceError(f"{where}: the {kind} is {value}; {advice}", broken)


def _broken(
    model: Model, batch: Batch, random: Tensor, loss: Tensor, moment: Moment | None = None
) -> dict[str, Tensor]:
    """All that decides the loss of a batch: the content of ``broken.safetensors``."""
    tensors = {f"weights.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"batch.{name}": value for name, value in vars(batch).items()}
    tensors |= {"random": random, "loss": loss}
    if moment is not None:
        tensors["moment"] = torch.tensor([moment.updates, moment.done], dtype=torch.float64)
    return {
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, value in tensors.items()
    }
