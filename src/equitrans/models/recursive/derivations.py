"""A log-linear distribution over the derivations of a form, and so over its alignments.

A derivation's score is the sum of the weights of its rules, of each (rule, hole, rule in the hole),
and of each (rule, hole, class inside the hole); p(derivation | ℓ(x)) ∝ exp(score), and p(a | ℓ(x))
is the sum over derivations with the yield a. Yields are kept up to a number and a share, so a form
with very many is given its likeliest ones, which then sum to one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from equitrans.models.recursive.rules import Form, Grammar, Span

KEPT = 16
"""So many yields of a span are kept for each rule at its root."""

FAINT = 14.0
"""A yield whose score lies so far below the best of its span is forgotten."""


@dataclass(frozen=True)
class Weights:
    """Weights by rule, by (rule, hole, child), and by (rule, hole, class)."""

    rule: list[float]
    child: list[list[list[float]]]
    holds: list[list[list[float]]]
    classes: tuple[int, ...]
    """The symbols that are classes, in the order of the last axis of ``holds``."""

    @classmethod
    def zero(cls, grammar: Grammar, classes: Sequence[int]) -> "Weights":
        """No derivation is preferred."""
        n, k = len(grammar), most_holes(grammar)
        return cls(
            [0.0] * n,
            [[[0.0] * n for _ in range(k)] for _ in range(n)],
            [[[0.0] * len(classes) for _ in range(k)] for _ in range(n)],
            tuple(classes),
        )


def most_holes(grammar: Grammar) -> int:
    """The largest number of holes in a rule, at least one."""
    return max([1, *(len(rule.holes) for rule in grammar.rules)])


@dataclass(frozen=True)
class Alignment:
    """A yield of a form and its log p(a | ℓ(x))."""

    text: str
    log_prob: float


@dataclass(frozen=True)
class Tree:
    """A derivation: the rule at its root, where its symbols lie, and the trees in its holes."""

    rule: int
    spans: tuple[Span, ...]
    children: tuple["Tree", ...]


def text_of(grammar: Grammar, tree: Tree) -> str:
    """The yield of a derivation."""
    rule = grammar.rules[tree.rule]
    texts = [text_of(grammar, child) for child in tree.children]
    return rule.join(tree.spans, dict(zip(rule.holes, texts, strict=True)))


Item = dict[str, float]


def alignments(grammar: Grammar, weights: Weights, form: Form) -> list[Alignment]:
    """The alignments of a form, likeliest first; none if the grammar has no derivation of it."""
    chart = _chart(grammar, weights, form)
    whole: Item = {}
    for item in chart.get((0, len(form)), {}).values():
        for text, score in item.items():
            whole[text] = _add(whole[text], score) if text in whole else score
    if not whole:
        return []
    ranked = sorted(whole.items(), key=lambda item: (-item[1], item[0]))[:KEPT]
    best = ranked[0][1]
    total = best + math.log(math.fsum(math.exp(score - best) for _, score in ranked))
    return [Alignment(text, score - total) for text, score in ranked]


def _chart(grammar: Grammar, weights: Weights, form: Form) -> dict[Span, dict[int, Item]]:
    """For every span and every rule at its root, yields and their scores."""
    chart: dict[Span, dict[int, Item]] = {}
    fillings: dict[tuple[int, int, Span], Item] = {}
    for span, analyses in grammar.analyses(form).items():
        here: dict[int, Item] = {}
        for r, spans in analyses:
            rule = grammar.rules[r]
            below = []
            for k, hole in enumerate(rule.holes):
                key = (r, k, spans[hole])
                if key not in fillings:
                    fillings[key] = _fill(chart[spans[hole]], weights, form, key)
                below.append(fillings[key])
            item = here.setdefault(r, {})
            for kids in product(*(b.items() for b in below)):
                text = rule.join(spans, dict(zip(rule.holes, (t for t, _ in kids), strict=True)))
                score = weights.rule[r] + sum(s for _, s in kids)
                item[text] = _add(item[text], score) if text in item else score
        chart[span] = {r: _prune(item) for r, item in here.items()}
    return chart


def _fill(below: dict[int, Item], weights: Weights, form: Form, key: tuple[int, int, Span]) -> Item:
    """The yields of a hole: those of its span, whatever rule is at the root."""
    r, k, span = key
    extra = held(weights, form, r, k, span)
    merged: Item = {}
    for child, item in below.items():
        more = extra + weights.child[r][k][child]
        for text, score in item.items():
            score += more
            merged[text] = _add(merged[text], score) if text in merged else score
    return _prune(merged)


def held(weights: Weights, form: Form, r: int, k: int, span: Span) -> float:
    """The weight of the classes inside a hole."""
    inside = set(form[span[0] : span[1]])
    return math.fsum(
        w for c, w in zip(weights.classes, weights.holds[r][k], strict=True) if c in inside
    )


def _prune(item: Item) -> Item:
    if len(item) == 1:
        return item
    best = max(item.values())
    kept = {text: s for text, s in item.items() if s > best - FAINT}
    if len(kept) > KEPT:
        kept = dict(sorted(kept.items(), key=lambda entry: (-entry[1], entry[0]))[:KEPT])
    return kept


def _add(a: float, b: float) -> float:
    """log(exp a + exp b)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def best_tree(grammar: Grammar, weights: Weights, form: Form) -> Tree | None:
    """The likeliest derivation of a form; None if there is none."""
    best: dict[Span, dict[int, tuple[float, Tree]]] = {}
    for span, analyses in grammar.analyses(form).items():
        here: dict[int, tuple[float, Tree]] = {}
        for r, spans in analyses:
            score, children = weights.rule[r], []
            for k, hole in enumerate(grammar.rules[r].holes):
                value, child = max(
                    (
                        (s + weights.child[r][k][c], tree)
                        for c, (s, tree) in best[spans[hole]].items()
                    ),
                    key=lambda pair: (pair[0], -pair[1].rule),
                )
                score += value + held(weights, form, r, k, spans[hole])
                children.append(child)
            if r not in here or score > here[r][0]:
                here[r] = (score, Tree(r, spans, tuple(children)))
        best[span] = here
    whole = best.get((0, len(form)))
    if whole is None:
        return None
    return max(whole.values(), key=lambda pair: (pair[0], -pair[1].rule))[1]
