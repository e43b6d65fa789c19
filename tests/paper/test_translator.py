"""The translator: a distribution, equivariance, the paper's equations, memory, and devices."""

import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from equitrans.data.pairs import Pair
from equitrans.errors import SymmetryError
from equitrans.paper.groups import Group
from equitrans.paper.layers import _differences
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.paper.translator import Translator
from equitrans.paper.vocabulary import BOS, EOS, PAD, Vocabulary
from listed import GConv, inverse
from worlds import (
    SOURCE,
    SYMMETRIES,
    TARGET,
    VERBS,
    assert_close,
    elements,
    random_pairs,
    small,
    symmetry,
    unshared,
)

every_symmetry = pytest.mark.parametrize("name", SYMMETRIES)


@every_symmetry
def test_the_translator_is_a_distribution_that_never_emits_pad_or_bos(name):
    world = SYMMETRIES[name]
    table = small(world).translator(torch.arange(BOS, len(world.source))).exp()
    assert_close(table.sum(1), torch.ones(len(table)))
    assert (table[:, [PAD, BOS]] == 0).all()
    assert (table[:, EOS:] > 0).all()


@every_symmetry
def test_the_translator_is_equivariant(name):
    """p(g∘y | g∘x) = p(y | x) for single words and every g."""
    world = SYMMETRIES[name]
    table = small(world).translator(torch.arange(len(world.source)))
    for g in elements(world):
        x = list(world.source_action(g, range(len(world.source))))
        y = list(world.target_action(g, range(len(world.target))))
        assert_close(table[x][:, y], table)


def test_a_translator_without_classes_is_not_equivariant():
    world = symmetry(VERBS)
    table = small(symmetry()).translator(torch.arange(len(SOURCE)))
    g = world.group.generators[0]
    x, y = (
        list(world.source_action(g, range(len(world.source)))),
        list(world.target_action(g, range(len(world.target)))),
    )
    assert (table[x][:, y] - table)[BOS:, EOS:].abs().max() > 1e-2


def test_with_one_class_the_translator_is_the_paper_s_parameter_for_parameter():
    """Equations 1–3 with loops over the group and over all words."""
    world = symmetry(VERBS)
    translator = small(world).translator
    (factor,) = translator.factors
    group = world.group.elements
    number = {g: i for i, g in enumerate(group)}
    source_places, target_places = SOURCE.encode(VERBS.source), TARGET.encode(VERBS.target)

    def filters(size, places, moved_weights, fixed_weights, first):
        others = [w for w in range(first, size) if w not in places]
        return dict(zip(places, moved_weights, strict=True)) | dict(
            zip(others, fixed_weights, strict=True)
        )

    omega = filters(len(SOURCE), source_places, factor.omega, translator.omega, BOS)
    rho = filters(len(TARGET), target_places, factor.rho, translator.rho, BOS)
    psi = {g: factor.psi[number[g]] for g in group}
    assert sum(p.numel() for p in translator.parameters()) == (
        (len(SOURCE) - 1) * 5 + 4 * 5 * 4 + (len(TARGET) - 1) * 4
    )
    act, act_target = world.source_action, world.target_action
    for x in range(BOS, len(SOURCE)):
        e = {g: torch.tanh(omega[act(inverse(g), [x])[0]]) for g in group}
        phi = {
            g: torch.tanh(
                sum(e[h] @ psi[tuple(inverse(g)[i] for i in h)] for h in group)  # type: ignore[arg-type]
            )
            for g in group
        }
        logits = torch.stack(
            [
                sum(phi[h] @ rho[act_target(inverse(h), [y])[0]] for h in group)  # type: ignore[arg-type]
                for y in range(EOS, len(TARGET))
            ]
        )
        (row,) = translator(torch.tensor([x]))
        assert_close(row[EOS:], torch.log_softmax(logits, 0))


def scattered(words: int, classes: int = 0, size: int = 0, kind: str = "cyclic") -> Symmetry:
    """A symmetry of some words of no class and of classes of one size."""
    names = [[f"{c}.{i}" for i in range(size)] for c in range(classes)]
    sides = tuple(f"w{i}" for i in range(words)) + tuple(itertools.chain(*names))
    made = [LexicalClass(f"c{c}", tuple(own), tuple(own)) for c, own in enumerate(names)]
    return Symmetry(Vocabulary(sides), Vocabulary(sides[::-1]), tuple(made), kind)


@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
@pytest.mark.parametrize("words", [8, 300])
@pytest.mark.parametrize("translator", ["stack", "table"])
def test_pairs_and_rows_of_the_translator_agree(words, kind, translator):
    world = scattered(words, classes=2, size=3, kind=kind)
    model = small(world, translator=translator).translator
    if translator == "table":
        torch.nn.init.normal_(model.logits)
    source = torch.randint(PAD, len(world.source), (4, 5))
    target = torch.randint(EOS, len(world.target), (4, 6))
    rows = model(torch.arange(len(world.source)))
    expected = rows[source[:, None, :], target[:, :, None]]
    assert_close(model.pairs(source, target), expected)
    assert_close(model(source), rows[source])


class Largest(TorchDispatchMode):
    """Records the number of elements of the largest tensor that any operation returns."""

    entries = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(given):
            if isinstance(tensor, torch.Tensor):
                self.entries = max(self.entries, tensor.numel())
        return given


@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
def test_no_tensor_has_the_size_of_a_class_squared(kind):
    n = 700
    world = scattered(5, classes=1, size=n, kind=kind)
    pairs = [Pair((f"0.{i}", "w1", "0.3"), ("0.3", f"0.{i}")) for i in range(20)]
    model = small(world, k=5, d=4)
    batch = unshared(pairs, world)
    with Largest() as seen:
        model.loss(batch).sum().backward()
    assert seen.entries <= 2 * n * 5 * 4  # ψ and its gradient side by side
    assert seen.entries < n * n
    moves = Group.cyclic(n).generators
    with Largest() as seen, torch.no_grad():
        GConv(moves, k=1, d=1)(torch.ones(n, 1))  # the listed layer does have such a tensor
    assert seen.entries >= n * n


def test_the_product_of_ten_groups_is_not_listed():
    """Ten classes of ten words have a group of 10¹⁰ elements."""
    world = scattered(5, classes=10, size=10)
    assert world.group.order == 10**10
    model = small(world)
    pairs = [Pair(("1.2", "w1", "7.3"), ("7.3", "1.2")), Pair(("1.5", "w1", "7.6"), ("7.6", "1.5"))]
    one, other = model.loss(unshared(pairs, world))
    assert_close(one, other)
    with pytest.raises(SymmetryError, match="use its generators"):
        len(world.group.elements)


@every_symmetry
def test_the_row_of_a_word_does_not_depend_on_the_other_words(name):
    translator = small(SYMMETRIES[name]).translator
    whole = translator(torch.arange(len(SOURCE)))
    some = torch.tensor([9, 4, 4, 14, BOS])
    assert_close(translator(some), whole[some])


def test_a_symmetric_class_has_one_diagonal_and_one_off_diagonal_value():
    table = small(symmetry(VERBS, kind="symmetric")).translator(
        torch.tensor(SOURCE.encode(VERBS.source))
    )
    block = table[:, list(TARGET.encode(VERBS.target))]
    off = block[~torch.eye(4, dtype=torch.bool)]
    assert_close(block.diag(), block[0, 0].expand(4))
    assert_close(off, off[0].expand(12))
    assert abs(float((block[0, 0] - off[0]).detach())) > 1e-3


def test_a_tensor_cached_in_inference_mode_works_in_training():
    world = symmetry(VERBS)
    model = small(world)
    batch = unshared(random_pairs(9, 3), world)
    _differences.cache_clear()
    with torch.inference_mode():
        model.loss(batch)
    model.loss(batch).sum().backward()
    assert model.translator.factors[0].omega.grad is not None


@pytest.mark.parametrize(("kind", "orbits"), [("cyclic", 4), ("symmetric", 2)])
def test_the_saved_weights_have_fixed_names_and_one_row_per_orbit(kind, orbits):
    """Saved models depend on these names and shapes."""
    world = symmetry(VERBS, kind=kind)
    # words of no class, BOS and EOS have one row each; PAD has none
    sources, targets = len(world.source) - 1 - 4, len(world.target) - 1 - 4
    saved = Translator(world, k=7, d=6).state_dict()
    assert {name: tuple(weights.shape) for name, weights in saved.items()} == {
        "omega": (sources, 7),
        "rho": (targets, 6),
        "factors.0.omega": (orbits, 7),
        "factors.0.psi": (orbits, 7, 6),
        "factors.0.rho": (orbits, 6),
    }


@pytest.mark.parametrize("words", [8, 300])
def test_a_translator_uses_the_device_of_its_words(words):
    translator = Translator(scattered(words), k=3, d=2)
    asked = torch.tensor([[EOS, EOS + 2], [EOS + 5, EOS + 2]])
    expected = translator(asked)
    with torch.device("meta"):
        assert torch.equal(translator(asked), expected)
