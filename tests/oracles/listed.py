"""The layers of §3.4 over all elements of a listed group: the oracle of ``paper.layers``."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.models.baselines.glayers import GDecode, GEmbed, Moves, orbits, regular
from equitrans.paper import Permutation

__all__ = ["GConv", "GDecode", "GEmbed", "inverse", "orbits", "regular"]


def inverse(p: Permutation) -> Permutation:
    """``p⁻¹``."""
    out = [0] * len(p)
    for i, image in enumerate(p):
        out[image] = i
    return tuple(out)


class GConv(nn.Module):
    """``conv(f)[g, d] = Σ_h f(h)·ψ[g⁻¹∘h, :, d]`` (eq. 1)."""

    shared: Int[Tensor, "g h"]

    def __init__(self, features: Moves, *, k: int, d: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, features)), persistent=False)
        self.psi = nn.Parameter(torch.empty(int(self.shared.max()) + 1, k, d).uniform_(-0.5, 0.5))

    def forward(self, f: Float[Tensor, "*b h k"]) -> Float[Tensor, "*b g d"]:
        return torch.einsum("...hk,ghkd->...gd", f, self.psi[self.shared])
