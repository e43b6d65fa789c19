"""Reasons to doubt every derivation of a form, which the weights cannot tell.

Weights compare derivations of one form. They say nothing where a form has a single derivation, and
that one combines rules in a way that lost wherever training forms could have it; nor where another
grammar of nearly as few bits has derivations that this one lacks.
"""

from dataclasses import dataclass, field

from equitrans.models.recursive.aligner import KEPT, Weights, alignments
from equitrans.models.recursive.licences import Licences
from equitrans.models.recursive.rules import Form, Grammar, Yield

UNSUPPORTED = 0.5
"""Probability of another target if all derivations of a form have a combination that lost."""

CLOSE = 5.0
"""Bits that a rival takes more; rivals of more bits matter too little."""

CACHED = 10_000
"""Largest number of forms in the cache; it is cleared beyond it."""


def yields(grammar: Grammar, form: Form) -> set[Yield]:
    """The yields of a form under a grammar with equal weights, or as many as a chart keeps."""
    return {a.text for a in alignments(grammar, Weights.zero(grammar, ()), form)}


@dataclass(frozen=True)
class Doubts:
    """The probability that a form has another target than those of its derivations."""

    grammar: Grammar
    licences: Licences | None
    rivals: tuple[tuple[float, Grammar], ...]
    _cache: dict[Form, float] = field(default_factory=dict)

    def share(self, form: Form) -> float:
        """The probability; 0 if nothing raises a doubt."""
        if form not in self._cache:
            if len(self._cache) >= CACHED:
                self._cache.clear()
            self._cache[form] = max(self._unsupported(form), self._disputed(form))
        return self._cache[form]

    def _unsupported(self, form: Form) -> float:
        licences = self.licences
        if licences is None or not licences.lost or licences.speak_for(form):
            return 0.0
        return UNSUPPORTED

    def _disputed(self, form: Form) -> float:
        """The share of rivals that give a form a yield that the grammar cannot give it."""
        own = yields(self.grammar, form) if self.close else set[Yield]()
        if not 0 < len(own) < KEPT:
            return 0.0
        odds = sum(weight for weight, rival in self.close if not yields(rival, form) <= own)
        return odds / (1 + odds)

    @property
    def close(self) -> list[tuple[float, Grammar]]:
        """The rivals of nearly as few bits, each with its odds against the grammar."""
        return [(2**-bits, rival) for bits, rival in self.rivals if bits < CLOSE]
