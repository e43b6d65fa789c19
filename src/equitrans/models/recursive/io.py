"""What was learned, as it is kept and shown: rules with their support, exceptions, warnings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from equitrans.data import Pair
from equitrans.errors import DataError, EquitransError, shown
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.paper import Symmetry

LARGEST = 2**53
"""Beyond it a float does not tell a number from the next."""


@dataclass(frozen=True)
class Learned:
    """A grammar and the evidence for it."""

    grammar: Grammar
    support: tuple[int, ...]
    """For each rule, how many distinct pairs use it."""
    pairs: int
    """How many distinct pairs there were."""
    exceptions: tuple[tuple[Pair, str], ...] = ()
    """Pairs that are not explained, and why."""
    warnings: tuple[str, ...] = ()
    bits: float = 0.0
    noise: float = 0.5
    """The share of pairs that is taken to be wrong; at most a half."""

    @classmethod
    def nothing(cls) -> "Learned":
        """Before learning."""
        return cls(Grammar(), (), 0)


@dataclass(frozen=True)
class Node:
    """A rule of a derivation, and the span of source words that it covers."""

    rule: str
    support: int
    """Number of distinct training pairs whose derivation uses the rule."""
    start: int
    stop: int
    children: tuple["Node", ...]

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "Node"]]:
        """All nodes with their depths, root first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(frozen=True)
class Derivation:
    """The likeliest derivation of a sentence."""

    source: tuple[str, ...]
    root: Node
    alignments: int
    """Number of alignments that the grammar gives the sentence."""

    def __str__(self) -> str:
        return "\n".join(
            f"{'  ' * depth}{' '.join(self.source[n.start : n.stop])}   [{n.rule}]"
            for depth, n in self.root.walk()
        )


class Names:
    """How rules are written: classes in angle brackets, holes as □, constants in quotes."""

    def __init__(self, symmetry: Symmetry) -> None:
        self._symmetry = symmetry
        self._symbols: dict[int, str] = {}
        for word, number in symmetry.source.index.items():
            name = symmetry.template([word])[0]
            self._symbols.setdefault(symmetry.source_classes[number], name)

    def rule(self, rule: Rule) -> str:
        """A rule as text."""
        left = " ".join("□" if s == HOLE else self._symbols[s] for s in rule.left)
        right = " ".join(str(k) if k >= 0 else f"{self._word(~k)!r}" for k in rule.right)
        return f"{left} → {right}" if right else f"{left} →"

    def _word(self, word: int) -> str:
        return self._symmetry.target.decode([word])[0]


def learned_to_json(learned: Learned, symmetry: Symmetry) -> dict[str, Any]:
    """What was learned, in words: holes are null, classes objects, the rest strings."""
    classes = {symmetry.source_classes[side[0]]: c for c, side in enumerate(symmetry.members[0])}
    words: dict[int, str] = {}
    for word, number in symmetry.source.index.items():
        words.setdefault(symmetry.source_classes[number], word)

    def symbol(s: int) -> Any:
        if s == HOLE:
            return None
        return {"class": symmetry.classes[classes[s]].name} if s in classes else words[s]

    names = Names(symmetry)
    return {
        "rules": [
            {
                "text": names.rule(rule),
                "left": [symbol(s) for s in rule.left],
                "right": [k if k >= 0 else symmetry.target.decode([~k])[0] for k in rule.right],
                "support": support,
            }
            for rule, support in zip(learned.grammar.rules, learned.support, strict=True)
        ],
        "pairs": learned.pairs,
        "exceptions": [
            {"source": list(pair.source), "target": list(pair.target), "reason": reason}
            for pair, reason in learned.exceptions
        ],
        "warnings": list(learned.warnings),
        "bits": learned.bits,
        "noise": learned.noise,
    }


def learned_from_json(content: dict[str, Any], symmetry: Symmetry) -> Learned:
    """The inverse of ``learned_to_json``; the content may come from anyone."""
    classes = {
        c.name: symmetry.source_classes[words[0]]
        for c, words in zip(symmetry.classes, symmetry.members[0], strict=True)
    }

    def symbol(s: Any) -> int:
        if s is None:
            return HOLE
        if isinstance(s, dict) and isinstance(name := s.get("class"), str) and name in classes:
            return classes[name]
        if not isinstance(s, str):
            raise DataError(f"{shown(s)} is no word, no class and no hole")
        return symmetry.source_classes[symmetry.source.encode([s])[0]]

    def place(k: Any, left: list[Any]) -> int:
        if isinstance(k, str):
            return ~symmetry.target.encode([k])[0]
        if type(k) is not int or not 0 <= k < len(left):
            raise DataError(f"{shown(k)} is no place on its left side and no word")
        return k

    rules: dict[Rule, int] = {}
    for number, table in enumerate(_listed(content, "rules", dict), start=1):
        try:
            left = _listed(table, "left")
            if not left:
                raise DataError("its left side is empty")
            rule = Rule(
                tuple(map(symbol, left)), tuple(place(k, left) for k in _listed(table, "right"))
            )
            if rule in rules:
                raise DataError("it stands twice")
            rules[rule] = _number(table, "support", int)
        except EquitransError as error:
            raise DataError(f"not a grammar: rule {number}: {error}") from None
    return Learned(
        grammar=Grammar(rules),
        support=tuple(rules.values()),
        pairs=_number(content, "pairs", int),
        exceptions=tuple(map(_exception, _listed(content, "exceptions", dict))),
        warnings=tuple(_listed(content, "warnings", str)),
        bits=float(_number(content, "bits", int | float)),
        noise=float(_number(content, "noise", int | float, 0.5)),
    )


def _exception(table: dict[str, Any]) -> tuple[Pair, str]:
    """A pair that is not explained, and why."""
    if not isinstance(reason := table.get("reason"), str):
        raise DataError(f"not a grammar: an exception's reason is {shown(reason)}")
    source, target = (tuple(_listed(table, side, str)) for side in ("source", "target"))
    return Pair(source, target), reason


def _listed(table: dict[str, Any], name: str, kind: Any = object) -> list[Any]:
    """A list of one kind of thing."""
    found = table.get(name)
    if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
        raise DataError(f"not a grammar: {name} is {shown(found)}")
    return found


def _number(table: dict[str, Any], name: str, kind: Any, most: int | float = LARGEST) -> Any:
    """A number from 0 to the largest."""
    found = table.get(name)
    if isinstance(found, bool) or not isinstance(found, kind) or not 0 <= found <= most:
        raise DataError(
            f"not a grammar: {name} is {shown(found)}; it must be a number from 0 to {most}"
        )
    return found
