"""How large things may be. What is larger is refused before room is taken for it; what is not has
been trained and decoded within the memory that docs/reliability.md states.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from math import prod
from typing import Any

from equitrans.errors import ConfigError, DataError, SymmetryError, VocabularyError
from equitrans.symmetry import Symmetry

SENTENCE = 1_000
"""Words of a source or of a target."""

PREDICTION = 4 * SENTENCE + 10
"""Words of a predicted target."""

VOCABULARY = 100_000
"""Words of one side."""

CLASS = 10_000
"""Words of a class."""

CLASSES = 1_000

GROUP = 1_000
"""Elements of the classes' group, for a model that lists them and has tables of their pairs."""

TABLE = 30_000_000
"""Source words times target words, for a translator that is a table of them."""

SIZE = 1_000_000
"""Any single size of a model."""

WEIGHTS = 250_000_000
"""Weights of a model: 1 GB, and four times that in training."""

FILE = 64_000_000
"""Bytes of a JSON file of a model: the largest vocabulary has a fifth of it."""


def check_sentence(words: Sequence[str]) -> None:
    """Refuse a sentence that is too long."""
    if len(words) > SENTENCE:
        start = " ".join(words[:5])[:60]
        raise DataError(
            f"a sentence of {len(words)} words ({start} …); at most {SENTENCE} can be read"
        )


def check_pairs(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Refuse pairs of which one is too long."""
    for number, pair in enumerate(pairs, start=1):
        try:
            for sentence in pair:
                check_sentence(sentence)
        except DataError as error:
            raise DataError(f"pair {number}: {error}") from None


def check_symmetry(symmetry: Symmetry) -> None:
    """Refuse vocabularies and classes that are too large."""
    for side, vocabulary in (("source", symmetry.source), ("target", symmetry.target)):
        if len(vocabulary.words) > VOCABULARY:
            raise VocabularyError(
                f"{len(vocabulary.words)} {side} words; a vocabulary has at most {VOCABULARY}"
            )
    if len(symmetry.classes) > CLASSES:
        raise SymmetryError(f"{len(symmetry.classes)} classes; there may be at most {CLASSES}")
    for c in symmetry.classes:
        if len(c.source) > CLASS:
            raise SymmetryError(
                f"class {c.name!r} has {len(c.source)} words; a class has at most {CLASS}"
            )


def check_model(settings: Any, symmetry: Symmetry) -> None:
    """Refuse a model of impossible sizes; how many weights it has is seen when it is built."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, int) and value > SIZE:
            raise ConfigError(f"model.{field.name} is {value}; it must be at most {SIZE}")
    order = prod(len(c.source) for c in symmetry.classes)  # such models are of cyclic groups
    if getattr(settings, "lists_elements", False) and order > GROUP:
        raise ConfigError(
            f"the classes' group has {order} elements; a model that lists them can have at most "
            f"{GROUP}"
        )
    entries = len(symmetry.source) * len(symmetry.target)
    if getattr(settings, "translator", None) == "table" and entries > TABLE:
        raise ConfigError(
            f"a table of {len(symmetry.source)} × {len(symmetry.target)} words is too large; "
            f"choose model.translator stack, or words whose product is at most {TABLE}"
        )
