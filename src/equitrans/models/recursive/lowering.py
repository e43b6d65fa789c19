"""Other grammars in which words write what the rules around them wrote.

If pairs contradict ``some □ run → 'UNOS' 1 'S' 'RUN'``, the words in its hole may have two forms:
``<n> → 0`` and ``<n> → 0 'S'``. A rule of its own gains nothing as long as the rules around it
write ``'S'`` too, so all of them change at once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant_word


def lowered(grammar: Grammar, lost: Iterable[Observation]) -> list[Grammar]:
    """The grammars in which the words of a class that is a constituent also write a constant, and
    no rule writes it beside a hole: where observations that are lost have that constant beside such
    a word, the most of them first.
    """
    alone = {rule.left[0] for rule in grammar.rules if len(rule.left) == 1 and rule.right == (0,)}
    counts: Counter[tuple[int, int, bool]] = Counter()
    for o in lost:
        counts.update({found for found in _beside_words(o) if found[0] in alone})
    grammars = []
    for (symbol, constant, before), _ in counts.most_common():
        rules = [_without(rule, constant, before) for rule in grammar.rules]
        if tuple(rules) != grammar.rules:
            word = Rule((symbol,), (constant, 0) if before else (0, constant))
            grammars.append(Grammar([*rules, word]))
    return grammars


def raised(grammar: Grammar, steps: Iterable[tuple[Rule, int, Rule]]) -> list[Grammar]:
    """The grammars in which the rules around a word write the constants that the word wrote;
    ``steps`` are the places of rules: a rule, the place of a hole, and the rule in it.
    """
    around: defaultdict[Rule, list[Rule]] = defaultdict(list)
    for rule, k, word in sorted(steps):
        if len(word.left) == 1 and 0 in word.right and len(word.right) > 1:
            written = tuple(k if place == 0 else place for place in word.right)
            right = [w for place in rule.right for w in (written if place == k else (place,))]
            around[word].append(Rule(rule.left, tuple(right)))
    return [grammar.minus(word).plus(rules) for word, rules in around.items()]


def _beside_words(o: Observation) -> Iterable[tuple[int, int, bool]]:
    """The symbols of translated words, each with a constant beside its translation in the target,
    and whether the constant comes first.
    """
    for one, other, before in (
        *((a, b, False) for a, b in zip(o.target, o.target[1:], strict=False)),
        *((b, a, True) for a, b in zip(o.target, o.target[1:], strict=False)),
    ):
        word = constant_word(other[0])
        if word is not None and constant_word(one[0]) is None:
            yield o.form[ord(one[0])], ~word, before


def _without(rule: Rule, constant: int, before: bool) -> Rule:
    """A rule that does not write a constant beside its holes."""
    right: list[int] = []
    for n, place in enumerate(rule.right):
        at = n + 1 if before else n - 1
        beside = rule.right[at] if 0 <= at < len(rule.right) else constant
        if place != constant or not _is_hole(rule, beside):
            right.append(place)
    return Rule(rule.left, tuple(right))


def _is_hole(rule: Rule, place: int) -> bool:
    return 0 <= place < len(rule.left) and rule.left[place] == HOLE
