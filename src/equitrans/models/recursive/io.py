"""A learned grammar with its evidence, its JSON format, and derivations as text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from equitrans.data import Pair
from equitrans.errors import DataError, EquitransError, shown
from equitrans.files import check_visible
from equitrans.models.recursive.licences import ROOT, Licences
from equitrans.models.recursive.rules import HOLE, Form, Grammar, Rule
from equitrans.models.recursive.shown import derivation_html, grammar_html
from equitrans.paper import Symmetry

LARGEST = 2**53
"""Largest accepted number; floats are exact for all integers up to it."""


@dataclass(frozen=True)
class Learned:
    """A grammar and the evidence for it."""

    grammar: Grammar
    support: tuple[int, ...]
    """For each rule, the number of distinct pairs whose derivation uses it."""
    pairs: int
    """Number of distinct training pairs."""
    exceptions: tuple[tuple[Pair, str], ...] = ()
    """Pairs that the rules do not explain, each with the reason."""
    warnings: tuple[str, ...] = ()
    bits: float = 0.0
    """Description length of the rules and the exceptions."""
    noise: float = 0.5
    """Assumed share of wrong pairs, at most 0.5."""
    texts: tuple[str, ...] = ()
    """Each rule as text."""
    licences: Licences | None = None
    """The combinations of rules that are licensed; None if all are."""
    rivals: tuple[tuple[float, Grammar], ...] = ()
    """Other grammars of nearly as few bits, each with the bits it takes more."""
    parts: tuple[Form, ...] = ()
    """Parts of training sentences that may be sentences."""
    _repr_html_ = grammar_html

    def __str__(self) -> str:
        """A line for each rule with its support, and a line for each warning."""
        explained = f"{self.pairs - len(self.exceptions)} of {self.pairs} distinct pairs explained"
        width = max(map(len, self.texts), default=0)
        rows = zip(self.texts, self.support, strict=True)
        return "\n".join(
            [
                f"{len(self.texts)} rules, {self.bits:.0f} bits; {explained}",
                *(f"  {text:{width}}  {n} pair{'' if n == 1 else 's'}" for text, n in rows),
                *(f"warning: {warning}" for warning in self.warnings),
            ]
        )

    @classmethod
    def nothing(cls) -> "Learned":
        """The state before learning: no rules."""
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

    def walk(self) -> Iterator[tuple[int, "Node"]]:
        """All nodes with their depths, root first."""
        agenda = [(0, self)]
        while agenda:
            depth, node = agenda.pop()
            yield depth, node
            agenda += [(depth + 1, child) for child in reversed(node.children)]


@dataclass(frozen=True)
class Derivation:
    """The likeliest derivation of a sentence."""

    source: tuple[str, ...]
    root: Node
    alignments: int
    """Number of alignments that the grammar gives the sentence."""
    _repr_html_ = derivation_html

    def __str__(self) -> str:
        return "\n".join(
            f"{'  ' * depth}{' '.join(self.source[n.start : n.stop])}   [{n.rule}]"
            for depth, n in self.root.walk()
        )


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
        right = " ".join(str(k) if k >= 0 else f"{self._word(~k)!r}" for k in rule.right)
        return f"{self.left(rule, holes or {})} → {right}".rstrip()

    def left(self, rule: Rule, holes: Mapping[int, str]) -> str:
        """The left side of a rule as text, with the categories of some holes."""
        names = {place: f"□{holes.get(k, '')}" for k, place in enumerate(rule.holes)}
        return " ".join(
            names[k] if s == HOLE else self._symbols[s] for k, s in enumerate(rule.left)
        )

    def rules(self, grammar: Grammar, licences: Licences | None) -> tuple[str, ...]:
        """All rules as text; holes have categories if there are several."""
        if licences is None or len(licences.categories) < 2:
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
                if len(rule.left) == 1 and rule.right == (0,)
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
        return self._symmetry.target.decode([word])[0]


def learned_to_json(learned: Learned, symmetry: Symmetry) -> dict[str, Any]:
    """A learned grammar as JSON: holes are null, classes are objects, words are strings."""
    columns = zip(symmetry.labels, symmetry.members[0], strict=True)
    classes = {symmetry.source_classes[words[0]]: label for label, words in columns}
    words: dict[int, str] = {}
    for word, number in symmetry.source.index.items():
        words.setdefault(symmetry.source_classes[number], word)

    def symbol(s: int) -> Any:
        if s == HOLE:
            return None
        return {"class": classes[s]} if s in classes else words[s]

    names = Names(symmetry)

    def sides(rule: Rule) -> dict[str, Any]:
        right = [k if k >= 0 else symmetry.target.decode([~k])[0] for k in rule.right]
        return {"text": names.rule(rule), "left": list(map(symbol, rule.left)), "right": right}

    content: dict[str, Any] = {
        "rules": [
            sides(rule) | {"support": support}
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
    if learned.parts:
        content["parts"] = [[symbol(s) for s in form] for form in learned.parts]
    if learned.rivals:
        content["rivals"] = [
            {"bits": bits, "rules": [sides(rule) for rule in rival.rules]}
            for bits, rival in learned.rivals
        ]
    if learned.licences is not None:
        found = learned.licences.rules_of
        content["root"] = sorted(found.get(ROOT, ()))
        tables = zip(learned.grammar.rules, content["rules"], strict=True)
        for r, (rule, table) in enumerate(tables):
            table["holes"] = [sorted(found.get((r, k), ())) for k in range(len(rule.holes))]
    return content


def learned_from_json(content: dict[str, Any], symmetry: Symmetry) -> Learned:
    """The inverse of ``learned_to_json``; raise DataError if the content is not a grammar."""
    try:
        return _learned(content, symmetry)
    except EquitransError as error:
        raise DataError(f"not a grammar: {error}") from None


def _learned(content: dict[str, Any], symmetry: Symmetry) -> Learned:
    source_homes, target_homes = symmetry.homes
    classes = {
        label: symmetry.source_classes[words[0]]
        for label, words in zip(symmetry.labels, symmetry.members[0], strict=True)
    }

    def symbol(s: Any) -> int:
        if s is None:
            return HOLE
        if isinstance(s, dict) and isinstance(name := s.get("class"), str) and name in classes:
            return classes[name]
        if not isinstance(s, str):
            raise DataError(f"invalid symbol {shown(s)}; expected a word, a class or null")
        (word,) = symmetry.source.encode([s])
        if word in source_homes:
            raise DataError(f"{shown(s)} is in a class; expected a word of no class, or the class")
        return symmetry.source_classes[word]

    def place(k: Any, left: list[Any]) -> int:
        if isinstance(k, str):
            (word,) = symmetry.target.encode([k])
            if word in target_homes:
                raise DataError(f"constant {shown(k)} is in a class; expected a word of no class")
            return ~word
        if type(k) is not int or not 0 <= k < len(left):
            raise DataError(
                f"invalid place {shown(k)}; expected a word or a number from 0 to {len(left) - 1}"
            )
        if isinstance(left[k], str):
            raise DataError(f"place {k} is {shown(left[k])}; expected the place of a class or hole")
        return k

    def rules_of(table: dict[str, Any]) -> Grammar:
        rules: dict[Rule, None] = {}
        for number, row in enumerate(_listed(table, "rules", dict), start=1):
            try:
                left = _listed(row, "left")
                if not left:
                    raise DataError("the left side is empty")
                symbols = tuple(map(symbol, left))
                rule = Rule(symbols, tuple(place(k, left) for k in _listed(row, "right")))
                if rule in rules:
                    raise DataError("duplicate of an earlier rule")
                rules[rule] = None
                if table is content:
                    _number(row, "support", int)
            except EquitransError as error:
                raise DataError(f"rule {number}: {error}") from None
        return Grammar(rules)

    grammar = rules_of(content)
    rivals = _listed(content, "rivals", dict) if "rivals" in content else []
    parts = _listed(content, "parts", list) if "parts" in content else []
    licences = _licences(content, grammar) if "root" in content else None
    return Learned(
        grammar=grammar,
        texts=Names(symmetry).rules(grammar, licences),
        support=tuple(row["support"] for row in content["rules"]),
        pairs=_number(content, "pairs", int),
        exceptions=tuple(map(_exception, _listed(content, "exceptions", dict))),
        warnings=tuple(_listed(content, "warnings", str)),
        bits=float(_number(content, "bits", int | float)),
        noise=float(_number(content, "noise", int | float, 0.5)),
        licences=licences,
        rivals=tuple(
            (float(_number(table, "bits", int | float)), rules_of(table)) for table in rivals
        ),
        parts=tuple(tuple(map(symbol, part)) for part in parts if part),
    )


def _licences(content: dict[str, Any], grammar: Grammar) -> Licences:
    """The rules that pairs need at the root and in the holes of each rule."""
    rules = grammar.rules

    def numbers(found: Any, where: str) -> list[int]:
        if not isinstance(found, list) or not all(
            type(r) is int and 0 <= r < len(rules) for r in found
        ):
            raise DataError(
                f"{where} is {shown(found)}; expected numbers from 0 to {len(rules) - 1}"
            )
        return found

    needed = {(*ROOT, child) for child in numbers(content["root"], "root")}
    for r, (rule, table) in enumerate(zip(rules, content["rules"], strict=True)):
        holes = _listed(table, "holes")
        if len(holes) != len(rule.holes):
            raise DataError(
                f"holes of rule {r + 1}: {len(holes)} lists; expected {len(rule.holes)}"
            )
        for k, hole in enumerate(holes):
            where = f"hole {k + 1} of rule {r + 1}"
            needed.update((r, k, child) for child in numbers(hole, where))
    return Licences(grammar, frozenset(needed))


def _exception(table: dict[str, Any]) -> tuple[Pair, str]:
    """A pair that the rules do not explain, and the reason."""
    if not isinstance(reason := table.get("reason"), str):
        raise DataError(f"reason of an exception is {shown(reason)}; it must be a string")
    check_visible(reason)
    source, target = (tuple(_listed(table, side, str)) for side in ("source", "target"))
    return Pair(source, target), reason


_KINDS = {object: "", dict: " of objects", list: " of lists", str: " of strings"}


def _listed(table: dict[str, Any], name: str, kind: Any = object) -> list[Any]:
    """The list under a name; raise DataError unless it is a list of that kind."""
    found = table.get(name)
    if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
        raise DataError(f"{name} is {shown(found)}; it must be a list{_KINDS[kind]}")
    if kind is str:
        for text in found:
            check_visible(text)
    return found


def _number(table: dict[str, Any], name: str, kind: Any, most: int | float = LARGEST) -> Any:
    """The number under a name; raise DataError unless it is from 0 to ``most``."""
    found = table.get(name)
    if isinstance(found, bool) or not isinstance(found, kind) or not 0 <= found <= most:
        raise DataError(f"{name} is {shown(found)}; it must be a number from 0 to {most}")
    return found
