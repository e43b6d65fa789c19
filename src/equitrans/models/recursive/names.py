"""Rules as text."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from equitrans.data import TIE
from equitrans.models.recursive.licences import ROOT, Licences, Place
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.uses import VARIABLE, Operation, Use
from equitrans.paper import Symmetry

SENTENCE = "sentence"
"""The name of what stands at the root."""
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
                {k: "|".join(accepted(licences, names, (r, k))) for k in range(len(rule.holes))},
            )
            for r, rule in enumerate(grammar.rules)
        )

    def categories(self, grammar: Grammar, licences: Licences) -> list[str]:
        """The name of each category: that of the one class in it, ``sentence`` for rules that stand
        at the root (``sentence1`` and so on if there are several such categories), or a letter.
        """
        found: list[str] = []
        letters = iter(ascii_uppercase)
        root = licences.of(ROOT)
        for number, rules in enumerate(licences.categories):
            members = [grammar.rules[r] for r in sorted(rules)]
            classes = {
                self._symbols[rule.left[0]]
                for rule in members
                if len(rule.left) == 1 and rule.left != (HOLE,) and rule.right == (0,)
            }
            if number in root:
                name = SENTENCE if len(root) == 1 else f"{SENTENCE}{root.index(number) + 1}"
            elif len(classes) == 1:
                name = classes.pop().strip("<>")
            else:
                name = next(letters, "other")
            found.append(name if name not in found else f"{name}{len(found)}")
        return found

    def _word(self, word: int) -> str:
        return self._symmetry.target.decode([word])[0].strip(TIE)


def accepted(licences: Licences, names: Sequence[str], place: Place) -> list[str]:
    """The names of the categories that a place accepts: none if it accepts all of them, and one
    name for all that stand at the root.
    """
    here, root = licences.of(place), licences.of(ROOT)
    if len(here) == len(licences.categories):
        return []
    whole = len(root) > 1 and set(root) <= set(here) and SENTENCE not in names
    rest = [names[c] for c in here if not (whole and c in root)]
    return [SENTENCE, *rest] if whole else rest
