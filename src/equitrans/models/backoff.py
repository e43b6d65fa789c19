"""Rules with a second model behind them, as one distribution p(y | x).

The rules answer the sources that they derive. The second model answers the others, unless its best
target is less likely than ``confidence``: then the source is refused.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equitrans.models.direct import Answer, Hypothesis
from equitrans.models.recursive import Derivation, RecursiveTransducer
from equitrans.paper import EOS, PAD, Batch, Model, Moment, Parts, Symmetry

Search = Callable[[Model, Tensor], list[list[Hypothesis[int]]]]
"""A function that gives the best targets of each source under a model, best first."""

SCORED = 512
"""Largest number of pairs that are scored together."""


class Backoff(Model):
    """``p(y | x) = (1 − ε) p_R(y | x) + ε q(y | x)`` if the rules derive x, else ``q(y | x)``.

    p_R are the rules, q is the second model, and ε is the share of training pairs that the rules do
    not explain, or more where they are in doubt. Whether the rules derive x, and ε, depend on its
    form only. So p(y | x) sums to one, and theorem 3 holds if it holds for q.
    """

    confidence: Float[Tensor, ""]
    """Least probability of an answer of the second model."""

    def __init__(self, symmetry: Symmetry, second: Model, rules: RecursiveTransducer) -> None:
        super().__init__()
        self.symmetry = symmetry
        # before the rules, so that an optimizer numbers its parameters from 0
        self.second = second
        self.take_rules(rules)
        self.register_buffer("confidence", torch.zeros(()))

    def take_rules(self, rules: RecursiveTransducer) -> None:
        """Replace the rules."""
        self.rules = rules
        self.learned = rules.learned

    @property
    def sharing(self) -> Symmetry:
        return self.second.sharing

    def derives(self, source: Sequence[int]) -> bool:
        """Whether the rules derive a source without an unlicensed step."""
        form = self.rules.form(source)
        aligner = self.rules.aligner
        return bool(aligner.alignments(form)) and aligner.is_licensed(form)

    def _noise(self, source: Sequence[int]) -> float:
        """ε of a source that the rules derive."""
        return self.rules.noise_of(self.rules.form(source))

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        by_rules, by_second, derived = self._shares(batch, moment)
        return -torch.where(derived, torch.logaddexp(by_rules, by_second), by_second)

    def _shares(
        self, batch: Batch, moment: Moment | None = None
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"], Bool[Tensor, " b"]]:
        """The two parts of log p(y | x), and whether the rules derive x."""
        second = -self.second.loss(batch, moment=moment)
        rules = torch.full_like(second, -math.inf)
        noise = torch.ones_like(second)
        for rows, joint in self.rules.joint(batch):
            source = batch.source[rows[0]].tolist()
            if self.derives(source):
                noise[rows] = self._noise(source)
                likely = self.rules.marginal(joint, moment=moment).to(rules)
                rules[rows] = torch.log1p(-noise[rows]) + likely
        return rules, noise.log() + second, noise < 1

    @torch.no_grad()
    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The posterior of the rules and that of the second model, or its attention, each with the
        posterior probability that it wrote the target.
        """
        by_rules, by_second, _ = self._shares(batch)
        share = (by_rules - torch.logaddexp(by_rules, by_second)).exp()[:, None, None]
        rules, second = self.rules.alignments(batch), self.second.alignments(batch)
        return share * rules + (1 - share) * second

    def parts(self, batch: Batch) -> Parts | None:
        derived = all(map(self.derives, batch.source.tolist()))
        return self.rules.parts(batch) if derived else self.second.parts(batch)

    def translation_table(self, words: Int[Tensor, " x"]) -> Float[Tensor, "x y"]:
        return self.rules.translation_table(words)

    def derivation(self, source: Sequence[str]) -> Derivation | None:
        return self.rules.derivation(source)

    def refusal(self, words: Sequence[str], *, max_length: int | None = None) -> str:
        """The reason why a source has no target of up to ``max_length`` words."""
        reason = self.rules.refusal(words, max_length=max_length)
        if self.derives(self.symmetry.source.encode(words)):
            return reason
        unsure = f"of the second model has a probability below {float(self.confidence):.2g}"
        return f"{reason}; the best target {unsure}"

    @torch.no_grad()
    def answers(
        self, source: Int[Tensor, "b n"], search: Search, *, max_length: int, n_best: int
    ) -> list[list[Hypothesis[int]]]:
        """The ``n_best`` best targets of each source by p(y | x), each with the part that wrote it.

        A source that the rules derive is searched by the second model only if a target of the
        second model alone could be among the best: its probability is at most ε.
        """
        rows = source.tolist()
        derived = [i for i, row in enumerate(rows) if self.derives(row)]
        found: dict[int, list[Answer]] = {}
        if derived:
            ruled = self.rules.predict(source[derived], max_length=max_length, n_best=n_best + 1)
            found = dict(zip(derived, self._weighed(source, derived, ruled), strict=True))
        least = {i: math.log(self._noise(rows[i])) for i in derived}
        unsure = [i for i in derived if n_best > 1 or found[i][0].log_prob < least[i]]
        unsure = [i for i in unsure if not found[i][0].is_refused]
        others = [i for i in range(len(rows)) if i not in found]
        if searched := unsure + others:
            best = dict(zip(searched, search(self.second, source[searched]), strict=True))
            joined = [[*found[i], *best[i]] for i in unsure]
            found |= zip(unsure, self._weighed(source, unsure, joined), strict=True)
            found |= {i: self._second_answers(best[i]) for i in others}
        return [[*found[i][:n_best]] for i in range(len(rows))]

    def _weighed(
        self, source: Tensor, rows: Sequence[int], found: Sequence[Sequence[Hypothesis[int]]]
    ) -> list[list[Answer]]:
        """The targets of sources that the rules derive, ranked by p(y | x)."""
        wanted = [(i, h) for i, some in zip(rows, found, strict=True) for h in some if h.finished]
        scores = iter(self._scores(source, wanted))
        answers = []
        for i, some in zip(rows, found, strict=True):
            ranked: dict[tuple[int, ...], tuple[Hypothesis[int], str]] = {}
            for h in some:
                if h.finished:
                    total, rules, second = next(scores)
                    by = "rules" if rules >= second else "second"
                    ranked[h.words] = Hypothesis(h.words, total, tied=h.tied), by
            best = sorted(ranked.values(), key=lambda it: -it[0].log_prob)
            tied = any(h.tied for h in some)
            noise = self._noise(source[i].tolist())
            made = Answer.ranked([h for h, _ in best], noise, tied=tied, licensed=True)
            made = [replace(a, by=by) for a, (_, by) in zip(made, best, strict=True)]
            answers.append(made or [Answer((), -math.inf, finished=False)])
        return answers

    def _scores(
        self, source: Tensor, wanted: Sequence[tuple[int, Hypothesis[int]]]
    ) -> list[list[float]]:
        """Log p(y | x) and its two parts, for targets of rows of the sources."""
        scores: list[list[float]] = []
        for start in range(0, len(wanted), SCORED):
            some = wanted[start : start + SCORED]
            targets = [torch.tensor([*h.words, EOS]) for _, h in some]
            padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=PAD)
            each = torch.arange(len(some))
            chosen = source[[i for i, _ in some]]
            batch = Batch(chosen, padded, torch.ones(len(some)), each, each).to(source.device)
            rules, second, _ = self._shares(batch)
            total = torch.logaddexp(rules, second)
            scores += torch.stack([total, rules, second], dim=1).tolist()
        return scores

    def _second_answers(self, found: Sequence[Hypothesis[int]]) -> list[Answer]:
        """The targets of a source that the rules do not derive."""
        found = [h for h in found if not h.is_refused]
        sure = bool(found) and found[0].log_prob >= math.log(max(float(self.confidence), 1e-300))
        answers = []
        for h in found:
            rival = next((other for other in found if other is not h), None)
            # every other target has at most the rest of the probability
            rest = math.log(max(-math.expm1(min(h.log_prob, 0.0)), 1e-300))
            least = rest if rival is None else min(rest, rival.log_prob)
            made = Answer(h.words, h.log_prob, h.finished, h.tied, h.log_prob - least)
            words = None if rival is None else rival.words
            answers.append(replace(made, rival=words, licensed=sure, by="second"))
        return answers or [Answer((), -math.inf, finished=False, by="second")]


def least_confidence(answers: Sequence[tuple[float, bool]], wrong: float) -> float:
    """The least probability from which on at most a share ``wrong`` of the answers is wrong.

    An answer is its probability and whether it is right. The result is 0 if all answers will do,
    and 1 if none will.

    >>> least_confidence([(0.9, True), (0.75, True), (0.25, False), (0.2, False)], 0.1)
    0.5
    """
    ranked = sorted(answers, reverse=True)
    errors, kept = 0, 0
    for k, (_, right) in enumerate(ranked, start=1):
        errors += not right
        if errors <= wrong * k:
            kept = k
    if kept == len(ranked):
        return 0.0
    if kept == 0:
        return 1.0
    return (ranked[kept - 1][0] + ranked[kept][0]) / 2
