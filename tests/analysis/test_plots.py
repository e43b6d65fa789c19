"""Figures: what they show."""

import pytest

from equitrans.analysis.plots import (
    draw_bands,
    draw_curves,
    draw_lengths,
    draw_orbits,
    draw_seeds,
    draw_trials,
)


@pytest.mark.parametrize(("losses", "scale"), [((0.0, 1.0), "linear"), ((0.1, 1.0), "log")])
def test_a_loss_of_zero_makes_the_axis_of_trials_linear(losses, scale):
    figure = draw_trials([(loss, 50.0) for loss in losses], (losses[0], 50.0), None)
    assert figure.axes[0].get_xscale() == scale


def test_seeds_are_single_dots_and_published_values_crosses():
    cells = {"ours": {"Simple": [100.0, 90.0], "Length": [5.0]}, "other": {"Simple": [50.0]}}
    figure = draw_seeds(cells, {"ours": {"Simple": 99.0}})
    simple, length = figure.axes
    assert [len(dots.get_offsets()) for dots in simple.collections] == [2, 1, 1]
    assert simple.collections[0].get_offsets()[:, 0].tolist() == [100.0, 90.0]
    assert simple.collections[1].get_offsets()[0].tolist() == [99.0, 0.0]
    assert [len(dots.get_offsets()) for dots in length.collections] == [1]


def test_lengths_are_shares_of_right_pairs_in_order():
    figure = draw_lengths({"ours": {30: (1, 4), 24: (3, 3)}})
    (line,) = figure.axes[0].lines
    assert line.get_xydata().tolist() == [[24.0, 100.0], [30.0, 25.0]]


def test_no_two_of_ten_curves_look_alike():
    curve = {"updates": [1, 2], "train_loss": [1.0, 0.5], "valid_loss": [1.0, 0.5]}
    lines = draw_curves({f"seed {n}": [curve] for n in range(10)}).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(lines) == 10


def test_curves_of_one_name_look_alike_and_stand_once_in_the_legend():
    curve = {"updates": [1, 2], "train_loss": [1.0, 0.5], "valid_loss": [1.0, 0.5]}
    (axes,) = draw_curves({"stuck": [curve], "others": [curve] * 9}).axes
    stuck, *others = [line.get_color() for line in axes.lines]
    assert others == [others[0]] * 9 != [stuck] * 9
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["stuck", "others"]


def test_many_systems_are_drawn_in_panels_by_their_first_words():
    names = [f"{kind}, {classes}" for kind in ("sum", "max") for classes in "abcd"]
    bands = {name: {1.0: [3.0, 50.0, 99.0]} for name in [*names, "Gordon et al.", "Liu et al."]}
    figure = draw_bands(bands, {"sum, a": {1.0: 42.0}})
    labels = [
        [text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes[:3]
    ]
    assert [len(group) for group in labels] == [5, 5, 3]
    assert labels[2] == ["Gordon et al.", "Liu et al.", "published"]
    median, legend, published, *_ = figure.axes[0].lines
    seeds, *_ = figure.axes[0].collections
    assert legend.get_marker() == "o"
    assert seeds.get_offsets().tolist() == [[1.0, 3.0], [1.0, 50.0], [1.0, 99.0]]
    assert median.get_ydata().tolist() == [50.0]
    assert published.get_ydata().tolist() == [42.0]


def test_orbits_have_the_sharpness_of_the_alignments_below_them_if_it_is_known():
    moments = [{"epoch": 0, "observed": [2, 2]}, {"epoch": 5, "observed": [4]}]
    (alone,) = draw_orbits(moments, "walk").axes
    assert [text.get_text() for text in alone.texts] == ["2", "2", "4"]
    sharp = [moment | {"sharpness": s} for moment, s in zip(moments, (0.2, 0.9), strict=True)]
    _, below = draw_orbits(sharp, "walk").axes
    assert below.lines[0].get_ydata().tolist() == [0.2, 0.9]
    assert [label.get_text() for label in below.get_xticklabels()] == ["0", "5"]
