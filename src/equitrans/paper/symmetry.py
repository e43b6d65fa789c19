"""Lexical classes (§3.3), their class functions ℓ_Σ and ℓ_Δ, their group and its two actions.

A class is a table. A row is a lexeme: its source forms and its target forms, one per column; in the
paper each side has one column. The group is the direct product of one factor per class. A group
element permutes the rows of a class and so moves all columns at once; words of no class are fixed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import mul
from typing import Literal, NamedTuple

from equitrans.errors import SymmetryError, shown
from equitrans.lexical import LexicalClass as LexicalClass, duplicate
from equitrans.paper.groups import Action, Group
from equitrans.paper.vocabulary import Vocabulary

GroupKind = Literal["cyclic", "symmetric"]
Sentence = tuple[int, ...]


class Home(NamedTuple):
    """Where a word stands: its class, its row, and its column among all columns of its side."""

    c: int
    row: int
    column: int


@dataclass(frozen=True)
class Symmetry:
    """Two vocabularies, the classes of their words, and the kind of group that a class has.

    >>> verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
    >>> symmetry = Symmetry.of([verbs], [(("walk", "twice"), ("WALK", "WALK"))])
    >>> symmetry.group
    ⟨(12)⟩
    >>> symmetry.template(("jump", "twice"))
    ('<verbs>', 'twice')
    """

    source: Vocabulary
    target: Vocabulary
    classes: tuple[LexicalClass, ...] = ()
    kind: GroupKind = "cyclic"

    def __post_init__(self) -> None:
        if (again := duplicate(self.labels)) is not None:
            raise SymmetryError(f"duplicate class name {shown(again)}")
        home: dict[tuple[str, str], str] = {}
        for c in self.classes:
            sides = zip(("source", "target"), (self.source, self.target), c.words, strict=True)
            for side, vocabulary, words in sides:
                vocabulary.encode(words)
                for word in words:
                    if (first := home.setdefault((side, word), c.name)) != c.name:
                        raise SymmetryError(
                            f"{side} word {shown(word)} is in two classes, {shown(first)} and "
                            f"{shown(c.name)}; a word can be in one class"
                        )

    @classmethod
    def of(
        cls,
        classes: Iterable[LexicalClass],
        pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
        kind: GroupKind = "cyclic",
    ) -> "Symmetry":
        """The symmetry of some pairs. Class words come first, then the other words of the pairs."""
        classes, pairs = tuple(classes), list(pairs)
        source = Vocabulary.of([*(c.words[0] for c in classes), *(x for x, _ in pairs)])
        target = Vocabulary.of([*(c.words[1] for c in classes), *(y for _, y in pairs)])
        return cls(source, target, classes, kind)

    @cached_property
    def kinds(self) -> tuple[GroupKind, ...]:
        """The kind of group of each class; that of an open class is symmetric."""
        return tuple("symmetric" if c.is_open else self.kind for c in self.classes)

    @cached_property
    def factors(self) -> tuple[Group, ...]:
        """The group of each class, on its rows."""
        make = {"cyclic": Group.cyclic, "symmetric": Group.symmetric}
        kinds = zip(self.kinds, self.classes, strict=True)
        return tuple(make[kind](len(c.source)) for kind, c in kinds)

    @cached_property
    def group(self) -> Group:
        """The direct product of the factors; the trivial group if there are no classes."""
        return reduce(mul, self.factors) if self.factors else Group.trivial(0)

    @cached_property
    def source_action(self) -> Action:
        """How the group moves source words."""
        return self._action(0, len(self.source))

    @cached_property
    def target_action(self) -> Action:
        """How the group moves target words."""
        return self._action(1, len(self.target))

    def _action(self, side: int, size: int) -> Action:
        first = [sum(g.degree for g in self.factors[:c]) for c in range(len(self.factors))]
        columns = zip(self.owners[side], self.members[side], strict=True)
        places = {w: first[c] + i for c, words in columns for i, w in enumerate(words)}
        return Action(self.group, tuple(places), size, tuple(places.values()))

    @cached_property
    def source_classes(self) -> tuple[int, ...]:
        """ℓ_Σ: the number of every source word's column; a word of no class has its own number."""
        return _classes(len(self.source), self.members[0])

    @cached_property
    def target_classes(self) -> tuple[int, ...]:
        """ℓ_Δ: the number of every target word's column."""
        return _classes(len(self.target), self.members[1])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each source column."""
        return tuple(label for c in self.classes for label in c.labels)

    def template(self, sentence: Iterable[str]) -> tuple[str, ...]:
        """A source sentence in which the name of its column replaces each class word."""
        places = ((w, self.homes[0].get(self.source.index.get(w, -1))) for w in sentence)
        return tuple(w if at is None else f"<{self.labels[at.column]}>" for w, at in places)

    @cached_property
    def members(self) -> tuple[list[Sentence], list[Sentence]]:
        """For source and target: the words of every column, as numbers."""
        return (
            [self.source.encode(words) for c in self.classes for _, words in c.columns[0]],
            [self.target.encode(words) for c in self.classes for _, words in c.columns[1]],
        )

    @cached_property
    def owners(self) -> tuple[list[int], list[int]]:
        """For source and target: the class of every column."""
        columns = [c.columns for c in self.classes]
        return (
            [c for c, (source, _) in enumerate(columns) for _ in source],
            [c for c, (_, target) in enumerate(columns) for _ in target],
        )

    @cached_property
    def homes(self) -> tuple[dict[int, Home], dict[int, Home]]:
        """For source and target: the home of every class word."""
        source, target = (
            {w: Home(owners[k], i, k) for k, words in enumerate(side) for i, w in enumerate(words)}
            for owners, side in zip(self.owners, self.members, strict=True)
        )
        return source, target


def _classes(size: int, classes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The class number of every word, by first appearance; special symbols keep their numbers."""
    first = {word: words[0] for words in classes for word in words}
    number: dict[int, int] = {}
    for word in range(size):
        number.setdefault(first.get(word, word), len(number))
    return tuple(number[first.get(word, word)] for word in range(size))
