"""Our LSTM against torch's, forwards and backwards."""

import torch

from equitrans.lstm import LSTM, recurrence
from plain import _torch_lstm
from worlds import assert_close


def test_states_cells_and_gradients_are_those_of_torch():
    ours = LSTM(5, embedding=3, hidden=4)
    theirs = _torch_lstm(ours)
    symbols = torch.randint(0, 5, (6, 7))
    h, c = torch.randn(6, 4, requires_grad=True), torch.randn(6, 4, requires_grad=True)
    weight_h, weight_c = torch.randn(6, 7, 4), torch.randn(6, 4)

    states, cells = ours(symbols, h, c)
    ((states * weight_h).sum() + (cells[:, -1] * weight_c).sum()).backward()
    gradients = [h.grad.clone(), c.grad.clone(), ours.embedding.grad.clone()]
    h.grad = c.grad = ours.embedding.grad = None

    expected, (_, last) = theirs(ours.embedding[symbols], (h[None], c[None]))
    ((expected * weight_h).sum() + (last[0] * weight_c).sum()).backward()
    assert_close(states, expected)
    assert_close(cells[:, -1], last[0])
    for mine, reference in zip(gradients, [h.grad, c.grad, ours.embedding.grad], strict=True):
        assert_close(mine, reference, 1e-10)
    i, f, o, g = ours.weight_hidden.grad.chunk(4, dim=1)
    assert_close(torch.cat([i, f, g, o], dim=1).T, theirs.weight_hh_l0.grad, 1e-10)
    i, f, o, g = ours.weight_in.grad.chunk(4, dim=1)
    assert_close(torch.cat([i, f, g, o], dim=1).T, theirs.weight_ih_l0.grad, 1e-10)


def test_the_written_out_gradient_is_the_numerical_one():
    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, requires_grad=True)

    assert torch.autograd.gradcheck(
        recurrence, (leaf(3, 2, 12), leaf(3, 12), leaf(2, 3), leaf(2, 3))
    )


def test_it_can_be_read_in_two_goes():
    lstm = LSTM(5, embedding=3, hidden=4)
    symbols = torch.randint(0, 5, (2, 6))
    whole, cells = lstm(symbols)
    first, first_cells = lstm(symbols[:, :2])
    rest, rest_cells = lstm(symbols[:, 2:], first[:, -1], first_cells[:, -1])
    assert_close(torch.cat([first, rest], dim=1), whole)
    assert_close(rest_cells[:, -1], cells[:, -1])
