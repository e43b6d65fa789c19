"""Licences: which rule may stand in which place, and the categories that follow.

A place is a hole of a rule, or the root of a derivation. A pair *needs* a rule in a place if its
target has no derivation without it. Places that share rules accept each other's rules: a place
accepts a rule if a walk from the place to a rule that stands there, on to another place of that
rule, finds the rule there. Any other combination is *unlicensed*: nothing suggests it.

Rules that the same places accept have the same category.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from equitrans.models.recursive.chart import Tree
from equitrans.models.recursive.rules import Grammar

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

    >>> licences = Licences(frozenset({(-1, 0, 0), (-1, 0, 1), (1, 0, 0), (2, 0, 3)}))
    >>> licences.accepts((1, 0), 1), licences.accepts((1, 0), 3)
    (True, False)
    """

    needed: frozenset[Step]

    @cached_property
    def rules_of(self) -> dict[Place, frozenset[int]]:
        """The rules that pairs need in each place."""
        found: dict[Place, set[int]] = {}
        for r, k, child in self.needed:
            found.setdefault((r, k), set()).add(child)
        return {place: frozenset(rules) for place, rules in found.items()}

    @cached_property
    def accepted(self) -> dict[Place, frozenset[int]]:
        """The rules that each place accepts."""
        places: dict[int, list[Place]] = {}
        for place, rules in self.rules_of.items():
            for rule in rules:
                places.setdefault(rule, []).append(place)
        return {
            place: frozenset[int]().union(
                *(self.rules_of[p] for rule in rules for p in places[rule])
            )
            for place, rules in self.rules_of.items()
        }

    def accepts(self, place: Place, rule: int) -> bool:
        """Whether a rule may stand in a place."""
        return rule in self.accepted.get(place, ())

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
