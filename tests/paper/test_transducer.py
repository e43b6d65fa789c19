"""The transducer against brute force and the plain implementation; theorems 2, 3 and 4."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from equitrans.analysis.decoding import beam_search
from equitrans.analysis.evaluation import predict
from equitrans.data.batches import pad_source
from equitrans.data.pairs import Pair
from equitrans.models.baselines.common import Baseline
from equitrans.models.direct import Hypothesis
from equitrans.paper.aligner import Aligner
from equitrans.paper.transducer import Transducer
from equitrans.paper.translator import Translator
from equitrans.paper.vocabulary import BOS, EOS, PAD
from plain import PlainTransducer
from worlds import (
    SOURCE,
    SYMMETRIES,
    VERBS,
    assert_close,
    at,
    elements,
    moved,
    random_pairs,
    shared,
    small,
    symmetry,
    unshared,
)

MARGINALS = ["sum", "max", "annealed"]
every_symmetry = pytest.mark.parametrize("name", SYMMETRIES)
cyclic = pytest.mark.parametrize("name", [n for n, s in SYMMETRIES.items() if s.kind == "cyclic"])


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_scoring_all_words_at_once_equals_scoring_them_step_by_step(name, marginal):
    sources = [p.source for p in random_pairs(7, 20)]
    judged = []
    for seed in range(6):
        model = small(SYMMETRIES[name], seed, marginal=marginal)
        found = predict(model, sources, width=1, max_length=9)
        said = [Pair(x, best.words) for x, (best,) in zip(sources, found, strict=True)]
        batch = shared([*said, *random_pairs(8, 20)], model.symmetry)
        words = batch.target != PAD
        scores = model.score_words(batch)[1][words]
        assert_close(scores, Baseline.score_words(model, batch)[1][words])
        judged.append(scores.argmax(1) == batch.target[words])
    right = torch.cat(judged)
    assert 0 < right.sum() < len(right)


# --- eqs. 4 to 7


@every_symmetry
def test_eq_5_is_eq_4_summed_over_all_alignments(name):
    model = small(SYMMETRIES[name])
    (pair,) = [Pair(("walk", "left"), ("WALK", "LTURN"))]
    batch = unshared([pair], model.symmetry)
    joint = model._joint(batch, model._aligned(batch))[0].exp()
    m, n = joint.shape
    total = sum(
        math.prod(float(joint[i, a_i].detach()) for i, a_i in enumerate(a))
        for a in itertools.product(range(n), repeat=m)
    )
    assert_close(model.loss(batch), -torch.tensor([total]).log())


@cyclic
@pytest.mark.parametrize("encoder", ["tied", "separate"])
def test_loss_and_gradient_with_sharing_equal_the_plain_ones_pair_by_pair(name, encoder):
    """Sharing alignments between forms and rows between orbits changes no value."""
    model = small(SYMMETRIES[name], encoder=encoder)
    plain = PlainTransducer(model)
    pairs = random_pairs(1, 12)
    # members of the same orbits and forms, and copies
    pairs += [q for g in elements(model.symmetry)[:4] for q in moved(pairs[:6], g, model.symmetry)]
    alone = unshared(pairs, model.symmetry)
    expected = plain.loss(alone.source, alone.target)
    expected.sum().backward()
    gradients = {k: p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}
    lstm = plain.decoder.weight_hh_l0.grad.clone()
    model.zero_grad()

    batch = shared(pairs, model.symmetry)
    assert len(batch.weight) < len(pairs)
    total = (model.loss(batch) * batch.weight).sum()
    total.backward()
    assert_close(total, expected.sum())
    for key, parameter in model.named_parameters():
        if key in gradients:
            assert_close(parameter.grad, gradients[key], 1e-9)
    assert_close(model.aligner.decoder.weight_hidden.grad, lstm, 1e-9)


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_sharing_changes_no_loss(name, marginal):
    model = small(SYMMETRIES[name], marginal=marginal)
    pairs = random_pairs(2, 30)
    batch, alone = shared(pairs, model.symmetry), unshared(pairs, model.symmetry)
    assert_close(
        (model.loss(batch, moment=at(9)) * batch.weight).sum(),
        model.loss(alone, moment=at(9)).sum(),
    )


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_the_loss_of_a_pair_does_not_depend_on_its_batch(name, marginal):
    """Padding and other pairs change nothing."""
    model = small(SYMMETRIES[name], marginal=marginal)
    pairs = random_pairs(3, 10)
    together = model.loss(unshared(pairs, model.symmetry), moment=at(3))
    alone = torch.cat([model.loss(unshared([p], model.symmetry), moment=at(3)) for p in pairs])
    assert_close(together, alone)


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
def test_step_by_step_scores_add_up_to_the_loss(name, marginal):
    model = small(SYMMETRIES[name], marginal=marginal)
    batch = unshared(random_pairs(4, 8), model.symmetry)
    state, previous, total = model.start(batch.source), torch.full((8,), BOS), torch.zeros(8)
    for gold in batch.target.T:
        scores, state = model.step(state, previous)
        assert (scores[:, [PAD, BOS]] == -math.inf).all()
        if marginal == "sum":
            assert_close(scores.exp().sum(1), torch.ones(8))
        total = total + torch.where(gold == PAD, 0.0, scores[torch.arange(8), gold])
        previous = gold
    assert_close(-total, model.loss(batch))


# --- the theorems


def deviation(model, pairs, *, moment=None):
    """The largest relative change of −log p along a G-orbit."""
    start = model.loss(unshared(pairs, model.symmetry), moment=moment)
    worst = 0.0
    for g in elements(model.symmetry):
        other = model.loss(unshared(moved(pairs, g, model.symmetry), model.symmetry), moment=moment)
        worst = max(worst, float(((other - start) / start).abs().max().detach()))
    return worst


@every_symmetry
def test_theorem_2_the_aligner_is_invariant(name):
    model = small(SYMMETRIES[name])
    pairs = random_pairs(5, 6)

    def aligned(pairs):
        batch = unshared(pairs, model.symmetry)
        return model.aligner.advance(model.aligner.start(batch.source), batch.target)[0]

    for g in elements(model.symmetry):
        assert torch.equal(aligned(moved(pairs, g, model.symmetry)), aligned(pairs))


@every_symmetry
@pytest.mark.parametrize("marginal", MARGINALS)
@pytest.mark.parametrize("seed", range(3))
def test_theorem_3_the_model_is_equivariant(name, marginal, seed):
    model = small(SYMMETRIES[name], seed, marginal=marginal)
    assert deviation(model, random_pairs(seed, 6), moment=at(5)) <= 1e-12


@every_symmetry
def test_theorem_3_in_float32(name):
    model = small(SYMMETRIES[name]).float()
    assert deviation(model, random_pairs(6, 6)) <= 1e-5


def test_theorem_3_fails_if_the_aligner_sees_words():
    world = symmetry(VERBS)
    model = small(world)
    seeing = Aligner(symmetry(), embedding=6, hidden=7, tied=True, dropout=0.0)
    broken = Transducer(world, model.translator, seeing, model.marginal)
    assert deviation(broken, random_pairs(0, 6)) > 1e-3


def test_theorem_3_fails_if_the_translator_knows_no_classes():
    world = symmetry(VERBS)
    model = small(world)
    broken = Transducer(world, Translator(symmetry(), k=5, d=4), model.aligner, model.marginal)
    assert deviation(broken, random_pairs(0, 6)) > 1e-3


@pytest.mark.parametrize("name", ["verbs", "verbs × turns", "symmetric verbs"])
def test_theorem_4_given_the_alignment_the_model_is_equivariant_to_g_to_the_n(name):
    model = small(SYMMETRIES[name])
    world = model.symmetry
    x = ("walk", "left", "after", "run")
    a = (3, 1, 0, 1, 0)  # RUN LTURN WALK LTURN WALK
    y = ("RUN", "LTURN", "WALK", "LTURN", "WALK")

    def log_prob(source, target):
        table = model.translator(torch.tensor(world.source.encode(source)))
        return table[list(a), list(world.target.encode(target))].sum()

    expected = log_prob(x, y)
    moving = {w for c in world.classes for w in c.source}
    choices = [elements(world) if w in moving else elements(world)[:1] for w in x]
    orbit = set()
    for gs in itertools.product(*choices):
        each = [moved([Pair((w,), ())], g, world)[0].source for w, g in zip(x, gs, strict=True)]
        moved_x = tuple(itertools.chain(*each))
        each = [moved([Pair((), (w,))], gs[n], world)[0].target for w, n in zip(y, a, strict=True)]
        moved_y = tuple(itertools.chain(*each))
        orbit.add((moved_x, moved_y))
        assert_close(log_prob(moved_x, moved_y), expected)
    # the orbit is as large as the classes allow: one independent choice per class word of the
    # source
    sizes = {w: len(c.source) for c in world.classes for w in c.source}
    assert len(orbit) == math.prod(sizes.get(w, 1) for w in x)


def test_theorem_4_needs_the_alignment():
    """Without it an untrained model's 16 pairs of one form fall into four orbits of four (§4.4)."""
    model = small(symmetry(VERBS))
    pairs = [
        Pair((v, "right", "twice", "after", w), (b, "RTURN", a, "RTURN", a))
        for v, a in zip(VERBS.source, VERBS.target, strict=True)
        for w, b in zip(VERBS.source, VERBS.target, strict=True)
    ]
    losses = model.loss(unshared(pairs, model.symmetry)).detach()
    sizes: list[int] = []
    left = list(range(16))
    while left:
        orbit = [i for i in left if torch.isclose(losses[i], losses[left[0]], rtol=1e-12)]
        left = [i for i in left if i not in orbit]
        sizes.append(len(orbit))
    assert sizes == [4, 4, 4, 4]


# --- alignments, warm start


def test_the_posterior_is_a_distribution_over_the_source_s_positions():
    model = small(SYMMETRIES["verbs × turns"])
    batch = unshared(random_pairs(7, 5), model.symmetry)
    posterior = model.alignments(batch)
    assert_close(posterior.sum(2), torch.ones(batch.target.shape))
    assert (posterior[(batch.source == PAD)[:, None].expand_as(posterior)] == 0).all()


def test_the_posterior_is_bayes_rule():
    model = small(SYMMETRIES["verbs"])
    batch = unshared([Pair(("walk", "twice"), ("WALK", "RUN"))], model.symmetry)
    previous = torch.cat([torch.tensor([[BOS]]), batch.target[:, :-1]], dim=1)
    aligned, _ = model.aligner.advance(model.aligner.start(batch.source), previous)
    emitted = model.translator(batch.source[0])[:, batch.target[0]].T[None]
    joint = aligned.exp() * emitted.exp()
    assert_close(model.alignments(batch), joint / joint.sum(2, keepdim=True))


def test_during_the_warm_start_alignments_are_uniform_and_only_the_translator_learns():
    model = small(SYMMETRIES["verbs"], warm_start=0.1)
    batch = unshared(random_pairs(8, 5), model.symmetry)
    model.loss(batch, moment=at(9, 0.09)).sum().backward()
    assert all(p.grad is None for p in model.aligner.parameters())
    assert all(p.grad is not None for p in model.translator.parameters())
    n = (batch.source != PAD).sum(1)
    table = model.translator(torch.arange(len(SOURCE))).exp()
    for row in range(5):
        words = table[batch.source[row, : n[row]]].mean(0)  # IBM Model 1: the mean over positions
        gold = batch.target[row][batch.target[row] != PAD]
        assert_close(model.loss(batch, moment=at(9, 0.09))[row], -words[gold].log().sum())
    assert not torch.allclose(
        model.loss(batch, moment=at(10, 0.1)), model.loss(batch, moment=at(9, 0.09))
    )


def test_dropout_acts_in_training_only():
    model = small(SYMMETRIES["verbs"], dropout=0.5)
    batch = unshared(random_pairs(9, 5), model.symmetry)
    assert torch.equal(model.loss(batch), model.loss(batch))
    model.train()
    assert not torch.equal(model.loss(batch, moment=at(1)), model.loss(batch, moment=at(1)))


# --- beam search


class First(NamedTuple):
    word: Tensor


class Endings:
    """A scorer: a source with word 7 has only the empty target; others have many."""

    def start(self, source: Tensor) -> First:
        return First(source[:, 1])

    def step(self, state: First, previous: Tensor) -> tuple[Tensor, First]:
        scores = previous.new_full((len(previous), 5), -math.inf, dtype=torch.float64)
        scores[:, EOS] = torch.where(state.word == 7, 0.0, math.log(0.5))
        scores[:, EOS + 1 :] = torch.where(state.word == 7, -math.inf, math.log(0.25))[:, None]
        return scores, state


def test_a_source_with_one_target_has_one_hypothesis_in_a_wide_beam():
    source = torch.tensor([[BOS, 7, EOS], [BOS, 3, EOS]])
    short, long = beam_search(Endings(), source, width=12, max_length=3, n_best=12)
    assert short == [Hypothesis((), 0.0)]
    assert len(long) == 12
    assert long[0] == Hypothesis((), math.log(0.5))
    assert len({h.words + (EOS,) * h.finished for h in long}) == 12
    assert all(PAD not in h.words for h in long)


def test_beam_search_uses_the_device_of_the_source():
    model = small(SYMMETRIES["verbs × turns"], seed=1)
    source = pad_source([model.symmetry.source.encode(x) for x, _ in random_pairs(12, 5)])
    settings = {"width": 3, "max_length": 6, "n_best": 2}
    expected = beam_search(model, source, **settings)
    with torch.device("meta"):
        assert beam_search(model, source, **settings) == expected
