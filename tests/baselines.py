"""What the tests of models without symmetry share: small models, and LSTMs as their equations say.

References built on these read one sentence at a time: no batch, no padding, nothing precomputed.
"""

import math
import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from equitrans.batches import Batch, Rows
from equitrans.models.base import Autoregressive, greedy_accuracy
from equitrans.pairs import Pair
from equitrans.scan import VERBS, everything
from equitrans.symmetry import Symmetry
from equitrans.vocabulary import BOS, EOS, PAD
from worlds import assert_close, at, random_pairs, symmetry, unshared


def spread(config: Any, seed: int = 0, world: Symmetry | None = None) -> Any:
    """A model with weights far enough from zero for its words to differ."""
    torch.manual_seed(seed)
    model = config.build(world or symmetry())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model.eval()


def scan_symmetry() -> Symmetry:
    return Symmetry.of([VERBS], everything())


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# --- one sentence at a time


def true_words(row: Tensor) -> list[int]:
    return [word for word in row.tolist() if word != PAD]


def cell(lstm: nn.LSTM | nn.LSTMCell, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM, from its four weights."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    suffix = "_l0" if isinstance(lstm, nn.LSTM) else ""
    w, u, b, d = (getattr(lstm, name + suffix) for name in names)
    i, f, g, o = (w @ x + b + u @ h + d).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def read(lstm: nn.LSTM, xs: list[Tensor]) -> list[Tensor]:
    """The states of an LSTM from zero."""
    h = c = torch.zeros(lstm.hidden_size)
    states = []
    for x in xs:
        h, c = cell(lstm, x, h, c)
        states.append(h)
    return states


def read_both(lstm: Any, xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    return read(lstm.ahead, xs), read(lstm.back, xs[::-1])[::-1]


def log_prob(logits: Tensor, word: int) -> Tensor:
    """Log p of a word, from logits of EOS and the words that follow."""
    return torch.log_softmax(logits, 0)[word - EOS]


# --- what holds for each of them


def batch_of(seed: int, count: int) -> Batch:
    return unshared(random_pairs(seed, count), symmetry())


def assert_a_pair_does_not_feel_its_neighbours(model: Autoregressive) -> None:
    """Neither the loss, nor its gradient, nor the alignments."""
    pairs = random_pairs(3, 10)
    together = unshared(pairs, symmetry())
    assert len({len(p.source) for p in pairs}) > 3  # there is padding to be felt
    model.loss(together).sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    for i, pair in enumerate(pairs):
        alone = unshared([pair], symmetry())
        loss = model.loss(alone)
        loss.sum().backward()
        assert_close(model.loss(together)[i : i + 1], loss)
        (_, m), (_, n) = alone.target.shape, alone.source.shape
        assert_close(model.alignments(together)[i : i + 1, :m, :n], model.alignments(alone))
    for one, other in zip(
        gradients, [p.grad for p in model.parameters() if p.grad is not None], strict=True
    ):
        assert_close(one, other, 1e-9)  # sums of many terms


def assert_steps_add_up_to_the_loss(model: Autoregressive) -> None:
    """And each is a distribution that never emits PAD or BOS."""
    batch = batch_of(4, 8)
    state, previous, total = model.start(batch.source), torch.full((8,), BOS), torch.zeros(8)
    for gold in batch.target.T:
        scores, state = model.step(state, previous)
        assert (scores[:, [PAD, BOS]] == -math.inf).all()
        assert (scores[:, EOS:] > -math.inf).all()
        assert_close(scores.exp().sum(1), torch.ones(8))
        total = total + torch.where(gold == PAD, 0.0, scores[torch.arange(8), gold])
        previous = gold
    assert_close(-total, model.loss(batch))


def assert_alignments_are_distributions_over_the_source(model: Autoregressive) -> None:
    batch = batch_of(7, 6)
    found = model.alignments(batch)
    assert_close(found.sum(2), torch.ones(batch.target.shape))
    padding = (batch.source == PAD)[:, None].expand_as(found)
    assert padding.any()
    assert (found[padding] == 0).all()
    assert (found[~padding] > 0).all()


def assert_dropout_acts_in_training_only(model: Autoregressive) -> None:
    batch = batch_of(9, 5)
    assert torch.equal(model.loss(batch), model.loss(batch))
    model.train()
    assert not torch.equal(model.loss(batch, moment=at(1)), model.loss(batch, moment=at(1)))


def assert_the_loss_never_waits_for_the_device(model: Autoregressive) -> None:
    """Tensors without content have no values that a host could ask for."""
    batch = batch_of(2, 4)
    loss = model.to("meta").loss(batch.to(torch.device("meta")), moment=at(1))
    assert loss.shape == (4,)
    loss.sum().backward()


def learned_by_heart(
    config: Any, pairs: Sequence[Pair], *, seed: int, updates: int, learning_rate: float
) -> bool:
    """Whether so many updates are enough for greedy decoding to get every pair right."""
    torch.manual_seed(seed)
    model = config.build(Symmetry.of([], pairs)).float()
    rows = Rows.of(pairs, model.sharing)
    data = rows.batch(torch.arange(len(rows.weight)), rows.weight.float())
    assert greedy_accuracy(model, rows) < 0.2
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for n in range(updates):
        model.train()
        optimizer.zero_grad()
        model.loss(data, moment=at(n)).mean().backward()
        optimizer.step()
        if n % 20 == 19 and greedy_accuracy(model, rows) == 1:
            return True
    return False


def twenty_pairs() -> list[Pair]:
    """With targets of up to nine words."""
    short = [pair for pair in everything() if len(pair.target) <= 9]
    return random.Random(0).sample(short, 20)
