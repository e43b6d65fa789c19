"""Why a sentence has no derivation: what was derived, and the nearest rule."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from equitrans.errors import named, shown
from equitrans.models.recursive.chart import Tree
from equitrans.models.recursive.io import Names
from equitrans.models.recursive.licences import ROOT, Licences, Place
from equitrans.models.recursive.names import accepted
from equitrans.models.recursive.rules import HOLE, Form, Grammar, Span

SHOWN = 4
"""Largest number of parts that a reason names."""


class Part(NamedTuple):
    """A span of the sentence: a constituent, or a word that is in none."""

    start: int
    stop: int
    is_derived: bool


def no_derivation(grammar: Grammar, form: Form, words: Sequence[str], names: Names) -> str:
    """One line: what no rule joins, what was derived, and the nearest rule."""
    if not grammar.rules:
        return "the model has no rules"
    parts = fewest_parts(len(form), grammar.analyses(form))
    lost = [form[p.start] for p in parts if not p.is_derived]
    unused = [s for s in lost if not any(s in rule.words for rule in grammar.rules)]
    if unused:
        return f"no rule contains {shown(words[form.index(unused[0])])}"
    quoted = [shown(" ".join(words[p.start : p.stop])) for p in parts]
    if len(parts) == 1:
        reason = f"no rule derives {quoted[0]}"
    else:
        reason = f"no rule joins {_enumerated(quoted)}"
    derived = [
        f"{text} ({_place(p)})" for p, text in zip(parts, quoted, strict=True) if p.is_derived
    ]
    if derived:
        more = ", …" if len(derived) > SHOWN else ""
        reason += f"; derived: {', '.join(derived[:SHOWN])}{more}"
    pattern = [HOLE if p.is_derived else form[p.start] for p in parts]
    near = [rule for rule in grammar.rules if rule.words & set(lost)]
    if near:
        best = max(near, key=lambda rule: SequenceMatcher(None, rule.left, pattern).ratio())
        reason += f"; nearest rule: {named(names.rule(best))}"
    return reason


def unlicensed(
    grammar: Grammar, licences: Licences, tree: Tree, words: Sequence[str], names: Names
) -> str:
    """One line: the first part of a derivation that stands where nothing suggests it."""
    categories = names.categories(grammar, licences)

    def refused(place: Place, child: Tree) -> str | None:
        if licences.accepts(place, child.rule):
            return None
        part, number = shown(" ".join(words[slice(*child.span)])), licences.category(child.rule)
        kind = "" if number is None else f" ({categories[number]})"
        if place == ROOT:
            return f"{part}{kind} cannot stand by itself: no training sentence is like it"
        others = " or ".join(accepted(licences, categories, place))
        rule = grammar.rules[place[0]]
        left = names.left(rule, {place[1]: others})
        return f"{part}{kind} cannot stand where {others} stands: {named(left)}"

    found = refused(ROOT, tree)
    for node in tree.nodes():
        holes = grammar.rules[node.rule].holes
        for k, child in node.children:
            found = found or refused((node.rule, holes.index(k)), child)
    assert found is not None
    return found


def fewest_parts(n: int, spans: Iterable[Span]) -> list[Part]:
    """The fewest parts that a sentence of ``n`` words divides into, with few words that are in no
    constituent.

    >>> fewest_parts(3, [(0, 1), (1, 2), (0, 2)])
    [Part(start=0, stop=2, is_derived=True), Part(start=2, stop=3, is_derived=False)]
    """
    starts: list[list[int]] = [[] for _ in range(n + 1)]
    for i, j in spans:
        starts[j].append(i)
    best: list[tuple[int, int]] = [(0, 0)]
    last: list[Part] = []
    for j in range(1, n + 1):
        (parts, lost), part = best[j - 1], Part(j - 1, j, False)
        cost = (parts + 1, lost + 1)
        for i in starts[j]:
            if (other := (best[i][0] + 1, best[i][1])) < cost:
                cost, part = other, Part(i, j, True)
        best.append(cost)
        last.append(part)
    found: list[Part] = []
    while n:
        found.append(last[n - 1])
        n = found[-1].start
    return found[::-1]


def _enumerated(texts: Sequence[str]) -> str:
    """The texts as an English list, shortened."""
    if len(texts) > SHOWN:
        return f"{', '.join(texts[:SHOWN])} and {len(texts) - SHOWN} more parts"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _place(part: Part) -> str:
    first, last = part.start + 1, part.stop
    return f"word {first}" if first == last else f"words {first} to {last}"
