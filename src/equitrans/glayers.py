"""The three equivariant layers of §3.4, for any finite group; eqs. 1–3 are their docstrings.

A layer's weights are shared over orbits: between features at g and a word x there is one weight
for every orbit of (g, x), and the orbit of (g, x) is that of (e, g⁻¹∘x). With features on the
group itself (``group.regular()``) this is the paper's ``ω(g⁻¹∘x)``. Features may also live on any
other set that the group moves: on the n points of the symmetric group there are two orbits, *same*
and *other*, and n! elements need never be listed. Both sides are given as what each generator does
to them.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.groups import Permutation, orbits

Moves = Sequence[Permutation]


class GEmbed(nn.Module):
    """``e(x)[g, k] = ω[g⁻¹∘x, k]`` (eq. 2)."""

    shared: Int[Tensor, "g x"]

    def __init__(self, features: Moves, words: Moves, *, k: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, words)), persistent=False)
        self.omega = nn.Parameter(torch.empty(int(self.shared.max()) + 1, k).uniform_(-0.5, 0.5))

    def forward(self, words: Int[Tensor, "*b"]) -> Float[Tensor, "*b g k"]:
        return self.omega[self.shared.T[words]]


class GConv(nn.Module):
    """``conv(f)[g, d] = Σ_h f(h)·ψ[g⁻¹∘h, :, d]`` (eq. 1)."""

    shared: Int[Tensor, "g h"]

    def __init__(self, features: Moves, *, k: int, d: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, features)), persistent=False)
        self.psi = nn.Parameter(torch.empty(int(self.shared.max()) + 1, k, d).uniform_(-0.5, 0.5))

    def forward(self, f: Float[Tensor, "*b h k"]) -> Float[Tensor, "*b g d"]:
        return torch.einsum("...hk,ghkd->...gd", f, self.psi[self.shared])


class GDecode(nn.Module):
    """``decode(φ)[y] = Σ_h φ(h)·ρ[h⁻¹∘y]`` (eq. 3)."""

    shared: Int[Tensor, "h y"]

    def __init__(self, features: Moves, words: Moves, *, d: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, words)), persistent=False)
        self.rho = nn.Parameter(torch.empty(int(self.shared.max()) + 1, d).uniform_(-0.5, 0.5))

    def forward(self, phi: Float[Tensor, "*b h d"]) -> Float[Tensor, "*b y"]:
        return torch.einsum("...hd,hyd->...y", phi, self.rho[self.shared])
