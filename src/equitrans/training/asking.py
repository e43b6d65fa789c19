"""Which sentences to ask a person for: suggestions that look like sentences of the pairs."""

from collections.abc import Iterable
from itertools import pairwise

from equitrans.data import Pair
from equitrans.models import Suggestion
from equitrans.training.trained import Trained

MORE = 6
"""Number of suggestions to choose from, as a multiple of the number wanted."""


def sentences_to_ask(trained: Trained, n: int, pairs: Iterable[Pair]) -> tuple[Suggestion, ...]:
    """Up to ``n`` suggestions, best first, that are new, begin and end like sources of the pairs,
    and repeat no word that they do not. Combinations of rules alone also give fragments, such as
    'please please'. If all look like fragments, the best are returned.
    """
    known = {pair.source for pair in pairs}
    forms = {trained.template(source) for source in known} - {()}
    firsts, lasts = {form[0] for form in forms}, {form[-1] for form in forms}
    twins = {two for form in forms for two in pairwise(form)}
    found = [each for each in trained.suggest(n * MORE) if each.source not in known]
    good = []
    for each in found:
        form = trained.template(each.source)
        repeats = {(a, b) for a, b in pairwise(form) if a == b}
        if form and form[0] in firsts and form[-1] in lasts and repeats <= twins:
            good.append(each)
    return tuple((good or found)[:n])
