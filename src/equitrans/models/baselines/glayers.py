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

from equitrans.paper import Group, Permutation, compose

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


class GDecode(nn.Module):
    """``decode(φ)[y] = Σ_h φ(h)·ρ[h⁻¹∘y]`` (eq. 3)."""

    shared: Int[Tensor, "h y"]

    def __init__(self, features: Moves, words: Moves, *, d: int) -> None:
        super().__init__()
        self.register_buffer("shared", torch.tensor(orbits(features, words)), persistent=False)
        self.rho = nn.Parameter(torch.empty(int(self.shared.max()) + 1, d).uniform_(-0.5, 0.5))

    def forward(self, phi: Float[Tensor, "*b h d"]) -> Float[Tensor, "*b y"]:
        return torch.einsum("...hd,hyd->...y", phi, self.rho[self.shared])


def regular(group: Group) -> tuple[Permutation, ...]:
    """How each generator moves the group's elements, by multiplication from the left."""
    index = {p: i for i, p in enumerate(group.elements)}
    return tuple(tuple(index[compose(g, p)] for p in group.elements) for g in group.generators)


def orbits(left: Sequence[Permutation], right: Sequence[Permutation]) -> list[list[int]]:
    """The orbit of each pair of points (i, j) when generators move both: row i, column j.

    Two pairs have the same number exactly if a group element takes one to the other. For a group
    on itself and on a vocabulary the number stands for ``g⁻¹∘x``: (g, x) and (e, g⁻¹∘x) share an
    orbit. Orbits are numbered in order of first appearance.

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
