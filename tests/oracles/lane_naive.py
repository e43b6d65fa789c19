"""LANE one sentence and one node at a time, from the equations: the slow oracle of the batched one.

Decisions are given, not drawn: ``compose`` and ``decode`` return the log-probability of each.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from baselines import cell
from equitrans.models.baselines.lane.interpreter import VARIABLE
from equitrans.paper import N_SPECIAL

NAMES = 2


@dataclass
class Item:
    symbols: tuple[int, ...]
    h: Tensor
    c: Tensor


@dataclass
class Recorded:
    """Log-probabilities and entropies of all decisions of one trajectory, and its nodes."""

    leaves: list[Tensor] = field(default_factory=list)
    checks: list[Tensor] = field(default_factory=list)
    merges: list[Tensor] = field(default_factory=list)
    nodes: list[tuple[int, ...]] = field(default_factory=list)


def logs(logits: Tensor) -> Tensor:
    return torch.softmax(logits, 0).clamp(min=1.2e-7).log()


def leaf(composer: Any, symbol: int) -> tuple[Tensor, Tensor]:
    row = len(composer.embedding.weight) - 1 if symbol == VARIABLE else symbol - N_SPECIAL
    both = torch.tanh(composer.leaf.weight @ composer.embedding.weight[row] + composer.leaf.bias)
    return tuple(both.chunk(2))  # type: ignore[return-value]


def parent(composer: Any, left: Item, right: Item) -> Item:
    gates = composer.cell.weight @ torch.cat([left.h, right.h]) + composer.cell.bias
    g, i, f_left, f_right, o = gates.chunk(5)
    inside = torch.sigmoid(i) * torch.tanh(g)
    c = torch.tanh(inside + torch.sigmoid(f_left) * left.c + torch.sigmoid(f_right) * right.c)
    return Item(left.symbols + right.symbols, torch.sigmoid(o) * c, c)


def compose(composer: Any, words: Any, leaves: list[bool], merges: list[tuple[int, bool]]) -> Any:
    """The decisions of a sentence: whether each leaf is abstracted, and then each merged pair with
    whether it is abstracted.
    """
    found, items = Recorded(), []
    variable = Item((VARIABLE,), *leaf(composer, VARIABLE))

    def check(h: Tensor) -> Tensor:
        return logs(composer.checker.weight @ h + composer.checker.bias)

    for word, abstract in zip(words, leaves, strict=True):
        item = Item((word,), *leaf(composer, word))
        found.leaves.append(check(item.h))
        if abstract:
            found.nodes.append(item.symbols)
        items.append(variable if abstract else item)
    for k, abstract in merges:
        parents = [parent(composer, *items[n : n + 2]) for n in range(len(items) - 1)]
        found.merges.append(logs(torch.stack([p.h @ composer.query for p in parents])))
        merged = parents[k]
        found.checks.append(check(merged.h))
        if abstract:
            found.nodes.append(merged.symbols)
        items[k : k + 2] = [variable if abstract else merged]
    return found


def decode(
    solver: Any, symbols: tuple[int, ...], output: tuple[int, ...], longest: int = 10
) -> list[Tensor]:
    """The log-probabilities of all columns at every step of a given output; words as numbers, the
    i-th name as ~i on both sides. The step of EOS is included if there is room for it.
    """
    source = len(solver.encoder_embedding.weight) - NAMES - 1
    target = len(solver.decoder_embedding.weight) - NAMES - 1
    read = [s - N_SPECIAL if s >= 0 else source + ~s for s in symbols] + [source + NAMES]
    h = c = torch.zeros(len(solver.score))
    states = []
    for symbol in read:
        h, c = cell(solver.encoder, solver.encoder_embedding.weight[symbol], h, c)
        states.append(h)
    written = [s - N_SPECIAL if s >= 0 else target + ~s for s in output]
    end = target + NAMES
    found, previous = [], end
    for step, symbol in enumerate([*written, end][:longest]):
        a, b = solver.attention.weight, solver.attention.bias
        scores = torch.stack(
            [solver.score @ torch.tanh(a @ torch.cat([h, state]) + b) for state in states]
        )
        context = sum(w * s for w, s in zip(torch.softmax(scores, 0), states, strict=True))
        embedded = solver.decoder_embedding.weight[previous]
        h, c = cell(solver.decoder, torch.cat([embedded, context]), h, c)
        prob = torch.softmax(solver.output.weight @ h + solver.output.bias, 0)
        mask = torch.ones_like(prob)
        for name in range(NAMES):
            mask[target + name] = ~name in symbols
        mask[end] = step > 0
        found.append((prob * mask / (prob * mask).sum()).clamp(min=1.2e-7).log())
        previous = symbol
    return found


def entropy(log_probs: Tensor, choices: int) -> float:
    """The entropy of the possible outcomes, divided by that of a uniform choice among them."""
    kept = log_probs.detach()[log_probs > math.log(1.2e-7)]
    return float(torch.distributions.Categorical(logits=kept).entropy()) / math.log(choices)
