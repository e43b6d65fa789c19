"""A look at a file of pairs before training: what a model would learn wrongly, and where it is."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from equitrans.data.findings import (
    Finding,
    Side,
    about_classes,
    about_compounds,
    about_words,
    count,
)
from equitrans.data.pairs import File, LineError, Pair, join_words, parse_columns, parse_lines
from equitrans.data.reading import Reading
from equitrans.errors import few, shown
from equitrans.paper import LexicalClass
from equitrans.settings import LONGEST_SENTENCE

LONG = 200
"""Number of words from which a sentence is reported as long; training takes longer for it."""

LABELS = 20
"""Largest number of different values of a column that is reported as a label."""

HEADERS = (
    {"source", "src", "input", "in", "command", "utterance", "question", "query", "x"},
    {"target", "tgt", "output", "out", "action", "actions", "program", "logical", "form", "y"},
)
"""Words of a header above the sources and above the targets."""

FILLERS = {"sentence", "sentences", "text", "string", "sequence", "words", "column"}
"""Words that stand beside those of a header."""

SIDES = ("source", "target")
QUOTES = '"“”„«»'


@dataclass(frozen=True)
class Inspection:
    """The findings in a file, serious ones first, and its size."""

    pairs: int
    unreadable: int
    """Number of lines that are not pairs; training refuses the file."""
    source_words: int
    target_words: int
    findings: tuple[Finding, ...]

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that stop training or make the model learn something wrong."""
        return tuple(finding for finding in self.findings if finding.serious)


@dataclass(frozen=True)
class _Row:
    number: int
    text: str
    pair: Pair


def inspect_pairs(
    file: File,
    *,
    characters: bool = False,
    split_words: str | None = None,
    columns: str | None = None,
    classes: Iterable[LexicalClass] = (),
) -> Inspection:
    r"""Look at all lines of a file, readable or not, and at the classes for it. ``split_words`` is
    a character at which target words are read apart.

    >>> found = inspect_pairs([b"source\ttarget\n", b"dim it\tDIM\n", b"dim it\tLAMP\n"])
    >>> [finding.kind for finding in found.serious]
    ['header', 'conflict']
    """
    rows, errors = [], []
    reading = Reading(split=split_words)
    for number, text, pair in parse_lines(file, characters=characters, columns=columns):
        if isinstance(pair, LineError):
            errors.append((number, pair))
        else:
            rows.append(_Row(number, text, reading.pair(pair)))
    source, target = (
        Side(name, [(row.number, row.pair[i]) for row in rows]) for i, name in enumerate(SIDES)
    )
    findings = [
        *_unreadable(errors, rows),
        *_header(rows, (source, target)),
        *_columns(rows, columns),
        *_quotes(rows, source, target),
        *_repeats(rows),
        *_lengths(source, target),
        *_texts(rows, characters=characters),
        *_blank({row.number for row in rows} | {number for number, _ in errors}),
    ]
    for side in (source, target):
        findings += about_words(side, characters=characters)
    if not characters:
        findings += about_compounds(source, target)
    pairs = [(row.number, row.pair) for row in rows]
    findings += about_classes(tuple(classes), pairs, characters=characters)
    findings.sort(key=lambda finding: not finding.serious)
    return Inspection(len(rows), len(errors), len(source.words), len(target.words), tuple(findings))


def _unreadable(errors: Sequence[tuple[int, LineError]], rows: Sequence[_Row]) -> Iterator[Finding]:
    """Lines that are not pairs, which stop training, by their kind."""
    advice = {
        "encoding": "save the file as UTF-8",
        "invisible": "remove the character",
        "ending": "save the file with line feeds at the ends of lines",
        "separator": "write source<TAB>target; spreadsheets save it as tab-separated text",
        "columns": "give all lines the same columns, or choose two with --columns 1,2",
        "format": "write every line as IN: … OUT: …",
        "source": "write a source, or delete the line",
    }
    kinds: defaultdict[str, list[tuple[int, LineError]]] = defaultdict(list)
    for number, error in errors:
        kinds[error.kind].append((number, error))
    for kind, found in kinds.items():
        lines = tuple(number for number, _ in found)
        message = f"{count(lines, 'line is not a pair', 'lines are not pairs')}: {found[0][1]}"
        yield Finding(kind, message, lines, advice[kind], serious=True)
    if not errors and not rows:
        yield Finding("empty", "the file has no pairs", (), "write source<TAB>target", serious=True)


def _header(rows: Sequence[_Row], sides: Sequence[Side]) -> Iterator[Finding]:
    """A first line that names the columns with words that are in no other line."""
    if not rows:
        return
    first = rows[0]
    for sentence, side, names in zip(first.pair, sides, HEADERS, strict=True):
        words = re.findall(r"[^\W_]+", join_words(sentence).casefold())
        if not names.intersection(words) or not names | FILLERS >= set(words):
            return
        if any(side.words[word] > 1 for word in sentence):
            return
    message = f"the first line looks like a header row: {shown(first.text)}"
    yield Finding("header", message, (first.number,), "delete the line", serious=True)


def _columns(rows: Sequence[_Row], columns: str | None) -> Iterator[Finding]:
    """Columns that are ignored, and a label in the first column."""
    width = max((row.text.count("\t") + 1 for row in rows), default=0)
    if width < 3:
        return
    chosen = parse_columns(columns) or (0, 1)
    cells: list[Counter[str]] = [Counter() for _ in range(width)]
    for row in rows:
        for values, cell in zip(cells, row.text.split("\t"), strict=False):
            values[cell] += 1
    for i, values in enumerate(cells):
        some = few([value for value, _ in values.most_common(4)], 3)
        if i not in chosen:
            message = f"column {i + 1} is ignored: {some}"
            yield Finding("column", message, (), "--columns 1,2 chooses the columns", serious=False)
        elif columns is None and i == 0 and 3 * len(values) <= len(rows) and len(values) <= LABELS:
            message = f"column 1, the source, has only {len(values)} different values: {some}"
            advice = "if it is a label, choose other columns: --columns 2,3"
            yield Finding("label", message, (), advice, serious=True)


def _quotes(rows: Sequence[_Row], source: Side, target: Side) -> Iterator[Finding]:
    """Quotation marks around sentences, and around words that also occur without them."""
    lines, words = set(), []
    for row in rows:
        for sentence in row.pair:
            text = join_words(sentence)
            ends = len(text) > 2 and text[0] in QUOTES and text[-1] in QUOTES
            if ends and not (set(text[1:-1].replace('""', "")) & set(QUOTES)) and text[1] != " ":
                lines.add(row.number)
                words += [sentence[0], sentence[-1]]
    for side in (source, target):
        found = [w for w in side.words if w.strip(QUOTES) != w and w.strip(QUOTES) in side.words]
        lines.update(side.lines(found))
        words += found
    if lines:
        message = f"quotation marks are part of words: {few(map(shown, dict.fromkeys(words)))}"
        advice = "remove the quotation marks, or write them as words of their own"
        yield Finding("quotes", message, tuple(sorted(lines)), advice, serious=True)


def _repeats(rows: Sequence[_Row]) -> Iterator[Finding]:
    """Copies of pairs, and sources with several targets."""
    targets: defaultdict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = defaultdict(dict)
    for row in rows:
        targets[row.pair.source].setdefault(row.pair.target, []).append(row.number)
    several = {source: found for source, found in targets.items() if len(found) > 1}
    if several:
        source, found = next(iter(several.items()))
        examples = " or ".join(shown(join_words(target)) for target in list(found)[:2])
        message = (
            f"{count(several, 'source has', 'sources have')} several targets: "
            f"{shown(join_words(source))} → {examples}"
        )
        lines = sorted(n for found in several.values() for ns in found.values() for n in ns)
        advice = "keep one target for each source; a model learns one"
        yield Finding("conflict", message, tuple(lines), advice, serious=True)
    copies = [n for found in targets.values() for numbers in found.values() for n in numbers[1:]]
    if copies:
        message = f"{count(copies, 'line repeats', 'lines repeat')} an earlier pair"
        advice = "nothing to do if this is meant"
        yield Finding("duplicate", message, tuple(sorted(copies)), advice, serious=False)


def _lengths(source: Side, target: Side) -> Iterator[Finding]:
    """Long sentences, and empty targets."""
    for side in (source, target):
        for least, serious in ((LONGEST_SENTENCE, True), (LONG, False)):
            most = LONGEST_SENTENCE if least == LONG else float("inf")
            long = {n: len(s) for n, s in side.sentences if least < len(s) <= most}
            if long:
                message = (
                    f"{count(long, f'{side.name} has', f'{side.name}s have')} more than {least} "
                    f"words, {max(long.values())} at most"
                )
                advice = (
                    "training refuses them; shorten or delete them"
                    if serious
                    else ("expect a slow training; shorten them if you can")
                )
                yield Finding("long", message, tuple(long), advice, serious=serious)
    if empty := tuple(number for number, sentence in target.sentences if not sentence):
        message = f"{count(empty, 'target is', 'targets are')} empty"
        yield Finding("target", message, empty, "check that this is meant", serious=False)


def _blank(numbers: set[int]) -> Iterator[Finding]:
    """Blank lines between the others."""
    blank = tuple(n for n in range(1, max(numbers, default=0)) if n not in numbers)
    if blank:
        message = f"{count(blank, 'line is', 'lines are')} blank"
        yield Finding(
            "blank", message, blank, "nothing to do; blank lines are ignored", serious=False
        )


def _texts(rows: Sequence[_Row], *, characters: bool) -> Iterator[Finding]:
    """Spaces that are not seen, and text that is not composed (NFC)."""
    ragged, spaced, decomposed = [], [], []
    for row in rows:
        if characters and any(cell != cell.strip() for cell in row.text.split("\t")):
            ragged.append(row.number)
        if not row.text.isascii():
            if any(letter.isspace() and letter not in " \t" for letter in row.text):
                spaced.append(row.number)
            if not unicodedata.is_normalized("NFC", row.text):
                decomposed.append(row.number)
    if ragged:
        message = f"{count(ragged, 'line has', 'lines have')} spaces around a sentence"
        advice = "remove the spaces; with --characters a space is a word"
        yield Finding("space", message, tuple(ragged), advice, serious=True)
    if spaced:
        message = f"{count(spaced, 'line has', 'lines have')} unusual spaces, which end words"
        advice = "write ordinary spaces, such as no non-breaking ones"
        yield Finding("space", message, tuple(spaced), advice, serious=characters)
    if decomposed:
        message = f"{count(decomposed, 'line has', 'lines have')} decomposed letters (not NFC)"
        advice = "nothing to do; they are read as composed letters"
        yield Finding("normal form", message, tuple(decomposed), advice, serious=False)
