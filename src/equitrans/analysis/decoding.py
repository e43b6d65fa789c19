"""Beam search over a batch of sentences.

Each step extends every live hypothesis by every word, keeps finished hypotheses as they are, and
keeps the best ``width`` of all, ranked by log-probability per word (EOS counts as a word). The
search of a sentence ends when no live hypothesis can overtake the finished ones: log-probabilities
only fall, so a total of t ends at best with t / max_length per word. There is no length penalty, no
coverage and no sampling.

Hypotheses that tie within rounding error are ordered by word number. A hypothesis is ``tied`` if it
or its beginning tied with another candidate at some step.
"""

from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from equitrans.models import Backoff, Direct, Hypothesis
from equitrans.paper import BOS, EOS, PAD, Model

State = Any
"""A NamedTuple of tensors, batch first, of NamedTuples, and of values that all rows share."""


def select(state: State, rows: Int[Tensor, " r"]) -> State:
    """The given rows of a state, in the order given."""
    if isinstance(state, Tensor):
        return state[rows]
    if isinstance(state, tuple):
        return type(state)(*(select(part, rows) for part in state))
    return state


@runtime_checkable
class Scorer(Protocol):
    """An object that scores a target word by word; see ``Autoregressive``."""

    def start(self, source: Int[Tensor, "b n"]) -> State:
        """The state before the first word."""

    def step(self, state: State, previous: Int[Tensor, " b"]) -> tuple[Float[Tensor, "b y"], State]:
        """Log-probabilities of the next word after ``previous``."""


def decode(
    model: Model, source: Int[Tensor, "b n"], *, width: int, max_length: int, n_best: int = 1
) -> list[list[Hypothesis[int]]]:
    """The best targets of each source, best first: by the model's own search if it has one, else
    by beam search.
    """
    if isinstance(model, Direct):
        return model.predict(source, max_length=max_length, n_best=n_best)
    if isinstance(model, Backoff):
        # one target more than asked for is the rival of the last
        more = n_best + 1
        search = partial(decode, max_length=max_length, width=max(width, more), n_best=more)
        return model.answers(source, search, max_length=max_length, n_best=n_best)
    assert isinstance(model, Scorer)
    return beam_search(model, source, width=width, max_length=max_length, n_best=n_best)


@torch.no_grad()
def beam_search(
    model: Scorer,
    source: Int[Tensor, "b n"],
    *,
    width: int,
    max_length: int,
    n_best: int = 1,
) -> list[list[Hypothesis[int]]]:
    """The best hypotheses of each sentence, best first; ``width`` 1 is greedy search."""
    if not len(source):
        return []
    device = source.device
    at = torch.arange(len(source), device=device)
    state = model.start(source)
    previous = torch.full((len(source), 1), BOS, device=device)
    total = torch.zeros(previous.shape, device=device, dtype=torch.get_default_dtype())
    length, done = torch.zeros_like(previous), torch.zeros_like(previous, dtype=torch.bool)
    tied = done
    traces: list[_Trace] = []
    ends: list[_End] = []
    for step in range(1, max_length + 1):
        scores, state = model.step(state, previous.flatten())
        b, w = previous.shape
        scores = scores.view(b, w, -1)
        length = length + ~done
        # a finished hypothesis has one extension: itself and PAD
        scores = scores.masked_fill(done[:, :, None], -torch.inf)
        scores[:, :, PAD] = torch.where(done, 0.0, -torch.inf)
        candidates = (total.to(scores.dtype)[:, :, None] + scores).flatten(1)
        ranks = candidates / length.repeat_interleave(scores.shape[2], 1)
        best, near = _best(ranks, width)
        beam, previous = best // scores.shape[2], best % scores.shape[2]
        total = candidates.gather(1, best)
        length, done = length.gather(1, beam), done.gather(1, beam)
        tied = tied.gather(1, beam) | near
        done = done | (previous == EOS) | (total == -torch.inf)
        traces.append(_Trace(at, beam, previous))
        rows = beam + torch.arange(b, device=device)[:, None] * w
        settled = _settled(total, length, done, n_best=n_best, max_length=max_length)
        if step == max_length:
            settled = torch.ones_like(settled)
        if bool(settled.any()):
            ends.append(_End(step, at[settled], total[settled][:, :n_best], tied[settled]))
            if bool(settled.all()):
                break
            at, rows, previous = at[~settled], rows[~settled], previous[~settled]
            total, length, done = total[~settled], length[~settled], done[~settled]
            tied = tied[~settled]
        state = select(state, rows.flatten())
    return _collect(traces, ends, len(source))


class _Trace(NamedTuple):
    """One step: for each sentence still searched, the parent and the new word of each
    hypothesis.
    """

    at: Int[Tensor, " b"]
    beam: Int[Tensor, "b w"]
    word: Int[Tensor, "b w"]


class _End(NamedTuple):
    """The sentences whose search ends at one step, with the log-probabilities and the ties of the
    best.
    """

    step: int
    at: Int[Tensor, " b"]
    total: Float[Tensor, "b n"]
    tied: Bool[Tensor, "b w"]


def _collect(traces: list[_Trace], ends: list[_End], sentences: int) -> list[list[Hypothesis[int]]]:
    """The hypotheses of all sentences, read backwards along their parents."""
    device = traces[0].at.device
    widest = max(end.total.shape[1] for end in ends)
    beam = torch.arange(widest, device=device).repeat(sentences, 1)
    words = torch.full((len(traces), sentences, widest), PAD, device=device)
    for step in range(len(traces), 0, -1):
        at, parent, word = traces[step - 1]
        here = beam[at].clamp(max=parent.shape[1] - 1)
        words[step - 1, at] = word.gather(1, here)
        beam[at] = parent.gather(1, here)
    by_sentence = words.permute(1, 2, 0).tolist()
    found: list[list[Hypothesis[int]]] = [[] for _ in range(sentences)]
    for end in ends:
        columns = end.at.tolist(), end.total.tolist(), end.tied.tolist()
        for i, totals, ties in zip(*columns, strict=True):
            found[i] = [
                _hypothesis(words[: end.step], log_prob, tied)
                for words, log_prob, tied in zip(by_sentence[i], totals, ties, strict=False)
                if log_prob > -torch.inf
            ]
    return found


def _hypothesis(words: list[int], log_prob: float, tied: bool) -> Hypothesis[int]:
    if EOS in words:
        return Hypothesis(tuple(words[: words.index(EOS)]), log_prob, tied=tied)
    return Hypothesis(tuple(words), log_prob, finished=False, tied=tied)


def rounding(scores: Tensor) -> float:
    """Largest difference of log-probabilities that counts as a tie."""
    return 1e-9 if scores.dtype == torch.float64 else 1e-5


def _best(
    ranks: Float[Tensor, "b c"], width: int
) -> tuple[Int[Tensor, "b w"], Bool[Tensor, "b w"]]:
    """The columns of the best candidates, and whether each ties with another candidate. Candidates
    that tie are ordered by column.
    """
    grain, n = rounding(ranks), ranks.shape[1]
    order = torch.arange(n - 1, -1, -1, device=ranks.device)
    # one integer per candidate: the rounded rank first, then the column; −inf is below all others,
    # and the product stays above −2⁶³
    lowest = -(2 ** (62 - n.bit_length()))
    rounded = (ranks / grain).round().clamp(min=lowest).long()
    keys = rounded.masked_fill(ranks == -torch.inf, lowest - 1) * n + order
    columns = keys.topk(min(width + 1, n), dim=1).indices
    sorted_ranks = ranks.gather(1, columns)
    # the difference of two infinite ranks is NaN, which is no tie
    same = (sorted_ranks[:, :-1] - sorted_ranks[:, 1:]).abs() <= grain
    tied = nn.functional.pad(same, (1, 0)) | nn.functional.pad(same, (0, 1))
    return columns[:, :width], tied[:, :width]


def _settled(
    total: Float[Tensor, "b w"],
    length: Int[Tensor, "b w"],
    done: Bool[Tensor, "b w"],
    *,
    n_best: int,
    max_length: int,
) -> Bool[Tensor, " b"]:
    """Whether no live hypothesis can overtake the ``n_best`` finished ones."""
    hope = total.masked_fill(done, -torch.inf).amax(1) / max_length
    reached = (total / length).masked_fill(~done, -torch.inf).sort(1, descending=True).values
    if reached.shape[1] < n_best:
        return done.all(1)
    return done.all(1) | (reached[:, n_best - 1] > hope)
