"""LANE (Liu et al. 2020): a Composer picks spans of a sentence, a Solver translates them, and each
span becomes a variable, until one is left. docs/lane.md describes it.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equitrans.errors import shown
from equitrans.models.baselines.common import unshared
from equitrans.models.baselines.lane.composer import Composer, Scored
from equitrans.models.baselines.lane.interpreter import (
    VARIABLE,
    Node,
    Output,
    Trajectory,
    Value,
    compose,
    values,
)
from equitrans.models.baselines.lane.objective import (
    Baseline,
    advantages,
    draw_samples,
    objective,
    reward,
)
from equitrans.models.baselines.lane.solver import Input, Solver, named
from equitrans.models.direct import Direct, Hypothesis
from equitrans.models.recursive import Derivation, Node as DerivationNode
from equitrans.paper import EOS, N_SPECIAL, PAD, Batch, Moment, Sentence, Symmetry

NOISE = 0.01
"""Share of the probability that all targets get which are not the prediction."""

Solved = tuple[Trajectory, list[Output]]
"""The greedy trajectory of a sentence, and the output of each of its nodes."""


class Lane(Direct):
    """``p(y | x) = (1 − ε) [y = ŷ(x)] + ε u(y)``, where ŷ(x) is LANE's prediction, ε is 0.01 and u
    writes each target word, or ends, with the same probability.

    LANE's own p(y | x) is a sum over exponentially many derivations. Training uses samples
    (``sample_loss``), not this likelihood.
    """

    def __init__(
        self,
        symmetry: Symmetry,
        *,
        size: int,
        longest: int,
        dropout: float,
        samples: int,
        simplicity: float,
        baseline: Baseline,
        composer_rate: float,
    ) -> None:
        super().__init__()
        self.symmetry = symmetry
        source, target = len(symmetry.source.words), len(symmetry.target.words)
        self.composer = Composer(source, size=size)
        self.solver = Solver(source, target, size=size, longest=longest, dropout=dropout)
        self.samples, self.simplicity, self.baseline = samples, simplicity, baseline
        self.composer_rate = composer_rate

    @property
    def sharing(self) -> Symmetry:
        return unshared(self.symmetry)

    def sample_loss(
        self,
        pairs: Sequence[tuple[Sentence, str]],
        *,
        entropy: float,
        draw: random.Random,
        generator: torch.Generator,
    ) -> tuple[Float[Tensor, ""], float]:
        """The loss of new samples of each pair, and their mean reward. A target has one character
        per word; ``entropy`` is the weight of the entropies.
        """
        repeated = [pair for pair in pairs for _ in range(self.samples)]
        sources = [source for source, _ in repeated]
        drawn = draw_samples(self.composer, self.solver, sources, draw, generator)
        rewards = [
            reward(trajectory, outputs, target, simplicity=self.simplicity)
            for trajectory, outputs, (_, target) in zip(
                drawn.trajectories, drawn.outputs, repeated, strict=True
            )
        ]
        gains = advantages(
            drawn.trajectories, rewards, samples=self.samples, baseline=self.baseline
        )
        loss = objective(self.composer, drawn, gains, weight=entropy)
        return loss, sum(rewards) / len(rewards)

    # --- greedy solutions

    @torch.no_grad()
    def solve(self, sentences: Sequence[Sentence]) -> list[Solved]:
        """The greedy trajectory and outputs of every sentence, without dropout."""
        trajectories = compose(Scored(self.composer), sentences)
        inputs = [[named(node) for node in trajectory.nodes] for trajectory in trajectories]
        distinct = list(dict.fromkeys(each for row in inputs for each in row))
        written = self.solver.decode(distinct).outputs if distinct else []
        known = dict(zip(distinct, written, strict=True))
        return [
            (trajectory, [known[each] for each in row])
            for trajectory, row in zip(trajectories, inputs, strict=True)
        ]

    def targets(self, sentences: Sequence[Sentence], *, longest: int) -> list[Value | None]:
        """The predicted target of each sentence, its text cut after ``longest`` words; None if the
        Composer leaves the sentence open.
        """
        return [
            values(trajectory.nodes, outputs, longest=longest)[-1] if trajectory.solved else None
            for trajectory, outputs in self.solve(sentences)
        ]

    def predict(
        self, source: Int[Tensor, "b n"], *, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis[int]]]:
        """One target for each source. A source that the Composer leaves open, or whose target is
        longer than ``max_length``, gets an unfinished hypothesis without words, probability 0.
        """
        return [
            [Hypothesis((), -math.inf, finished=False)]
            if value is None or value.length > max_length
            else [Hypothesis(tuple(map(ord, value.text)), self._log_prob(value.length))]
            for value in self.targets(sentences_of(source), longest=max_length)
        ]

    def refusal(self, words: Sequence[str], *, max_length: int | None = None) -> str:
        (value,) = self.targets([self.symmetry.source.encode(words)], longest=1)
        if value is None:
            return "the Composer leaves the sentence open: it has no target"
        limit = "more than the limit" if max_length is None else f"the limit is {max_length}"
        return f"the target would have {shown(value.length)} words; {limit}"

    # --- the likelihood

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        """−log p(y | x) of each row, without a gradient: training does not use it."""
        return self.judge(batch)[0]

    def judge(self, batch: Batch) -> tuple[Float[Tensor, " b"], Bool[Tensor, " b"]]:
        losses, right = self.judged(sentences_of(batch.source), targets_of(batch.target))
        weight = self.composer.query
        return weight.new_tensor(losses), torch.tensor(right, device=weight.device)

    def judged(
        self, sentences: Sequence[Sentence], targets: Sequence[str]
    ) -> tuple[list[float], list[bool]]:
        """−log p(y | x) of each pair, and whether the target is the prediction. A target has one
        character per word.
        """
        found = self.targets(sentences, longest=max(map(len, targets), default=0))
        right = [value == (len(y), y) for value, y in zip(found, targets, strict=True)]
        losses = [
            -self._log_prob(len(y)) if ok else -math.log(NOISE) - self._log_uniform(len(y))
            for y, ok in zip(targets, right, strict=True)
        ]
        return losses, right

    def _log_uniform(self, length: int) -> float:
        """Log u(y) of a target with this number of words."""
        return -(length + 1) * math.log(len(self.symmetry.target.words) + 1)

    def _log_prob(self, length: int) -> float:
        """Log p(y | x) of a predicted target with this number of words."""
        return math.log1p(-NOISE + NOISE * math.exp(self._log_uniform(length)))

    # --- explanations

    @torch.no_grad()
    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """Each word of the prediction points at the word that wrote it. A word that is written by a
        merged node is spread by the decoder's attention over the node's words, or evenly over its
        span if it has none. Rows whose target is not the prediction are uniform.
        """
        sentences, targets = sentences_of(batch.source), targets_of(batch.target)
        real = (batch.source != PAD).to(self.composer.query)
        prob = (real / real.sum(1, keepdim=True))[:, None].repeat(1, batch.target.shape[1], 1)
        longest = max(map(len, targets), default=0)
        for row, (trajectory, outputs) in enumerate(self.solve(sentences)):
            target = targets[row]
            solution = values(trajectory.nodes, outputs, longest=longest)[-1:]
            if trajectory.solved and solution == [(len(target), target)]:
                prob[row] = 0
                written = self._attention(trajectory.nodes)
                for m, (node, step) in enumerate(writers(trajectory.nodes, outputs)):
                    for place, share in written[node][step].items():
                        prob[row, m, place + 1] += share  # the first column is BOS
        ends = (batch.source == EOS).to(prob)[:, None].expand_as(prob)
        return torch.where((batch.target == EOS)[:, :, None], ends, prob)

    def _attention(self, nodes: Sequence[Node]) -> list[list[dict[int, float]]]:
        """For each step of each node, a distribution over the positions of the node's own words."""
        inputs: list[Input] = [named(node) for node in nodes]
        weights: list[list[list[float]]] = [[] for _ in nodes]
        for row, shares in self.solver.decode(inputs).attention:
            for i, share in zip(row.tolist(), shares.tolist(), strict=True):
                weights[i].append(share)
        return [
            [_spread(node, nodes, step) for step in steps]
            for node, steps in zip(nodes, weights, strict=True)
        ]

    def derivation(self, source: Sequence[str]) -> Derivation | None:
        """The expressions that give the prediction, as a tree; None if the sentence stays open."""
        ((trajectory, outputs),) = self.solve([self.symmetry.source.encode(source)])
        if not trajectory.solved:
            return None
        built: list[DerivationNode] = []
        for node, output in zip(trajectory.nodes, outputs, strict=True):
            children = tuple(built[child] for child in node.children)
            rule = self.expression(node, output)
            built.append(DerivationNode(rule, 0, node.start, node.stop, children))
        return Derivation(tuple(source), built[-1], alignments=0)

    def rules(self, sentences: Sequence[Sentence]) -> Counter[str]:
        """The expressions that solve sentences, each with the number of sentences that use it."""
        found: Counter[str] = Counter()
        names: dict[tuple[Sentence, Output], str] = {}
        for trajectory, outputs in self.solve(sentences):
            if trajectory.solved:
                used = {
                    (node.symbols, output): node
                    for node, output in zip(trajectory.nodes, outputs, strict=True)
                }
                for key, node in used.items():
                    if key not in names:
                        names[key] = self.expression(node, key[1])
                    found[names[key]] += 1
        return found

    def expression(self, node: Node, output: Output) -> str:
        """A node with its output as text: ``x1 twice → x1 x1``."""
        left = (f"x{-s}" if s < 0 else self.symmetry.source.decode([s])[0] for s in named(node))
        right = (f"x{-s}" if s < 0 else self.symmetry.target.decode([s])[0] for s in output)
        return f"{' '.join(left)} → {' '.join(right)}"


def sentences_of(source: Int[Tensor, "b n"]) -> list[Sentence]:
    """The words of each row, without special symbols."""
    return [tuple(word for word in row if word >= N_SPECIAL) for row in source.tolist()]


def targets_of(target: Int[Tensor, "b m"]) -> list[str]:
    """The words of each row, one character per word."""
    return ["".join(map(chr, sentence)) for sentence in sentences_of(target)]


def writers(nodes: Sequence[Node], outputs: Sequence[Output]) -> list[tuple[int, int]]:
    """For each word of the last node's value, the node that wrote it and the step."""
    written: list[tuple[int, int]] = []
    agenda = [(len(nodes) - 1, 0)]
    while agenda:
        node, step = agenda.pop()
        for at, symbol in islice(enumerate(outputs[node]), step, None):
            if symbol < 0:
                agenda += [(node, at + 1), (nodes[node].children[~symbol], 0)]
                break
            written.append((node, at))
    return written


def _spread(node: Node, nodes: Sequence[Node], weights: Sequence[float]) -> dict[int, float]:
    """The attention of one step over the positions of a node's words; even over them without any
    attention, and even over the span of a node without words.
    """
    place, children, found = node.start, iter(node.children), {}
    for symbol, weight in zip(
        node.symbols, weights, strict=False
    ):  # the last weight is that of EOS
        if symbol == VARIABLE:
            place = nodes[next(children)].stop
        else:
            found[place] = weight
            place += 1
    if not sum(found.values()):
        found = dict.fromkeys(found or range(node.start, node.stop), 1.0)
    total = sum(found.values())
    return {place: weight / total for place, weight in found.items()}
