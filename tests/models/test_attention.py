"""Soft attention against its equations."""

import pytest
import torch

import baselines
from baselines import batch_of, log_prob, n_parameters, read_both, scan_symmetry, spread, true_words
from equitrans.analysis.audits import audit
from equitrans.errors import ConfigError
from equitrans.models import build
from equitrans.models.configs import AttentionConfig
from equitrans.paper.vocabulary import BOS
from worlds import SYMMETRIES, assert_close, at, random_pairs, symmetry

SMALL = AttentionConfig(embedding=5, hidden=4, dropout=0.0)


def test_its_parameters_are_those_of_its_equations():
    e, h, x, y = 64, 128, 13, 6
    encoder = 2 * (4 * h * (e + h) + 8 * h)
    decoder = 4 * h * (e + 3 * h) + 8 * h
    attention = h * h + (2 * h + 1) * h + h
    begin, words = (h + 1) * h, (x + 2 + y + 2) * e + (3 * h + 1) * (y + 1)
    found = n_parameters(build(AttentionConfig(), scan_symmetry()))
    assert found == encoder + decoder + attention + begin + words == 499_143


def plain_loss(model, source, target):
    """Bahdanau et al.'s appendix A with LSTMs, one sentence."""
    ahead, back = read_both(model.encoder, [model.source_embedding.weight[x - BOS] for x in source])
    states = [torch.cat(both) for both in zip(ahead, back, strict=True)]
    h = torch.tanh(model.begin(back[0]))
    c, total = torch.zeros_like(h), torch.zeros(())
    v = model.score.weight[0]
    for previous, y in zip([BOS, *target[:-1]], target, strict=True):
        scores = [v @ torch.tanh(model.query(h) + model.key(state)) for state in states]
        alpha = torch.softmax(torch.stack(scores), 0)
        context = sum(a * state for a, state in zip(alpha, states, strict=True))
        word = model.target_embedding.weight[previous - BOS]
        h, c = baselines.cell(model.decoder, torch.cat([word, context]), h, c)
        total = total - log_prob(model.output(torch.cat([h, context])), y)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_the_equations_sentence_by_sentence(seed):
    model, batch = spread(SMALL, seed), batch_of(seed, 8)
    expected = [
        plain_loss(model, true_words(x), true_words(y))
        for x, y in zip(batch.source, batch.target, strict=True)
    ]
    assert_close(model.loss(batch), torch.stack(expected))
    assert_close(model.loss(batch, moment=at(1)), torch.stack(expected))


def test_a_pair_does_not_feel_its_neighbours():
    baselines.assert_a_pair_does_not_feel_its_neighbours(spread(SMALL))


def test_steps_add_up_to_the_loss():
    baselines.assert_steps_add_up_to_the_loss(spread(SMALL))


def test_attention_is_a_distribution_over_the_source():
    baselines.assert_alignments_are_distributions_over_the_source(spread(SMALL))


def test_dropout_acts_in_training_only():
    baselines.assert_dropout_acts_in_training_only(
        spread(AttentionConfig(embedding=5, hidden=4, dropout=0.3))
    )


def test_the_loss_never_waits_for_the_device():
    baselines.assert_the_loss_never_waits_for_the_device(spread(SMALL))


def test_target_words_are_fed_back():
    model, batch = spread(SMALL), batch_of(2, 5)
    start = model.start(batch.source)
    one, _ = model.step(start, torch.full((5,), 4))
    other, _ = model.step(start, torch.full((5,), 5))
    assert (one - other)[:, 2:].abs().amax(1).min() > 1e-3


def test_it_is_not_equivariant_and_shares_nothing():
    world = SYMMETRIES["verbs × turns"]
    model = spread(SMALL, world=world)
    assert model.sharing == symmetry()
    found = audit(model, random_pairs(3, 8), world, max_length=6)
    assert not found.passed
    assert found.max_deviation > 1e-3


def test_twenty_pairs_are_learned_by_heart():
    config = AttentionConfig(embedding=16, hidden=32, dropout=0.0)
    pairs = baselines.twenty_pairs()
    assert baselines.learned_by_heart(config, pairs, seed=0, updates=400, learning_rate=0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embedding": 0}, "model.embedding is 0; it must be 1 or more"),
        ({"hidden": 0}, "model.hidden is 0; it must be 1 or more"),
        ({"dropout": -0.1}, r"model.dropout is -0.1; it must lie in \[0, 1\)"),
    ],
)
def test_sizes_that_make_no_model_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        AttentionConfig(**settings)
