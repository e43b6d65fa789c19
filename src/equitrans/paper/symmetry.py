"""Lexical classes (§3.3), their class functions ℓ_Σ and ℓ_Δ, their group and its two actions.

The i-th source word of a class belongs to the i-th target word. The group is the direct product of
one factor per class. A group element moves both sides; words of no class are fixed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import mul
from typing import Literal

from equitrans.errors import SymmetryError, shown
from equitrans.paper.groups import Action, Group
from equitrans.paper.vocabulary import Vocabulary, duplicate

GroupKind = Literal["cyclic", "symmetric"]
Sentence = tuple[int, ...]


@dataclass(frozen=True)
class LexicalClass:
    """Exchangeable words; ``source[i]`` translates to ``target[i]``."""

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        this = f"class {shown(self.name)}"
        for words in (self.source, self.target):
            if isinstance(words, str):
                raise SymmetryError(f"{this}: {shown(words)} is a string; give a tuple of words")
        if len(self.source) != len(self.target):
            raise SymmetryError(
                f"{this}: {len(self.source)} source words but {len(self.target)} "
                "target words; the i-th of each side must belong together"
            )
        if not self.source:
            raise SymmetryError(f"{this} is empty; it needs at least one word on each side")
        for side, words in (("source", self.source), ("target", self.target)):
            if (word := duplicate(words)) is not None:
                raise SymmetryError(f"{this}: duplicate {side} word {shown(word)}")


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
        names: set[str] = set()
        home: dict[tuple[str, str], str] = {}
        for c in self.classes:
            if c.name in names:
                raise SymmetryError(f"duplicate class name {shown(c.name)}")
            names.add(c.name)
            for side, vocabulary in (("source", self.source), ("target", self.target)):
                words: tuple[str, ...] = getattr(c, side)
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
        source = Vocabulary.of([*(c.source for c in classes), *(x for x, _ in pairs)])
        target = Vocabulary.of([*(c.target for c in classes), *(y for _, y in pairs)])
        return cls(source, target, classes, kind)

    @cached_property
    def factors(self) -> tuple[Group, ...]:
        """The group of each class, on the words of the class."""
        make = {"cyclic": Group.cyclic, "symmetric": Group.symmetric}[self.kind]
        return tuple(make(len(c.source)) for c in self.classes)

    @cached_property
    def group(self) -> Group:
        """The direct product of the factors; the trivial group if there are no classes."""
        return reduce(mul, self.factors) if self.factors else Group.trivial(0)

    @cached_property
    def source_action(self) -> Action:
        """How the group moves source words."""
        places = tuple(self.source.index[w] for c in self.classes for w in c.source)
        return Action(self.group, places, len(self.source))

    @cached_property
    def target_action(self) -> Action:
        """How the group moves target words."""
        places = tuple(self.target.index[w] for c in self.classes for w in c.target)
        return Action(self.group, places, len(self.target))

    @cached_property
    def source_classes(self) -> tuple[int, ...]:
        """ℓ_Σ: the class number of every source word; a word of no class has its own number."""
        return _classes(len(self.source), self.members[0])

    @cached_property
    def target_classes(self) -> tuple[int, ...]:
        """ℓ_Δ: the class number of every target word."""
        return _classes(len(self.target), self.members[1])

    def template(self, sentence: Iterable[str]) -> tuple[str, ...]:
        """A source sentence in which the name of its class replaces each class word."""
        places = ((w, self.homes[0].get(self.source.index.get(w, -1))) for w in sentence)
        return tuple(w if at is None else f"<{self.classes[at[0]].name}>" for w, at in places)

    @cached_property
    def members(self) -> tuple[list[Sentence], list[Sentence]]:
        """For source and target: the words of every class, as numbers."""
        return (
            [self.source.encode(c.source) for c in self.classes],
            [self.target.encode(c.target) for c in self.classes],
        )

    @cached_property
    def homes(self) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
        """For source and target: the class of every class word, and its place in the class."""
        source, target = (
            {word: (c, i) for c, words in enumerate(side) for i, word in enumerate(words)}
            for side in self.members
        )
        return source, target


def _classes(size: int, classes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The class number of every word, by first appearance; special symbols keep their numbers."""
    first = {word: words[0] for words in classes for word in words}
    number: dict[int, int] = {}
    for word in range(size):
        number.setdefault(first.get(word, word), len(number))
    return tuple(number[first.get(word, word)] for word in range(size))
