"""Properties of every compared system without symmetry: russin, wu and attention."""

import math
import random

import pytest
import torch

from baselines import batch_of, learned_by_heart, spread
from equitrans.analysis.audits import audit
from equitrans.data.scan import everything
from equitrans.errors import ConfigError
from equitrans.models.configs import AttentionConfig, RussinConfig, WuConfig
from equitrans.paper.vocabulary import BOS, EOS, PAD
from worlds import SYMMETRIES, assert_close, at, random_pairs, symmetry, unshared

SIZES = {
    RussinConfig: {"semantics": 5, "syntax": 6},
    WuConfig: {"embedding": 5, "hidden": 4},
    AttentionConfig: {"embedding": 5, "hidden": 4},
}


CONFIGS = {
    "russin": RussinConfig(**SIZES[RussinConfig], dropout=0.0),
    "wu": WuConfig(**SIZES[WuConfig], dropout=0.0),
    "attention": AttentionConfig(**SIZES[AttentionConfig], dropout=0.0),
    "attention, context after": AttentionConfig(
        **SIZES[AttentionConfig], dropout=0.0, context="after"
    ),
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def config(request):
    return request.param


@pytest.fixture
def model(config):
    return spread(config)


def test_loss_gradient_and_alignments_of_a_pair_do_not_depend_on_its_batch(model):
    pairs = random_pairs(3, 10)
    together = unshared(pairs, symmetry())
    assert len({len(p.source) for p in pairs}) > 3  # the batch has padding
    model.loss(together).sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    losses, alignments = model.loss(together), model.alignments(together)
    for i, pair in enumerate(pairs):
        alone = unshared([pair], symmetry())
        loss = model.loss(alone)
        loss.sum().backward()
        assert_close(losses[i : i + 1], loss)
        (_, m), (_, n) = alone.target.shape, alone.source.shape
        assert_close(alignments[i : i + 1, :m, :n], model.alignments(alone))
    summed = [p.grad for p in model.parameters() if p.grad is not None]
    for one, other in zip(gradients, summed, strict=True):
        assert_close(one, other, 1e-9)  # sums of many terms


def test_step_scores_are_distributions_and_add_up_to_the_loss(model):
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


def test_alignments_are_distributions_over_source_positions_without_padding(model):
    batch = batch_of(7, 6)
    found = model.alignments(batch)
    assert_close(found.sum(2), torch.ones(batch.target.shape))
    padding = (batch.source == PAD)[:, None].expand_as(found)
    assert padding.any()
    assert (found[padding] == 0).all()
    assert (found[~padding] > 0).all()


@pytest.mark.parametrize("kind", SIZES)
def test_dropout_acts_in_training_only(kind):
    model, batch = spread(kind(**SIZES[kind], dropout=0.3)), batch_of(9, 5)
    assert torch.equal(model.loss(batch), model.loss(batch))
    model.train()
    assert not torch.equal(model.loss(batch, moment=at(1)), model.loss(batch, moment=at(1)))


def test_the_loss_reads_no_value_on_the_host(model):
    """Tensors on the meta device have no values, and reading one raises an error."""
    batch = batch_of(2, 4)
    loss = model.to("meta").loss(batch.to(torch.device("meta")), moment=at(1))
    assert loss.shape == (4,)
    loss.sum().backward()


def test_the_model_is_not_equivariant_and_shares_no_classes(config):
    world = SYMMETRIES["verbs × turns"]
    model = spread(config, world=world)
    assert model.sharing == symmetry()
    found = audit(model, random_pairs(3, 8), world, max_length=6)
    assert not found.passed
    assert found.max_deviation > 1e-3


@pytest.mark.parametrize(
    ("config", "seed"),
    [
        (WuConfig(embedding=16, hidden=32, dropout=0.0), 1),
        (AttentionConfig(embedding=16, hidden=32, dropout=0.0), 0),
    ],
    ids=["wu", "attention"],
)
def test_training_fits_twenty_pairs(config, seed):
    short = [pair for pair in everything() if len(pair.target) <= 9]
    pairs = random.Random(0).sample(short, 20)
    assert learned_by_heart(config, pairs, seed=seed, updates=400)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (RussinConfig, {"semantics": 0}, "model.semantics is 0; it must be 1 or more"),
        (RussinConfig, {"syntax": 7}, "model.syntax is 7; it must be even"),
        (RussinConfig, {"dropout": 1.0}, r"model.dropout is 1.0; it must lie in \[0, 1\)"),
        (WuConfig, {"embedding": 0}, "model.embedding is 0; it must be 1 or more"),
        (WuConfig, {"hidden": -1}, "model.hidden is -1; it must be 1 or more"),
        (WuConfig, {"dropout": 1.5}, r"model.dropout is 1.5; it must lie in \[0, 1\)"),
        (AttentionConfig, {"embedding": 0}, "model.embedding is 0; it must be 1 or more"),
        (AttentionConfig, {"hidden": 0}, "model.hidden is 0; it must be 1 or more"),
        (AttentionConfig, {"dropout": -0.1}, r"model.dropout is -0.1; it must lie in \[0, 1\)"),
    ],
)
def test_invalid_sizes_raise_an_error(kind, settings, message):
    with pytest.raises(ConfigError, match=message):
        kind(**settings)
