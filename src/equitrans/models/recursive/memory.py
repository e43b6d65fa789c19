"""A memory of parses and explanations, which learning asks for again and again.

Only the rules whose words all occur in a form matter for it, so the answers are kept by these
rules. Other names of words and constants give the same explanations with these names.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from equitrans.models.recursive.chart import Target, parse
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Form, Grammar, Rule, constant
from equitrans.models.recursive.search import Explanation, explain
from equitrans.shards import by_shards, is_spread

Names = Mapping[int, int] | Sequence[int]
"""New numbers of words."""


@dataclass(frozen=True)
class Parsed:
    """What learning needs to know of a parse."""

    derives_form: bool
    """Whether the form has a derivation, whatever its yield."""
    rules: frozenset[Rule]
    """The rules of the cheapest derivation of the target; empty if there is none."""
    steps: frozenset[tuple[Rule, int, Rule]]
    """The places of its rules: a rule, the place of a hole, and the rule in it."""
    choice: float = 0.0
    """Bits that tell the target among all yields of the form; 0 if only the yields that fit are
    known."""

    @property
    def is_derived(self) -> bool:
        """Whether the target has a derivation."""
        return bool(self.rules)

    @classmethod
    def of(
        cls, grammar: Grammar, form: Form, target: Target, *, primitives: bool = False
    ) -> "Parsed":
        """The parse of a form and its target; with all yields if rules may have primitives."""
        parsed, rules = parse(grammar, form, target, primitives=primitives), grammar.rules
        tree = parsed.tree()
        yields = parsed.yields.get((0, len(form)), ()) if primitives else ()
        nodes = [] if tree is None else list(tree.nodes())
        return cls(
            parsed.derives_form,
            frozenset(rules[node.rule] for node in nodes),
            frozenset(
                (rules[node.rule], k, rules[child.rule])
                for node in nodes
                for k, child in node.children
            ),
            math.log2(max(1, len(yields))),
        )


def possible_steps(grammar: Grammar, form: Form) -> frozenset[tuple[Rule, int, Rule]]:
    """The places of rules in all derivations of a form: a rule, the place of a hole that it uses,
    and the rule in it.
    """
    rules, analyses = grammar.rules, grammar.analyses(form)
    found: set[tuple[int, int, int]] = set()
    agenda, seen = [(0, len(form))], set()
    while agenda:
        for r, spans in analyses[agenda.pop()]:
            for k in rules[r].holes:
                found.update((r, k, child) for child, _ in analyses[spans[k]])
                if spans[k] not in seen:
                    seen.add(spans[k])
                    agenda.append(spans[k])
    return frozenset((rules[r], k, rules[c]) for r, k, c in found if k in rules[r].used)


class Memory:
    """Parses and explanations with a memory, for few forms and many grammars."""

    def __init__(self) -> None:
        self._parsed: dict[Hashable, Parsed] = {}
        self._by_grammar: WeakKeyDictionary[Grammar, dict[Hashable, Parsed]] = WeakKeyDictionary()
        self._steps: dict[Hashable, frozenset[tuple[Rule, int, Rule]]] = {}
        self._numbers: dict[Rule, int] = {}
        self._explained: dict[Hashable, list[Explanation]] = {}

    def parse(
        self, grammar: Grammar, form: Form, target: Target, *, primitives: bool = False
    ) -> Parsed:
        """The parse of a form and its target; with all yields if rules may have primitives."""
        here = self._by_grammar.setdefault(grammar, {})
        asked = form, target, primitives
        known = here.get(asked)
        if known is None:
            key = (*asked, self._usable(grammar, form))
            known = self._parsed.get(key)
            if known is None:
                known = Parsed.of(grammar, form, target, primitives=primitives)
                self._parsed[key] = known
            here[asked] = known
        return known

    def steps(self, grammar: Grammar, form: Form) -> frozenset[tuple[Rule, int, Rule]]:
        """What ``possible_steps`` returns."""
        key = form, self._usable(grammar, form)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = possible_steps(grammar, form)
        return known

    def _usable(self, grammar: Grammar, form: Form) -> tuple[int, ...]:
        """The numbers of the rules that a form can use."""
        numbers = self._numbers
        return tuple(numbers.setdefault(rule, len(numbers)) for _, rule in grammar.usable(form))

    def explain(
        self, grammar: Grammar, form: Form, target: Target, code: Code, **options: Any
    ) -> list[Explanation]:
        """What ``explain`` returns for the rules that the form can use."""
        usable = [rule for _, rule in grammar.usable(form)]
        words = tuple(dict.fromkeys(form))
        seen = [ord(a) - CONSTANTS for atoms in target for a in atoms if ord(a) >= CONSTANTS]
        others = [~k for rule in usable for k in rule.right if k < 0]
        constants = tuple(dict.fromkeys(seen + others))
        number = {word: k for k, word in enumerate(words)}
        numbered = {word: k for k, word in enumerate(constants)}
        rules = sorted(_renamed(rule, number, numbered) for rule in usable)
        here = tuple(number[s] for s in form)
        there = tuple(
            "".join(constant(numbered[w]) if (w := ord(a) - CONSTANTS) >= 0 else a for a in atoms)
            for atoms in target
        )
        key = (here, there, *options.items(), *rules)
        if key not in self._explained:
            self._explained[key] = explain(Grammar(rules), here, there, code, **options)
        return [
            Explanation(e.bits, frozenset(_renamed(rule, words, constants) for rule in e.rules))
            for e in self._explained[key]
        ]


class Ahead(Memory):
    """The parses of many forms with one grammar. Other parses and explanations are not kept."""

    def __init__(self, grammar: Grammar, parsed: Mapping[tuple[Form, Target], Parsed]) -> None:
        self._grammar, self._known = grammar, parsed

    def parse(
        self, grammar: Grammar, form: Form, target: Target, *, primitives: bool = False
    ) -> Parsed:
        known = self._known.get((form, target)) if grammar is self._grammar else None
        return known or Parsed.of(grammar, form, target, primitives=primitives)

    def steps(self, grammar: Grammar, form: Form) -> frozenset[tuple[Rule, int, Rule]]:
        return possible_steps(grammar, form)

    def explain(
        self, grammar: Grammar, form: Form, target: Target, code: Code, **options: Any
    ) -> list[Explanation]:
        return explain(grammar, form, target, code, **options)


def ahead(observations: Sequence[Observation], grammar: Grammar, code: Code) -> Ahead | None:
    """The parses of all observations, by shards; None if work is not spread."""
    if not is_spread():
        return None
    pairs = [(o.form, o.target) for o in observations]
    found = by_shards(partial(_parse_all, grammar, code.primitives), pairs)
    return Ahead(grammar, dict(zip(pairs, found, strict=True)))


def _parse_all(
    grammar: Grammar, primitives: bool, pairs: Sequence[tuple[Form, Target]]
) -> list[Parsed]:
    return [Parsed.of(grammar, *pair, primitives=primitives) for pair in pairs]


def _renamed(rule: Rule, words: Names, constants: Names) -> Rule:
    """A rule with other words and constants."""
    left = tuple(s if s == HOLE else words[s] for s in rule.left)
    return Rule(left, tuple(k if k >= 0 else ~constants[~k] for k in rule.right))
