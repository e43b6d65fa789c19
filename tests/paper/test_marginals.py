"""The marginals of appendix A: sum, max and annealed max."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import pytest
import torch
from hypothesis import given, strategies as st

from equitrans.data.pairs import Pair
from equitrans.errors import ConfigError
from equitrans.paper.marginals import MARGINALS, AnnealedMax, Max, Sum
from equitrans.paper.vocabulary import EOS
from worlds import SYMMETRIES, assert_close, at, shared, small


def joints(seed: int, n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.log_softmax(3 * torch.randn(4, n, generator=generator, dtype=torch.float64), -1) - 1
    )


@given(st.integers(0, 999), st.integers(1, 7), st.integers(0, 50_000))
def test_mean_annealed_max_sum_stand_in_this_order(seed, n, step):
    joint = joints(seed, n)
    mean = joint.exp().mean(-1).log()
    annealed = AnnealedMax()(joint, moment=at(step))
    assert (mean <= annealed + 1e-12).all()
    assert (annealed <= Max()(joint) + 1e-12).all()
    assert (Max()(joint) <= Sum()(joint) + 1e-12).all()


@pytest.mark.parametrize("step", [0, None])
def test_only_the_scores_of_the_sum_sum_to_one(step):
    model = small(SYMMETRIES["verbs × turns"])
    batch = shared([Pair(("walk", "left", "twice"), ("WALK",))], model.symmetry)
    emitted = model.translator(batch.source)[0, :, EOS:].T  # target words × positions
    joint = (emitted + model.parts(batch).aligned[0, 0]).detach()
    total = {type(m): float(m(joint, moment=at(step)).exp().sum()) for m in MARGINALS.values()}
    assert total[Sum] == pytest.approx(1, rel=1e-12)
    assert total[AnnealedMax] <= total[Max] < 0.99


@given(st.integers(0, 999), st.integers(2, 6))
def test_eqs_9_and_10_word_for_word(seed, n):
    joint, marginal = joints(seed, n), AnnealedMax()
    prob = joint.exp()
    alpha = torch.softmax(prob / marginal.temperature(0), dim=-1)
    assert_close(marginal(joint, moment=at(0)).exp(), (alpha * prob).sum(-1))


def test_annealed_max_becomes_max_as_the_temperature_falls_and_is_max_after_training():
    joint = joints(0, 5)
    cold = AnnealedMax(start=1e-7, floor=1e-7)
    assert_close(cold(joint, moment=at(0)), Max()(joint))
    assert_close(AnnealedMax()(joint), Max()(joint))
    # at the start it is smaller
    assert (AnnealedMax()(joint, moment=at(0)) < Max()(joint) - 0.01).all()


def test_the_temperature_is_halved_every_2000_updates_down_to_its_floor():
    tau = AnnealedMax().temperature
    assert [tau(0), tau(1999), tau(2000), tau(4000)] == [0.5, 0.5, 0.25, 0.125]
    assert tau(10**6) == 1e-4


@pytest.mark.parametrize("marginal", [Sum(), Max(), AnnealedMax()], ids=str)
@pytest.mark.parametrize("step", [0, None])
def test_padding_changes_no_marginal(marginal, step):
    joint = joints(1, 4)
    padded = torch.cat([joint, torch.full((4, 3), -math.inf)], dim=1)
    assert_close(marginal(padded, moment=at(step)), marginal(joint, moment=at(step)))


@pytest.mark.parametrize("marginal", [Sum(), Max(), AnnealedMax()], ids=str)
def test_gradients_stay_finite_beside_padding_and_impossible_words(marginal):
    joint = torch.tensor(
        [[-2000.0, -1.0, -math.inf], [-3000.0, -2500.0, -math.inf]]
    ).requires_grad_()
    marginal(joint, moment=at(100_000)).sum().backward()
    assert joint.grad is not None
    assert joint.grad.isfinite().all()
    assert (joint.grad[:, 2] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("updates", [0, 100_000])
def test_marginals_are_exact_for_probabilities_that_underflow(dtype, updates):
    """exp(−2000) is 0 in floating point. All shares of annealed max are then equal, and its value
    is the mean, log Σ_n exp(joint[n]) − log n, which exact arithmetic gives here.
    """
    joint = torch.tensor([[-2000.0, -2001.0, -2003.5], [-900.0, -5000.0, -900.0]], dtype=dtype)
    with localcontext() as context:
        context.prec = 60
        rows = [[Decimal(value).exp() for value in row] for row in joint.tolist()]
        total = torch.tensor([float(sum(row).ln()) for row in rows], dtype=dtype)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12  # the precision of the numbers
    assert joint.exp().sum() == 0
    assert_close(Sum()(joint), total, tolerance)
    assert torch.equal(Max()(joint, moment=at(updates)), joint.amax(1))
    annealed = AnnealedMax()(joint, moment=at(updates))
    assert_close(annealed, total - math.log(3), tolerance)


@pytest.mark.parametrize("marginal", ["sum", "max", "annealed"])
def test_a_long_and_very_unlikely_target_has_a_finite_loss_and_gradient(marginal):
    model = small(SYMMETRIES["verbs"], marginal=marginal).float().train()
    with torch.no_grad():
        for parameter in model.translator.parameters():
            parameter.mul_(30)  # confident and wrong
    batch = shared([Pair(("walk",) * 50, ("LOOK", "go") * 100)], model.symmetry)
    loss = model.loss(replace(batch, weight=batch.weight.float()), moment=at(5, done=1.0)).sum()
    loss.backward()
    assert 1000 < float(loss.detach()) < math.inf
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(bool(g.isfinite().all()) for g in gradients)
    assert any(bool((g != 0).any()) for g in gradients)


@pytest.mark.parametrize(
    "settings",
    [{"start": 0.0}, {"start": 1.5}, {"floor": 0.0}, {"floor": 0.9}, {"every": 0}],
    ids=str,
)
def test_invalid_temperatures_raise_an_error(settings):
    with pytest.raises(ConfigError, match="expected 0 < floor ≤ start ≤ 1 and every ≥ 1"):
        AnnealedMax(**settings)


def test_moments_of_one_temperature_have_one_phase():
    marginal = AnnealedMax(every=10)
    phases = [marginal.phase(at(updates)) for updates in (0, 9, 10, 19, 20)]
    assert phases[0] == phases[1] != phases[2] == phases[3] != phases[4]
