"""Soft attention against its equations."""

import pytest
import torch

import baselines
from baselines import batch_of, log_prob, n_parameters, read_both, scan_symmetry, spread, true_words
from equitrans.models import build
from equitrans.models.configs import AttentionConfig
from equitrans.paper.vocabulary import BOS
from worlds import assert_close, at

SMALL = AttentionConfig(embedding=5, hidden=4, dropout=0.0)
AFTER = AttentionConfig(embedding=5, hidden=4, dropout=0.0, context="after")


def test_the_number_of_parameters_on_scan_follows_from_the_equations():
    e, h, x, y = 64, 128, 13, 6
    encoder = 2 * (4 * h * (e + h) + 8 * h)
    decoder = 4 * h * (e + 3 * h) + 8 * h
    attention = h * h + (2 * h + 1) * h + h
    begin, words = (h + 1) * h, (x + 2 + y + 2) * e + (3 * h + 1) * (y + 1)
    found = n_parameters(build(AttentionConfig(), scan_symmetry()))
    assert found == encoder + decoder + attention + begin + words == 499_143


def plain_loss(model, source, target):
    """One sentence: Bahdanau et al.'s appendix A with LSTMs or, with the context after the step,
    Luong et al.'s section 3.1.
    """
    ahead, back = read_both(model.encoder, [model.source_embedding.weight[x - BOS] for x in source])
    states = [torch.cat(both) for both in zip(ahead, back, strict=True)]
    h = torch.tanh(model.begin(back[0]))
    c, total = torch.zeros_like(h), torch.zeros(())
    v = model.score.weight[0]
    for previous, y in zip([BOS, *target[:-1]], target, strict=True):
        word = model.target_embedding.weight[previous - BOS]
        if model.context == "after":
            h, c = baselines.cell(model.decoder, word, h, c)
        scores = [v @ torch.tanh(model.query(h) + model.key(state)) for state in states]
        alpha = torch.softmax(torch.stack(scores), 0)
        context = sum(a * state for a, state in zip(alpha, states, strict=True))
        if model.context == "before":
            h, c = baselines.cell(model.decoder, torch.cat([word, context]), h, c)
        total = total - log_prob(model.output(torch.cat([h, context])), y)
    return total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("config", [SMALL, AFTER], ids=["before", "after"])
def test_the_loss_is_the_equations_sentence_by_sentence(config, seed):
    model, batch = spread(config, seed), batch_of(seed, 8)
    expected = [
        plain_loss(model, true_words(x), true_words(y))
        for x, y in zip(batch.source, batch.target, strict=True)
    ]
    assert_close(model.loss(batch), torch.stack(expected))
    assert_close(model.loss(batch, moment=at(1)), torch.stack(expected))


def test_scores_depend_on_the_previous_target_word():
    model, batch = spread(SMALL), batch_of(2, 5)
    start = model.start(batch.source)
    one, _ = model.step(start, torch.full((5,), 4))
    other, _ = model.step(start, torch.full((5,), 5))
    assert (one - other)[:, 2:].abs().amax(1).min() > 1e-3


def test_where_the_context_is_read_changes_the_loss():
    late = spread(AFTER)
    early = spread(SMALL)
    early.load_state_dict(late.state_dict() | {"decoder.weight_ih": early.decoder.weight_ih})
    with torch.no_grad():
        early.decoder.weight_ih[:, 5:] = 0
        early.decoder.weight_ih[:, :5] = late.decoder.weight_ih
    batch = batch_of(3, 8)
    # the LSTMs do the same, but the attention reads the state before the step or after it
    assert (early.loss(batch) - late.loss(batch)).abs().min() > 1e-6
