"""Assertions for tests of equivariant layers and models, our own or a user's.

>>> import torch
>>> from equitrans import LexicalClass, Symmetry, TransducerConfig
>>> from equitrans.models import build
>>> from equitrans.testing import assert_equivariant
>>> verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
>>> symmetry = Symmetry.of([verbs], [(("walk", "twice"), ("WALK", "WALK"))])
>>> model = build(TransducerConfig(), symmetry)
>>> assert_equivariant(model)
>>> assert_equivariant(model.translator)
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor, nn

from equitrans.data import Pair, Rows, in_order
from equitrans.paper import N_SPECIAL, Action, Group, Model, Permutation, Symmetry

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}
"""Largest accepted deviation, absolute and relative, by the type of the numbers."""

ELEMENTS = 24
"""Number of random group elements that are tried besides the generators."""


def assert_equivariant(
    module: nn.Module | Callable[[Tensor], Tensor],
    inputs: Tensor | None = None,
    *,
    actions: tuple[Action, Action] | None = None,
    pairs: Sequence[Pair] | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """Raise AssertionError unless a module commutes with its group, element by element.

    A *model* must give p(g∘y | g∘x) = p(y | x) on ``pairs``, or on random ones. A *layer* maps word
    numbers ``inputs`` to one score per output word in its last dimension, and
    ``layer(g∘x)[…, g∘y]`` must equal ``layer(x)[…, y]``. Our layers know their ``actions``; give
    them for other layers.

    Args:
        module: a model, or a layer from word numbers to scores of words
        inputs: word numbers for a layer; all words if left out
        actions: how the group moves the inputs and the outputs of a layer
        pairs: pairs for a model; random ones if left out
        tolerance: largest accepted deviation; by default it follows the type of the numbers
        seed: decides the random pairs and group elements

    """
    random_ = random.Random(seed)
    if isinstance(module, nn.Module):
        module.eval()
    with torch.no_grad():
        if isinstance(module, Model):
            symmetry = module.symmetry
            given = pairs or [_pair(symmetry, random_) for _ in range(8)]
            for g in some_elements(symmetry.group, random_):
                moved = [move(symmetry, g, pair) for pair in given]
                one, other = (_losses(module, each) for each in (given, moved))
                _compare(one, other, tolerance, f"log p(y | x) under {g}")
            return
        if actions is None:
            actions = getattr(module, "actions", None)
        if actions is None:
            raise TypeError(f"{type(module).__name__} does not know its actions; give them")
        source, target = actions
        words = torch.arange(N_SPECIAL, source.size) if inputs is None else inputs
        before = module(words)
        for g in some_elements(source.group, random_):
            after = module(_moved(source, g, words))
            images = torch.tensor(target(g, range(target.size)))
            _compare(before, after[..., images], tolerance, f"the output under {g}")


def some_elements(group: Group, random_: random.Random) -> Iterator[Permutation]:
    """The generators of a group and some random products of them."""
    yield from group.generators
    for _ in range(ELEMENTS):
        word = [random_.choice(group.generators) for _ in range(random_.randrange(2, 30))]
        image = list(range(group.degree))
        for g in word:
            image = [g[i] for i in image]
        yield tuple(image)


def move(symmetry: Symmetry, g: Permutation, pair: Pair) -> Pair:
    """``(g∘x, g∘y)``."""
    source, target = symmetry.source, symmetry.target
    return Pair(
        source.decode(symmetry.source_action(g, source.encode(pair.source))),
        target.decode(symmetry.target_action(g, target.encode(pair.target))),
    )


def _pair(symmetry: Symmetry, random_: random.Random) -> Pair:
    """A random pair, with at least one class word on each side if there are classes."""
    sides = []
    for words, own in (
        (symmetry.source.words, [w for c in symmetry.classes for w in c.source]),
        (symmetry.target.words, [w for c in symmetry.classes for w in c.target]),
    ):
        length = random_.randrange(1, 6)
        some = [random_.choice(words) for _ in range(length)]
        if own:
            some[random_.randrange(length)] = random_.choice(own)
        sides.append(tuple(some))
    return Pair(*sides)


def _losses(model: Model, pairs: Sequence[Pair]) -> Tensor:
    """−log p of each pair, encoded without classes, so that nothing is shared between pairs."""
    rows = Rows.of(pairs, Symmetry(model.symmetry.source, model.symmetry.target))
    device = next(model.parameters()).device
    (batch,) = islice(in_order(rows, rows=len(rows.weight)), 1)
    return model.loss(batch.to(device))[rows.row.to(device)]


def _moved(action: Action, g: Permutation, words: Tensor) -> Tensor:
    images = torch.tensor(action(g, range(action.size)), device=words.device)
    return images[words]


def _compare(one: Tensor, other: Tensor, tolerance: float | None, what: str) -> None:
    allowed = TOLERANCE[one.dtype] if tolerance is None else tolerance
    finite = one.isfinite() | other.isfinite()
    gap = torch.where(finite, one - other, 0.0).abs() / one.abs().clamp(min=1.0).nan_to_num(1.0)
    if not bool((one.isfinite() == other.isfinite()).all()) or float(gap.max()) > allowed:
        raise AssertionError(f"{what} changes by {float(gap.max()):.3g}; allowed is {allowed:.3g}")
