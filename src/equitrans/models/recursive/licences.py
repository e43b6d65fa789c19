"""Licences: which rule may stand in which place, and the categories that follow.

A place is a hole of a rule, or the root of a derivation. A pair *needs* a rule in a place if its
target has no derivation without it. Places that share rules accept each other's rules: a place
accepts a rule if a walk from the place to a rule that stands there, on to another place of that
rule, finds the rule there. A rule that only joins or repeats its parts (``□ and □ → 0 2``) stands
where its parts may stand, and the reverse. Any other combination is *unlicensed*: nothing suggests
it.

Rules that the same places accept have the same category.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from equitrans.models.recursive.chart import Tree
from equitrans.models.recursive.rules import Form, Grammar, Rule, Span

Place = tuple[int, int]
"""A rule and the number of one of its holes."""

ROOT: Place = (-1, 0)
"""The place of the rule at the root of a derivation."""

Step = tuple[int, int, int]
"""A place, as a rule and the number of its hole, and the rule that stands there."""


def steps(grammar: Grammar, tree: Tree) -> Iterable[Step]:
    """The rule in each place of a derivation, the root first."""
    yield (*ROOT, tree.rule)
    for node in tree.nodes():
        holes = grammar.rules[node.rule].holes
        for place, child in node.children:
            yield node.rule, holes.index(place), child.rule


@dataclass(frozen=True)
class Licences:
    """The rules that pairs need in each place, and what follows from them.

    >>> twice, room = Rule((-1, 7), (0, 0)), Rule((8, -1), (~1, 1))
    >>> grammar = Grammar([Rule((5,), (0,)), Rule((6,), (0,)), twice, room])
    >>> licences = Licences(grammar, frozenset({(-1, 0, 2), (-1, 0, 3), (2, 0, 0), (3, 0, 1)}))
    >>> [licences.accepts(ROOT, r) for r in range(4)]
    [True, False, True, True]
    """

    grammar: Grammar
    needed: frozenset[Step]
    lost: frozenset[Step] = frozenset()
    """Combinations that some training forms could have and that no training target has."""

    @cached_property
    def tables(self) -> tuple[dict[Place, frozenset[int]], dict[Place, frozenset[int]]]:
        """The rules that pairs need in each place, and those that lost there."""
        return _by_place(self.needed), _by_place(self.lost)

    @property
    def rules_of(self) -> dict[Place, frozenset[int]]:
        """The rules that pairs need in each place."""
        return self.tables[0]

    @cached_property
    def accepted(self) -> dict[Place, frozenset[int]]:
        """The rules that each place accepts."""
        groups = _groups(self.grammar, self.rules_of)
        together: dict[Place, set[int]] = {}
        for place, rules in self.rules_of.items():
            together.setdefault(groups[place], set()).update(rules)
        places: dict[int, list[Place]] = {}
        for place, members in together.items():
            for rule in members:
                places.setdefault(rule, []).append(place)
        found = {
            place: frozenset[int]().union(*(together[p] for rule in members for p in places[rule]))
            for place, members in together.items()
        }
        return {place: found[groups[place]] for place in self.rules_of}

    def accepts(self, place: Place, rule: int) -> bool:
        """Whether a rule may stand in a place."""
        return rule in self.accepted.get(place, ())

    def speak_for(self, form: Form) -> bool:
        """Whether a form has a licensed derivation without a combination that lost."""
        found: dict[Span, set[int]] = {}
        for span, analyses in self.grammar.analyses(form).items():
            found[span] = here = set[int]()
            for r, spans in analyses:
                holes = enumerate(self.grammar.rules[r].holes)
                if r not in here and all(self._holds((r, k), found[spans[p]]) for k, p in holes):
                    here.add(r)
        return self._holds(ROOT, found.get((0, len(form)), set()))

    def _holds(self, place: Place, rules: Iterable[int]) -> bool:
        """Whether a place accepts one of some rules that did not lose there."""
        return any(self.accepts(place, r) and (*place, r) not in self.lost for r in rules)

    @cached_property
    def categories(self) -> tuple[frozenset[int], ...]:
        """Groups of rules that the same places accept, in the order of their first rules."""
        groups: dict[frozenset[Place], list[int]] = {}
        for rule in sorted({child for _, _, child in self.needed}):
            places = frozenset(p for p, rules in self.accepted.items() if rule in rules)
            groups.setdefault(places, []).append(rule)
        return tuple(map(frozenset, groups.values()))

    def category(self, rule: int) -> int | None:
        """The number of a rule's category; None if no pair needs the rule."""
        return next((c for c, rules in enumerate(self.categories) if rule in rules), None)

    def of(self, place: Place) -> tuple[int, ...]:
        """The numbers of the categories that a place accepts."""
        accepted = self.accepted.get(place, frozenset())
        return tuple(c for c, rules in enumerate(self.categories) if rules & accepted)


def _by_place(steps: Iterable[Step]) -> dict[Place, frozenset[int]]:
    found: dict[Place, set[int]] = {}
    for r, k, child in steps:
        found.setdefault((r, k), set()).add(child)
    return {place: frozenset(rules) for place, rules in found.items()}


def _groups(grammar: Grammar, rules_of: Mapping[Place, Iterable[int]]) -> dict[Place, Place]:
    """For each place, the first of the places that stand for each other: a place in which a rule
    stands that only joins or repeats its parts, and the places of these parts.
    """
    first = {place: place for place in rules_of}

    def find(place: Place) -> Place:
        while first[place] != place:
            place = first[place]
        return place

    for place, rules in rules_of.items():
        for r in rules:
            if _only_joins(grammar.rules[r]):
                for k in range(len(grammar.rules[r].holes)):
                    if (r, k) in first:
                        first[find((r, k))] = find(place)
    return {place: find(place) for place in rules_of}


def _only_joins(rule: Rule) -> bool:
    """Whether a right side consists of holes, and mentions all of them."""
    primitives = {use.number: use.place for use in rule.uses if use.primitives}
    return bool(rule.holes) and {primitives.get(k, k) for k in rule.right} == set(rule.holes)
