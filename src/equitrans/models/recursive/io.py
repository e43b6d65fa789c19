"""A learned grammar with its evidence, its JSON format, and derivations as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from equitrans.data import Pair
from equitrans.errors import DataError, EquitransError, few, shown
from equitrans.files import check_visible
from equitrans.models.recursive.fields import list_field, number_field
from equitrans.models.recursive.licences import ROOT, Licences, Step
from equitrans.models.recursive.names import Names as Names
from equitrans.models.recursive.rules import HOLE, Form, Grammar, Rule
from equitrans.models.recursive.shown import derivation_html, grammar_html
from equitrans.models.recursive.typed import TypedGrammar, WalkedLicences
from equitrans.models.recursive.uses import PLAIN, PRIMITIVES, VARIABLE, Operation, Use
from equitrans.paper import Symmetry

WORDS = 10
"""Number of single words in the text of a grammar that has holes for them."""


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
        explained = self.pairs - len(self.exceptions)
        rows = [*zip(self.texts, self.support, strict=True)]
        words = rows[self.grammar.parents :]
        rows = rows[: self.grammar.parents]
        width = max([len(text) for text, _ in rows], default=0)
        shown = ", ".join(text for text, _ in words[:WORDS])
        more = f" and {len(words) - WORDS} more" if len(words) > WORDS else ""
        return "\n".join(
            [
                f"{len(rows)} rules, {self.bits:.0f} bits; "
                f"{explained} of {self.pairs} distinct pairs explained",
                *(f"  {text:{width}}  {n} {'pair' if n == 1 else 'pairs'}" for text, n in rows),
                *([f"{len(words)} words: {shown}{more}"] if words else []),
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
        return {
            "text": names.rule(rule),
            "left": [symbol(s) for s in rule.left],
            "right": [_written(k, symmetry) for k in rule.right],
        }

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
    if isinstance(learned.grammar, TypedGrammar):
        content["typed"] = True
    if learned.parts:
        content["parts"] = [[symbol(s) for s in form] for form in learned.parts]
    if learned.rivals:
        content["rivals"] = [
            {"bits": bits, "rules": [sides(rule) for rule in rival.rules]}
            for bits, rival in learned.rivals
        ]
    if learned.licences is not None:
        for found, root, holes in zip(learned.licences.tables, *_TABLES, strict=True):
            content[root] = sorted(found.get(ROOT, ()))
            tables = zip(learned.grammar.rules, content["rules"], strict=True)
            for r, (rule, table) in enumerate(tables):
                table[holes] = [sorted(found.get((r, k), ())) for k in range(len(rule.holes))]
    return content


def _written(k: int, symmetry: Symmetry) -> Any:
    """A part of a right side as JSON: a place, a word, null for the variable, or an object for an
    operation on a part.
    """
    if k == ~VARIABLE:
        return None
    if k < 0:
        return symmetry.target.decode([~k])[0]
    if k < PLAIN:
        return k
    use = Use.of(k)
    found: dict[str, Any] = {"part": use.place, "do": use.operation.name.lower()}
    if use.operation == Operation.FILL:
        found["by"] = use.other
    elif use.other:
        found["of"] = Operation(use.other).name.lower()
    if use.bracket:
        found["before"] = symmetry.target.decode([use.bracket])[0]
    return found


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

    def use(k: dict[str, Any], left: list[Any]) -> int:
        known = {o.name.lower(): o for o in (PRIMITIVES if "of" in k else Operation)}
        names: Any = (k.get("do"), k.get("of", k.get("do")))
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise DataError(f"operation {shown(name)}; expected one of {few([*known], 10)}")
        holes = [at for at, symbol in enumerate(left) if symbol is None]
        parts: Any = (k.get("part"), k.get("by", k.get("part")))
        if not all(type(part) is int and part in holes for part in parts):
            raise DataError(f"parts {shown(parts)}; expected holes, which are {shown(holes)}")
        before = k.get("before")
        (bracket,) = symmetry.target.encode([before]) if isinstance(before, str) else (0,)
        other = parts[1] if names[0] == "fill" else known[names[1]] if "of" in k else 0
        return Use(parts[0], known[names[0]], other, bracket).number

    def place(k: Any, left: list[Any]) -> int:
        if k is None and content.get("typed"):
            return ~VARIABLE
        if isinstance(k, dict):
            return use(k, left)
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
        for number, row in enumerate(list_field(table, "rules", dict), start=1):
            try:
                left = list_field(row, "left")
                if not left:
                    raise DataError("the left side is empty")
                if len(left) > PLAIN:
                    raise DataError(f"{len(left)} symbols on the left; the limit is {PLAIN}")
                symbols = tuple(map(symbol, left))
                rule = Rule(symbols, tuple(place(k, left) for k in list_field(row, "right")))
                if rule in rules:
                    raise DataError("duplicate of an earlier rule")
                rules[rule] = None
                if table is content:
                    number_field(row, "support", int)
            except EquitransError as error:
                raise DataError(f"rule {number}: {error}") from None
        return Grammar(rules)

    grammar = rules_of(content)
    rivals = list_field(content, "rivals", dict) if "rivals" in content else []
    parts = list_field(content, "parts", list) if "parts" in content else []
    licences = _licences(content, grammar) if "root" in content else None
    if content.get("typed") and licences is not None:
        if [bool(r.holes) for r in grammar.rules] != sorted(bool(r.holes) for r in grammar.rules)[
            ::-1
        ]:
            raise DataError("a rule without holes comes before one with holes")
        licences = WalkedLicences(grammar, licences.needed)
        grammar = TypedGrammar(grammar.rules, licences.accepted)
    return Learned(
        grammar=grammar,
        texts=Names(symmetry).rules(grammar, licences),
        support=tuple(row["support"] for row in content["rules"]),
        pairs=number_field(content, "pairs", int),
        exceptions=tuple(map(_exception, list_field(content, "exceptions", dict))),
        warnings=tuple(list_field(content, "warnings", str)),
        bits=float(number_field(content, "bits", int | float)),
        noise=float(number_field(content, "noise", int | float, 0.5)),
        licences=licences,
        rivals=tuple(
            (float(number_field(table, "bits", int | float)), rules_of(table)) for table in rivals
        ),
        parts=tuple(tuple(map(symbol, part)) for part in parts if part),
    )


def _licences(content: dict[str, Any], grammar: Grammar) -> Licences:
    """The rules that pairs need at the root and in the holes of each rule, and those that lost."""
    (root, lost), (holes, others) = _TABLES
    needed = _steps(content, grammar.rules, root, holes)
    losing = _steps(content, grammar.rules, lost, others) if lost in content else frozenset()
    return Licences(grammar, needed, losing)


_TABLES = ("root", "lost"), ("holes", "lost")
"""Where a grammar's JSON has the rules that pairs need and those that lost: at the root, and in the
holes of each rule. Grammars of earlier versions have no rules that lost."""


def _steps(
    content: dict[str, Any], rules: Sequence[Rule], root: str, inside: str
) -> frozenset[Step]:
    """The rules at the root and in the holes of each rule."""

    def numbers(given: Any, where: str) -> list[int]:
        if not isinstance(given, list) or not all(
            type(r) is int and 0 <= r < len(rules) for r in given
        ):
            raise DataError(
                f"{where} is {shown(given)}; expected numbers from 0 to {len(rules) - 1}"
            )
        return given

    found = {(*ROOT, child) for child in numbers(content[root], root)}
    for r, (rule, table) in enumerate(zip(rules, content["rules"], strict=True)):
        holes = list_field(table, inside)
        if len(holes) != len(rule.holes):
            raise DataError(
                f"{inside} of rule {r + 1}: {len(holes)} lists; expected {len(rule.holes)}"
            )
        for k, hole in enumerate(holes):
            where = f"hole {k + 1} of rule {r + 1}"
            found.update((r, k, child) for child in numbers(hole, where))
    return frozenset(found)


def _exception(table: dict[str, Any]) -> tuple[Pair, str]:
    """A pair that the rules do not explain, and the reason."""
    if not isinstance(reason := table.get("reason"), str):
        raise DataError(f"reason of an exception is {shown(reason)}; it must be a string")
    check_visible(reason)
    source, target = (tuple(list_field(table, side, str)) for side in ("source", "target"))
    return Pair(source, target), reason
