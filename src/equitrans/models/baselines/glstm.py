"""The layers of Gordon et al. (2020) as plain matrices; those of ``glayers`` with biases and gates.

On features with group element and channel flattened, a G-convolution is a product with a matrix
whose block (h, g) is ψ[g⁻¹∘h]. A G-LSTM is therefore an LSTM whose weights are made of such blocks
and whose biases repeat. The blocks are gathered, so autograd adds up what shares a weight.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from equitrans.models.baselines.glayers import GDecode, GEmbed, Moves, orbits, regular
from equitrans.paper import BOS, EOS, PAD, Action, Symmetry

OutputBias = Literal["free", "tied", "none"]


class GConvs(nn.Module):
    """``conv(f)[c, g, d] = Σ_i Σ_h f_i(h)·ψ[g⁻¹∘h, i, :, c, d]``: convolutions of several inputs
    to several outputs.
    """

    shared: Int[Tensor, "g h"]

    def __init__(self, features: Moves, *, i: int, k: int, c: int, d: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, features)), persistent=False)
        bound = d**-0.5
        self.psi = nn.Parameter(torch.empty(len(self.shared), i, k, c, d).uniform_(-bound, bound))

    def matrices(self) -> Float[Tensor, "i hk cgd"]:
        """A matrix for each input, for features with h and k flattened."""
        blocks = self.psi[self.shared].permute(2, 1, 3, 4, 0, 5)
        return blocks.flatten(3).flatten(1, 2)


class GCell(nn.Module):
    """The eight convolutions of a G-LSTM, each with its bias: of the input and of the hidden
    state to i, f, o and g.
    """

    def __init__(self, features: Moves, *, k: int) -> None:
        super().__init__()
        self.convs = GConvs(features, i=2, k=k, c=4, d=k)
        self.bias = nn.Parameter(torch.empty(2, 4, k).uniform_(-1 / k, 1 / k))

    def biases(self) -> Float[Tensor, " gates"]:
        """Those of the input and of the hidden state, which are always added, for every g."""
        return self.bias.sum(0)[:, None].expand(-1, len(self.convs.shared), -1).flatten()


class GCombine(nn.Module):
    """``b + conv([f_0; f_1])``: one convolution of two features with their channels joined."""

    def __init__(self, features: Moves, *, k: int) -> None:
        super().__init__()
        self.conv = GConvs(features, i=2, k=k, c=1, d=k)
        bound = (2 * k * k) ** -0.5
        self.bias = nn.Parameter(torch.empty(k).uniform_(-bound, bound))

    def biases(self) -> Float[Tensor, " gk"]:
        """The same for every g."""
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
        """ρ for features with h and d flattened."""
        rho = self.decode.rho[self.decode.shared]
        return functional.pad(rho.transpose(1, 2).flatten(0, 1), (1, 0))

    def biases(self) -> Float[Tensor, " y"]:
        """The bias of every word; what is never emitted has −∞."""
        rho = self.decode.rho
        bias = rho.new_zeros(len(rho)) if self.bias is None else self.bias[self.bias_of]
        return functional.pad(bias[EOS - BOS :], (EOS, 0), value=-math.inf)


def moves(action: Action) -> Moves:
    """What the generators do to words. PAD has no parameters, so words are counted from BOS."""
    images = (action(g, range(action.size)) for g in action.group.generators)
    return [tuple(word - BOS for word in move[BOS:]) for move in images]


def every_word(embed: GEmbed) -> Float[Tensor, "x gk"]:
    """The flat features of all words; padding, which is never looked at, has those of BOS."""
    words = torch.arange(PAD, embed.shared.shape[1] + BOS, device=embed.omega.device)
    return embed((words - BOS).clamp(min=0)).flatten(1)
