"""What a right side does with the yields of its parts: it uses them whole, or parts of them.

A yield may have a variable. It stands for words that a larger constituent gives, such as the
subject of ``wanted to eat``. A *primitive* takes some words of a yield by their order, whatever
they are: ``shift □ → rest(1) first(1)``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

CONSTANTS = 0x10000
"""Code point of the first constant; smaller code points are source positions."""


def constant(word: int) -> str:
    """The character of a target word that a rule writes."""
    return chr(CONSTANTS + word)


def constant_word(atom: str) -> int | None:
    """The target word of a constant, or None for a position.

    >>> constant_word(constant(7)), constant_word(chr(7))
    (7, None)
    """
    return ord(atom) - CONSTANTS if ord(atom) >= CONSTANTS else None


VARIABLE = 0xFFFFF
"""The constant that stands for a word which a larger constituent gives: ``eat ( agent = X )``."""


class Operation(IntEnum):
    """What a right side does with the yield of a part."""

    WHOLE = 0
    HEAD = 1
    """The words before the first bracket."""
    KEEP = 2
    """The whole yield; its variable stays."""
    FILL = 3
    """The whole yield; its variable becomes the head of another part."""
    BIND = 4
    """The whole yield; its variable becomes the head of the rule's own yield."""
    REVERSE = 5
    FIRST = 6
    LAST = 7
    REST = 8
    """All words but the first."""
    FRONT = 9
    """All words but the last."""


PRIMITIVES = {
    Operation.REVERSE: slice(None, None, -1),
    Operation.FIRST: slice(0, 1),
    Operation.LAST: slice(-1, None),
    Operation.REST: slice(1, None),
    Operation.FRONT: slice(0, -1),
}
"""The words that each primitive takes."""


Words = TypeVar("Words", str, list[tuple[str, int]], tuple[str, ...], range)


class Use(NamedTuple):
    """The use of a part on a right side.

    >>> Use.of(Use(2, Operation.FILL, 1, 40).number)
    Use(place=2, operation=<Operation.FILL: 3>, other=1, bracket=40)
    """

    place: int
    operation: Operation = Operation.WHOLE
    other: int = 0
    """The part whose head fills the variable; the primitive before a primitive, if there are two:
    ``first(rest(0))``.
    """
    bracket: int = 0
    """The target word before which a head ends."""

    @property
    def number(self) -> int:
        """The number that stands on the right side; that of a whole yield is its place."""
        return self.place | self.operation << 12 | self.other << 16 | self.bracket << 28

    @classmethod
    def of(cls, number: int) -> "Use":
        """The use that a number on a right side stands for."""
        operation = Operation(number >> 12 & 0xF)
        return cls(number & 0xFFF, operation, number >> 16 & 0xFFF, number >> 28)

    @property
    def primitives(self) -> tuple[Operation, ...]:
        """The primitives, the one that comes first at the end; empty for other operations."""
        if self.operation < Operation.REVERSE:
            return ()
        return (self.operation, Operation(self.other)) if self.other else (self.operation,)

    def take(self, words: Words) -> Words:
        """The words that the primitives take.

        >>> Use(0, Operation.FIRST, Operation.REST).take("abc")
        'b'
        """
        for operation in reversed(self.primitives):
            words = words[PRIMITIVES[operation]]
        return words


def count_primitives(right: Iterable[int]) -> int:
    """The number of primitives on a right side."""
    return sum([len(Use.of(k).primitives) for k in right if k >= PLAIN])


CHAINS = (
    *((one, Operation.WHOLE) for one in PRIMITIVES),
    (Operation.FIRST, Operation.REST),
    (Operation.LAST, Operation.FRONT),
    (Operation.REST, Operation.REST),
    (Operation.FRONT, Operation.FRONT),
    (Operation.REST, Operation.FRONT),
    (Operation.REVERSE, Operation.REST),
    (Operation.REVERSE, Operation.FRONT),
)
"""The primitives of learned rules, and their pairs that are no single primitive."""


S = TypeVar("S", str, list[tuple[str, int]])

PLAIN = 1 << 12
"""Smallest number of a use with an operation."""


def operate(
    right: Sequence[int], parts: Mapping[int, S], write: Callable[[int], S], nothing: S
) -> S:
    """The yield of the whole from the yields of all parts of the left side, which are sequences
    of atoms, or of tuples that begin with an atom.
    """
    found: list[S] = []
    for k in right:
        use = Use.of(k) if k >= PLAIN else None
        found.append(write(~k) if k < 0 else parts[k & 0xFFF])
        if use is not None and use.operation == Operation.FILL:
            head = _head(parts[use.other], use.bracket)
            found[-1] = _filled(found[-1], head, nothing)
        elif use is not None and use.operation == Operation.HEAD:
            found[-1] = _head(found[-1], use.bracket)
        elif use is not None:
            found[-1] = use.take(found[-1])
    whole = _joined(found, nothing)
    bound = [(i, Use.of(k)) for i, k in enumerate(right) if k >= PLAIN]
    bound = [(i, use) for i, use in bound if use.operation == Operation.BIND]
    for i, use in bound:
        found[i] = _filled(found[i], _head(whole, use.bracket), nothing)
    return _joined(found, nothing) if bound else whole


def _head(part: S, bracket: int) -> S:
    """The atoms before the first bracket."""
    stop = constant(bracket)
    return part[: next((i for i, atom in enumerate(part) if atom[0] == stop), len(part))]


def _filled(part: S, head: S, nothing: S) -> S:
    """A yield with its variable replaced."""
    variable = constant(VARIABLE)
    pieces = [head if part[i][0] == variable else part[i : i + 1] for i in range(len(part))]
    return _joined(pieces, nothing)


def _joined(parts: Iterable[S], nothing: S) -> S:
    if isinstance(nothing, str):
        return "".join(parts)
    return [atom for part in parts for atom in part]
