"""Our LSTM against torch's module, forwards and backwards; padding."""

import pytest
import torch

from equitrans.paper.aligner import FEW, LSTM
from plain import _torch_lstm
from worlds import assert_close


@pytest.mark.parametrize("symbols", [5, FEW + 1])
def test_states_cells_and_gradients_are_those_of_torch(symbols):
    ours = LSTM(symbols, embedding=3, hidden=4)
    theirs = _torch_lstm(ours)
    read = torch.randint(1, symbols + 1, (6, 7))
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
def test_nothing_is_read_at_padding(symbols, dtype):
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
    # any other symbol is read
    _, changed = lstm(torch.cat([read, padding + 1], dim=1))
    assert not torch.allclose(changed, cells)


def test_padding_has_no_gradient():
    lstm = LSTM(5, embedding=3, hidden=4)
    read = torch.tensor([[1, 2, 0, 0], [3, 1, 2, 4]])
    lstm(read)[1][0].sum().backward()
    padded = [p.grad.clone() for p in lstm.parameters()]
    lstm.zero_grad()
    lstm(read[:1, :2])[1].sum().backward()
    for p, expected in zip(lstm.parameters(), padded, strict=True):
        assert_close(p.grad, expected)


def test_it_can_be_read_in_two_goes():
    lstm = LSTM(5, embedding=3, hidden=4)
    symbols = torch.randint(1, 6, (2, 6))
    whole, cells = lstm(symbols)
    first, first_cells = lstm(symbols[:, :2])
    rest, rest_cells = lstm(symbols[:, 2:], first[:, -1], first_cells)
    assert_close(torch.cat([first, rest], dim=1), whole)
    assert_close(rest_cells, cells)
