"""The equivariant layers (§3.4, equations 1–3) on the n words of one class.

A word has one feature vector per *place*. The n places of a class are its words, and the group
permutes both. The weight between place h and word x depends on the orbit of (h, x), written h⁻¹∘x
below. For the *cyclic* group the orbit is the difference x − h, so there are n weights, as in the
paper. For the *symmetric* group there are two orbits, *same* (h = x) and *other*: two weights are
enough, and the n! elements are never listed.

The group moves the first word x of a class to all others, so the layers compute the features of x
only. These are constant on orbits: a tensor has one row per orbit.
"""

from functools import cache
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.paper.symmetry import GroupKind

DIRECT = 32
"""Largest cyclic group that sums directly; larger ones use the fast Fourier transform."""


class Stack(nn.Module):
    """The three layers of one class; ω, ψ and ρ have one row per orbit, ω and ρ for each column."""

    count: Float[Tensor, " o"]
    scale = 1.0  # of sums over rows, so that large classes learn as fast as small ones

    def __init__(
        self, n: int, *, kind: GroupKind, k: int, d: int, columns: tuple[int, int] = (1, 1)
    ) -> None:
        super().__init__()
        self.n, self.columns = n, columns
        self.symmetric = kind == "symmetric" and n > 2
        orbits = 2 if self.symmetric else n
        self.omega = uniform(columns[0] * orbits, k)
        self.psi = uniform(orbits, k, d)
        self.rho = uniform(columns[1] * orbits, d)
        count = torch.tensor([1.0, n - 1.0]) if self.symmetric else torch.ones(n)
        self.register_buffer("count", count, persistent=False)

    def extra_repr(self) -> str:
        """Sizes and kind of group, for ``repr``."""
        (_, k, d), group = self.psi.shape, "symmetric" if self.symmetric else "cyclic"
        return f"{self.n} words -> {self.n} x {k} -> {self.n} x {d} -> {self.n} logits, {group}"

    def embed(self) -> tuple[Float[Tensor, "o k"], ...]:
        """G-Embed, ``e(x)[h] = ω[h⁻¹∘x]`` (eq. 2): row o holds e(x)[h] for h⁻¹∘x = o; by column."""
        return self.omega.chunk(self.columns[0])

    def conv(self, f: Float[Tensor, "o k"]) -> Float[Tensor, "o d"]:
        """G-Conv, ``φ(g) = Σ_h f(h) ψ[g⁻¹∘h]`` (eq. 1): row o holds φ(g) for g∘x = o."""
        if self.symmetric:
            return two_orbit_sum(f, self.psi * self.scale, self.n)
        # row o of f is f(h) at h = −o, and with j = h − g it is f(−g − j)
        return cyclic_sum(f, self.psi * self.scale, sign=-1)

    def decode(self, phi: Float[Tensor, "o d"]) -> Float[Tensor, " cn"]:
        """G-Decode, ``decode(φ)[y] = Σ_h φ(h) ρ[h⁻¹∘y]`` (eq. 3): a logit for y, by column."""
        logits = []
        for rho in (self.rho[:, :, None] * self.scale).chunk(self.columns[1]):
            if self.symmetric:
                same, other = two_orbit_sum(phi, rho, self.n)[:, 0].unbind()
                logits += [same[None], other.expand(self.n - 1)]
            else:
                logits.append(cyclic_sum(phi, rho, sign=1)[:, 0])
        return torch.cat(logits)

    def forward(self) -> tuple[Float[Tensor, "c d"], Float[Tensor, " cn"]]:
        """G-Embed, tanh, G-Conv, tanh, G-Decode of the first word of each source column (§4.2).

        Returns ``Σ_h φ(h)``, from which target words outside the class get their logits, and the
        logits of the target words of the class, one source column after the other.
        """
        phis = [torch.tanh(self.conv(torch.tanh(embedded))) for embedded in self.embed()]
        pooled = torch.stack([self.count @ phi for phi in phis]) * self.scale
        return pooled, torch.cat([self.decode(phi) for phi in phis])

    def fixed(self, embedded: Float[Tensor, "x k"]) -> Float[Tensor, "x d"]:
        """``Σ_h φ(h)`` of words that the group does not move; their features are equal at all h."""
        psi = torch.tensordot(self.count, self.psi, 1) * self.scale
        return torch.tanh(embedded @ psi) * (self.n * self.scale)

    def mean_rho(self) -> Float[Tensor, "c d"]:
        """ρ of every word of each target column, for source words outside the class."""
        return torch.stack([self.count @ rho for rho in self.rho.chunk(self.columns[1])]) / self.n


def uniform(*shape: int) -> nn.Parameter:
    """Weights drawn from [−½, ½]."""
    return nn.Parameter(torch.empty(*shape).uniform_(-0.5, 0.5))


def cyclic_sum(
    f: Float[Tensor, "n k"], psi: Float[Tensor, "n k d"], *, sign: Literal[1, -1]
) -> Float[Tensor, "n d"]:
    """``out(g) = Σ_j f(±g − j) ψ(j)`` on the cyclic group of n elements.

    In a large group the sum is a product of Fourier transforms: n log n steps instead of n².
    """
    n = len(f)
    if n <= DIRECT:
        return f[_differences(n, sign, f.device)].flatten(1) @ psi.flatten(0, 1)
    product = torch.einsum("wk,wkd->wd", torch.fft.rfft(f, dim=0), torch.fft.rfft(psi, dim=0))
    return torch.fft.irfft(product if sign == 1 else product.conj(), n=n, dim=0)


@cache
def _differences(n: int, sign: int, device: torch.device) -> Int[Tensor, "n n"]:
    """``±g − j``. Inference mode is off, so that training can use a tensor cached by inference."""
    with torch.inference_mode(False):
        g = torch.arange(n, device=device)
        return (sign * g[:, None] - g) % n


def two_orbit_sum(
    f: Float[Tensor, "2 k"], psi: Float[Tensor, "2 k d"], n: int
) -> Float[Tensor, "2 d"]:
    """``out(g) = Σ_h f(h) ψ[g⁻¹∘h]`` on n places of the symmetric group: rows *same*, *other*."""
    (same, other), (here, there) = f.unbind(), psi.unbind()
    at_same = same @ here + (n - 1) * (other @ there)
    at_other = other @ here + same @ there + (n - 2) * (other @ there)
    return torch.stack([at_same, at_other])
