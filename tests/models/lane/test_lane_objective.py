"""LANE's reward by hand, and its sampled gradients against enumerated ones."""

import math
import random
from collections.abc import Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from equitrans.models import Lane, LaneConfig, build
from equitrans.models.baselines.lane.composer import entropy, log_prob
from equitrans.models.baselines.lane.interpreter import (
    VARIABLE,
    Merge,
    Node,
    Output,
    Trajectory,
    values,
)
from equitrans.models.baselines.lane.objective import (
    advantages,
    common_piece,
    draw_samples,
    objective,
    reward,
)
from equitrans.models.baselines.lane.solver import named
from equitrans.paper import Symmetry, Vocabulary
from lane_naive import compose as compose_slowly, decode as decode_slowly

LEAF, OTHER = Node((5,), (), 0, 1), Node((6,), (), 1, 2)
ROOT = Node((VARIABLE, VARIABLE), (0, 1), 0, 2)


def trajectory(*nodes: Node, solved: bool = True) -> Trajectory:
    return Trajectory([(1, True), (2, True)], [Merge((0,), 0, solved)], list(nodes))


@pytest.mark.parametrize(
    ("root", "target", "simplicity", "expected"),
    [
        ((~0, ~1), "AB", 0.0, 1.0),
        ((~0, ~1), "AB", 0.5, 1.5),  # the one merged node writes variables only
        ((~0, ord("B")), "AB", 0.5, 1.0),
        ((~1, ~0), "AB", 0.5, 1 / 3),  # c is 1, the lengths are 2 and 2
        ((~0,), "AB", 0.5, 1 / 2),
        ((~0, ~0, ~0, ~1), "AB", 0.0, 2 / 4),
        ((ord("C"),), "AB", 0.0, 0.0),
        ((~0, ~1, ~0, ~1), "BA", 0.0, 2 / 4),
    ],
)
def test_reward(root, target, simplicity, expected):
    outputs = [(ord("A"),), (ord("B"),), root]
    found = reward(trajectory(LEAF, OTHER, ROOT), outputs, target, simplicity=simplicity)
    assert found == pytest.approx(expected)


def test_a_sentence_that_stays_open_has_no_reward():
    open_ = trajectory(LEAF, OTHER, solved=False)
    assert reward(open_, [(ord("A"),), (ord("B"),)], "B", simplicity=1.0) == 0


def test_a_right_leaf_has_no_merged_nodes_and_no_simplicity():
    leaf = Trajectory([(1, True)], [], [LEAF])
    assert reward(leaf, [(ord("A"),)], "A", simplicity=1.0) == 1


def test_the_reward_counts_the_whole_length_of_a_value_that_is_cut():
    nodes = [LEAF] + [Node((VARIABLE, 6), (n,), 0, n + 2) for n in range(9)]
    outputs = [(ord("A"),)] + [(~0,) * 10] * 9
    assert reward(trajectory(*nodes), outputs, "AAA", simplicity=0.0) == pytest.approx(3 / 10**9)


def test_common_pieces_are_those_of_a_search_through_all_pieces():
    draw = random.Random(0)
    for _ in range(300):
        one, two = ("".join(draw.choices("abc", k=draw.randint(0, 12))) for _ in range(2))
        pieces = {two[i:j] for i in range(len(two)) for j in range(i, len(two) + 1)} | {""}
        assert common_piece(one, two) == max(len(piece) for piece in pieces if piece in one)


def test_the_baseline_of_a_batch_is_weighted_by_nodes():
    samples = [trajectory(LEAF, OTHER, ROOT), trajectory(LEAF, solved=False)]
    found = advantages(samples, [1.0, 0.0], samples=2, baseline="batch")
    assert found == pytest.approx([1 - 3 / 5, -3 / 5])


def test_the_baseline_of_a_sentence_is_the_mean_of_the_other_samples():
    samples = [trajectory(LEAF, OTHER, ROOT)] * 6
    rewards = [1.0, 0.0, 0.5, 0.2, 0.2, 0.2]
    found = advantages(samples, rewards, samples=3, baseline="sentence")
    assert found == pytest.approx([0.75, -0.75, 0.0, 0.0, 0.0, 0.0])


def test_entropies_are_those_of_torch():
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    expected = torch.distributions.Categorical(logits=logits).entropy()
    torch.testing.assert_close(entropy(log_prob(logits)), expected)
    closed = logits.clone()
    closed[:, 4:] = -math.inf
    expected = torch.distributions.Categorical(logits=logits[:, :4]).entropy()
    torch.testing.assert_close(entropy(log_prob(closed)), expected)


# --- a world of two source words, one target word and outputs of up to two symbols

WORLD = Symmetry(Vocabulary(("a", "b")), Vocabulary(("A",)))
SOURCE, TARGET = (3, 4), chr(3) * 3


def world(seed: int) -> Lane:
    torch.manual_seed(seed)
    model = build(LaneConfig(size=6, longest=2, dropout=0.0), WORLD)
    assert isinstance(model, Lane)
    return model


def outputs_of(symbols: tuple[int, ...]) -> list[Output]:
    """All outputs of an input with these symbols: the target word and the input's own names."""
    allowed = [3, *(s for s in symbols if s < 0)]
    return [(s,) for s in allowed] + list(product(allowed, allowed))


def every_sample(model: Lane) -> Iterator[tuple[Tensor, float, Tensor, Tensor, Tensor]]:
    """For every sample: its probability, its reward, the sum of the Composer's −log p with and
    without forced decisions, and the mean of the Solver's −log p.
    """
    for leaves in product([True, False], repeat=2):
        forced = all(leaves)
        for abstract in [True] if forced else [True, False]:
            slow = compose_slowly(model.composer, SOURCE, list(leaves), [(0, abstract)])
            chosen = [p[0 if a else 1] for p, a in zip(slow.leaves, leaves, strict=True)]
            free = [] if forced else [slow.checks[0][0 if abstract else 1]]
            kept = [*chosen, slow.checks[0][0 if abstract else 1], slow.merges[0][0]]
            nodes = [Node((SOURCE[n],), (), n, n + 1) for n in range(2) if leaves[n]]
            symbols = tuple(VARIABLE if a else w for w, a in zip(SOURCE, leaves, strict=True))
            if abstract:
                nodes.append(Node(symbols, tuple(range(len(nodes))), 0, 2))
            found = Trajectory([], [Merge((0,), 0, abstract)], nodes)
            names = [(0, 1) if node.children else (0,) for node in nodes]
            for first in product(*names):
                inputs = list(map(named, nodes, first))
                for written in product(*map(outputs_of, inputs)):
                    spoken = [
                        _spoken(decode_slowly(model.solver, i, o, longest=2), o)
                        for i, o in zip(inputs, written, strict=True)
                    ]
                    slots = [
                        tuple(~(~s ^ f) if s < 0 else s for s in o)
                        for o, f in zip(written, first, strict=True)
                    ]
                    share = math.prod(1 / len(each) for each in names)
                    log_p = torch.stack([*chosen, *free, *spoken]).sum()
                    count = len(nodes) + (not abstract)
                    solver = -torch.stack(spoken).sum() / count if spoken else torch.tensor(0.0)
                    yield (
                        share * log_p.exp(),
                        reward(found, slots, TARGET, simplicity=0.5),
                        -torch.stack(kept).sum(),
                        -torch.stack([*chosen, *free]).sum(),
                        solver,
                    )


def _spoken(steps: list[Tensor], output: Output) -> Tensor:
    columns = [s - 3 if s >= 0 else 1 + ~s for s in output] + [3]
    return torch.stack([p[c] for p, c in zip(steps, columns, strict=False)]).sum()


def gradient(loss: Tensor, module: torch.nn.Module) -> Tensor:
    found = torch.autograd.grad(
        loss, list(module.parameters()), retain_graph=True, allow_unused=True
    )
    return torch.cat(
        [
            torch.zeros(p.numel()) if g is None else g.flatten()
            for p, g in zip(module.parameters(), found, strict=True)
        ]
    )


def test_sampled_gradients_are_those_of_all_samples_enumerated():
    model, times = world(1), 8_000
    every = list(every_sample(model))
    assert sum(float(p.detach()) for p, *_ in every) == pytest.approx(1)
    mean = sum(float(p.detach()) * gained for p, gained, *_ in every)
    expected = torch.tensor(0.0)
    for p, gained, kept, _, solver in every:
        expected = expected + p.detach() * (gained - mean) * (kept / 3 + solver)
    draw, generator = random.Random(0), torch.Generator().manual_seed(0)
    drawn = draw_samples(model.composer, model.solver, [SOURCE] * times, draw, generator)
    gains = [
        reward(t, o, TARGET, simplicity=0.5) - mean
        for t, o in zip(drawn.trajectories, drawn.outputs, strict=True)
    ]
    sampled = objective(model.composer, drawn, gains, weight=0.0)
    for module in (model.composer, model.solver):
        want, got = gradient(expected, module), gradient(sampled, module)
        assert float((want - got).norm() / want.norm()) < 0.05


def test_without_forced_decisions_the_composer_follows_the_gradient_of_the_mean_reward():
    model = world(2)
    enumerated, mean = torch.tensor(0.0), torch.tensor(0.0)
    for p, gained, _, free, _ in every_sample(model):
        enumerated = enumerated + p.detach() * gained * free
        mean = mean + p * gained
    want = -gradient(mean, model.composer)
    torch.testing.assert_close(gradient(enumerated, model.composer), want)


def test_the_entropy_bonus_is_the_sum_of_four_means():
    model = world(3)
    draw, generator = random.Random(0), torch.Generator().manual_seed(0)
    source = (3, 4, 4, 3)
    drawn = draw_samples(model.composer, model.solver, [source] * 5, draw, generator)
    expected = torch.tensor(0.0)
    for t, first in zip(drawn.trajectories, _starts(drawn.trajectories), strict=True):
        decisions = [(m.chosen, m.abstract) for m in t.merges]
        slow = compose_slowly(model.composer, source, [a for _, a in t.leaves], decisions)
        parts = [entropy(p) / math.log(2) for p in slow.leaves]
        expected = expected + sum(parts) / 4
        expected = expected + sum(entropy(p) / math.log(2) for p in slow.checks) / 3
        merges = [entropy(p) / math.log(len(p)) for p in slow.merges if len(p) > 1]
        expected = expected + sum(merges) / 2
        if t.nodes:
            spread = drawn.decoded.entropy[first : first + len(t.nodes)]
            expected = expected + spread.mean()
    loss = objective(model.composer, drawn, [0.0] * 5, weight=0.3)
    torch.testing.assert_close(loss, -0.3 * expected / 5)


def _starts(trajectories: list[Trajectory]) -> list[int]:
    """The number of nodes before each trajectory."""
    return [sum(len(t.nodes) for t in trajectories[:n]) for n in range(len(trajectories))]


def test_values_of_drawn_outputs_do_not_depend_on_the_names():
    """A name stands for the node of its variable, whichever of the two names it has."""
    model = world(4)
    draw, generator = random.Random(1), torch.Generator().manual_seed(1)
    drawn = draw_samples(model.composer, model.solver, [SOURCE] * 500, draw, generator)
    seen = set()
    for t, outputs in zip(drawn.trajectories, drawn.outputs, strict=True):
        for node, output in zip(t.nodes, outputs, strict=True):
            assert all(~s < len(node.children) for s in output if s < 0)
            seen |= {(len(node.children), s) for s in output if s < 0}
        assert values(t.nodes, outputs, longest=9) or not t.solved
    assert seen == {(1, ~0), (2, ~0), (2, ~1)}
