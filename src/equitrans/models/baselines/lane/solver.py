"""LANE's Solver: a small sequence-to-sequence model that translates nodes.

The outputs of all nodes are independent given their inputs. So all nodes of all sentences are
decoded at once: each distinct input is encoded once, and nodes with the same input and the same
output so far share one state of the decoder.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from equitrans.models.baselines.common import lstm_cell
from equitrans.models.baselines.lane.composer import entropy, log_prob
from equitrans.models.baselines.lane.interpreter import VARIABLE, Node, Output
from equitrans.paper import N_SPECIAL

NAMES = 2
"""Number of variable names, x1 and x2."""

Input = tuple[int, ...]
"""Source symbols of a node: a word as its number, the i-th name as ``~i``."""


def named(node: Node, first: int = 0) -> Input:
    """The input of a node whose first variable has the name ``first``, 0 or 1.

    >>> named(Node((VARIABLE, 7, VARIABLE), (3, 4), 0, 5), first=1)
    (-2, 7, -1)
    """
    names = iter((first, 1 - first))
    return tuple(~next(names) if symbol == VARIABLE else symbol for symbol in node.symbols)


class Decoded(NamedTuple):
    """What was written for each input, with its log-probability, and the mean over its steps of the
    entropy divided by that of a uniform choice.
    """

    outputs: list[Output]
    """Names are ``~i``, as in an input."""
    log_prob: Float[Tensor, " r"]
    entropy: Float[Tensor, " r"]
    attention: list[tuple[Int[Tensor, " s"], Float[Tensor, "s n"]]]
    """Of each step: the inputs that are still written then, and the weights of their symbols."""


class Encoded(NamedTuple):
    """Distinct inputs: the states of their symbols, the keys of these, the final state, −∞ at
    padding, and the target symbols that may be written.
    """

    states: Float[Tensor, "u n d"]
    keys: Float[Tensor, "u n d"]
    h: Float[Tensor, "u d"]
    c: Float[Tensor, "u d"]
    closed: Float[Tensor, "u n"]
    allowed: Bool[Tensor, "u y"]


class Solver(nn.Module):
    """An LSTM encoder and an LSTM decoder with attention.

    The encoder reads source words, two names and EOS. The decoder reads target words, two names and
    BOS, and writes target words, two names and EOS: its last column is BOS or EOS.
    """

    def __init__(
        self, source: int, target: int, *, size: int, longest: int, dropout: float
    ) -> None:
        super().__init__()
        self._source, self._target = source, target
        self._longest, self._dropout = longest, dropout
        self.encoder_embedding = nn.Embedding(source + NAMES + 1, size)
        self.encoder = nn.LSTMCell(size, size)
        self.decoder_embedding = nn.Embedding(target + NAMES + 1, size)
        self.attention = nn.Linear(2 * size, size)
        self.score = nn.Parameter(torch.empty(size).normal_(std=1 / math.sqrt(size)))
        self.decoder = nn.LSTMCell(2 * size, size)
        self.output = nn.Linear(size, target + NAMES + 1)

    def encode(self, inputs: Sequence[Input]) -> Encoded:
        """The states of distinct inputs."""
        device, size, end = self.score.device, len(self.score), self._source + NAMES
        rows = [[s - N_SPECIAL if s >= 0 else self._source + ~s for s in i] for i in inputs]
        width = max(map(len, rows)) + 1
        symbols = torch.tensor([[*r, *[end] * (width - len(r))] for r in rows], device=device)
        length = torch.tensor([len(r) + 1 for r in rows], device=device)[:, None]
        lstm = self.encoder
        table = nn.functional.linear(
            self.encoder_embedding.weight, lstm.weight_ih, lstm.bias_ih + lstm.bias_hh
        )
        gates = nn.functional.embedding(symbols, table)
        h = c = self.score.new_zeros(len(rows), size)
        states = []
        for t in range(width):
            new_h, new_c = lstm_cell(gates[:, t] + h @ lstm.weight_hh.T, c)
            states.append(new_h)
            h, c = torch.where(t < length, new_h, h), torch.where(t < length, new_c, c)
        stacked = torch.stack(states, dim=1)
        keys = nn.functional.linear(stacked, self.attention.weight[:, size:], self.attention.bias)
        outside = torch.arange(width, device=device) >= length
        closed = torch.zeros(outside.shape, device=device, dtype=h.dtype)
        allowed = torch.ones(len(rows), self._target + NAMES + 1, dtype=torch.bool, device=device)
        for i in range(NAMES):
            allowed[:, self._target + i] = (symbols == self._source + i).any(1)
        return Encoded(stacked, keys, h, c, closed.masked_fill(outside, -math.inf), allowed)

    def decode(self, inputs: Sequence[Input], draw: torch.Generator | None = None) -> Decoded:
        """The output of every input: the likeliest symbols one by one, or drawn ones. Drawn ones
        come with dropout, which is drawn once per state.
        """
        device, end = self.score.device, self._target + NAMES
        number = {each: n for n, each in enumerate(dict.fromkeys(inputs))}
        encoded = self.encode(list(number))
        # a row is an input, repeated inputs included; a state is a distinct input and an output
        row = torch.arange(len(inputs), device=device)
        state = torch.tensor([number[each] for each in inputs], device=device)
        of = torch.arange(len(number), device=device)
        previous = torch.full_like(of, end)
        h, c = encoded.h, encoded.c
        weights = torch.cat([self.decoder.weight_ih, self.decoder.weight_hh], dim=1)
        bias = self.decoder.bias_ih + self.decoder.bias_hh
        written = torch.full((len(inputs), self._longest), end, device=device)
        steps: list[tuple[Tensor, ...]] = []
        states, attention = [], []
        before = 0
        for step in range(self._longest):
            mixed, shares = self._attend(encoded, of, h)
            e = self.decoder_embedding(previous)
            if draw is not None and self._dropout:
                kept = torch.rand(e.shape, generator=draw) >= self._dropout
                e = e * kept.to(e).div_(1 - self._dropout)
            gates = nn.functional.linear(torch.cat([e, mixed, h], dim=1), weights, bias)
            h, c = lstm_cell(gates, c)
            open_ = encoded.allowed[of]
            if step == 0:
                open_[:, end] = False
            symbol = self._choose(h, open_, state, draw)
            written[row, step] = symbol
            states.append((h, open_))
            steps.append((row, before + state, symbol))
            attention.append((row, shares.detach()[state]))
            before += len(of)
            alive = symbol != end
            row, key = row[alive], (state * (end + 1) + symbol)[alive]
            if not len(row):
                break
            branches, state = torch.unique(key, return_inverse=True)
            parent, previous = branches // (end + 1), branches % (end + 1)
            h, c, of = h.index_select(0, parent), c.index_select(0, parent), of[parent]
        return self._collect(inputs, written, states, steps, attention)

    def _attend(
        self, encoded: Encoded, of: Int[Tensor, " s"], h: Float[Tensor, "s d"]
    ) -> tuple[Float[Tensor, "s d"], Float[Tensor, "s n"]]:
        """The mean of the symbols' states under ``softmax_j v·tanh(A [h ; H_j] + a)``, and the
        weights.
        """
        query = nn.functional.linear(h, self.attention.weight[:, : len(self.score)])
        scores = (query[:, None] + encoded.keys.index_select(0, of)).tanh() @ self.score
        shares = torch.softmax(scores + encoded.closed[of], dim=1)
        return torch.bmm(shares[:, None], encoded.states.index_select(0, of))[:, 0], shares

    @torch.no_grad()
    def _choose(
        self,
        h: Float[Tensor, "s d"],
        allowed: Bool[Tensor, "s y"],
        state: Int[Tensor, " r"],
        draw: torch.Generator | None,
    ) -> Int[Tensor, " r"]:
        """The symbol that each row writes."""
        logits = self.output(h).masked_fill(~allowed, -math.inf)
        if draw is None:
            return logits.argmax(1)[state]
        noise = torch.empty(len(state), logits.shape[1]).exponential_(generator=draw)
        return (logits[state] - noise.to(logits).log()).argmax(1)

    def _collect(
        self,
        inputs: Sequence[Input],
        written: Int[Tensor, "r t"],
        states: list[tuple[Tensor, Tensor]],
        steps: list[tuple[Tensor, ...]],
        attention: list[tuple[Tensor, Tensor]],
    ) -> Decoded:
        """Log-probabilities and entropies of all rows, computed for all steps at once."""
        h, allowed = (torch.cat(parts) for parts in zip(*states, strict=True))
        row, state, symbol = (torch.cat(parts) for parts in zip(*steps, strict=True))
        logs = log_prob(self.output(h).masked_fill(~allowed, -math.inf))
        uniform = allowed.sum(1).to(h).log()
        spread = entropy(logs) / uniform.clamp(min=1e-9)
        zero = h.new_zeros(len(inputs))
        count = zero.index_add(0, row, torch.ones_like(row, dtype=h.dtype))
        outputs = []
        for symbols in written.tolist():
            stop = symbols.index(end) if (end := self._target + NAMES) in symbols else len(symbols)
            outputs.append(tuple(self._symbol(s) for s in symbols[:stop]))
        return Decoded(
            outputs,
            zero.index_add(0, row, logs.take(state * logs.shape[1] + symbol)),
            zero.index_add(0, row, spread.index_select(0, state)) / count,
            attention,
        )

    def _symbol(self, column: int) -> int:
        """The target symbol of a column: the number of a word, or ``~i`` for a name."""
        return column + N_SPECIAL if column < self._target else ~(column - self._target)
