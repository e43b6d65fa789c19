"""The equivariant layers of §3.4 for a finite group whose elements are listed, and the layers of
Gordon et al. (2020) built from them.

A group acts on features and on words, and a layer has one weight for each orbit of a pair
(feature, word). With features on the group itself (``regular``), (g, x) and (e, g⁻¹∘x) share an
orbit, so the weight is the paper's ``ω(g⁻¹∘x)``. Features may also live on another set that the
group acts on: on the n points of a symmetric group there are only two orbits, *same* and *other*,
and the n! elements are not listed. Both actions are given as one permutation per generator.

The layers of Gordon et al. return plain matrices for features with group element and channel
flattened. A G-convolution is then a product with a matrix whose block (h, g) is ψ[g⁻¹∘h], and a
G-LSTM is an LSTM with such matrices and repeated biases. Blocks are gathered from the parameters,
so autograd sums the gradients of equal blocks.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from equitrans.models.configs import OutputBias
from equitrans.paper import BOS, EOS, PAD, Action, Group, Permutation, Symmetry, compose

Moves = Sequence[Permutation]
"""An action: one permutation per generator of the group."""


class GEmbed(nn.Module):
    """``e(x)[g, k] = ω[g⁻¹∘x, k]`` (eq. 2)."""

    shared: Int[Tensor, "g x"]

    def __init__(self, features: Moves, words: Moves, *, k: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, words)), persistent=False)
        self.omega = nn.Parameter(torch.empty(int(self.shared.max()) + 1, k).uniform_(-0.5, 0.5))

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b g k"]:
        return self.omega[self.shared.T[words]]


class GDecode(nn.Module):
    """``decode(φ)[y] = Σ_h φ(h)·ρ[h⁻¹∘y]`` (eq. 3)."""

    shared: Int[Tensor, "h y"]

    def __init__(self, features: Moves, words: Moves, *, d: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, words)), persistent=False)
        self.rho = nn.Parameter(torch.empty(int(self.shared.max()) + 1, d).uniform_(-0.5, 0.5))

    def forward(self, phi: Float[Tensor, "*b h d"]) -> Float[Tensor, "*b y"]:
        return torch.einsum("...hd,hyd->...y", phi, self.rho[self.shared])


class GConvs(nn.Module):
    """``conv(f)[c, g, d] = Σ_i Σ_h f_i(h)·ψ[g⁻¹∘h, i, :, c, d]``: convolutions of several inputs i
    to several outputs c (eq. 1 has one of each).
    """

    shared: Int[Tensor, "g h"]

    def __init__(self, features: Moves, *, i: int, k: int, c: int, d: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, features)), persistent=False)
        bound = d**-0.5
        self.psi = nn.Parameter(torch.empty(len(self.shared), i, k, c, d).uniform_(-bound, bound))

    def matrices(self) -> Float[Tensor, "i hk cgd"]:
        """One matrix per input, for flattened features."""
        blocks = self.psi[self.shared].permute(2, 1, 3, 4, 0, 5)
        return blocks.flatten(3).flatten(1, 2)


class GCell(nn.Module):
    """A G-LSTM: eight convolutions with biases, of the input and of the hidden state to the gates.

    Parameters hold the gates in the order i, f, o, g of the released code; ``matrices`` and
    ``biases`` return them in torch's order i, f, g, o.
    """

    def __init__(self, features: Moves, *, k: int) -> None:
        super().__init__()
        self.convs = GConvs(features, i=2, k=k, c=4, d=k)
        self.bias = nn.Parameter(torch.empty(2, 4, k).uniform_(-1 / k, 1 / k))

    def matrices(self) -> Float[Tensor, "2 hk gates"]:
        """The matrices of the input and of the hidden state."""
        i, f, o, g = self.convs.matrices().chunk(4, dim=2)
        return torch.cat([i, f, g, o], dim=2)

    def biases(self) -> Float[Tensor, " gates"]:
        """The sum of the biases of the input and of the hidden state, repeated for every g."""
        i, f, o, g = self.bias.sum(0)
        return torch.stack([i, f, g, o])[:, None].expand(-1, len(self.convs.shared), -1).flatten()


class GCombine(nn.Module):
    """``b + conv([f_0; f_1])``: one convolution of two features with concatenated channels."""

    def __init__(self, features: Moves, *, k: int) -> None:
        super().__init__()
        self.conv = GConvs(features, i=2, k=k, c=1, d=k)
        bound = (2 * k * k) ** -0.5
        self.bias = nn.Parameter(torch.empty(k).uniform_(-bound, bound))

    def biases(self) -> Float[Tensor, " gk"]:
        """The bias, repeated for every g."""
        return self.bias.repeat(len(self.conv.shared))


class Readout(nn.Module):
    """``logit(y) = b[y] + Σ_h φ(h)·ρ[h⁻¹∘y]``, and −∞ for PAD and BOS."""

    bias_of: Int[Tensor, " y"]

    def __init__(self, symmetry: Symmetry, *, d: int, output_bias: OutputBias) -> None:
        super().__init__()
        bound = d**-0.5
        self.decode = GDecode(regular(symmetry.group), moves(symmetry.target_action), d=d)
        nn.init.uniform_(self.decode.rho, -bound, bound)
        tied = output_bias == "tied"
        number = torch.tensor(symmetry.target_classes if tied else range(len(symmetry.target)))
        self.register_buffer("bias_of", number[BOS:] - BOS, persistent=False)
        self.bias = None
        if output_bias != "none":
            self.bias = nn.Parameter(torch.empty(int(number.max())).uniform_(-bound, bound))

    def matrix(self) -> Float[Tensor, "hd y"]:
        """The matrix of ρ for flattened features."""
        rho = self.decode.rho[self.decode.shared]
        return functional.pad(rho.transpose(1, 2).flatten(0, 1), (1, 0))

    def biases(self) -> Float[Tensor, " y"]:
        """The bias of every word, −∞ for PAD and BOS."""
        rho = self.decode.rho
        bias = rho.new_zeros(len(rho)) if self.bias is None else self.bias[self.bias_of]
        return functional.pad(bias[EOS - BOS :], (EOS, 0), value=-math.inf)


def every_word(embed: GEmbed) -> Float[Tensor, "x gk"]:
    """The flattened features of all words. The row of PAD repeats that of BOS."""
    words = torch.arange(PAD, embed.shared.shape[1] + BOS, device=embed.omega.device)
    return embed((words - BOS).clamp(min=0)).flatten(1)


def moves(action: Action) -> Moves:
    """The action of each generator on words, numbered from BOS because PAD has no parameters."""
    images = (action(g, range(action.size)) for g in action.group.generators)
    return [tuple(word - BOS for word in move[BOS:]) for move in images]


def regular(group: Group) -> tuple[Permutation, ...]:
    """The action of each generator on the group's elements by multiplication from the left."""
    index = {p: i for i, p in enumerate(group.elements)}
    return tuple(tuple(index[compose(g, p)] for p in group.elements) for g in group.generators)


def orbits(left: Sequence[Permutation], right: Sequence[Permutation]) -> list[list[int]]:
    """The orbit number of each pair of points (i, j), in row i and column j, when each generator
    moves both points.

    Two pairs have the same number exactly if a group element maps one to the other. Orbits are
    numbered in order of first appearance.

    >>> orbits([(1, 2, 0)], [(1, 2, 0)])
    [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    """
    n, m = len(left[0]), len(right[0])
    table = [[-1] * m for _ in range(n)]
    count = 0
    for start in range(n * m):
        i, j = divmod(start, m)
        if table[i][j] >= 0:
            continue
        table[i][j] = count
        border = [(i, j)]
        while border:
            i, j = border.pop()
            for g, h in zip(left, right, strict=True):
                if table[g[i]][h[j]] < 0:
                    table[g[i]][h[j]] = count
                    border.append((g[i], h[j]))
        count += 1
    return table
