"""Equations 1–3: ``Stack`` against layers over listed groups, and those against the formulas."""

import pytest
import torch

from equitrans.paper.groups import Group, compose
from equitrans.paper.layers import DIRECT, Stack, cyclic_sum, two_orbit_sum
from listed import GConv, GDecode, GEmbed, inverse, regular
from worlds import assert_close

SIZES = [1, 2, 3, 4, 7, DIRECT, DIRECT + 1, 50]
every_stack = pytest.mark.parametrize(
    ("kind", "n"), [(kind, n) for kind in ("cyclic", "symmetric") for n in SIZES]
)


def listed(stack):
    """The three layers with every place listed and with the weights of the stack."""
    group = (Group.symmetric if stack.symmetric else Group.cyclic)(stack.n)
    moves = group.generators
    embed, conv = GEmbed(moves, moves, k=5), GConv(moves, k=5, d=3)
    decode = GDecode(moves, moves, d=3)
    embed.omega, conv.psi, decode.rho = stack.omega, stack.psi, stack.rho
    return embed, conv, decode


def rows(stack):
    """For every place h: its row in the result of ``embed``, and its row in that of ``conv``."""
    h = torch.arange(stack.n)
    if stack.symmetric:
        return (h != 0).long(), (h != 0).long()
    return -h % stack.n, h


@every_stack
def test_eq_2_g_embed(kind, n):
    stack = Stack(n, kind=kind, k=5, d=3)
    embed, _, _ = listed(stack)
    assert_close(stack.embed()[0][rows(stack)[0]], embed(torch.tensor(0)))


def errors_of_conv(stack):
    """The differences between ``stack.conv`` and equation 1 at every place."""
    before, after = rows(stack)
    f = torch.randn(len(stack.psi), 5)
    return (stack.conv(f)[after] - listed(stack)[1](f[before])).detach()


def errors_of_decode(stack):
    """The differences between ``stack.decode`` and equation 3 at every word."""
    phi = torch.randn(len(stack.rho), 3)
    return (stack.decode(phi) - listed(stack)[2](phi[rows(stack)[1]])).detach()


@every_stack
def test_eq_1_g_conv(kind, n):
    assert errors_of_conv(Stack(n, kind=kind, k=5, d=3)).abs().max() < 1e-12


@every_stack
def test_eq_3_g_decode(kind, n):
    assert errors_of_decode(Stack(n, kind=kind, k=5, d=3)).abs().max() < 1e-12


class WrongStack(Stack):
    """A stack that sums in the wrong direction, or over one place too many."""

    def conv(self, f):
        if self.symmetric:
            return two_orbit_sum(f, self.psi, self.n + 1)
        return cyclic_sum(f, self.psi, sign=1)

    def decode(self, phi):
        if self.symmetric:
            same, other = two_orbit_sum(phi, self.rho[:, :, None], self.n + 1)[:, 0]
            return torch.cat([same[None], other.expand(self.n - 1)])
        return cyclic_sum(phi, self.rho[:, :, None], sign=-1)[:, 0]


@pytest.mark.parametrize("errors", [errors_of_conv, errors_of_decode])
@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
@pytest.mark.parametrize("n", [4, 50])
def test_a_wrong_stack_does_not_agree_with_the_listed_layers(kind, n, errors):
    assert errors(WrongStack(n, kind=kind, k=5, d=3)).abs().max() > 1e-3


@every_stack
def test_a_stack_and_its_gradient_agree_with_the_listed_layers(kind, n):
    stack = Stack(n, kind=kind, k=5, d=3)
    embed, conv, decode = listed(stack)
    phi = torch.tanh(conv(torch.tanh(embed(torch.arange(n)))))
    pooled, own = stack()
    assert_close(pooled[0], phi[0].sum(0))
    assert_close(own, decode(phi)[0])
    # a word that the group does not move has equal features at all places
    features = torch.randn(2, 5)
    everywhere = torch.tanh(conv(features[:, None].expand(-1, n, -1)))
    assert_close(stack.fixed(features), everywhere.sum(1))
    assert_close(stack.mean_rho()[0], decode.rho[decode.shared[:, 0]].mean(0))
    weight = torch.randn(n)
    parameters = (stack.omega, stack.psi, stack.rho)
    mine = torch.autograd.grad(own @ weight, parameters)
    theirs = torch.autograd.grad(decode(phi)[0] @ weight, parameters)
    for one, other in zip(mine, theirs, strict=True):
        assert_close(one, other, 1e-10)


def test_a_cyclic_sum_uses_the_device_of_its_input():
    n = 29  # no other test uses this size, so the cache is empty
    f, psi = torch.randn(n, 2), torch.randn(n, 2, 3)
    with torch.device("meta"):
        found = cyclic_sum(f, psi, sign=1)
    expected = [sum(f[(g - j) % n] @ psi[j] for j in range(n)) for g in range(n)]
    assert_close(found, torch.stack(expected))


# --- the listed layers

GROUPS = [
    Group.cyclic(4),
    Group.symmetric(3),
    Group.cyclic(2) * Group.cyclic(2),
    Group.cyclic(4) * Group.cyclic(2),
]
every_group = pytest.mark.parametrize("group", GROUPS, ids=repr)


@every_group
def test_the_listed_layers_are_equations_1_to_3_with_loops(group):
    elements = group.elements
    number = {g: i for i, g in enumerate(elements)}
    embed = GEmbed(regular(group), group.generators, k=3)
    conv = GConv(regular(group), k=3, d=2)
    decode = GDecode(regular(group), group.generators, d=2)
    f, phi = torch.randn(group.order, 3), torch.randn(group.order, 2)
    assert [len(embed.omega), len(conv.psi)] == [group.degree, group.order]
    for x in range(group.degree):
        e = [embed.omega[inverse(g)[x]] for g in elements]
        assert_close(embed(torch.tensor(x)), torch.stack(e))
        terms = [phi[j] @ decode.rho[inverse(h)[x]] for j, h in enumerate(elements)]
        assert_close(decode(phi)[x], torch.stack(terms).sum())
    for i, g in enumerate(elements):
        terms = [f[j] @ conv.psi[number[compose(inverse(g), h)]] for j, h in enumerate(elements)]
        assert_close(conv(f)[i], torch.stack(terms).sum(0))


def violations(group, embed, conv, decode):
    """The largest difference between moving a word before the layers and moving the output."""

    def stack(x):
        return decode(torch.tanh(conv(torch.tanh(embed(x))))).detach()

    worst = 0.0
    for g in group.elements:
        for x in range(group.degree):
            straight, around = stack(torch.tensor(x)), stack(torch.tensor(g[x]))
            worst = max(worst, float((around[list(g)] - straight).abs().max()))
    return worst


@pytest.mark.parametrize("features", ["group", "points"])
@every_group
def test_the_stack_is_equivariant_with_features_on_the_group_or_on_its_points(group, features):
    moves = regular(group) if features == "group" else group.generators
    embed = GEmbed(moves, group.generators, k=3)
    conv = GConv(moves, k=3, d=2)
    decode = GDecode(moves, group.generators, d=2)
    assert violations(group, embed, conv, decode) < 1e-12


@every_group
def test_g_conv_is_equivariant(group):
    layer, number = GConv(regular(group), k=3, d=2), {g: i for i, g in enumerate(group.elements)}
    f = torch.randn(group.order, 3)
    for g in group.elements:
        shift = [number[compose(inverse(g), h)] for h in group.elements]  # (g∘f)(h) = f(g⁻¹∘h)
        assert_close(layer(f[shift]), layer(f)[shift])


@pytest.mark.parametrize("broken", ["embed", "conv", "decode"])
def test_a_layer_without_shared_weights_fails_the_check(broken):
    group = Group.cyclic(4)
    moves = regular(group)
    layers = {
        "embed": GEmbed(moves, group.generators, k=3),
        "conv": GConv(moves, k=3, d=2),
        "decode": GDecode(moves, group.generators, d=2),
    }
    # a layer of the trivial group shares no weights
    nothing = [Group.trivial(4).generators[0]]
    layers[broken] = {
        "embed": GEmbed(nothing, nothing, k=3),
        "conv": GConv(nothing, k=3, d=2),
        "decode": GDecode(nothing, nothing, d=2),
    }[broken]
    assert violations(group, **layers) > 1e-3
