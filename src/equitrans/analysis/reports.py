"""Predictions, alignments and evaluations as values."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from equitrans.data import Pair
from equitrans.models import Hypothesis
from equitrans.notebook import line, part, table

Words = tuple[str, ...]

DOUBTFUL = math.log(9)
"""Margin below which a prediction is doubtful: the odds against the rival are 9 to 1."""

K = TypeVar("K")


@dataclass(frozen=True)
class Prediction(Hypothesis[str]):
    """A predicted target in words, or the reason why there is none.

    >>> Prediction.refusal("no derivation").refused
    True
    """

    reason: str | None = None
    """Why the model refuses the sentence; None if ``words`` is its prediction."""
    margin: float | None = None
    """Log p of the target less that of the likeliest other target, if the model knows it."""
    rival: Words | None = None
    """The likeliest other target, if the model knows one."""
    remark: str | None = None
    """What speaks against the prediction: a combination that no training pair suggests, or a second
    model that is not sure."""
    by: str | None = None
    """The part of the model that answered, if it has several: rules or second."""

    @classmethod
    def refusal(cls, reason: str) -> "Prediction":
        """A prediction without words and with probability 0."""
        return cls((), -math.inf, finished=False, reason=reason)

    @property
    def refused(self) -> bool:
        """Whether the model has no target for the sentence; ``reason`` says why."""
        return self.reason is not None

    @property
    def doubtful(self) -> bool:
        """Whether training hardly decides between the target and its rival."""
        return self.rival is not None and self.margin is not None and self.margin < DOUBTFUL

    def _repr_html_(self) -> str:
        if self.reason is not None:
            return part("refused", line(self.reason))
        facts: list[tuple[str, object]] = [("log p", f"{self.log_prob:.3f}")]
        if self.margin is not None:
            facts.append(("margin", f"{self.margin:.1f}{', doubtful' if self.doubtful else ''}"))
        if self.rival is not None:
            facts.append(("next best", " ".join(self.rival)))
        if self.by is not None:
            facts.append(("answered by", self.by))
        if self.remark is not None:
            facts.append(("although", self.remark))
        if not self.finished:
            facts.append(("cut off after", f"{len(self.words)} words"))
        return part(" ".join(self.words), table(["", ""], facts))

    def gives(self, target: Words) -> bool:
        """Whether the prediction is a target, and was not cut off."""
        return self.finished and self.words == target


@dataclass(frozen=True)
class Alignment:
    """The source position of each target word: ``prob[m][n]`` is p(a_m = n | x, y).

    The source words include BOS and EOS, the target words EOS.
    """

    source: Words
    target: Words
    prob: tuple[tuple[float, ...], ...]

    @property
    def best(self) -> tuple[int, ...]:
        """The likeliest source position of each target word."""
        return tuple(max(range(len(row)), key=row.__getitem__) for row in self.prob)


@dataclass(frozen=True)
class Tally:
    """The number of correctly predicted pairs out of ``pairs``."""

    right: int
    pairs: int


@dataclass(frozen=True, repr=False)
class Report:
    """Exact match of predictions, sentence by sentence."""

    pairs: tuple[Pair, ...]
    predictions: tuple[Prediction, ...]
    templates: tuple[Words, ...]
    loss: float | None
    """Mean −log p of the pairs without unknown words; None if there are none."""
    scored: int
    """Number of pairs without unknown words."""

    def __repr__(self) -> str:
        found = f"{100 * self.exact_match:.2f} %: {sum(self.right)} of {len(self.pairs)} pairs"
        return f"Report(exact match {found}, {self.refused} refused)"

    def _repr_html_(self) -> str:
        wrong = len(self.pairs) - sum(self.right) - self.refused
        heads = ["pairs", "right", "refused", "wrong", "exact match"]
        rows = [(len(self.pairs), sum(self.right), self.refused, wrong, f"{self.exact_match:.2%}")]
        errors = [
            (" ".join(pair.source), " ".join(pair.target), p.reason or " ".join(p.words))
            for pair, p, right in zip(self.pairs, self.predictions, self.right, strict=True)
            if not right
        ]
        shown = table(["source", "target", "prediction, or reason of refusal"], errors)
        return part("evaluation", table(heads, rows), shown if errors else "")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dictionary of plain values for each pair, for JSON or a data frame: source, target,
        answer, right, refused, reason, margin, doubtful.
        """
        return [
            {
                "source": " ".join(pair.source),
                "target": " ".join(pair.target),
                "answer": None if p.refused else " ".join(p.words),
                "right": right,
                "refused": p.refused,
                "reason": p.reason,
                "margin": p.margin,
                "doubtful": p.doubtful,
            }
            for pair, p, right in zip(self.pairs, self.predictions, self.right, strict=True)
        ]

    @property
    def predicted(self) -> tuple[Words, ...]:
        """The predicted words of each source; none if it is refused."""
        return tuple(p.words for p in self.predictions)

    @property
    def refused(self) -> int:
        """Number of sources for which the model has no target."""
        return sum(p.refused for p in self.predictions)

    @property
    def reasons(self) -> dict[str, int]:
        """The reasons of refusals with their numbers, the most frequent first."""
        return dict(Counter(p.reason for p in self.predictions if p.reason).most_common())

    @property
    def tied(self) -> int:
        """Number of predictions to which another target is equally likely within rounding error."""
        return sum(p.tied for p in self.predictions)

    @cached_property
    def right(self) -> tuple[bool, ...]:
        """For each pair, whether the prediction is its target and was not cut off."""
        judged = zip(self.pairs, self.predictions, strict=True)
        return tuple(p.gives(pair.target) for pair, p in judged)

    @property
    def exact_match(self) -> float:
        """The share of pairs predicted exactly."""
        return sum(self.right) / len(self.right)

    @property
    def errors(self) -> tuple[tuple[Pair, Words], ...]:
        """The pairs predicted wrongly, each with its prediction."""
        judged = zip(self.pairs, self.predicted, self.right, strict=True)
        return tuple((pair, words) for pair, words, right in judged if not right)

    def by_length(self) -> dict[int, Tally]:
        """Tallies by the number of target words, shortest first."""
        tallies = self.by([len(p.target) for p in self.pairs])
        return {length: tallies[length] for length in sorted(tallies)}

    def by_template(self) -> dict[Words, Tally]:
        """Tallies by the source with class words replaced by their classes, worst first."""
        tallies = self.by(self.templates)
        order = sorted(tallies, key=lambda t: (tallies[t].right / tallies[t].pairs, t))
        return {template: tallies[template] for template in order}

    def by(self, keys: Sequence[K]) -> dict[K, Tally]:
        """Tallies by keys of your own, one for each pair: the kind of a sentence, for example."""
        counts: defaultdict[K, list[int]] = defaultdict(lambda: [0, 0])
        for key, right in zip(keys, self.right, strict=True):
            counts[key][0] += right
            counts[key][1] += 1
        return {key: Tally(*count) for key, count in counts.items()}
