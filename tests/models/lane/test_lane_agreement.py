"""LANE in batches agrees with LANE one node at a time."""

import math
import random

import pytest
import torch

from baselines import n_parameters, scan_symmetry
from equitrans.models import Lane, LaneConfig, build
from equitrans.models.baselines.lane.composer import Composer, Scored, log_prob
from equitrans.models.baselines.lane.interpreter import VARIABLE, compose
from equitrans.models.baselines.lane.solver import Solver
from lane_naive import compose as compose_slowly, decode as decode_slowly, entropy
from worlds import symmetry

CLOSE = {"rtol": 0, "atol": 1e-5}


def lane(seed: int = 0, **settings) -> Lane:
    torch.manual_seed(seed)
    model = build(LaneConfig(**{"size": 16, "dropout": 0.0} | settings), symmetry())
    assert isinstance(model, Lane)
    with torch.no_grad():  # otherwise all neighbours have nearly the same score
        model.composer.query.mul_(200)
        model.composer.checker.weight.mul_(5)
    return model.double() if torch.get_default_dtype() == torch.float64 else model


def sentences(seed: int, count: int) -> list[tuple[int, ...]]:
    draw = random.Random(seed)
    words = range(3, len(symmetry().source))
    return [tuple(draw.choices(words, k=draw.randint(1, 9))) for _ in range(count)]


def test_lane_has_566795_parameters_on_scan():
    model = build(LaneConfig(), scan_symmetry())
    assert isinstance(model, Lane)
    assert n_parameters(model) == 566_795
    assert n_parameters(model.composer) == 199_682
    assert n_parameters(model.solver) == 367_113


@pytest.mark.parametrize("seed", range(3))
def test_all_probabilities_of_the_composer_agree(seed):
    composer = lane(seed).composer
    policy = Scored(composer, random.Random(seed))
    sources = sentences(seed, 20)
    found = compose(policy, sources)
    scores = composer.scores(policy)
    leaf, check = log_prob(scores.leaf), log_prob(scores.check)
    for source, t in zip(sources, found, strict=True):
        decisions = [(m.chosen, m.abstract) for m in t.merges]
        slow = compose_slowly(composer, source, [abstract for _, abstract in t.leaves], decisions)
        assert slow.nodes == [node.symbols for node in t.nodes]
        for (kind, _), expected in zip(t.leaves, slow.leaves, strict=True):
            torch.testing.assert_close(leaf[kind], expected, **CLOSE)
        for merge, merged, checked in zip(t.merges, slow.merges, slow.checks, strict=True):
            torch.testing.assert_close(
                log_prob(scores.merge[list(merge.candidates)]), merged, **CLOSE
            )
            chosen = merge.candidates[merge.chosen]
            torch.testing.assert_close(check[chosen], checked, **CLOSE)


@pytest.mark.parametrize("seed", range(3))
def test_a_greedy_composer_takes_the_likeliest_decisions(seed):
    composer = lane(seed).composer
    sources = sentences(seed, 20)
    for source, t in zip(sources, compose(Scored(composer), sources), strict=True):
        decisions = [(m.chosen, m.abstract) for m in t.merges]
        slow = compose_slowly(composer, source, [abstract for _, abstract in t.leaves], decisions)
        assert [int(p.argmax()) == 0 for p in slow.leaves] == [a for _, a in t.leaves]
        assert [int(p.argmax()) for p in slow.merges] == [m.chosen for m in t.merges]


@torch.no_grad()
def test_drawn_decisions_have_the_composer_s_probabilities():
    composer, source, times = lane().composer, (3, 4, 5), 4000
    policy = Scored(composer, random.Random(0))
    found = compose(policy, [source] * times)
    scores = composer.scores(policy)
    leaf = log_prob(scores.leaf).exp()
    for n in range(3):
        share = sum(t.leaves[n][1] for t in found) / times
        assert share == pytest.approx(float(leaf[found[0].leaves[n][0], 0]), abs=0.04)
    first = [t.merges[0] for t in found]
    common = max({m.candidates for m in first}, key=[m.candidates for m in first].count)
    alike = [m.chosen for m in first if m.candidates == common]
    share = log_prob(scores.merge[list(common)]).exp()[0]
    assert sum(k == 0 for k in alike) / len(alike) == pytest.approx(float(share), abs=0.08)


INPUTS = [
    (3,),
    (3, 5),
    (~0, 5),
    (~1, 5),
    (~0, 6, ~1),
    (~1, 6, ~0),
    (4, 5, ~0, 6),
    (~0, 6, ~1),
    (3,),
]


def solver(seed: int, longest: int = 10) -> Solver:
    model = lane(seed, longest=longest).solver
    with torch.no_grad():
        model.output.weight.mul_(6)
    return model


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_all_probabilities_of_the_solver_agree(seed, drawn):
    model = solver(seed)
    generator = torch.Generator().manual_seed(seed) if drawn else None
    found = model.decode(INPUTS * 3, generator)
    words = len(symmetry().target.words)
    for symbols, output, log_p, spread in zip(
        INPUTS * 3, found.outputs, found.log_prob, found.entropy.tolist(), strict=True
    ):
        slow = decode_slowly(model, symbols, output)
        columns = [s - 3 if s >= 0 else words + ~s for s in output] + [words + 2]
        expected = sum(step[c] for step, c in zip(slow, columns, strict=False))
        torch.testing.assert_close(log_p, expected, **CLOSE)
        names = len({s for s in symbols if s < 0})
        choices = [words + names + (step > 0) for step in range(len(slow))]
        mean = sum(map(entropy, slow, choices)) / len(slow)
        assert spread == pytest.approx(mean, abs=1e-5)
        if not drawn:
            greedy = [int(step.argmax()) for step in slow]
            assert greedy == columns[: len(slow)]


def test_outputs_are_never_empty_or_too_long_and_use_own_variables_only():
    model = solver(0, longest=4)
    outputs = model.decode(INPUTS * 200, torch.Generator().manual_seed(0)).outputs
    assert {len(output) for output in outputs} == {1, 2, 3, 4}
    for symbols, output in zip(INPUTS * 200, outputs, strict=True):
        assert {s for s in output if s < 0} <= {s for s in symbols if s < 0}


def test_drawn_outputs_have_the_solver_s_probabilities():
    model, times = solver(1, longest=2), 20_000
    found = model.decode([(~0, 5)] * times, torch.Generator().manual_seed(0))
    share = {output: found.outputs.count(output) / times for output in set(found.outputs)}
    exact = {o: math.exp(p) for o, p in zip(found.outputs, found.log_prob.tolist(), strict=True)}
    assert sum(exact.values()) == pytest.approx(1, abs=0.02)
    for output, p in exact.items():
        assert share[output] == pytest.approx(p, abs=0.015)


def test_nothing_depends_on_what_was_abstracted():
    """The sentences differ in a span that is abstracted: all later probabilities are equal."""
    model = lane(2)
    leaves, merges = [True, True, False, False], [(0, True), (1, False), (0, True)]
    one, two = (
        compose_slowly(model.composer, words, leaves, merges)
        for words in ((3, 4, 5, 6), (9, 8, 5, 6))
    )
    assert one.nodes[2:] == two.nodes[2:]
    assert one.nodes[-1].count(VARIABLE) == 1
    for a, b in zip(one.merges + one.checks, two.merges + two.checks, strict=True):
        assert torch.equal(a, b)


def test_initial_weights_are_those_of_the_released_program():
    composer: Composer = build(LaneConfig(), symmetry()).composer  # type: ignore[union-attr]
    size = 128
    bias = composer.cell.bias.detach()
    assert (bias[2 * size : 4 * size] == 1).all()
    assert (bias[: 2 * size] == 0).all()
    assert (bias[4 * size :] == 0).all()
    for weight in (composer.leaf.weight, composer.cell.weight):
        columns = weight.T @ weight
        torch.testing.assert_close(columns, torch.eye(len(columns)), rtol=0, atol=1e-5)
    assert 0.007 < float(composer.query.detach().std()) < 0.013
