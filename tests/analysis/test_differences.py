"""Paired differences of two models, against a bootstrap that draws pairs."""

import random

import pytest

from equitrans.analysis import paired_difference


def drawn(one: list[bool], other: list[bool], *, times: int) -> tuple[float, float]:
    """The interval of a bootstrap that draws single pairs."""
    rng = random.Random(5)
    gaps = [a - b for a, b in zip(one, other, strict=True)]
    means = sorted(sum(rng.choices(gaps, k=len(gaps))) / len(gaps) for _ in range(times))
    return means[int(0.025 * times)], means[int(0.975 * times)]


@pytest.mark.parametrize(("gained", "lost", "same"), [(30, 10, 60), (3, 0, 97), (0, 40, 0)])
def test_the_interval_is_that_of_drawing_single_pairs(gained, lost, same):
    one = [True] * gained + [False] * lost + [True] * same
    other = [False] * gained + [True] * lost + [True] * same
    found = paired_difference(one, other)
    assert (found.gained, found.lost, found.pairs) == (gained, lost, len(one))
    assert found.value == pytest.approx((gained - lost) / len(one))
    assert (found.low, found.high) == pytest.approx(drawn(one, other, times=4000), abs=0.011)
    # negative control: a model that is compared with the reverse has the opposite interval
    back = paired_difference(other, one)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low), abs=0.011)


def test_models_with_equal_predictions_do_not_differ():
    found = paired_difference([True, False], [True, False])
    assert (found.value, found.low, found.high, found.is_clear) == (0.0, 0.0, 0.0, False)


def test_models_must_be_judged_on_the_same_pairs():
    with pytest.raises(ValueError, match="longer"):
        paired_difference([True], [True, False])
