"""Lexical classes (§3.3) and all that follows from them: ℓ_Σ, ℓ_Δ, the group and its two actions.

A class pairs source words with target words, in order. The group is the direct product of one
factor per class; the same element moves both sides, and words of no class are fixed.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import mul
from pathlib import Path
from typing import Any, Literal

from equitrans.errors import DataError, SymmetryError, nearest, shown
from equitrans.groups import Action, Group
from equitrans.texts import check_seen, one_spelling, read_toml
from equitrans.vocabulary import Vocabulary, twice

GroupKind = Literal["cyclic", "symmetric"]
Sentence = tuple[int, ...]


@dataclass(frozen=True)
class LexicalClass:
    """Words that may stand for one another; ``source[i]`` and ``target[i]`` belong together.

    >>> LexicalClass("verbs", ("walk", "jump"), ("I_WALK",))
    Traceback (most recent call last):
    equitrans.errors.SymmetryError: class 'verbs': 2 source words but 1 target words; \
the i-th of each side must belong together
    """

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        this = f"class {shown(self.name)}"
        for words in (self.source, self.target):
            if isinstance(words, str):
                raise SymmetryError(f"{this}: {shown(words)} is one text; give a tuple of words")
        if len(self.source) != len(self.target):
            raise SymmetryError(
                f"{this}: {len(self.source)} source words but {len(self.target)} "
                "target words; the i-th of each side must belong together"
            )
        if not self.source:
            raise SymmetryError(f"{this} is empty; it needs at least one word a side")
        for side, words in (("source", self.source), ("target", self.target)):
            if (word := twice(words)) is not None:
                raise SymmetryError(f"{this}: {side} word {shown(word)} stands twice")


@dataclass(frozen=True)
class Symmetry:
    """All a model knows of the classes.

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
                raise SymmetryError(f"two classes are named {shown(c.name)}")
            names.add(c.name)
            for side, vocabulary in (("source", self.source), ("target", self.target)):
                words: tuple[str, ...] = getattr(c, side)
                vocabulary.encode(words)
                for word in words:
                    if (first := home.setdefault((side, word), c.name)) != c.name:
                        raise SymmetryError(
                            f"{side} word {shown(word)} is in two classes, {shown(first)} and "
                            f"{shown(c.name)}; a word may be in one"
                        )

    @classmethod
    def of(
        cls,
        classes: Iterable[LexicalClass],
        pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
        kind: GroupKind = "cyclic",
    ) -> "Symmetry":
        """The symmetry of some data: class words first, seen or not, then the other words."""
        classes, pairs = tuple(classes), list(pairs)
        source = Vocabulary.of([*(c.source for c in classes), *(x for x, _ in pairs)])
        target = Vocabulary.of([*(c.target for c in classes), *(y for _, y in pairs)])
        return cls(source, target, classes, kind)

    @classmethod
    def from_json(cls, content: dict[str, Any], kind: GroupKind) -> "Symmetry":
        """From the vocabularies and classes of a file, which may hold anything."""
        source, target = (Vocabulary(_words(content, side)) for side in ("source", "target"))
        if not isinstance(tables := content.get("classes"), list):
            raise DataError("its classes are no list")
        classes = []
        for number, table in enumerate(tables, start=1):
            if not isinstance(table, dict) or not isinstance(name := table.get("name"), str):
                raise DataError(f"class {number} is {shown(table)}; it must have a name")
            classes.append(LexicalClass(name, _words(table, "source"), _words(table, "target")))
        return cls(source, target, tuple(classes), kind)

    @cached_property
    def factors(self) -> tuple[Group, ...]:
        """One group per class, on the class's words."""
        make = {"cyclic": Group.cyclic, "symmetric": Group.symmetric}[self.kind]
        return tuple(make(len(c.source)) for c in self.classes)

    @cached_property
    def group(self) -> Group:
        """The direct product of the factors; trivial without classes."""
        return reduce(mul, self.factors) if self.factors else Group.trivial(0)

    @cached_property
    def source_action(self) -> Action:
        """The group on source words."""
        places = tuple(self.source.index[w] for c in self.classes for w in c.source)
        return Action(self.group, places, len(self.source))

    @cached_property
    def target_action(self) -> Action:
        """The group on target words."""
        places = tuple(self.target.index[w] for c in self.classes for w in c.target)
        return Action(self.group, places, len(self.target))

    @cached_property
    def source_classes(self) -> tuple[int, ...]:
        """ℓ_Σ: the class of every source word; each other word is alone in its own."""
        return _classes(len(self.source), [self.source.encode(c.source) for c in self.classes])

    @cached_property
    def target_classes(self) -> tuple[int, ...]:
        """ℓ_Δ, for target words."""
        return _classes(len(self.target), [self.target.encode(c.target) for c in self.classes])

    def template(self, sentence: Iterable[str]) -> tuple[str, ...]:
        """A source sentence with class words replaced by the names of their classes."""
        names = {word: f"<{c.name}>" for c in self.classes for word in c.source}
        return tuple(names.get(word, word) for word in sentence)

    @cached_property
    def members(self) -> tuple[list[Sentence], list[Sentence]]:
        """For each side, the words of every class."""
        return (
            [self.source.encode(c.source) for c in self.classes],
            [self.target.encode(c.target) for c in self.classes],
        )

    @cached_property
    def homes(self) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
        """For each side, the class of every class word and its place there."""
        source, target = (
            {word: (c, i) for c, words in enumerate(side) for i, word in enumerate(words)}
            for side in self.members
        )
        return source, target

    def representative(self, source: Sentence, target: Sentence = ()) -> tuple[Sentence, Sentence]:
        """The same pair for all members of its orbit.

        Members of an orbit have the same likelihood (theorem 3), so one of them can stand for all.

        >>> verbs = LexicalClass("verbs", ("walk", "look", "run"), ("WALK", "LOOK", "RUN"))
        >>> symmetry = Symmetry.of([verbs], [])
        >>> symmetry.representative((4, 5), (5, 4)) == symmetry.representative((5, 3), (3, 5))
        True
        """
        renaming = Renaming(self)
        return renaming.source(source), renaming.target(target)


class Renaming:
    """The group element that takes a pair to its orbit's representative, found word by word.

    In a cyclic class the first word to appear becomes the class's first, and the others move
    along; in a symmetric one words take the places of the class in order of appearance.
    """

    def __init__(self, symmetry: Symmetry) -> None:
        self._symmetry = symmetry
        # by class: where each word goes (symmetric), or under 0 which word goes first (cyclic)
        self._new: list[dict[int, int]] = [{} for _ in symmetry.classes]

    @property
    def element(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The same for renamings that are the same group element, as far as they have been
        asked.
        """
        return tuple(tuple(names.items()) for names in self._new)

    def source(self, sentence: Sentence) -> Sentence:
        """A source sentence renamed."""
        return self._moved(0, sentence, self._new_place)

    def target(self, sentence: Sentence) -> Sentence:
        """A target sentence renamed."""
        return self._moved(1, sentence, self._new_place)

    def original_target(self, sentence: Sentence) -> Sentence:
        """A renamed target sentence as it was."""
        return self._moved(1, sentence, self._old_place)

    def _moved(self, side: int, sentence: Sentence, place: Callable[[int, int], int]) -> Sentence:
        """A sentence whose class words have gone to other places of their classes."""
        home, members = self._symmetry.homes[side], self._symmetry.members[side]
        out = list(sentence)
        for i, word in enumerate(sentence):
            if word in home:
                c, here = home[word]
                out[i] = members[c][place(c, here)]
        return tuple(out)

    def _new_place(self, c: int, place: int) -> int:
        names = self._new[c]
        if self._symmetry.kind == "symmetric":
            return names.setdefault(place, len(names))
        return (place - names.setdefault(0, place)) % len(self._symmetry.classes[c].source)

    def _old_place(self, c: int, place: int) -> int:
        names, n = self._new[c], len(self._symmetry.classes[c].source)
        if self._symmetry.kind == "symmetric":
            # words that did not appear take the places that are left, in order
            return [*names, *(i for i in range(n) if i not in names)][place]
        return (place + names.get(0, 0)) % n


def _words(table: dict[str, Any], side: str) -> tuple[str, ...]:
    """The words of one side, as a file gives them."""
    words = table.get(side)
    if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
        raise DataError(f"its {side} words are {shown(words)}; they must be a list of words")
    try:
        check_seen("".join(words))
    except DataError as error:
        raise DataError(f"its {side} words: {error}") from None
    return tuple(words)


def _classes(size: int, classes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Numbers for classes, in order of their first words, so that special symbols keep theirs."""
    first = {word: words[0] for words in classes for word in words}
    number: dict[int, int] = {}
    for word in range(size):
        number.setdefault(first.get(word, word), len(number))
    return tuple(number[first.get(word, word)] for word in range(size))


def read_classes(path: Path | str) -> tuple[LexicalClass, ...]:
    """Classes from a TOML file of ``[[class]]`` tables with ``name``, ``source`` and ``target``."""
    path = Path(path)
    content = read_toml(path)
    for key in content:
        if key != "class":
            raise DataError(
                f"{path}: {shown(key)} is not known here; classes stand in [[class]] tables"
            )
    tables = content.get("class", [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise DataError(f"{path}: classes stand in [[class]] tables, in double brackets")
    if not tables:
        raise DataError(f"{path}: no [[class]] table; for no symmetry at all give 'none'")
    classes = tuple(_read_class(path, i, table) for i, table in enumerate(tables, start=1))
    try:
        Symmetry.of(classes, [])
    except SymmetryError as error:
        raise SymmetryError(f"{path}: {error}") from None
    return classes


def _read_class(path: Path, number: int, table: dict[str, object]) -> LexicalClass:
    fields = ("name", "source", "target")
    for key in table:
        if key not in fields:
            raise DataError(
                f"{path}: class {number}: unknown key {shown(key)}{nearest(key, fields)}"
            )
    name = table.get("name", f"class{number}")
    if not isinstance(name, str):
        raise DataError(f"{path}: class {number}: name is {shown(name)}; it must be a string")
    sides: list[tuple[str, ...]] = []
    for side in ("source", "target"):
        words = table.get(side)
        if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
            raise DataError(
                f"{path}: class {shown(name)}: {side} must be a list of words in double quotes"
            )
        sides.append(tuple(map(one_spelling, words)))
    for text in (name, *sides[0], *sides[1]):
        try:
            check_seen(text)
        except DataError as error:
            raise DataError(f"{path}: class {shown(name)}: {shown(text)}: {error}") from None
    try:
        return LexicalClass(name, sides[0], sides[1])
    except SymmetryError as error:
        raise SymmetryError(f"{path}: {error}") from None


def format_classes(classes: Iterable[LexicalClass]) -> str:
    """Classes as the TOML that ``read_classes`` reads.

    >>> print(format_classes([LexicalClass("d", ("left",), ("L",))]), end="")
    [[class]]
    name = "d"
    source = ["left"]
    target = ["L"]
    """
    return "\n".join(
        f"[[class]]\nname = {_toml(c.name)}\n"
        f"source = {_toml(c.source)}\ntarget = {_toml(c.target)}\n"
        for c in classes
    )


def _toml(value: str | tuple[str, ...]) -> str:
    """A JSON string or list of strings is a TOML one too, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
