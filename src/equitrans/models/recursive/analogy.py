"""Rules that follow from others by analogy: ``□ old → 0 'OLDF'`` from ``□ red → 0 'REDF'``.

If ``red → 'REDF'`` and ``old → 'OLDF'`` are rules, then a rule with ``red`` and ``'REDF'`` tells
how one with ``old`` and ``'OLDF'`` looks. To name the two takes fewer bits than to write the new
rule, so that a single pair may pay for it.
"""

import math
from collections.abc import Iterator

from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.passes import Learner
from equitrans.models.recursive.rules import Grammar, Rule


def complete(learner: Learner, lost: list[Observation]) -> list[Observation]:
    """Add rules by analogy that save bits on the observations that are not derived; return those
    that are still not derived.
    """
    analogous = dict.fromkeys(_analogous(learner.grammar)) if lost else {}
    price = math.log2(len(analogous)) if analogous else 0.0
    for rule in analogous:
        grammar = learner.grammar.plus([rule])
        saved = [
            o for o in lost if rule.words <= o.symbols and learner.parse(o, grammar).is_derived
        ]
        if saved and learner.cost(saved, learner.grammar, [rule]).bits > price:
            learner.grammar = grammar
            lost = [o for o in lost if o not in saved]
    return lost


def _analogous(grammar: Grammar) -> Iterator[Rule]:
    """The rules with another translated word, and its translation instead of the old one."""
    words = [
        (rule.left[0], rule.right[0])
        for rule in grammar.rules
        if len(rule.left) == len(rule.right) == 1 and rule.right[0] < 0
    ]
    for rule in grammar.rules:
        for word, meaning in words:
            if len(rule.left) > 1 and word in rule.left and meaning in rule.right:
                for other, its in words:
                    new = Rule(
                        tuple(other if s == word else s for s in rule.left),
                        tuple(its if k == meaning else k for k in rule.right),
                    )
                    if new not in grammar:
                        yield new
