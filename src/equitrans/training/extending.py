"""Words added to a class of a trained model, without training."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from equitrans.analysis import extend_model
from equitrans.errors import SymmetryError
from equitrans.training.cards import Origin
from equitrans.training.trained import Trained


@dataclass(frozen=True)
class Extension:
    """An extended model, and how far it is from the one before."""

    trained: Trained
    symmetrised: float
    """Largest change of a p(y | x) of the translator by making the group symmetric; at most
    ``in_class``."""
    in_class: float
    """Largest probability of translating a word as one of its classmates."""
    diluted: float
    """Largest loss of log p(y | x) by the added words, per target word of a sentence."""


def extend(trained: Trained, name: str, words: Mapping[str, str]) -> Extension:
    """Add words, each with its translation, to the class ``name``."""
    if trained.characters:
        for word in (*words, *words.values()):
            if len(word) != 1:
                raise SymmetryError(f"{word!r} is not a character, but the model's words are")
    found = extend_model(trained.model, trained.config, name, words)
    extended = replace(trained, model=found.model, config=found.config, origin=Origin())
    return Extension(extended, found.symmetrised, found.in_class, found.diluted)
