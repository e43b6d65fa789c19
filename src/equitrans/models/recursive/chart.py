"""The chart of a form: derivations summed under a semiring, and parses under a target.

``Grammar.analyses`` gives the packed chart: each derivable span with the rules at its root.
``inside`` walks it once, from small spans to large ones, and the semiring says what is computed:
the aligner sums over the derivations of each yield or takes the best derivation. ``parse`` is a
separate walk, because learning spends most of its time there: it ignores the rule at the root of a
hole and keeps only yields that are pieces of a given target.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Generic, TypeVar

from equitrans.models.recursive.rules import Form, Grammar, Span, Yield
from equitrans.models.recursive.uses import VARIABLE, constant, operate
from equitrans.settings import LONGEST_PREDICTION

W = TypeVar("W")


@dataclass(frozen=True)
class Tree:
    """A derivation: the rule at its root, the spans of the rule's symbols, the trees in its holes.

    A child comes with the place of its hole in the left side. The tree of a parse leaves out
    holes that the right side does not mention.
    """

    rule: int
    spans: tuple[Span, ...]
    children: tuple[tuple[int, "Tree"], ...]

    @property
    def span(self) -> Span:
        """The span of the root; no other node of a derivation has it."""
        return self.spans[0][0], self.spans[-1][1]

    def nodes(self) -> Iterator["Tree"]:
        """The tree and all trees below it, every tree before those below it."""
        agenda = [self]
        while agenda:
            yield (node := agenda.pop())
            agenda += [child for _, child in node.children]

    def fold(self, value: Callable[["Tree", dict[int, W]], W]) -> W:
        """The value of the root, where the value of a tree is a function of the tree and the values
        of the trees in its holes. Derivations may be deeper than Python's recursion limit.
        """
        found: dict[Span, W] = {}
        for node in reversed(list(self.nodes())):
            found[node.span] = value(node, {k: found[child.span] for k, child in node.children})
        return found[self.span]


def yield_of(grammar: Grammar, tree: Tree) -> Yield:
    """The yield of a derivation; its length if it is longer than LONGEST_PREDICTION."""
    return tree.fold(lambda node, below: grammar.rules[node.rule].join(node.spans, below))


def origins_of(grammar: Grammar, tree: Tree) -> list[int]:
    """The source position of every word of the yield; for a constant, its rule's first word."""

    def origins(node: Tree, below: dict[int, list[tuple[str, int]]]) -> list[tuple[str, int]]:
        rule = grammar.rules[node.rule]
        own = {k: [(chr(i), i)] for k, (i, _) in enumerate(node.spans) if k not in below}
        anchor = node.spans[rule.anchor][0]
        parts = {**own, **below}
        return operate(rule.right, parts, lambda word: [(constant(word), anchor)], [])

    return [origin for _, origin in tree.fold(origins)]


V = TypeVar("V")


class Semiring(ABC, Generic[V]):
    """The operations of a walk: a value for each span and rule at its root."""

    @abstractmethod
    def hole(self, r: int, k: int, part: Form, below: dict[int, V]) -> V:
        """The sum over the rules at the root of the part in hole ``k`` of rule ``r``."""

    @abstractmethod
    def rule(self, r: int, spans: tuple[Span, ...], holes: list[V], total: V | None) -> V:
        """``total`` plus the product of rule ``r`` with the values of its holes."""

    def prune(self, total: V) -> V:
        """The value without the summands that are too small to keep."""
        return total


def inside(grammar: Grammar, form: Form, semiring: Semiring[V]) -> dict[int, V]:
    """The value of a form for each rule at its root; empty if the form has no derivation."""
    chart: dict[Span, dict[int, V]] = {}
    fillings: dict[tuple[int, int, Span], V] = {}
    for span, analyses in grammar.analyses(form).items():
        here: dict[int, V] = {}
        chart[span] = here  # a rule that is a single hole has the span of what is in it
        for r, spans in analyses:
            holes = []
            for k, place in enumerate(grammar.rules[r].holes):
                inner = spans[place]
                key = (r, k, inner)
                if key not in fillings:
                    part = form[inner[0] : inner[1]]
                    fillings[key] = semiring.hole(r, k, part, chart[inner])
                holes.append(fillings[key])
            here[r] = semiring.rule(r, spans, holes, here.get(r))
        chart[span] = {r: semiring.prune(total) for r, total in here.items()}
    return chart.get((0, len(form)), {})


# --- parses under a target

Target = tuple[str, ...]
"""For each target word, the atoms it may come from: positions, or a constant. It has several atoms
where the data do not determine the origin."""

KEPT_YIELDS = 60
"""Largest number of yields of a span in a parse; only ambiguous targets have more."""


_VARIABLE = constant(VARIABLE)


class Pieces:
    """Decides where yields fit into a target.

    >>> pieces = Pieces(("a", "ab", "b"))
    >>> pieces.fits("ab"), pieces.fits("ba"), pieces.at("b", 1)
    (True, False, True)
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._plain = "".join(target) if all(len(atoms) == 1 for atoms in target) else None
        self._cache: dict[str, bool] = {}

    def at(self, piece: str, start: int) -> bool:
        """Whether a yield fits at a place."""
        if self._plain is not None:
            return self._plain.startswith(piece, start)
        if start + len(piece) > len(self.target):
            return False
        return all(a in atoms for a, atoms in zip(piece, self.target[start:], strict=False))

    def starts(self, piece: str) -> list[int]:
        """All places where a yield fits.

        >>> Pieces(("a", "b", "a", "b")).starts("ab")
        [0, 2]
        """
        if self._plain is None:
            last = len(self.target) - len(piece)
            return [start for start in range(last + 1) if self.at(piece, start)]
        found = []
        start = self._plain.find(piece)
        while start >= 0:
            found.append(start)
            start = self._plain.find(piece, start + 1)
        return found

    def fits(self, piece: str) -> bool:
        """Whether a yield fits anywhere; of one with a variable, whether all its parts do."""
        if _VARIABLE in piece:
            return all(map(self.fits, piece.split(_VARIABLE)))
        if self._plain is not None:
            return piece in self._plain
        known = self._cache.get(piece)
        if known is None:
            last = len(self.target) - len(piece)
            known = any(self.at(piece, start) for start in range(last + 1))
            self._cache[piece] = known
        return known

    def whole(self, piece: str) -> bool:
        """Whether a yield fits the whole target."""
        return len(piece) == len(self.target) and self.at(piece, 0)


def meet(one: Target, other: Target) -> Target | None:
    """The target that allows what both targets allow; None if a word has no common atom.

    >>> meet(("ab", "c"), ("b", "cd")), meet(("a",), ("b",))
    (('b', 'c'), None)
    """
    if one == other:
        return one
    if len(one) != len(other):
        return None
    common = []
    for x, y in zip(one, other, strict=True):
        both = x if x == y else "".join([a for a in x if a in y])
        if not both:
            return None
        common.append(both)
    return tuple(common)


Step = tuple[float, int, tuple[Span, ...], tuple[str, ...]]
"""The cost of a derivation, its rule, the spans of the rule's symbols, the yields of used holes."""


@dataclass(frozen=True)
class Parse:
    """The derivable spans of a form, and for each span the yields that fit the target, every one
    with the last step of its cheapest derivation.
    """

    form: Form
    target: Target
    spans: frozenset[Span]
    yields: dict[Span, dict[str, Step]]
    grammar: Grammar

    @cached_property
    def pieces(self) -> Pieces:
        """Decides where yields fit."""
        return Pieces(self.target)

    @cached_property
    def root(self) -> str | None:
        """The cheapest yield of the whole form that fits the target; None if none fits."""
        whole = self.yields.get((0, len(self.form)), {})
        right = [y for y in whole if self.pieces.whole(y)]
        return min(right, key=lambda y: (whole[y][0], y), default=None)

    @property
    def derives_form(self) -> bool:
        """Whether the form has a derivation, whatever its yield."""
        return (0, len(self.form)) in self.spans

    def tree(self) -> Tree | None:
        """The cheapest derivation of the target; None if it has none."""
        if self.root is None:
            return None
        agenda = [((0, len(self.form)), self.root)]
        for span, text in agenda:  # it grows while it is read: parts come after the whole
            _, r, spans, texts = self.yields[span][text]
            used = zip(self.grammar.rules[r].used, texts, strict=True)
            agenda += [(spans[k], below) for k, below in used]
        trees: dict[Span, Tree] = {}
        for span, text in reversed(agenda):
            _, r, spans, _ = self.yields[span][text]
            children = tuple((k, trees[spans[k]]) for k in self.grammar.rules[r].used)
            trees[span] = Tree(r, spans, children)
        return trees[0, len(self.form)]

    def rules(self) -> set[int]:
        """The rules of the cheapest derivation of the target; empty if it has none."""
        tree = self.tree()
        return set() if tree is None else {node.rule for node in tree.nodes()}


def parse(grammar: Grammar, form: Form, target: Target, *, primitives: bool = False) -> Parse:
    """Parse a form: find all yields of its spans that are pieces of the target; all yields if
    primitives may take any words of them.

    A derivation costs one for each rule in it, so the cheapest derivation is the shortest.
    """
    primitives = primitives or any(rule.has_primitives for _, rule in grammar.usable(form))
    pieces, most = Pieces(target), LONGEST_PREDICTION if primitives else len(target)
    found: dict[Span, dict[str, Step]] = {}
    spans = grammar.analyses(form)
    for span, analyses in spans.items():
        here: dict[str, Step] = {}
        found[span] = here
        for r, places in analyses:
            rule = grammar.rules[r]
            used = rule.used
            below = [found[places[k]] for k in used if places[k] in found]
            if len(below) < len(used):
                continue
            for texts in product(*below):
                text = rule.join(places, dict(zip(used, texts, strict=True)), most)
                if isinstance(text, int):
                    continue
                cost = 1.0 + sum(b[t][0] for b, t in zip(below, texts, strict=True))
                known = here.get(text)
                if known is not None:
                    if cost < known[0]:
                        here[text] = (cost, r, places, texts)
                elif primitives or pieces.fits(text):
                    here[text] = (cost, r, places, texts)
        if not here:
            del found[span]
        elif len(here) > KEPT_YIELDS:
            kept = sorted(here, key=lambda y: (not pieces.fits(y), here[y][0], y))[:KEPT_YIELDS]
            found[span] = {y: here[y] for y in kept}
    return Parse(form, target, frozenset(spans), found, grammar)
