"""Limits, sizes and starting points of groups, layers, LSTMs, marginals and the search."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from equitrans.analysis.decoding import _best, _settled, beam_search
from equitrans.data.batches import pad_source
from equitrans.errors import ConfigError
from equitrans.paper.aligner import FEW, LSTM, Aligner
from equitrans.paper.base import Hypothesis
from equitrans.paper.groups import Group, cycles, identity
from equitrans.paper.layers import cyclic_sum
from equitrans.paper.marginals import AnnealedMax
from equitrans.paper.symmetry import Symmetry
from equitrans.paper.translator import Translator
from equitrans.paper.vocabulary import BOS, EOS, PAD, Vocabulary
from listed import GConv, GDecode, GEmbed, orbits, regular
from plain import _torch_lstm
from worlds import SYMMETRIES, VERBS, assert_close, at, random_pairs, small, symmetry

# --- groups


def test_points_of_two_digits_are_set_apart_in_cycles():
    assert cycles((*range(1, 9), 0)) == "(123456789)"
    assert cycles((*range(1, 10), 0)) == "(1 2 3 4 5 6 7 8 9 10)"


@pytest.mark.parametrize("n", range(5))
def test_the_symmetric_group_is_all_permutations_and_the_cyclic_one_all_shifts(n):
    assert set(Group.symmetric(n).elements) == set(itertools.permutations(range(n)))
    shifts = {tuple((i + shift) % n for i in range(n)) for shift in range(max(n, 1))}
    assert set(Group.cyclic(n).elements) == shifts
    assert Group.cyclic(n).order == len(shifts)
    assert Group.symmetric(n).order == math.factorial(n)


def test_the_trivial_group_has_as_many_points_as_one_says_and_else_one():
    assert Group.trivial() == Group(1, ((0,),), 1)
    assert Group.trivial(3) == Group(3, (identity(3),), 1)
    assert (Group.trivial(3) * Group.trivial()).degree == 4


@pytest.mark.parametrize("kind", ["two pairs", "a fixed point", "symmetric"])
def test_orbits_are_those_of_applying_every_element_numbered_by_first_appearance(kind):
    group = {
        "two pairs": Group.cyclic(2) * Group.cyclic(2),
        "a fixed point": Group.trivial(1) * Group.cyclic(3),
        "symmetric": Group.symmetric(3) * Group.trivial(2),
    }[kind]
    numbers: dict[tuple[int, int], int] = {}
    for i, j in itertools.product(range(group.degree), repeat=2):
        if (i, j) not in numbers:
            new = len(set(numbers.values()))
            numbers |= {(g[i], g[j]): new for g in group.elements}
    points = range(group.degree)
    expected = [[numbers[i, j] for j in points] for i in points]
    assert orbits(group.generators, group.generators) == expected


def test_both_sides_of_orbits_are_moved_by_the_same_generators():
    with pytest.raises(ValueError, match="zip"):
        orbits([(1, 0), (0, 1)], [(1, 0)])


# --- weights at the start


def assert_uniform(weights: Tensor, low: float, high: float) -> None:
    """All between two bounds, and near both; there are hundreds of them."""
    width = high - low
    assert low <= float(weights.min()) < low + 0.1 * width
    assert high - 0.1 * width < float(weights.max()) <= high


def test_layers_begin_between_minus_and_plus_a_half_with_a_weight_for_every_orbit():
    group = Group.cyclic(6)
    moves, words = regular(group), group.generators
    embed, conv = GEmbed(moves, words, k=40), GConv(moves, k=10, d=8)
    decode = GDecode(moves, words, d=40)
    for layer, name, shape in (
        (embed, "omega", (6, 40)),
        (conv, "psi", (6, 10, 8)),
        (decode, "rho", (6, 40)),
    ):
        # what follows from the group is not saved
        assert list(layer.state_dict()) == [name]
        weights = layer.get_parameter(name).detach()
        assert weights.shape == shape
        assert_uniform(weights, -0.5, 0.5)


def test_an_lstm_begins_within_one_over_the_root_of_its_size():
    lstm = LSTM(3, embedding=9, hidden=100)
    for weights in (lstm.weight_in, lstm.weight_hidden, lstm.bias):
        assert_uniform(weights.detach(), -0.1, 0.1)
    assert_uniform(lstm.bias[100:200].detach(), -0.1, 0.1)  # the forget gates' too
    assert list(lstm.state_dict()) == ["embedding", "weight_in", "weight_hidden", "bias"]


@pytest.mark.parametrize(("kind", "orbits"), [("cyclic", 4), ("symmetric", 2)])
def test_a_translator_begins_between_minus_and_plus_a_half_and_saves_its_weights_only(kind, orbits):
    world = symmetry(VERBS, kind=kind)
    translator = Translator(world, k=100, d=60)
    # words of no class, BOS and EOS have a row each; PAD has none
    others = len(world.source) - 1 - 4, len(world.target) - 1 - 4
    shapes = {
        "omega": (others[0], 100),
        "rho": (others[1], 60),
        "factors.0.omega": (orbits, 100),
        "factors.0.psi": (orbits, 100, 60),
        "factors.0.rho": (orbits, 60),
    }
    saved = translator.state_dict()
    assert {name: tuple(weights.shape) for name, weights in saved.items()} == shapes
    for weights in saved.values():
        assert_uniform(weights, -0.5, 0.5)


def aligner(**settings: object) -> Aligner:
    torch.manual_seed(5)
    return Aligner(symmetry(), embedding=3, hidden=4, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("tied", [True, False])
def test_all_lstms_of_an_aligner_begin_with_their_forget_gates_opened_as_far_as_is_said(tied):
    plain, opened = aligner(tied=tied), aligner(tied=tied, forget_bias=2.5)
    shift = torch.zeros(16)
    shift[4:8] = 2.5  # gates stand in the order i, f, g, o
    parts = ["encoder", "decoder"] if tied else ["encoder", "decoder", "backward_encoder"]
    for name in parts:
        assert_close(
            opened.get_submodule(name).bias, plain.get_submodule(name).bias.detach() + shift
        )
    assert (plain.backward_encoder is None) == tied


def test_an_aligner_ties_its_encoders_drops_nothing_and_opens_no_gates_unless_it_is_told_to():
    told = aligner(tied=True, dropout=0.0, forget_bias=0.0).state_dict()
    model = aligner().train()
    assert model.state_dict().keys() == told.keys()
    assert all(torch.equal(value, told[key]) for key, value in model.state_dict().items())
    source = torch.tensor([[BOS, 4, 5, EOS]])
    assert_close(model.start(source).keys, model.eval().start(source).keys)


def test_alignments_begin_nearly_even():
    torch.manual_seed(0)
    wide = Aligner(symmetry(), embedding=3, hidden=20)
    assert_uniform(wide.bilinear.detach(), -0.5, 0.5)
    assert wide.bilinear.shape == (20, 40)


# --- LSTMs


@pytest.mark.parametrize("symbols", [FEW, FEW + 1])
def test_the_first_and_the_last_symbol_are_read_as_themselves_in_small_and_large_tables(symbols):
    lstm = LSTM(symbols, embedding=3, hidden=4)
    read = torch.tensor([[1, 2, symbols, 1], [2, 1, symbols - 1, symbols]])
    expected, (_, last) = _torch_lstm(lstm)(lstm.embedding[read - 1])
    states, cells = lstm(read)
    assert_close(states, expected)
    assert_close(cells, last[0])


@pytest.mark.parametrize("symbols", [5, FEW + 1])
@pytest.mark.parametrize("large", ["embedding", "bias"])
def test_nothing_is_read_at_padding_however_large_the_weights(symbols, large):
    lstm = LSTM(symbols, embedding=3, hidden=20)
    with torch.no_grad():
        lstm.get_parameter(large).mul_(1e7)
    read = torch.tensor([[1, 2, 3]])
    states, cells = lstm(read)
    padded, kept = lstm(torch.tensor([[0, 0, 1, 2, 3, 0, 0]]))
    assert_close(padded[:, 2:5], states)
    assert_close(kept, cells)


def test_states_are_zero_at_padding_and_cells_wait():
    lstm = LSTM(5, embedding=3, hidden=4)
    states, cells = lstm(torch.tensor([[1, 2, 0, 0]]))
    assert torch.equal(states[:, 2:], torch.zeros(1, 2, 4))
    assert (cells != 0).all()


def test_a_state_without_its_cells_is_none():
    lstm, read = LSTM(5, embedding=3, hidden=4), torch.tensor([[1, 2]])
    for given in ({"h": torch.randn(1, 4)}, {"c": torch.randn(1, 4)}):
        assert torch.equal(lstm(read, **given)[0], lstm(read)[0])


# --- marginals


def test_the_ends_of_the_range_of_temperatures_are_in_it_but_not_zero():
    assert AnnealedMax(start=1.0, floor=1.0, every=1).temperature(7) == 1.0
    assert AnnealedMax(start=1.0, every=1).temperature(3) == 0.125
    with pytest.raises(ConfigError, match=r"floor=0\.0.*0 < floor ≤ start ≤ 1"):
        AnnealedMax(floor=0.0)


def test_moments_of_one_temperature_are_of_one_phase():
    marginal = AnnealedMax(every=10)
    phases = [marginal.phase(at(updates)) for updates in (0, 9, 10, 19, 20)]
    assert phases[0] == phases[1] != phases[2] == phases[3] != phases[4]


# --- the search


@pytest.mark.parametrize(("dtype", "grain"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
def test_ranks_closer_than_rounding_error_go_by_column_and_others_by_rank(dtype, grain):
    def first(difference: float) -> list[int]:
        ranks = torch.tensor([[-1.0 - difference, -1.0, -2.0]], dtype=dtype)
        return _best(ranks, 3)[0].tolist()

    assert first(grain / 10) == [0, 1, 2]
    assert first(10 * grain) == [1, 0, 2]


@pytest.mark.parametrize("n_best", [1, 2, 3, 4])
def test_a_sentence_is_settled_when_nothing_live_can_come_among_its_best(n_best):
    draw = torch.Generator().manual_seed(n_best)
    total = -10 * torch.rand(200, 3, generator=draw)
    length = torch.randint(1, 5, (200, 3), generator=draw)
    done = torch.rand(200, 3, generator=draw) < 0.7
    total[done & (torch.rand(200, 3, generator=draw) < 0.3)] = -math.inf  # nothing came of these
    found = _settled(total, length, done, n_best=n_best, max_length=6)
    expected = []
    for row in zip(total.tolist(), length.tolist(), done.tolist(), strict=True):
        hypotheses = list(zip(*row, strict=True))
        finished = sorted((t / n for t, n, over in hypotheses if over), reverse=True)
        hope = max((t / 6 for t, _, over in hypotheses if not over), default=-math.inf)
        live = len(finished) < 3
        expected.append(not live or (len(finished) >= n_best and finished[n_best - 1] > hope))
    assert found.tolist() == expected
    assert 0 < sum(expected) < 200


class First(NamedTuple):
    word: Tensor


class Endings:
    """After word 7 the sentence ends at once; otherwise there are always three ways on."""

    def start(self, source: Tensor) -> First:
        return First(source[:, 1])

    def step(self, state: First, previous: Tensor) -> tuple[Tensor, First]:
        scores = previous.new_full((len(previous), 5), -math.inf, dtype=torch.float64)
        scores[:, EOS] = torch.where(state.word == 7, 0.0, math.log(0.5))
        scores[:, EOS + 1 :] = torch.where(state.word == 7, -math.inf, math.log(0.25))[:, None]
        return scores, state


def test_a_sentence_that_ends_at_once_has_one_hypothesis_beside_one_with_many():
    source = torch.tensor([[BOS, 7, EOS], [BOS, 3, EOS]])
    short, long = beam_search(Endings(), source, width=12, max_length=3, n_best=12)
    assert short == [Hypothesis((), 0.0)]
    assert len(long) == 12
    assert long[0] == Hypothesis((), math.log(0.5))
    assert len({h.words + (EOS,) * h.finished for h in long}) == 12
    assert all(PAD not in h.words for h in long)


def test_the_device_is_that_of_the_source_whatever_is_the_default():
    model = small(SYMMETRIES["verbs × turns"], seed=1)
    source = pad_source([model.symmetry.source.encode(x) for x, _ in random_pairs(12, 5)])
    settings = {"width": 3, "max_length": 6, "n_best": 2}
    expected = beam_search(model, source, **settings)
    with torch.device("meta"):
        assert beam_search(model, source, **settings) == expected


def test_a_cyclic_sum_is_made_on_the_device_of_what_is_summed():
    n = 29  # no other test asks for this size, so nothing is kept of it
    f, psi = torch.randn(n, 2), torch.randn(n, 2, 3)
    with torch.device("meta"):
        found = cyclic_sum(f, psi, sign=1)
    rows = [sum(f[(g - j) % n] @ psi[j] for j in range(n)) for g in range(n)]
    assert_close(found, torch.stack(rows))


@pytest.mark.parametrize("words", [8, 300])
def test_translations_are_made_on_the_device_of_the_words(words):
    vocabulary = Vocabulary(tuple(f"w{i}" for i in range(words)))
    translator = Translator(Symmetry(vocabulary, vocabulary), k=3, d=2)
    asked = torch.tensor([[EOS, EOS + 2], [EOS + 5, EOS + 2]])
    expected = translator(asked)
    with torch.device("meta"):
        assert torch.equal(translator(asked), expected)
