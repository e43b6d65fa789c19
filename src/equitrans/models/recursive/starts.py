"""Grammars and rules from which learning starts, and variants of a grammar that rival it."""

from collections.abc import Iterable, Iterator

from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.rules import CONSTANTS, HOLE, Grammar, Rule


def translated_symbols(observations: Iterable[Observation]) -> set[int]:
    """The symbols of sources from which a target word may come."""
    return {
        o.form[ord(atom)]
        for o in observations
        for atoms in o.target
        for atom in atoms
        if ord(atom) < CONSTANTS
    }


def class_words(observations: Iterable[Observation]) -> list[Rule]:
    """For every translated class, the rule that makes its words constituents."""
    return [Rule((symbol,), (0,)) for symbol in sorted(translated_symbols(observations))]


def sequences(observations: Iterable[Observation], at_end: bool) -> list[Rule]:
    """The rules that make sequences of words of translated classes constituents, with the other
    words of a sequence at the end or at the beginning.
    """
    words = class_words(observations)
    sides = [(*rule.left, HOLE) if at_end else (HOLE, *rule.left) for rule in words]
    return [*words, *(Rule(side, (0, 1)) for side in sides)]


def variants(grammar: Grammar) -> Iterator[Grammar]:
    """The grammar with a hole instead of a class whose words are constituents, in one rule; also
    with the class in another hole of that rule, as in ``□ <c>`` and ``<c> □``.
    """
    alone = {rule.left[0] for rule in grammar.rules if len(rule.left) == 1 and rule.right == (0,)}
    for rule in grammar.rules:
        for p in [p for p, s in enumerate(rule.left) if s in alone and len(rule.left) > 1]:
            more = [*rule.left]
            more[p] = HOLE
            lefts = [more, *([*more[:k], rule.left[p], *more[k + 1 :]] for k in rule.holes)]
            for left in lefts:
                new = Rule(tuple(left), rule.right)
                yield Grammar(new if old == rule else old for old in grammar.rules)


def single_word_rules(grammar: Grammar) -> list[Rule]:
    """The rules whose left side is a single word."""
    return [rule for rule in grammar.rules if len(rule.left) == 1]


def suggests_juxtaposition(grammar: Grammar) -> bool:
    """Whether two left sides differ by a hole at one end, as in ``a □`` and ``a``."""
    lefts = {rule.left for rule in grammar.rules}
    return any(
        (left[0] == HOLE and left[1:] in lefts) or (left[-1] == HOLE and left[:-1] in lefts)
        for left in lefts
        if len(left) > 1
    )
