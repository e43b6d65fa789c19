"""Description lengths in bits: of rules, and of pairs that the rules do not explain."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from equitrans.models.recursive.rules import HOLE, Rule
from equitrans.models.recursive.uses import PRIMITIVES, count_primitives

KIND = math.log2(3)
"""Bits of the kind of a sign: a hole, a word or the end on a left side; a place, a constant or the
end on a right side."""

PRIMITIVE = KIND + math.log2(len(PRIMITIVES))
"""Bits of a primitive: a sign before a place, and which one it is."""


@dataclass(frozen=True)
class Code:
    """A code for rules and exceptions."""

    symbols: int
    """Number of distinct source symbols."""
    targets: int
    """Number of distinct target words."""
    noise: float
    """Share of pairs that are wrong."""
    primitives: bool = False
    """Whether new rules may have primitives."""

    @cached_property
    def _symbol(self) -> float:
        return math.log2(self.symbols)

    @cached_property
    def _target(self) -> float:
        return math.log2(self.targets)

    def left(self, rule: Rule) -> float:
        """Bits of a left side."""
        words = len(rule.left) - rule.left.count(HOLE)
        return KIND * (len(rule.left) + 1) + words * self._symbol

    def rule(self, rule: Rule) -> float:
        """Bits of a rule."""
        place, constant = math.log2(len(rule.left)), self._target
        right = sum([place if k >= 0 else constant for k in rule.right])
        right += PRIMITIVE * count_primitives(rule.right)
        return self.left(rule) + KIND * (len(rule.right) + 1) + right

    def least(self, symbols: int) -> float:
        """The fewest bits of a rule with ``symbols`` symbols and holes on its left side."""
        return KIND * (symbols + 2) + self._symbol

    def least_place(self, symbols: int) -> float:
        """Bits of a place on the right side of a rule with ``symbols`` symbols on its left side."""
        return KIND + math.log2(symbols)

    def signs(self, signs: int, words: int, constants: int) -> float:
        """Bits of signs and ends, some of which are words and constants."""
        return KIND * signs + words * self._symbol + constants * self._target

    def rules(self, rules: Iterable[Rule]) -> float:
        """Bits of a set of rules. The first mention of a word is free, because both vocabularies
        are known.
        """
        rules = list(rules)
        named = {s for rule in rules for s in rule.words}
        written = {k for rule in rules for k in rule.right if k < 0}
        known = len(named) * math.log2(self.symbols) + len(written) * math.log2(self.targets)
        return sum(map(self.rule, rules)) - known

    def novelty(self, words: int) -> float:
        """Bits of a wrong pair whose form has no derivation: its whole target."""
        return self.wrong + KIND + words * (1 + math.log2(self.targets))

    def contradiction(self, words: int) -> float:
        """Bits of a wrong pair whose form derives another target: a change of one word."""
        return self.wrong + KIND + math.log2(self.targets) + math.log2(words + 1)

    @property
    def wrong(self) -> float:
        """Bits that mark a pair as wrong."""
        return -math.log2(self.noise)


def choice(some: int, all_: int) -> float:
    """Bits that tell which ``some`` of ``all_`` uses are of one kind: n·H(k/n).

    >>> choice(1, 2), choice(0, 5)
    (2.0, 0.0)
    """
    share = some / all_ if all_ else 0.0
    if not 0 < share < 1:
        return 0.0
    return -all_ * (share * math.log2(share) + (1 - share) * math.log2(1 - share))
