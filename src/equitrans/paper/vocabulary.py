"""Words as integers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from equitrans.errors import VocabularyError, shown, spelling
from equitrans.lexical import duplicate

PAD, BOS, EOS, N_SPECIAL = 0, 1, 2, 3
"""Numbers of the special symbols, and how many there are. They have no spelling: no word is one."""


@dataclass(frozen=True)
class Vocabulary:
    """The words of one side, numbered from 3 in the order given.

    >>> v = Vocabulary.of([("walk", "twice"), ("jump",)])
    >>> v.encode(("jump", "twice"))
    (5, 4)
    >>> v.decode((5, 4))
    ('jump', 'twice')
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        for word in self.words:
            if not isinstance(word, str) or not word:
                raise VocabularyError(f"invalid word {shown(word)}: words are non-empty strings")
        if (again := duplicate(self.words)) is not None:
            raise VocabularyError(f"duplicate word {shown(again)} in a vocabulary")

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> "Vocabulary":
        """The vocabulary of some sentences, in order of first appearance."""
        return cls(tuple(dict.fromkeys(word for sentence in sentences for word in sentence)))

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each word."""
        return {word: i for i, word in enumerate(self.words, start=N_SPECIAL)}

    def __len__(self) -> int:
        """The size of the vocabulary, special symbols included."""
        return len(self.words) + N_SPECIAL

    def encode(self, sentence: Sequence[str]) -> tuple[int, ...]:
        """The numbers of words. An unknown word raises VocabularyError with a likely spelling."""
        try:
            return tuple(self.index[word] for word in sentence)
        except KeyError as missing:
            word = missing.args[0]
            message = f"unknown word {shown(word)}{spelling(word, self.words)}"
            raise VocabularyError(message) from None

    def decode(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The words of numbers, without special symbols."""
        return tuple(self.words[i - N_SPECIAL] for i in numbers if i >= N_SPECIAL)
