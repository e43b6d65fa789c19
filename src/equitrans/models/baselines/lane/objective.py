"""LANE's objective: the reward of samples, and REINFORCE with a baseline and an entropy bonus."""

import math
import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.models.baselines.lane.composer import Composer, Scored, entropy, log_prob
from equitrans.models.baselines.lane.interpreter import Output, Policy, Trajectory, compose, values
from equitrans.models.baselines.lane.solver import Decoded, Solver, named
from equitrans.paper import Sentence

LONGEST_VALUE = 1_000
"""Largest number of words of a sampled target that are compared; longer ones have hardly any
reward."""

Baseline = Literal["batch", "sentence"]
"""What a reward is compared with: the mean reward of all samples, weighted by their nodes, or the
mean reward of the other samples of the sentence."""


class Samples(NamedTuple):
    """Drawn trajectories, and what was drawn for their nodes, in order of the nodes."""

    policy: Policy
    trajectories: list[Trajectory]
    outputs: list[list[Output]]
    decoded: Decoded


def draw_samples(
    composer: Composer,
    solver: Solver,
    sentences: Sequence[Sentence],
    draw: random.Random,
    generator: torch.Generator,
) -> Samples:
    """One sample of each sentence, all decoded at once. The first variable of a node is named x1 or
    x2 with equal probability.
    """
    policy = Scored(composer, draw)
    trajectories = compose(policy, sentences)
    nodes = [node for trajectory in trajectories for node in trajectory.nodes]
    first = [draw.getrandbits(1) if node.children else 0 for node in nodes]
    decoded = solver.decode(list(map(named, nodes, first)), generator)
    flat = iter(
        tuple(~(~s ^ f) if s < 0 else s for s in output)
        for output, f in zip(decoded.outputs, first, strict=True)
    )
    outputs = [[next(flat) for _ in trajectory.nodes] for trajectory in trajectories]
    return Samples(policy, trajectories, outputs, decoded)


def common_piece(one: str, two: str) -> int:
    """The length of the longest piece without gaps that two texts have in common.

    >>> common_piece("abcd", "xbcy")
    2
    """
    best = 0
    for start in range(len(two)):
        while start + best < len(two) and two[start : start + best + 1] in one:
            best += 1
    return best


def reward(
    trajectory: Trajectory, outputs: Sequence[Output], target: str, *, simplicity: float
) -> float:
    """``c / (|ŷ| + |y| − c)`` with the longest common piece c, or 0 without an output. A right
    output gets ``simplicity`` times the share of merged nodes that write variables only.
    """
    if not trajectory.solved:
        return 0.0
    value = values(trajectory.nodes, outputs, longest=LONGEST_VALUE)[-1]
    common = common_piece(value.text, target)
    found = common / (value.length + len(target) - common)
    if value == (len(target), target):
        merged = [
            all(symbol < 0 for symbol in output)
            for node, output in zip(trajectory.nodes, outputs, strict=True)
            if len(node.symbols) > 1
        ]
        found += simplicity * sum(merged) / max(1, len(merged))
    return found


def _count(trajectory: Trajectory) -> int:
    """The number of nodes, and one more for a sentence that stays open."""
    return len(trajectory.nodes) + (not trajectory.solved)


def advantages(
    trajectories: Sequence[Trajectory],
    rewards: Sequence[float],
    *,
    samples: int,
    baseline: Baseline,
) -> list[float]:
    """The reward of each sample less its baseline; samples of one sentence are side by side."""
    if baseline == "batch" or samples == 1:
        counts = list(map(_count, trajectories))
        mean = sum(n * r for n, r in zip(counts, rewards, strict=True)) / sum(counts)
        return [each - mean for each in rewards]
    out = []
    for at in range(0, len(rewards), samples):
        own = rewards[at : at + samples]
        out += [each - (sum(own) - each) / (samples - 1) for each in own]
    return out


def objective(
    composer: Composer, drawn: Samples, gains: Sequence[float], *, weight: float
) -> Float[Tensor, ""]:
    """The loss of drawn samples with their advantages; ``weight`` is that of the entropies.

    Per sample: the advantage times the mean −log p of the Composer's decisions, forced ones
    included, and of the Solver's outputs, less the sum of the mean entropies of all four kinds of
    decision, each divided by that of a uniform choice.
    """
    trajectories, total = drawn.trajectories, len(drawn.trajectories)
    scores = composer.scores(drawn.policy)
    leaf, check = log_prob(scores.leaf), log_prob(scores.check)
    # weights of log p and of the entropy for each decision that can occur
    of_leaf, of_check = ([[0.0, 0.0] for _ in part] for part in (leaf, check))
    spread_leaf, spread_check = [0.0] * len(leaf), [0.0] * len(check)
    merges: list[tuple[int, ...]] = []
    chosen: list[int] = []
    of_merge, spread_merge, of_node, spread_node = [], [], [], []
    for trajectory, gain in zip(trajectories, gains, strict=True):
        words, steps = len(trajectory.leaves), len(trajectory.merges)
        share = gain / total / (words + steps)
        for kind, abstract in trajectory.leaves:
            of_leaf[kind][not abstract] += share
            spread_leaf[kind] += 1 / math.log(2) / words / total
        for merge in trajectory.merges:
            candidate, pairs = merge.candidates[merge.chosen], len(merge.candidates)
            of_check[candidate][not merge.abstract] += share
            spread_check[candidate] += 1 / math.log(2) / steps / total
            if pairs > 1:
                merges.append(merge.candidates)
                chosen.append(merge.chosen)
                of_merge.append(share)
                spread_merge.append(1 / math.log(pairs) / (steps - 1) / total)
        of_node += [gain / total / _count(trajectory)] * len(trajectory.nodes)
        spread_node += [1 / total / max(1, len(trajectory.nodes))] * len(trajectory.nodes)
    like = scores.merge.new_tensor
    loss = -(like(of_leaf) * leaf).sum() - weight * (like(spread_leaf) * entropy(leaf)).sum()
    if len(check):
        loss = loss - (like(of_check) * check).sum()
        loss = loss - weight * (like(spread_check) * entropy(check)).sum()
    if merges:
        widest = max(map(len, merges))
        padded = composer.index([row + (0,) * (widest - len(row)) for row in merges])
        closed = like([[0.0] * len(row) + [-math.inf] * (widest - len(row)) for row in merges])
        logs = log_prob(scores.merge.take(padded) + closed)
        of_chosen = logs.gather(1, composer.index(chosen)[:, None])[:, 0]
        loss = loss - (like(of_merge) * of_chosen).sum()
        loss = loss - weight * (like(spread_merge) * entropy(logs)).sum()
    if of_node:
        loss = loss - (like(of_node) * drawn.decoded.log_prob).sum()
        loss = loss - weight * (like(spread_node) * drawn.decoded.entropy).sum()
    return loss
