"""Parsing under a target: which yields of a form's parts can be pieces of a given target."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from equitrans.models.recursive.rules import Form, Grammar, Span

Target = tuple[str, ...]
"""For each target word, the atoms it may come from: positions, or a constant. More than one where
the data leave it open."""

_KEPT = 60
"""So many yields of a span are kept; only targets that are open in many places have more."""


class Pieces:
    """Where yields fit into a target.

    >>> pieces = Pieces(("a", "ab", "b"))
    >>> pieces.fits("ab"), pieces.fits("ba"), pieces.at("b", 1)
    (True, False, True)
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._plain = "".join(target) if all(len(atoms) == 1 for atoms in target) else None
        self._memory: dict[str, bool] = {}

    def at(self, piece: str, start: int) -> bool:
        """Whether a yield fits at a place."""
        if self._plain is not None:
            return self._plain.startswith(piece, start)
        if start + len(piece) > len(self.target):
            return False
        return all(a in atoms for a, atoms in zip(piece, self.target[start:], strict=False))

    def fits(self, piece: str) -> bool:
        """Whether a yield fits anywhere."""
        if self._plain is not None:
            return piece in self._plain
        known = self._memory.get(piece)
        if known is None:
            last = len(self.target) - len(piece)
            known = any(self.at(piece, start) for start in range(last + 1))
            self._memory[piece] = known
        return known

    def whole(self, piece: str) -> bool:
        """Whether a yield is the target."""
        return len(piece) == len(self.target) and self.at(piece, 0)


def meet(one: Target, other: Target) -> Target | None:
    """What two targets allow both; None if nothing.

    >>> meet(("ab", "c"), ("b", "cd")), meet(("a",), ("b",))
    (('b', 'c'), None)
    """
    if one == other:
        return one
    if len(one) != len(other):
        return None
    common = tuple("".join(a for a in x if a in y) for x, y in zip(one, other, strict=True))
    return common if all(common) else None


Step = tuple[float, int, tuple[Span, ...], tuple[str, ...]]
"""Cost so far, the rule, where its symbols lie, and the yields of the holes it uses."""


@dataclass(frozen=True)
class Parse:
    """A form under a target: derivable spans, and the yields of each that fit the target, every
    one with its cheapest derivation.
    """

    form: Form
    target: Target
    spans: frozenset[Span]
    yields: dict[Span, dict[str, Step]]
    grammar: Grammar

    @cached_property
    def pieces(self) -> Pieces:
        """Where yields fit."""
        return Pieces(self.target)

    @cached_property
    def root(self) -> str | None:
        """The cheapest yield of the whole form that is the target; None if there is none."""
        whole = self.yields.get((0, len(self.form)), {})
        right = [y for y in whole if self.pieces.whole(y)]
        return min(right, key=lambda y: (whole[y][0], y), default=None)

    def steps(self) -> Iterator[tuple[Span, str]]:
        """The spans and yields of the cheapest derivation of the target, from the root down."""
        if self.root is None:
            return
        agenda = [((0, len(self.form)), self.root)]
        while agenda:
            span, text = agenda.pop()
            yield span, text
            _, r, spans, kids = self.yields[span][text]
            agenda += zip((spans[k] for k in self.grammar.rules[r].used), kids, strict=True)

    def rules(self) -> list[int]:
        """The rules of the cheapest derivation, as often as they are used."""
        return [self.yields[span][text][1] for span, text in self.steps()]


def parse(grammar: Grammar, form: Form, target: Target) -> Parse:
    """Everything that a grammar can make of a form and that is a piece of the target.

    A derivation costs one for each rule in it, so the cheapest is the shortest.
    """
    pieces, most = Pieces(target), len(target)
    found: dict[Span, dict[str, Step]] = {}
    spans = grammar.analyses(form)
    for span, analyses in spans.items():
        here: dict[str, Step] = {}
        for r, places in analyses:
            rule = grammar.rules[r]
            used = rule.used
            below = [found[places[k]] for k in used if places[k] in found]
            if len(below) < len(used):
                continue
            for kids in product(*below):
                text = rule.join(places, dict(zip(used, kids, strict=True)))
                if len(text) > most:
                    continue
                cost = 1.0 + sum(b[kid][0] for b, kid in zip(below, kids, strict=True))
                known = here.get(text)
                if known is not None:
                    if cost < known[0]:
                        here[text] = (cost, r, places, kids)
                elif pieces.fits(text):
                    here[text] = (cost, r, places, kids)
        if here:
            if len(here) > _KEPT:
                kept = sorted(here, key=lambda y: (here[y][0], y))[:_KEPT]
                here = {y: here[y] for y in kept}
            found[span] = here
    return Parse(form, target, frozenset(spans), found, grammar)
