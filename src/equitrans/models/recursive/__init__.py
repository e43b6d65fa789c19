"""The recursive aligner: a grammar of composing rules, learned from pairs."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.models.recursive.brackets import find_brackets
    from equitrans.models.recursive.exchange import exchangeable_words
    from equitrans.models.recursive.io import (
        Derivation,
        Learned,
        Names,
        Node,
        learned_from_json,
        learned_to_json,
    )
    from equitrans.models.recursive.learn import learn_from_brackets, learn_rules
    from equitrans.models.recursive.model import RecursiveTransducer
    from equitrans.models.recursive.remembered import inductions_remembered
    from equitrans.models.recursive.suggestions import Suggestion, suggest

__getattr__, __dir__, __all__ = face(__name__)
