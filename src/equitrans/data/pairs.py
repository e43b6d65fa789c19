"""Pairs of sentences: read them, write them, hold some out.

The first line of a file decides its format: TSV, ``source<TAB>target``, or SCAN's ``IN: … OUT: …``.
White space separates words, or every character is a word. Text is normalized to Unicode's composed
form (NFC) before it is split; words given one by one are not changed.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from equitrans.errors import DataError, shown
from equitrans.files import check_visible, normalized

HoldOut = Literal["random", "longest"]


class Pair(NamedTuple):
    """A source sentence and its target."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """Training and test pairs; ``origin`` is official, rule, or the seed they were drawn with."""

    name: str
    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    origin: str


def split_words(text: str, *, characters: bool = False) -> tuple[str, ...]:
    """The words of a sentence.

    >>> split_words("jump  twice"), split_words("ab", characters=True)
    (('jump', 'twice'), ('a', 'b'))
    """
    text = normalized(text)
    return tuple(text) if characters else tuple(text.split())


def join_words(words: Iterable[str], *, characters: bool = False) -> str:
    """The sentence of some words; the inverse of ``split_words``."""
    return ("" if characters else " ").join(words)


AnyPair = tuple[str | Sequence[str], str | Sequence[str]]
"""A source and a target, each a string or a sequence of words."""


def as_pairs(pairs: Iterable[AnyPair], *, characters: bool = False) -> tuple[Pair, ...]:
    """Pairs from tuples of a source and a target, each a string or a sequence of words.

    >>> as_pairs([("jump twice", "JUMP JUMP")])
    (Pair(source=('jump', 'twice'), target=('JUMP', 'JUMP')),)
    """
    made = []
    for number, pair in enumerate(pairs, start=1):
        sides = [
            split_words(side, characters=characters) if isinstance(side, str) else tuple(side)
            for side in pair
        ]
        if len(sides) != 2 or not sides[0]:
            raise DataError(f"pair {number} is {shown(pair)}; expected a source and a target")
        made.append(Pair(sides[0], sides[1]))
    return tuple(made)


def read_pairs(path: Path | str, *, characters: bool = False) -> tuple[Pair, ...]:
    """All pairs of a file in either format, without blank lines."""
    path = Path(path)
    parse: Callable[[str], tuple[str, str]] | None = None
    pairs = []
    known: dict[str, str] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        parse = parse or (_parse_scan if line.startswith("IN:") else _parse_tsv)
        try:
            source, target = (split_words(side, characters=characters) for side in parse(line))
            if not source:
                raise DataError(f"the source is empty in {shown(line)}; it needs at least one word")
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
        # equal words share one string, which saves memory
        source, target = (tuple(map(known.setdefault, s, s)) for s in (source, target))
        pairs.append(Pair(source, target))
    if not pairs:
        raise DataError(f"{path}: no pairs; expected lines of source<TAB>target or IN: … OUT: …")
    return tuple(pairs)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers."""
    with path.open("rb") as file:
        yield from decode_lines(file, f"{path}:")


def decode_lines(lines: Iterable[bytes], where: str) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers; an invisible character raises DataError. Only a
    line feed ends a line; other line breaks stay in the text.
    """
    for number, raw in enumerate(lines, start=1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            check_visible(text)
        except UnicodeDecodeError as error:
            raise DataError(f"{where}{number}: not UTF-8: {error.reason}") from None
        except DataError as error:
            raise DataError(f"{where}{number}: {error}") from None
        yield number, text.rstrip("\r\n")


def _parse_scan(line: str) -> tuple[str, str]:
    source, found, target = line.removeprefix("IN:").partition(" OUT:")
    if not line.startswith("IN:") or not found or " OUT:" in target:
        raise DataError(f"expected 'IN: … OUT: …', got {shown(line)}")
    return source, target


def _parse_tsv(line: str) -> tuple[str, str]:
    if (tabs := line.count("\t")) != 1:
        raise DataError(f"expected source<TAB>target, got {tabs + 1} columns in {shown(line)}")
    source, _, target = line.partition("\t")
    return source, target


def format_tsv(pairs: Iterable[Pair], *, characters: bool = False) -> str:
    """Pairs as lines of ``source<TAB>target``."""
    return "".join(
        f"{join_words(x, characters=characters)}\t{join_words(y, characters=characters)}\n"
        for x, y in pairs
    )


def format_scan(pairs: Iterable[Pair]) -> str:
    """Pairs as lines of ``IN: … OUT: …``."""
    return "".join(f"IN: {join_words(x)} OUT: {join_words(y)}\n" for x, y in pairs)


def hold_out(
    pairs: Sequence[Pair], *, fraction: float, how: HoldOut, seed: int
) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Training and validation pairs.

    The validation pairs are a fraction of the *distinct* pairs: random ones, or those with the
    longest targets. All copies of a validation pair leave the training pairs. A random hold-out
    leaves every word in some training pair, because a model cannot learn a word that occurs in
    validation pairs only. With fewer than 10 distinct pairs, none is held out.
    """
    distinct = list(dict.fromkeys(pairs))
    count = min(round(fraction * len(distinct)), len(distinct) - 1) if len(distinct) >= 10 else 0
    held: set[Pair] = set()
    if how == "longest":
        held.update(sorted(distinct, key=lambda p: (-len(p.target), p))[:count])
    else:
        left = Counter(chain.from_iterable(map(_sided_words, distinct)))
        for pair in random.Random(seed).sample(distinct, len(distinct)):
            words = _sided_words(pair)
            if len(held) < count and all(left[word] > 1 for word in words):
                held.add(pair)
                left.subtract(words)
    return tuple(p for p in pairs if p not in held), tuple(p for p in distinct if p in held)


def _sided_words(pair: Pair) -> set[tuple[int, str]]:
    """The words of a pair, each with its side."""
    return {(side, word) for side, sentence in enumerate(pair) for word in sentence}
