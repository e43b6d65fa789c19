"""Hard attention against its equations and a sum over all alignments, and its differences from the
transducer."""

import itertools
import math

import pytest
import torch

import baselines
from baselines import batch_of, log_prob, n_parameters, read_both, scan_symmetry, spread, true_words
from equitrans.data.pairs import Pair
from equitrans.models import build
from equitrans.models.configs import TransducerConfig, WuConfig
from equitrans.paper.base import previous_words
from equitrans.paper.vocabulary import BOS, PAD
from worlds import assert_close, at, symmetry, unshared

SMALL = WuConfig(embedding=5, hidden=4, dropout=0.0)


def test_the_number_of_parameters_on_scan_is_the_published_one():
    """Published: 1.17 million; the vocabularies contribute little."""
    e, h, x, y = 100, 200, 13, 6
    lstm = 4 * h * (e + h) + 8 * h
    rest = (2 * h + 1) * h + (3 * h + 1) * 3 * h
    words = (x + 2 + y + 2) * e + (3 * h + 1) * (y + 1)
    found = n_parameters(build(WuConfig(), scan_symmetry()))
    assert found == 3 * lstm + rest + words == 1_172_107


def plain_joint(model, source, target):
    """p(a_m = n) p(y_m | a_m = n) of one sentence, position by position."""
    both = read_both(model.encoder, [model.source_embedding.weight[x - BOS] for x in source])
    states = [torch.cat(pair) for pair in zip(*both, strict=True)]
    h = c = torch.zeros(model.decoder.hidden_size)
    joint = []
    for previous, y in zip([BOS, *target[:-1]], target, strict=True):
        h, c = baselines.cell(model.decoder, model.target_embedding.weight[previous - BOS], h, c)
        aligned = torch.softmax(torch.stack([h @ model.key(state) for state in states]), 0)
        emitted = torch.stack(
            [
                log_prob(model.output(torch.tanh(model.joined(torch.cat([h, state])))), y).exp()
                for state in states
            ]
        )
        joint.append(aligned * emitted)
    return torch.stack(joint)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_the_equations_sentence_by_sentence(seed):
    model, batch = spread(SMALL, seed), batch_of(seed, 8)
    expected = [
        -plain_joint(model, true_words(x), true_words(y)).sum(1).log().sum()
        for x, y in zip(batch.source, batch.target, strict=True)
    ]
    assert_close(model.loss(batch), torch.stack(expected))


def test_the_loss_sums_over_all_alignments():
    model = spread(SMALL)
    batch = unshared([Pair(("walk", "left"), ("WALK", "LTURN"))], symmetry())
    joint = plain_joint(model, batch.source[0].tolist(), batch.target[0].tolist())
    m, n = joint.shape
    total = sum(
        math.prod(float(joint[i, a_i].detach()) for i, a_i in enumerate(a))
        for a in itertools.product(range(n), repeat=m)
    )
    assert_close(model.loss(batch), -torch.tensor([total]).log())


def test_alignments_are_the_posterior_of_the_equations():
    model = spread(SMALL)
    batch = unshared([Pair(("walk", "left"), ("WALK", "LTURN"))], symmetry())
    joint = plain_joint(model, batch.source[0].tolist(), batch.target[0].tolist())
    assert_close(model.alignments(batch)[0], joint / joint.sum(1, keepdim=True))


def test_the_training_loss_of_a_batch_is_the_mean_over_its_words():
    model, batch = spread(SMALL), batch_of(1, 8)
    batch.weight[2] = 3.0
    mean = (model.loss(batch, moment=at(1)) * batch.weight).sum() / batch.weight.sum()
    words = ((batch.target != PAD).sum(1) * batch.weight).sum()
    assert_close(mean, (model.loss(batch) * batch.weight).sum() / words)


# --- differences from the transducer


def emissions(model, batch):
    _, logits, _ = model._advance(model.start(batch.source), previous_words(batch.target))
    return torch.log_softmax(logits, dim=3)


def test_emissions_depend_on_previous_target_words():
    model = spread(SMALL)
    batch = unshared([Pair(("walk", "and", "walk"), ("WALK", "stop", "WALK"))], symmetry())
    free = emissions(model, batch)
    assert (free - free[:, :1])[:, 1:].abs().amax((0, 2, 3)).min() > 1e-3
    # without the decoder's part of L, emissions depend on the source position only
    with torch.no_grad():
        model.joined.weight[:, : model.decoder.hidden_size] = 0
    bound = emissions(model, batch)
    assert_close(bound, bound[:, :1].expand_as(bound))


def test_emissions_depend_on_neighbours_but_those_of_a_transducer_on_the_word_alone():
    pair = Pair(("walk", "and", "walk"), ("WALK", "stop", "WALK"))
    batch = unshared([pair], symmetry())
    model = spread(SMALL)
    with torch.no_grad():
        model.joined.weight[:, : model.decoder.hidden_size] = 0
    contextual = emissions(model, batch)[0, 0]
    assert (contextual[1] - contextual[3]).abs().max() > 1e-3
    transducer = build(TransducerConfig(), symmetry())
    by_word = transducer.translator(batch.source)[0].T
    assert_close(by_word[:, 1], by_word[:, 3])
    assert (by_word[:, 1] - by_word[:, 2])[2:].abs().max() > 1e-3
