"""Words of no class that translate each other, from pairs that differ in one word only.

If two pairs agree but for one word of the source and some neighbouring words of the target, these
translate each other: ``the soft car → LA CAR SOFTF`` and ``the red car → LA CAR REDF``. A word may
have several translations, between which the words around it decide.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.rules import CONSTANTS, Rule, constant_word

LONGEST = 3
"""Largest number of words of a translation."""


def translated_words(observations: Iterable[Observation]) -> list[Rule]:
    """The rules of words of no class by which otherwise equal observations differ."""
    fillers: defaultdict[object, set[Rule]] = defaultdict(set)
    for o in observations:
        if not o.ambiguous:
            for around, rule in _words(o):
                fillers[around].add(rule)
    return sorted(
        {
            rule
            for found in fillers.values()
            for rule in found
            if any(_differ(rule, other) for other in found)
        }
    )


def _words(o: Observation) -> Iterator[tuple[object, Rule]]:
    """For each word without a translation, and each piece of the target that it may have written:
    what is around them, and the rule.
    """
    places = {ord(a) for a in o.target}
    runs = [
        (p, q)
        for p in range(len(o.target))
        for q in range(p + 1, min(len(o.target), p + LONGEST) + 1)
        if all(ord(a) >= CONSTANTS for a in o.target[p:q])
    ]
    for i, symbol in enumerate(o.form):
        if i not in places:
            for p, q in runs:
                right = [constant_word(a) for a in o.target[p:q]]
                around = (o.form[:i], o.form[i + 1 :], o.target[:p], o.target[q:])
                yield around, Rule((symbol,), tuple(~word for word in right if word is not None))


def _differ(one: Rule, other: Rule) -> bool:
    """Whether two rules have different words, and targets that differ at both ends."""
    ends = one.right[0] != other.right[0] and one.right[-1] != other.right[-1]
    return one.left != other.left and ends
