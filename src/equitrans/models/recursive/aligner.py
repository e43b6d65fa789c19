"""The recursive aligner: p(a | ℓ(x)) as a log-linear distribution over a grammar's derivations.

A derivation's score is the sum of the weights of its rules, of the rule at its root, of each (rule,
hole, rule in the hole), and of each (rule, hole, class inside the hole). p(derivation | ℓ(x)) ∝
exp(score), and p(a | ℓ(x)) is the sum over the derivations with the yield a. Derivations with an
unlicensed combination of rules count only if a form has no others. Charts keep a limited number of
yields for each span, so a form with very many alignments gets its likeliest ones, renormalised to
sum to one.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equitrans.models.recursive.chart import Semiring, Tree, inside
from equitrans.models.recursive.licences import ROOT, Licences
from equitrans.models.recursive.rules import Form, Grammar, Span, Yield

KEPT = 16
"""Largest number of yields for each span and rule at its root, and of alignments of a form."""

FAINT = 14.0
"""A chart drops a yield whose log score is this far or further below the best of its span."""

REMEMBERED = 10_000_000
"""Largest size of the cache of alignments, in characters; the cache is cleared beyond it."""

MOST_JOINS = 1_000_000
"""Largest number of yields that are joined for one form: seconds. A form with more has none."""

MOST_CHARACTERS = 50_000_000
"""Largest number of characters of the yields that the chart of one form keeps: 200 MB."""


@dataclass(frozen=True)
class Weights:
    """Weights by rule, by (rule, hole, child), by (rule, hole, class), and by rule at the root."""

    rule: list[float]
    child: list[list[list[float]]]
    holds: list[list[list[float]]]
    root: list[float]
    classes: tuple[int, ...]
    """The symbols that are classes, in the order of the last axis of ``holds``."""

    @classmethod
    def zero(cls, grammar: Grammar, classes: Sequence[int]) -> "Weights":
        """Weights under which all derivations are equally likely."""
        n, k = len(grammar), grammar.most_holes
        return cls(
            [0.0] * n,
            [[[0.0] * n for _ in range(k)] for _ in range(n)],
            [[[0.0] * len(classes) for _ in range(k)] for _ in range(n)],
            [0.0] * n,
            tuple(classes),
        )

    def held(self, r: int, k: int, part: Form) -> float:
        """The weight of the classes in the part in a hole; a class counts once."""
        weights = zip(self.classes, self.holds[r][k], strict=True)
        return math.fsum([w for c, w in weights if c in part])


@dataclass(frozen=True)
class Alignment:
    """A yield of a form and its log p(a | ℓ(x)). Yields that are too long to be built count as one
    if they have the same length.
    """

    text: Yield
    log_prob: float

    @property
    def length(self) -> int:
        """The number of target words."""
        return self.text if isinstance(self.text, int) else len(self.text)


Scores = dict[Yield, float]
"""Log scores by yield."""


class _TooManyYieldsError(Exception):
    """A form has more yields than MOST_JOINS or MOST_CHARACTERS allow."""


@dataclass
class _Sum(Semiring[Scores]):
    """The semiring of yields: the log of the summed scores of the derivations of each yield."""

    grammar: Grammar
    weights: Weights
    licences: Licences | None
    joins: int = 0
    characters: int = 0

    def hole(self, r: int, k: int, part: Form, below: dict[int, Scores]) -> Scores:
        held, child_weights = self.weights.held(r, k, part), self.weights.child[r][k]
        merged: Scores = {}
        for child, scores in below.items():
            if self.licences is not None and not self.licences.accepts((r, k), child):
                continue
            more = held + child_weights[child]
            for text, score in scores.items():
                score += more
                merged[text] = _add(merged[text], score) if text in merged else score
        return self.prune(merged)

    def rule(
        self, r: int, spans: tuple[Span, ...], holes: list[Scores], total: Scores | None
    ) -> Scores:
        rule, weight = self.grammar.rules[r], self.weights.rule[r]
        total = {} if total is None else total
        self.joins += math.prod(map(len, holes))
        if self.joins > MOST_JOINS:
            raise _TooManyYieldsError
        for yields in product(*(scores.items() for scores in holes)):
            below = dict(zip(rule.holes, [text for text, _ in yields], strict=True))
            text, score = rule.join(spans, below), weight + sum([score for _, score in yields])
            total[text] = _add(total[text], score) if text in total else score
        return total

    def prune(self, total: Scores) -> Scores:
        if len(total) > 1:
            best = max(total.values())
            total = {text: s for text, s in total.items() if s > best - FAINT}
            total = dict(_ranked(total)) if len(total) > KEPT else total
        self.characters += sum([len(text) for text in total if isinstance(text, str)])
        if self.characters > MOST_CHARACTERS:
            raise _TooManyYieldsError
        return total


def _add(a: float, b: float) -> float:
    """log(exp a + exp b)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def _ranked(scores: Scores) -> list[tuple[Yield, float]]:
    """The best yields, best first; equal scores in the order of the yields, long ones last."""
    return sorted(scores.items(), key=lambda item: (-item[1], isinstance(item[0], int), item[0]))[
        :KEPT
    ]


Best = tuple[float, Tree]
"""The score of the best derivation, and the derivation."""


@dataclass(frozen=True)
class _Max(Semiring[Best | None]):
    """The semiring of the best derivation and its score; the first rule wins a tie."""

    grammar: Grammar
    weights: Weights
    licences: Licences | None

    def hole(self, r: int, k: int, part: Form, below: dict[int, Best | None]) -> Best | None:
        child_weights = self.weights.child[r][k]
        best = _best(
            (found[0] + child_weights[c], found[1])
            for c, found in below.items()
            if found and (self.licences is None or self.licences.accepts((r, k), c))
        )
        return best and (best[0] + self.weights.held(r, k, part), best[1])

    def rule(
        self, r: int, spans: tuple[Span, ...], holes: list[Best | None], total: Best | None
    ) -> Best | None:
        score, trees = self.weights.rule[r], []
        for hole in holes:
            if hole is None:
                return total
            score += hole[0]
            trees.append(hole[1])
        if total is not None and score <= total[0]:
            return total
        return score, Tree(r, spans, tuple(zip(self.grammar.rules[r].holes, trees, strict=True)))


def _best(trees: Iterable[Best]) -> Best | None:
    # a chart lists rules in order, and max returns the first maximum
    return max(trees, key=itemgetter(0), default=None)


def alignments(
    grammar: Grammar, weights: Weights, form: Form, licences: Licences | None = None
) -> list[Alignment]:
    """The alignments of a form, likeliest first; empty if the form has no derivation or too many
    yields.
    """
    try:
        roots = inside(grammar, form, _Sum(grammar, weights, licences))
    except _TooManyYieldsError:
        return []
    whole: Scores = {}
    for r, scores in roots.items():
        if licences is not None and not licences.accepts(ROOT, r):
            continue
        for text, score in scores.items():
            score += weights.root[r]
            whole[text] = _add(whole[text], score) if text in whole else score
    if not whole:
        return []
    ranked = _ranked(whole)
    best = ranked[0][1]
    total = best + math.log(math.fsum(math.exp(score - best) for _, score in ranked))
    return [Alignment(text, score - total) for text, score in ranked]


def best_tree(
    grammar: Grammar, weights: Weights, form: Form, licences: Licences | None = None
) -> Tree | None:
    """The likeliest derivation of a form; None if there is none."""
    best = _best(
        (found[0] + weights.root[r], found[1])
        for r, found in inside(grammar, form, _Max(grammar, weights, licences)).items()
        if found and (licences is None or licences.accepts(ROOT, r))
    )
    return best and best[1]


class RecursiveAligner(nn.Module):
    """``p(a | ℓ(x)) = Σ_d exp(w · f(d)) / Z`` over the derivations d of ℓ(x) with the yield a."""

    licences: Licences | None
    """The combinations of rules that are licensed; None if all are."""

    def __init__(
        self, grammar: Grammar, classes: tuple[int, ...], licences: Licences | None = None
    ) -> None:
        super().__init__()
        self.grammar, self.classes, self.licences = grammar, classes, licences
        n, k = len(grammar), grammar.most_holes
        self.rule = nn.Parameter(torch.zeros(n))
        self.child = nn.Parameter(torch.zeros(grammar.parents, k, n))
        self.holds = nn.Parameter(torch.zeros(grammar.parents, k, len(classes)))
        self.root = nn.Parameter(torch.zeros(n))
        self._memory: dict[Form, tuple[list[Alignment], bool]] = {}
        self._remembered = 0
        self._weights: Weights | None = None

    def flat(self) -> Float[Tensor, " f"]:
        """All weights in one vector, in the order of the features of a forest."""
        return torch.cat([self.rule, self.child.flatten(), self.holds.flatten(), self.root])

    def load(self, flat: Float[Tensor, " f"]) -> None:
        """Set all weights from a vector like that of ``flat``."""
        with torch.no_grad():
            nn.utils.vector_to_parameters(
                flat.to(self.rule.dtype), [self.rule, self.child, self.holds, self.root]
            )
        self.forget()

    def weights(self) -> Weights:
        """The weights as Python numbers, cached."""
        if self._weights is None:
            self._weights = Weights(
                self.rule.tolist(),
                self.child.tolist(),
                self.holds.tolist(),
                self.root.tolist(),
                self.classes,
            )
        return self._weights

    def forget(self) -> None:
        """Clear all caches; required after every change of the weights."""
        self._memory, self._remembered, self._weights = {}, 0, None

    def alignments(self, form: Form) -> list[Alignment]:
        """The alignments of a form, likeliest first, cached; empty if it has no derivation or too
        many yields.
        """
        return self._found(form)[0]

    def is_licensed(self, form: Form) -> bool:
        """Whether the alignments of a form come from derivations without an unlicensed step."""
        return self._found(form)[1]

    def _found(self, form: Form) -> tuple[list[Alignment], bool]:
        known = self._memory.get(form)
        if known is None:
            found, weights = [], self.weights()
            if self.licences is not None:
                found = alignments(self.grammar, weights, form, self.licences)
            licensed = bool(found) or self.licences is None
            found = found or alignments(self.grammar, weights, form)
            self._remembered += len(form) + sum(
                len(a.text) for a in found if isinstance(a.text, str)
            )
            if self._remembered > REMEMBERED:
                self.forget()
            self._memory[form] = known = found, licensed
        return known

    def tree(self, form: Form) -> Tree | None:
        """The likeliest derivation of a form; None if there is none."""
        found = None
        if self.licences is not None:
            found = best_tree(self.grammar, self.weights(), form, self.licences)
        return found or best_tree(self.grammar, self.weights(), form)

    def _load_from_state_dict(
        self, state: dict[str, Tensor], prefix: str, *arguments: object
    ) -> None:
        # models of earlier versions have no weights of rules at the root
        state.setdefault(f"{prefix}root", torch.zeros_like(self.root))
        super()._load_from_state_dict(state, prefix, *arguments)
        self.forget()
