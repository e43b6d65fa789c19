"""Pairs of sentences: read them, write them, hold some out.

The first line of a file decides its format: TSV, ``source<TAB>target``, or SCAN's ``IN: … OUT: …``.
White space separates words, or every character is a word. Text is normalized to Unicode's composed
form (NFC) before it is split; words given one by one are not changed.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from equitrans.errors import ConfigError, DataError, shown
from equitrans.files import check_visible, normalized

MOST_COLUMNS = 100
"""Largest number of columns of a TSV file."""

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
        sides = () if isinstance(pair, str) else _items(pair)
        if len(sides) != 2:
            raise DataError(f"pair {number} is {shown(pair)}; expected a source and a target")
        source, target = (
            split_words(side, characters=characters) if isinstance(side, str) else _items(side)
            for side in sides
        )
        if not source or not all(isinstance(word, str) and word for word in source + target):
            raise DataError(
                f"pair {number} is {shown(pair)}; expected a source and a target, each a string or "
                "a sequence of words"
            )
        made.append(Pair(source, target))
    return tuple(made)


def _items(value: object) -> tuple[Any, ...]:
    """The items of an iterable; of anything else, the value, which is not a word."""
    return tuple(value) if isinstance(value, Iterable) else (value,)


File = Path | str | Iterable[bytes]
"""A path, or the lines of a file: ``sys.stdin.buffer``."""


class LineError(DataError):
    """A line is not a pair; ``kind`` is encoding, invisible, ending, separator, columns, format or
    source.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def read_pairs(
    file: File, *, characters: bool = False, columns: str | None = None
) -> tuple[Pair, ...]:
    """All pairs of a file in either format, without blank lines.

    ``columns`` are the columns of source and target in a TSV file, such as ``"2,3"``. By default
    they are the first two; further columns are ignored.
    """
    where = f"{file}:" if isinstance(file, Path | str) else "line "
    pairs = []
    known: dict[str, str] = {}
    for number, _, pair in parse_lines(file, characters=characters, columns=columns):
        if isinstance(pair, LineError):
            raise DataError(f"{where}{number}: {pair}") from None
        # equal words share one string, which saves memory
        source, target = (tuple(map(known.setdefault, side, side)) for side in pair)
        pairs.append(Pair(source, target))
    if not pairs:
        raise DataError(
            f"{where.rstrip(': ')}: no pairs; expected lines of source<TAB>target or IN: … OUT: …"
        )
    return tuple(pairs)


def parse_lines(
    file: File, *, characters: bool = False, columns: str | None = None
) -> Iterator[tuple[int, str, Pair | LineError]]:
    """Number, text and pair of every line that is not blank. A line that is not a pair has a
    LineError instead, and the text that could be decoded.
    """
    chosen = parse_columns(columns)
    parse: Callable[[str], tuple[str, str]] | None = None
    with _opened(file) as lines:
        for number, raw in enumerate(lines, start=1):
            text = ""
            try:
                text = _decode(raw, number)
                if not text.strip():
                    continue
                if "\r" in text:
                    raise LineError(
                        "ending", f"a carriage return in {shown(text)}; a line feed ends a line"
                    )
                parse = parse or _parser(text, number, chosen)
                source, target = (split_words(s, characters=characters) for s in parse(text))
                if not source:
                    raise LineError(
                        "source", f"the source is empty in {shown(text)}; it needs a word"
                    )
                yield number, text, Pair(source, target)
            except LineError as error:
                yield number, text, error


def read_column(file: File, number: int, *, columns: str | None = None) -> tuple[str, ...]:
    """The texts of a column of a TSV file, counted from 1, one for each pair of ``read_pairs``."""
    if not 1 <= number <= MOST_COLUMNS:
        raise ConfigError(f"the column is {number}; it must lie in [1, {MOST_COLUMNS}]")
    where = f"{file}:" if isinstance(file, Path | str) else "line "
    texts = []
    for line, text, pair in parse_lines(file, columns=columns):
        cells = text.split("\t")
        if isinstance(pair, LineError) or len(cells) < number:
            raise DataError(f"{where}{line}: expected {number} columns, got {shown(text)}")
        texts.append(normalized(cells[number - 1]).strip())
    return tuple(texts)


def parse_columns(columns: str | None) -> tuple[int, int] | None:
    """The positions, from 0, of source and target.

    >>> parse_columns("2,3")
    (1, 2)
    """
    if columns is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,3}),([1-9]\d{0,3})", columns)
    if found is None or found[1] == found[2]:
        raise ConfigError(
            f"columns is {shown(columns)}; expected the numbers of two columns, such as 1,2"
        )
    return int(found[1]) - 1, int(found[2]) - 1


@contextmanager
def _opened(file: File) -> Iterator[Iterable[bytes]]:
    """The lines of a file; a path is opened and closed."""
    if not isinstance(file, Path | str):
        yield file
        return
    with open(file, "rb") as lines:
        yield lines


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
            yield number, _decode(raw, number)
        except LineError as error:
            raise DataError(f"{where}{number}: {error}") from None


def _decode(raw: bytes, number: int) -> str:
    """The text of a line."""
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        check_visible(text)
    except UnicodeDecodeError as error:
        raise LineError("encoding", f"not UTF-8: {error.reason}") from None
    except DataError as error:
        raise LineError("invisible", str(error)) from None
    return text.rstrip("\r\n")


def _parser(
    text: str, number: int, columns: tuple[int, int] | None
) -> Callable[[str], tuple[str, str]]:
    """The parser of a file with this first line."""
    if text.startswith("IN:"):
        if columns is not None:
            raise ConfigError("the file is in SCAN's format, IN: … OUT: …, which has no columns")
        return _parse_scan
    width = text.count("\t") + 1
    if columns is None and width > 2:
        return partial(_parse_tsv, columns=(0, 1), width=width, first=number)
    return partial(_parse_tsv, columns=columns)


def _parse_scan(line: str) -> tuple[str, str]:
    source, found, target = line.removeprefix("IN:").partition(" OUT:")
    if not line.startswith("IN:") or not found or " OUT:" in target:
        raise LineError("format", f"expected 'IN: … OUT: …', got {shown(line)}")
    return source, target


def _parse_tsv(
    line: str, *, columns: tuple[int, int] | None, width: int | None = None, first: int = 1
) -> tuple[str, str]:
    """Source and target of a line. Without ``columns`` it has two columns; ``width`` is the number
    of columns of the first line.
    """
    if (tabs := line.count("\t")) >= MOST_COLUMNS:
        raise LineError("columns", f"got {tabs + 1} columns; the limit is {MOST_COLUMNS}")
    cells = line.split("\t")
    source, target = columns or (0, 1)
    if len(cells) == 1:
        csv = "; is this CSV?" if "," in line or ";" in line else ""
        raise LineError(
            "separator", f"expected source<TAB>target, got no TAB in {shown(line)}{csv}"
        )
    if width is not None and len(cells) != width:
        expected = f"{width} columns as in line {first}"
    elif columns is None and len(cells) != 2:
        expected = "source<TAB>target"
    elif max(source, target) >= len(cells):
        expected = f"{max(source, target) + 1} columns"
    else:
        return cells[source], cells[target]
    raise LineError("columns", f"expected {expected}, got {len(cells)} columns in {shown(line)}")


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
