"""All derivations of many forms, packed: what the weights of derivations are trained on.

Two kinds of nodes take turns: a *rule node* (a part of a form, and the rule at its root) sums over
the ways to lay the rule; a *hole node* (a rule's hole, and the part in it) sums over the rules at
the root of that part. A node's value is the log of the sum over its edges of exp(weights + values
of the edge's own nodes). Parts that forms share are packed once. Under a target, nodes know their
yields as well, and only yields that fit are kept.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from equitrans.models.recursive.derivations import most_holes
from equitrans.models.recursive.parsing import Target, parse
from equitrans.models.recursive.rules import Form, Grammar, Span


@dataclass
class Forest:
    """Nodes in the order of their levels; an edge has features and nodes of lower levels.

    Features are numbered: rules first, then (rule, hole, child), then (rule, hole, class).
    """

    grammar: Grammar
    classes: tuple[int, ...]
    levels: list[int] = field(default_factory=list)
    """The level of each node."""
    edges: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    """Of each edge: the node it belongs to, its features, the nodes below."""
    _nodes: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._holes = most_holes(self.grammar)

    def _node(self, key: Hashable, level: int) -> tuple[int, bool]:
        """The number of a node, and whether it is new."""
        known = self._nodes.get(key)
        if known is not None:
            return known, False
        self._nodes[key] = number = len(self.levels)
        self.levels.append(level)
        return number, True

    def _slot(self, r: int, k: int) -> int:
        return r * self._holes + k

    def _child(self, r: int, k: int, child: int) -> int:
        n = len(self.grammar)
        return n + self._slot(r, k) * n + child

    def _holds(self, r: int, k: int, part: Form) -> tuple[int, ...]:
        n = len(self.grammar)
        start = n + n * self._holes * n + self._slot(r, k) * len(self.classes)
        return tuple(start + c for c, symbol in enumerate(self.classes) if symbol in part)

    def add(self, form: Form) -> int:
        """All derivations of a form; gives the node of the whole."""
        spans = self.grammar.analyses(form)
        for (i, j), analyses in spans.items():
            part = form[i:j]
            if part in self._nodes:
                continue
            self._nodes[part] = -1
            for r, places in analyses:
                node, _ = self._node((part, r), 2 * len(part) - 1)
                below = []
                for k, hole in enumerate(self.grammar.rules[r].holes):
                    p, q = places[hole]
                    inner = form[p:q]
                    number, new = self._node((inner, r, k), 2 * len(inner))
                    below.append(number)
                    if new:
                        holds = self._holds(r, k, inner)
                        for child in dict.fromkeys(c for c, _ in spans[p, q]):
                            features = (self._child(r, k, child), *holds)
                            lower = self._nodes[inner, child]
                            self.edges.append((number, features, (lower,)))
                self.edges.append((node, (r,), tuple(below)))
        return self._top(form, [(form, r) for r, _ in spans.get((0, len(form)), ())])

    def add_under(self, form: Form, target: Target) -> int | None:
        """The derivations of a form that yield a target; None if there are none."""
        known = self._nodes.get(("top", (form, target)))
        if known is not None:
            return known
        parsed = parse(self.grammar, form, target)
        if parsed.root is None:
            return None
        pieces = parsed.pieces
        made: dict[tuple[Span, str], list[int]] = {}
        for span, analyses in self.grammar.analyses(form).items():
            for r, places in analyses:
                rule = self.grammar.rules[r]
                options = [
                    [y for y in parsed.yields.get(places[k], ()) if (places[k], y) in made]
                    if k in rule.used
                    else [None]
                    for k in rule.holes
                ]
                for kids in product(*options):
                    values = {k: y for k, y in zip(rule.holes, kids, strict=True) if y is not None}
                    text = rule.join(places, values)
                    if text not in parsed.yields.get(span, ()):
                        continue
                    key = (form, target, span, text, r)
                    node, new = self._node(key, 2 * (span[1] - span[0]) - 1)
                    if new:
                        made.setdefault((span, text), []).append(r)
                    below = tuple(
                        self._hole_under(form, target, r, k, places[hole], kid, made)
                        for k, (hole, kid) in enumerate(zip(rule.holes, kids, strict=True))
                    )
                    self.edges.append((node, (r,), below))
        whole = (0, len(form))
        keys = [
            (form, target, whole, text, r)
            for (span, text), rules in made.items()
            if span == whole and pieces.whole(text)
            for r in rules
        ]
        return self._top((form, target), keys)

    def _hole_under(
        self,
        form: Form,
        target: Target,
        r: int,
        k: int,
        span: Span,
        text: str | None,
        made: dict[tuple[Span, str], list[int]],
    ) -> int:
        """The node of a hole with a yield, or, if the right side does not name it, with any."""
        inner = form[span[0] : span[1]]
        if text is None:
            # whatever stands there: as in a forest without a target
            self.add(inner)
            number, new = self._node((inner, r, k), 2 * len(inner))
            rules: Iterable[int] = dict.fromkeys(
                c for c, _ in self.grammar.analyses(inner)[0, len(inner)]
            )
            lower = [self._nodes[inner, c] for c in rules]
        else:
            key = (form, target, span, text, r, k)
            number, new = self._node(key, 2 * len(inner))
            rules = made[span, text]
            lower = [self._nodes[form, target, span, text, c] for c in rules]
        if new:
            holds = self._holds(r, k, inner)
            for child, node in zip(rules, lower, strict=True):
                self.edges.append((number, (self._child(r, k, child), *holds), (node,)))
        return number

    def _top(self, key: Hashable, roots: Sequence[Hashable]) -> int:
        """A node over all rules at the root."""
        level = max((self.levels[self._nodes[root]] for root in roots), default=0) + 1
        node, new = self._node(("top", key), level)
        if new:
            for root in dict.fromkeys(roots):
                self.edges.append((node, (), (self._nodes[root],)))
        return node
