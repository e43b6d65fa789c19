"""What was learned, as it is kept and shown: rules with their support, exceptions, warnings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equitrans.errors import DataError
from equitrans.grammar.derivations import Tree
from equitrans.grammar.rules import HOLE, Grammar, Rule
from equitrans.pairs import Pair
from equitrans.symmetry import Symmetry


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
    """The share of pairs that is taken to be wrong."""

    @classmethod
    def nothing(cls) -> "Learned":
        """Before learning."""
        return cls(Grammar(), (), 0)


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

    def tree(self, grammar: Grammar, tree: Tree, source: Sequence[str]) -> list[tuple[int, str]]:
        """A derivation as lines of text with their depths, root first."""
        lines = []

        def go(node: Tree, depth: int) -> None:
            start, stop = node.spans[0][0], node.spans[-1][1]
            words = " ".join(source[start:stop])
            lines.append((depth, f"{words}   [{self.rule(grammar.rules[node.rule])}]"))
            for child in node.children:
                go(child, depth + 1)

        go(tree, 0)
        return lines

    def _word(self, word: int) -> str:
        return self._symmetry.target.decode([word])[0]


def to_json(learned: Learned, symmetry: Symmetry) -> dict[str, Any]:
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


def from_json(content: dict[str, Any], symmetry: Symmetry) -> Learned:
    """The inverse of ``to_json``."""
    classes = {
        c.name: symmetry.source_classes[words[0]]
        for c, words in zip(symmetry.classes, symmetry.members[0], strict=True)
    }

    def symbol(s: Any) -> int:
        if s is None:
            return HOLE
        if isinstance(s, dict):
            return classes[s["class"]]
        return symmetry.source_classes[symmetry.source.encode([s])[0]]

    try:
        rules = [
            Rule(
                tuple(symbol(s) for s in rule["left"]),
                tuple(
                    k if isinstance(k, int) else ~symmetry.target.encode([k])[0]
                    for k in rule["right"]
                ),
            )
            for rule in content["rules"]
        ]
        return Learned(
            grammar=Grammar(rules),
            support=tuple(int(rule["support"]) for rule in content["rules"]),
            pairs=content["pairs"],
            exceptions=tuple(
                (Pair(tuple(e["source"]), tuple(e["target"])), e["reason"])
                for e in content["exceptions"]
            ),
            warnings=tuple(content["warnings"]),
            bits=content["bits"],
            noise=content["noise"],
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"not a grammar: {error!r}") from None
