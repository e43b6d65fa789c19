"""Beam search over a whole batch at once. Knows nothing of words or of models, only of
word-by-word scores.

Every live hypothesis is extended by every word; finished ones stand as they are; the best
``width`` of all are kept, ranked by log-probability per word (EOS counts as a word). A sentence is
settled when no live hypothesis can overtake the finished ones any more: log-probabilities only
fall, so one of total t can at best end with t / max_length per word. Hypotheses that tie within
rounding error are told apart by their order, never by noise. What is not done: no length penalty,
no coverage, no sampling.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equitrans.vocabulary import BOS, EOS, PAD

State = Any
"""A NamedTuple of tensors, batch first, of NamedTuples, and of values that all rows share."""


@runtime_checkable
class Scorer(Protocol):
    """Whatever scores a target word by word."""

    def start(self, source: Int[Tensor, "b n"]) -> State:
        """What is known before the first word."""

    def step(self, state: State, previous: Int[Tensor, " b"]) -> tuple[Float[Tensor, "b y"], State]:
        """Log-probabilities of the next word, after the previous one."""


@dataclass(frozen=True)
class Hypothesis:
    """Target words, EOS left out; ``finished`` is False if the search ran into its maximum
    length.
    """

    words: tuple[int, ...]
    log_prob: float
    finished: bool = True

    @property
    def score(self) -> float:
        """Log-probability per word, the rank of a hypothesis."""
        return self.log_prob / (len(self.words) + self.finished)


def select(state: State, rows: Int[Tensor, " r"]) -> State:
    """Some rows of a state, in the order given."""
    if isinstance(state, Tensor):
        return state[rows]
    if isinstance(state, tuple):
        return type(state)(*(select(part, rows) for part in state))
    return state


@torch.no_grad()
def beam_search(
    scorer: Scorer,
    source: Int[Tensor, "b n"],
    *,
    width: int,
    max_length: int,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each sentence, best first; ``width`` 1 is greedy search."""
    found: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    if not len(source):
        return found
    at = torch.arange(len(source), device=source.device)
    state = scorer.start(source)
    previous = torch.full((len(source), 1), BOS, device=source.device)
    words = previous[:, :, None][:, :, :0]
    total = torch.zeros(previous.shape, device=source.device, dtype=torch.get_default_dtype())
    length, done = torch.zeros_like(previous), torch.zeros_like(previous, dtype=torch.bool)
    for step in range(1, max_length + 1):
        scores, state = scorer.step(state, previous.flatten())
        b, w = previous.shape
        scores = scores.view(b, w, -1)
        length = length + ~done
        # a finished hypothesis has one extension: itself, written as a PAD
        scores = scores.masked_fill(done[:, :, None], -torch.inf)
        scores[:, :, PAD] = torch.where(done, 0.0, -torch.inf)
        candidates = (total.to(scores.dtype)[:, :, None] + scores).flatten(1)
        ranks = candidates / length.repeat_interleave(scores.shape[2], 1)
        best = _best(ranks, min(width, ranks.shape[1]))
        beam, previous = best // scores.shape[2], best % scores.shape[2]
        total = candidates.gather(1, best)
        length, done = length.gather(1, beam), done.gather(1, beam)
        done = done | (previous == EOS) | (total == -torch.inf)
        words = words.gather(1, beam[:, :, None].expand(-1, -1, step - 1))
        words = torch.cat([words, previous[:, :, None]], dim=2)
        rows = beam + torch.arange(b, device=beam.device)[:, None] * w
        settled = _settled(total, length, done, n_best=n_best, max_length=max_length)
        if step == max_length:
            settled = torch.ones_like(settled)
        if bool(settled.any()):
            ended = settled.nonzero().squeeze(1)
            for i, *hypotheses in zip(
                at[ended].tolist(), words[ended].tolist(), total[ended].tolist(), strict=True
            ):
                found[i] = _collect(*hypotheses)[:n_best]
            live = (~settled).nonzero().squeeze(1)
            if not len(live):
                break
            at, rows, words, previous = at[live], rows[live], words[live], previous[live]
            total, length, done = total[live], length[live], done[live]
        state = select(state, rows.flatten())
    return found


def _best(ranks: Float[Tensor, "b c"], width: int) -> Int[Tensor, "b w"]:
    """The columns of the best candidates; ranks that agree up to rounding go by column."""
    grain = 1e-9 if ranks.dtype == torch.float64 else 1e-5
    n = ranks.shape[1]
    order = torch.arange(n - 1, -1, -1, device=ranks.device)
    # whole numbers of grains, so that equal ones are equal, with the column behind them
    keys = (ranks / grain).round().clamp(min=-1e12).long() * n + order
    return keys.topk(width, dim=1).indices


def _settled(
    total: Float[Tensor, "b w"],
    length: Int[Tensor, "b w"],
    done: Bool[Tensor, "b w"],
    *,
    n_best: int,
    max_length: int,
) -> Bool[Tensor, " b"]:
    """Whether the ``n_best`` finished hypotheses can no longer be overtaken, or nothing is live."""
    hope = total.masked_fill(done, -torch.inf).amax(1) / max_length
    reached = (total / length).masked_fill(~done, -torch.inf).sort(1, descending=True).values
    if reached.shape[1] < n_best:
        return done.all(1)
    return done.all(1) | (reached[:, n_best - 1] > hope)


def _collect(words: list[list[int]], total: list[float]) -> list[Hypothesis]:
    """Hypotheses of one sentence, in the order of the beam, which is that of their ranks."""
    return [
        Hypothesis(tuple(word for word in row if word not in (PAD, EOS)), log_prob, EOS in row)
        for row, log_prob in zip(words, total, strict=True)
        if log_prob > -torch.inf
    ]
