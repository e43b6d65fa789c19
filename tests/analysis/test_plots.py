"""Figures: scales that depend on the data."""

import pytest

from equitrans.analysis.plots import draw_trials


@pytest.mark.parametrize(("losses", "scale"), [((0.0, 1.0), "linear"), ((0.1, 1.0), "log")])
def test_a_loss_of_zero_makes_the_axis_of_trials_linear(losses, scale):
    figure = draw_trials([(loss, 50.0) for loss in losses], (losses[0], 50.0), None)
    assert figure.axes[0].get_xscale() == scale
