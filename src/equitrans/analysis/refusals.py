"""Sentences and pairs that a model cannot read: those with unknown words, no words, or too many."""

from collections import Counter
from collections.abc import Iterable, Sequence

from equitrans.data import Pair
from equitrans.errors import shown, spelling
from equitrans.paper import Symmetry, Vocabulary
from equitrans.settings import LONGEST_SENTENCE

_SUGGESTIONS = 1000
"""Number of unknown words per call for which a spelling is suggested; each takes milliseconds."""


class Unreadable:
    """Reasons to refuse sentences before decoding; each unknown word is looked up once.

    >>> Unreadable(Vocabulary(("jump", "walk"))).reason(("junp",))
    "unknown word 'junp'; did you mean 'jump'?"
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._unknown = vocabulary, dict[str, str]()

    def reason(self, sentence: Sequence[str]) -> str | None:
        """The reason to refuse a sentence; None if the model can read it."""
        if not sentence:
            return "no words"
        if len(sentence) > LONGEST_SENTENCE:
            return f"{len(sentence)} words; the limit is {LONGEST_SENTENCE}"
        word = next((w for w in sentence if w not in self._vocabulary.index), None)
        if word is None:
            return None
        if word not in self._unknown:
            near = len(self._unknown) < _SUGGESTIONS
            hint = spelling(word, self._vocabulary.words) if near else ""
            self._unknown[word] = f"unknown word {shown(word)}{hint}"
        return self._unknown[word]


def known_pairs(pairs: Iterable[Pair], symmetry: Symmetry) -> tuple[Pair, ...]:
    """The pairs without unknown words; only they have a likelihood."""
    source, target = symmetry.source.index.keys(), symmetry.target.index.keys()
    return tuple(p for p in pairs if source >= {*p.source} and target >= {*p.target})


def unknown_targets(pairs: Iterable[Pair], symmetry: Symmetry) -> dict[str, int]:
    """Target words that a model does not know, with the number of pairs that contain them."""
    known = symmetry.target.index.keys()
    return dict(Counter(word for pair in pairs for word in {*pair.target} - known))
