"""Rules as text."""

from collections.abc import Mapping
from string import ascii_uppercase

from equitrans.data import TIE
from equitrans.models.recursive.licences import ROOT, Licences
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.uses import VARIABLE, Operation, Use
from equitrans.paper import Symmetry

_FILLERS = {
    Operation.KEEP: "X",
    Operation.FILL: "X = head({})",
    Operation.BIND: "X = own head",
}
"""What becomes of the variable of a part."""


class Names:
    """Writes rules as text: classes in angle brackets, holes as □, constants in quotes."""

    def __init__(self, symmetry: Symmetry) -> None:
        self._symmetry = symmetry
        self._symbols: dict[int, str] = {}
        for word, number in symmetry.source.index.items():
            name = symmetry.template([word])[0]
            self._symbols.setdefault(symmetry.source_classes[number], name)

    def rule(self, rule: Rule, holes: Mapping[int, str] | None = None) -> str:
        """A rule as text, with the categories of some holes."""
        right = " ".join(map(self._part, rule.right))
        return f"{self.left(rule, holes or {})} → {right}".rstrip()

    def _part(self, k: int) -> str:
        """A part of a right side: a place, a quoted word, X for the variable, or an operation."""
        if k == ~VARIABLE:
            return "X"
        if k < 0:
            return repr(self._word(~k))
        use = Use.of(k)
        if use.operation == Operation.WHOLE:
            return str(k)
        if use.operation in _FILLERS:
            return f"{use.place}[{_FILLERS[use.operation].format(use.other)}]"
        if use.primitives:
            names = "(".join(operation.name.lower() for operation in use.primitives)
            return f"{names}({use.place}{')' * len(use.primitives)}"
        return f"{use.operation.name.lower()}({use.place})"

    def left(self, rule: Rule, holes: Mapping[int, str]) -> str:
        """The left side of a rule as text, with the categories of some holes."""
        names = {place: f"□{holes.get(k, '')}" for k, place in enumerate(rule.holes)}
        return " ".join(
            names[k] if s == HOLE else self._symbols[s] for k, s in enumerate(rule.left)
        )

    def rules(self, grammar: Grammar, licences: Licences | None) -> tuple[str, ...]:
        """All rules as text; holes have categories if there are several."""
        if licences is None or grammar.parents < len(grammar) or len(licences.categories) < 2:
            return tuple(map(self.rule, grammar.rules))
        names = self.categories(grammar, licences)
        return tuple(
            self.rule(
                rule,
                {
                    k: "|".join(names[c] for c in licences.of((r, k)))
                    for k in range(len(rule.holes))
                },
            )
            for r, rule in enumerate(grammar.rules)
        )

    def categories(self, grammar: Grammar, licences: Licences) -> list[str]:
        """The name of each category: that of the one class in it, ``sentence`` for rules that stand
        at the root, or a letter.
        """
        found: list[str] = []
        letters = iter(ascii_uppercase)
        for rules in licences.categories:
            members = [grammar.rules[r] for r in sorted(rules)]
            classes = {
                self._symbols[rule.left[0]]
                for rule in members
                if len(rule.left) == 1 and rule.left != (HOLE,) and rule.right == (0,)
            }
            if len(classes) == 1 and not all(licences.accepts(ROOT, r) for r in rules):
                name = classes.pop().strip("<>")
            elif all(licences.accepts(ROOT, r) for r in rules):
                name = "sentence"
            else:
                name = next(letters, "other")
            found.append(name if name not in found else f"{name}{len(found)}")
        return found

    def _word(self, word: int) -> str:
        return self._symmetry.target.decode([word])[0].strip(TIE)
