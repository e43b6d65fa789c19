"""The aligner's LSTM against torch's, values and gradients; padding; settings of the aligner."""

import pytest
import torch

from equitrans.paper.aligner import FEW, LSTM, Aligner
from plain import _torch_lstm
from worlds import assert_close, symmetry


@pytest.mark.parametrize("symbols", [5, FEW, FEW + 1])
def test_states_cells_and_gradients_are_those_of_torch(symbols):
    ours = LSTM(symbols, embedding=3, hidden=4)
    theirs = _torch_lstm(ours)
    read = torch.randint(1, symbols + 1, (6, 7))
    read[0, :2] = torch.tensor([1, symbols])
    h, c = torch.randn(6, 4, requires_grad=True), torch.randn(6, 4, requires_grad=True)
    weight_h, weight_c = torch.randn(6, 7, 4), torch.randn(6, 4)

    states, cells = ours(read, h, c)
    ((states * weight_h).sum() + (cells * weight_c).sum()).backward()
    gradients = [h.grad.clone(), c.grad.clone(), ours.embedding.grad.clone()]
    h.grad = c.grad = ours.embedding.grad = None

    expected, (_, last) = theirs(ours.embedding[read - 1], (h[None], c[None]))
    ((expected * weight_h).sum() + (last[0] * weight_c).sum()).backward()
    assert_close(states, expected)
    assert_close(cells, last[0])
    for mine, reference in zip(gradients, [h.grad, c.grad, ours.embedding.grad], strict=True):
        assert_close(mine, reference, 1e-10)
    assert_close(ours.weight_hidden.grad, theirs.weight_hh_l0.grad, 1e-10)
    assert_close(ours.weight_in.grad, theirs.weight_ih_l0.grad, 1e-10)
    assert_close(ours.bias.grad, theirs.bias_ih_l0.grad, 1e-10)


@pytest.mark.parametrize("symbols", [5, FEW + 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_padding_changes_no_state_or_cell(symbols, dtype):
    lstm = LSTM(symbols, embedding=3, hidden=4).to(dtype)
    read = torch.randint(1, symbols + 1, (6, 7))
    padding = torch.zeros(6, 3, dtype=torch.long)
    states, cells = lstm(read)
    behind, kept = lstm(torch.cat([read, padding], dim=1))
    before, begun = lstm(torch.cat([padding, read], dim=1))
    # batches of two widths: the kernels of some processors round them differently
    tolerance = 1e-6 if dtype == torch.float32 else 1e-13
    assert_close(behind[:, :7], states, tolerance)
    assert_close(kept, cells, tolerance)
    assert_close(before[:, 3:], states, tolerance)
    assert_close(begun, cells, tolerance)
    # any other symbol changes the cells
    _, changed = lstm(torch.cat([read, padding + 1], dim=1))
    assert not torch.allclose(changed, cells)


@pytest.mark.parametrize("symbols", [5, FEW + 1])
@pytest.mark.parametrize("large", ["embedding", "bias"])
def test_padding_changes_nothing_with_very_large_weights(symbols, large):
    lstm = LSTM(symbols, embedding=3, hidden=20)
    with torch.no_grad():
        lstm.get_parameter(large).mul_(1e7)
    states, cells = lstm(torch.tensor([[1, 2, 3]]))
    padded, kept = lstm(torch.tensor([[0, 0, 1, 2, 3, 0, 0]]))
    assert_close(padded[:, 2:5], states)
    assert_close(kept, cells)
    assert (padded[:, 5:] == 0).all()


def test_padding_has_no_gradient():
    lstm = LSTM(5, embedding=3, hidden=4)
    read = torch.tensor([[1, 2, 0, 0], [3, 1, 2, 4]])
    lstm(read)[1][0].sum().backward()
    padded = [p.grad.clone() for p in lstm.parameters()]
    lstm.zero_grad()
    lstm(read[:1, :2])[1].sum().backward()
    for p, expected in zip(lstm.parameters(), padded, strict=True):
        assert_close(p.grad, expected)


def test_reading_in_two_parts_equals_reading_at_once():
    lstm = LSTM(5, embedding=3, hidden=4)
    symbols = torch.randint(1, 6, (2, 6))
    whole, cells = lstm(symbols)
    first, first_cells = lstm(symbols[:, :2])
    rest, rest_cells = lstm(symbols[:, 2:], first[:, -1], first_cells)
    assert_close(torch.cat([first, rest], dim=1), whole)
    assert_close(rest_cells, cells)


@pytest.mark.parametrize("tied", [True, False])
def test_the_forget_bias_is_added_to_the_forget_gates_of_every_lstm(tied):
    def aligner(forget_bias):
        torch.manual_seed(5)
        return Aligner(symmetry(), embedding=3, hidden=4, tied=tied, forget_bias=forget_bias)

    plain, opened = aligner(0.0), aligner(2.5)
    shift = torch.zeros(16)
    shift[4:8] = 2.5  # gates are in the order i, f, g, o
    for name in ["encoder", "decoder"] if tied else ["encoder", "decoder", "backward_encoder"]:
        bias = plain.get_submodule(name).bias.detach()
        assert_close(opened.get_submodule(name).bias, bias + shift)
    assert (plain.backward_encoder is None) == tied
