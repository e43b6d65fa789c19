"""Eqs. 1–3 against their plain formulas, and their equivariance for every group element."""

import pytest
import torch

from equitrans.paper.groups import Group, compose
from listed import GConv, GDecode, GEmbed, inverse, regular
from worlds import assert_close

GROUPS = [
    Group.cyclic(4),
    Group.symmetric(3),
    Group.cyclic(2) * Group.cyclic(2),
    Group.cyclic(4) * Group.cyclic(2),
]
ids = repr


def number(group):
    return {g: i for i, g in enumerate(group.elements)}


@pytest.mark.parametrize("group", GROUPS, ids=ids)
def test_eq_2_g_embed(group):
    layer = GEmbed(regular(group), group.generators, k=3)
    assert layer.omega.shape == (group.degree, 3)
    for x in range(group.degree):
        e = layer(torch.tensor(x))
        for i, g in enumerate(group.elements):
            assert_close(e[i], layer.omega[inverse(g)[x]])


@pytest.mark.parametrize("group", GROUPS, ids=ids)
def test_eq_1_g_conv(group):
    layer = GConv(regular(group), k=3, d=2)
    assert layer.psi.shape == (group.order, 3, 2)
    f, at = torch.randn(group.order, 3), number(group)
    for i, g in enumerate(group.elements):
        terms = [f[j] @ layer.psi[at[compose(inverse(g), h)]] for j, h in enumerate(group.elements)]
        assert_close(layer(f)[i], torch.stack(terms).sum(0))


@pytest.mark.parametrize("group", GROUPS, ids=ids)
def test_eq_3_g_decode(group):
    layer = GDecode(regular(group), group.generators, d=2)
    phi = torch.randn(group.order, 2)
    for y in range(group.degree):
        terms = [phi[j] @ layer.rho[inverse(h)[y]] for j, h in enumerate(group.elements)]
        assert_close(layer(phi)[y], torch.stack(terms).sum())


def violations(group, embed, conv, decode):
    """The largest difference between moving a word before the stack and moving the output after
    it."""

    def stack(x):
        return decode(torch.tanh(conv(torch.tanh(embed(x))))).detach()

    worst = 0.0
    for g in group.elements:
        for x in range(group.degree):
            straight, around = stack(torch.tensor(x)), stack(torch.tensor(g[x]))
            worst = max(worst, float((around[list(g)] - straight).abs().max()))
    return worst


@pytest.mark.parametrize("features", ["group", "points"])
@pytest.mark.parametrize("group", GROUPS, ids=ids)
def test_the_stack_is_equivariant_with_features_on_the_group_or_on_its_points(group, features):
    moves = regular(group) if features == "group" else group.generators
    embed = GEmbed(moves, group.generators, k=3)
    conv = GConv(moves, k=3, d=2)
    decode = GDecode(moves, group.generators, d=2)
    assert violations(group, embed, conv, decode) < 1e-12


@pytest.mark.parametrize("group", GROUPS, ids=ids)
def test_g_conv_is_equivariant(group):
    layer, at = GConv(regular(group), k=3, d=2), number(group)
    f = torch.randn(group.order, 3)
    for g in group.elements:
        shift = [at[compose(inverse(g), h)] for h in group.elements]  # (g∘f)(h) = f(g⁻¹∘h)
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
    # the layer of the trivial group shares nothing
    nothing = [Group.trivial(4).generators[0]]
    layers[broken] = {
        "embed": GEmbed(nothing, nothing, k=3),
        "conv": GConv(nothing, k=3, d=2),
        "decode": GDecode(nothing, nothing, d=2),
    }[broken]
    assert violations(group, **layers) > 1e-3


def test_leading_axes_pass_through():
    group = Group.cyclic(4)
    embed = GEmbed(regular(group), group.generators, k=3)
    conv = GConv(regular(group), k=3, d=2)
    decode = GDecode(regular(group), group.generators, d=2)
    words = torch.randint(0, 4, (2, 5))
    out = decode(conv(embed(words)))
    assert out.shape == (2, 5, 4)
    assert_close(out[1, 3], decode(conv(embed(words[1, 3]))))
