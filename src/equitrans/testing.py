"""Assertions for tests of equivariant layers and models, ours or a user's.

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

import torch
from torch import Tensor, nn

from equitrans.analysis import move
from equitrans.data import Pair, Rows
from equitrans.paper import (
    N_SPECIAL,
    Action,
    Group,
    Model,
    Permutation,
    Symmetry,
    compose,
    cycles,
    identity,
)

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}
"""Largest accepted deviation, absolute and relative, by floating-point type; 0 for other types."""

ELEMENTS = 24
"""Number of random group elements that are tried after the generators."""


def assert_equivariant(
    module: nn.Module | Callable[[Tensor], Tensor],
    inputs: Tensor | None = None,
    *,
    actions: tuple[Action, Action] | None = None,
    pairs: Sequence[Pair] | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """Raise AssertionError unless a model or a layer commutes with its group.

    A *model* must have p(g∘y | g∘x) = p(y | x) for every pair. A *layer* maps word numbers to one
    score per target word in the last dimension, and ``layer(g∘x)[…, g∘y]`` must equal
    ``layer(x)[…, y]``. NaN is never equal. The generators of the group and random elements are
    tried, in evaluation mode.

    Args:
        module: a model, or a layer from word numbers to scores of words
        inputs: word numbers for a layer; by default all words
        actions: how the group moves the inputs and the outputs of a layer; by default its
            attribute ``actions``
        pairs: pairs for a model; by default eight random pairs
        tolerance: largest accepted deviation, absolute and relative; by default it depends on the
            floating-point type
        seed: decides the random pairs and group elements

    """
    draw = random.Random(seed)
    modules = list(module.modules()) if isinstance(module, nn.Module) else []
    training = [part.training for part in modules]
    try:
        for part in modules:
            part.training = False
        with torch.no_grad():
            if isinstance(module, Model):
                _check_model(module, pairs, tolerance, draw)
            else:
                _check_layer(module, inputs, actions, tolerance, draw)
    finally:
        for part, mode in zip(modules, training, strict=True):
            part.training = mode


def _check_model(
    model: Model, pairs: Sequence[Pair] | None, tolerance: float | None, draw: random.Random
) -> None:
    symmetry = model.symmetry
    pairs = pairs or [_random_pair(symmetry, draw) for _ in range(8)]
    before = _losses(model, pairs)
    for g in _elements(symmetry.group, draw):
        after = _losses(model, [move(symmetry, g, pair) for pair in pairs])
        _compare(before, after, tolerance, g, "log p(y | x)")


def _check_layer(
    layer: Callable[[Tensor], Tensor],
    inputs: Tensor | None,
    actions: tuple[Action, Action] | None,
    tolerance: float | None,
    draw: random.Random,
) -> None:
    source, target = actions or getattr(layer, "actions", None) or (None, None)
    if source is None or target is None:
        raise TypeError(
            f"{type(layer).__name__} has no attribute 'actions'; "
            "pass actions=(action on inputs, action on outputs)"
        )
    words = torch.arange(N_SPECIAL, source.size, device=_device(layer))
    words = words if inputs is None else inputs
    before = layer(words)
    for g in _elements(source.group, draw):
        inside = torch.tensor(source(g, range(source.size)), device=words.device)
        outside = torch.tensor(target(g, range(target.size)), device=before.device)
        _compare(before, layer(inside[words])[..., outside], tolerance, g, "the output")


def _elements(group: Group, draw: random.Random) -> Iterator[Permutation]:
    """The generators of a group, and random products of them."""
    yield from group.generators
    for _ in range(ELEMENTS):
        g = identity(group.degree)
        for _ in range(draw.randrange(2, 30)):
            g = compose(draw.choice(group.generators), g)
        yield g


def _random_pair(symmetry: Symmetry, draw: random.Random) -> Pair:
    """A random pair, with at least one class word on each side if there are classes."""
    sides = []
    for words, class_words in (
        (symmetry.source.words, [w for c in symmetry.classes for w in c.words[0]]),
        (symmetry.target.words, [w for c in symmetry.classes for w in c.words[1]]),
    ):
        sentence = draw.choices(words, k=draw.randrange(1, 6))
        if class_words:
            sentence[draw.randrange(len(sentence))] = draw.choice(class_words)
        sides.append(tuple(sentence))
    return Pair(*sides)


def _losses(model: Model, pairs: Sequence[Pair]) -> Tensor:
    """−log p of each pair. Encoding without classes keeps pairs of one orbit in separate rows."""
    rows = Rows.of(pairs, Symmetry(model.symmetry.source, model.symmetry.target))
    batch, device = rows.batch(torch.arange(len(rows.weight)), rows.weight), _device(model)
    return model.loss(batch.to(device))[rows.row.to(device)]


def _device(module: object) -> torch.device:
    """The device of a module's first parameter, or the CPU."""
    parameters = module.parameters() if isinstance(module, nn.Module) else iter(())
    first = next(parameters, None)
    return torch.device("cpu") if first is None else first.device


def _compare(
    before: Tensor, after: Tensor, tolerance: float | None, g: Permutation, what: str
) -> None:
    allowed = TOLERANCE.get(before.dtype, 0.0) if tolerance is None else tolerance
    name = cycles(g) if len(g) <= 50 else f"a permutation of {len(g)} points"
    torch.testing.assert_close(
        after,
        before,
        rtol=allowed,
        atol=allowed,
        msg=lambda difference: f"not equivariant: {what} changes under {name}\n{difference}",
    )
