"""Hybrid trees: targets as trees, sums over derivations against brute force, and search."""

import math
from itertools import product

import pytest
import torch

from equitrans import Pair, Symmetry, TreesConfig
from equitrans.analysis.decoding import decode
from equitrans.analysis.evaluation import losses
from equitrans.models import build
from equitrans.models.trees.targets import Signs, find_signs, flatten, owners
from equitrans.paper import Batch

SIGNS = Signs(90, 91, 92)
PAIRS = [
    Pair(tuple(source.split()), tuple(target.split()))
    for source, target in (
        ("how many rivers", "count ( river )"),
        ("rivers", "river"),
        ("many rivers and lakes", "count ( and ( river , lake ) )"),
        ("lakes", "lake ( river )"),
        ("rivers and lakes", "and ( count ( river ) , lake )"),
    )
]


def model_of(pairs=PAIRS, spread=1.0, **settings):
    torch.manual_seed(1)
    model = build(TreesConfig(**settings), Symmetry.of((), pairs, "cyclic"))
    x, y = model.symmetry.source, model.symmetry.target
    model.observe((x.encode(pair.source), y.encode(pair.target)) for pair in pairs)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=spread)
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize(
    "target",
    [
        (3,),
        (3, 4, 5),
        (3, 90, 4, 91),
        (3, 90, 4, 92, 5, 6, 92, 7, 91),
        (3, 90, 4, 91, 5, 90, 6, 91),
        (3, 92, 4, 90, 5, 91),
    ],
)
def test_a_target_is_read_as_a_tree_and_written_again(target):
    tree = SIGNS.read(target)
    assert SIGNS.write(tree) == target
    assert len(owners(SIGNS, tree)) == len(target)
    assert [node.word for node, _ in flatten(tree)].count(target[0]) == 1


@pytest.mark.parametrize(
    "target", [(), (90, 3, 91), (3, 90, 91), (3, 90, 4), (3, 91), (3, 92), (3, 90, 92, 4, 91)]
)
def test_an_unbalanced_target_has_no_tree(target):
    assert SIGNS.read(target) is None


def test_the_signs_of_targets_are_found():
    vocabulary = Symmetry.of((), PAIRS, "cyclic").target
    signs = find_signs([vocabulary.encode(pair.target) for pair in PAIRS])
    assert vocabulary.decode(signs) == ("(", ")", ",")
    assert find_signs([(3, 4), (4,)]) == (-1, -1, -1)


def by_hand(model, pair):
    """The log-sum over the derivations of a pair: every node writes words at the ends of its span,
    in every way.
    """
    source = model.symmetry.source.encode(pair.source)
    tree = model._signs.read(model.symmetry.target.encode(pair.target))
    present = model._present(torch.tensor([source]))[0]
    emitted = model._emitted(torch.tensor([source]))[:, 0]
    below = model.below

    def own(node):
        return float(present[node.word] + model.layout[node.word, node.layout])

    def total(node, i, j, empty):
        found = 0.0
        for a, b in product(range(i, j + 1), repeat=2):
            if a > b:
                continue
            written = sum(float(emitted[0, n, node.word]) for n in range(i, a))
            written += sum(float(emitted[1, n, node.word]) for n in range(b, j))
            run = empty if (a, b) == (i, j) else 0
            found += math.exp(written) * rest(node, a, b, run)
        return found

    def rest(node, a, b, run):
        if not node.children:
            return float(a == b)
        scores = [
            math.exp(float(below[slot, node.word, child.word]) + own(child))
            for slot, child in enumerate(node.children)
        ]
        if len(node.children) == 1:
            return scores[0] * total(node.children[0], a, b, run + 1) if run < model.empty else 0.0
        one, two = node.children
        splits = [
            total(one, *x, 0) * total(two, *y, 0)
            for k in range(a + 1, b)
            for x, y in (((a, k), (k, b)), ((k, b), (a, k)))
        ]
        return math.prod(scores) * sum(splits)

    root = math.exp(float(below[0, 1, tree.word]) + own(tree))
    return math.log(root * total(tree, 0, len(source), 0))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " ".join(pair.source))
@pytest.mark.parametrize("empty", [1, 3])
def test_the_chart_of_a_tree_is_the_sum_over_its_derivations(pair, empty):
    model = model_of(empty=empty)
    source = torch.tensor([model.symmetry.source.encode(pair.source)])
    tree = model._signs.read(model.symmetry.target.encode(pair.target))
    found = model._log_tree(source, torch.tensor([source.shape[1]]), [tree])
    assert float(found) == pytest.approx(by_hand(model, pair), rel=1e-6)


def test_the_probabilities_of_all_targets_sum_to_one():
    pairs = [Pair(("a", "b"), ("f", "x")), Pair(("b",), ("x",))]
    model = model_of(pairs, empty=1)
    words = model.symmetry.target.words
    targets = [t for n in range(1, 8) for t in product(words, repeat=n)]
    total = sum(math.exp(-x) for x in losses(model, [Pair(("a",), t) for t in targets]))
    assert total == pytest.approx(1, abs=2e-3)  # longer targets have noise only


def test_the_search_finds_the_likeliest_targets_with_their_probabilities():
    pairs = [Pair(("a", "b"), ("f", "x")), Pair(("b",), ("x",))]
    model = model_of(pairs, spread=0.1, empty=2, draws=200)
    source = torch.tensor([[1, *model.symmetry.source.encode(("a", "b")), 2]])
    (best,) = decode(model, source, width=1, max_length=6, n_best=2)
    words = model.symmetry.target.words
    targets = [t for n in range(1, 6) for t in product(words, repeat=n)]
    scored = sorted(losses(model, [Pair(("a", "b"), t) for t in targets]))
    assert [-h.log_prob for h in best] == pytest.approx(scored[:2])


def test_alignments_are_distributions_over_the_words_that_nodes_write():
    model, pair = model_of(), PAIRS[2]
    encoded = (
        [1, *model.symmetry.source.encode(pair.source), 2],
        [*model.symmetry.target.encode(pair.target), 2],
    )
    source, target = (torch.tensor([row]) for row in encoded)
    each = torch.zeros(1, dtype=torch.long)
    found = model.alignments(Batch(source, target, torch.ones(1), each, each))
    assert found.shape == (1, len(pair.target) + 1, len(pair.source) + 2)
    assert torch.allclose(found.sum(2), torch.ones_like(found.sum(2)))
    # the words that the nodes write, all together, are the words of the source
    signs = model._signs
    nodes = owners(signs, signs.read(tuple(encoded[1][:-1])))
    firsts = [nodes.index(node) for node in sorted(set(nodes))]
    assert float(found[0, firsts, 1:-1].sum()) <= len(pair.source) + 1e-6


def test_frequencies_tell_which_node_writes_a_word():
    model = model_of()
    source, target = model.symmetry.source, model.symmetry.target
    (rivers, lakes, many), (river, lake) = (
        side.encode(words)
        for side, words in ((source, ("rivers", "lakes", "many")), (target, ("river", "lake")))
    )
    assert model.usual[rivers, river] > max(model.usual[lakes, river], model.usual[many, river])
    assert model.usual[lakes, lake] > max(model.usual[rivers, lake], model.usual[many, lake])
    total = model.usual[3:].exp().sum(0)
    torch.testing.assert_close(total[[river, lake]], torch.ones(2))
