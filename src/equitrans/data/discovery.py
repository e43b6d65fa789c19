"""Discovery of lexical classes in pairs; the paper takes the classes as given."""

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from equitrans.data.adoption import (
    adopt,
    copied_group,
    part_strangers,
    pool_copies,
    with_dropped,
)
from equitrans.data.comparisons import Abstract, Tally, abstract, is_sound
from equitrans.data.grouping import group_words
from equitrans.data.lexemes import Lexemes, find_lexemes
from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair
from equitrans.lexical import is_filler, marked
from equitrans.paper import LexicalClass

FEW = 150
"""Largest number of source words of all distinct pairs for which there are rival classes; learning
rules for each of them takes long."""

ADOPTED = "stands where other words of the class stand; no sentences differ in this word only"


@dataclass(frozen=True)
class Evidence:
    """The numbers of pairs that confirm and contradict a class: they differ in its words only."""

    confirmed: int
    contradicted: int
    example: tuple[Pair, Pair] | None
    thin: dict[str, str]
    """Words with little evidence for the class, and what the evidence is."""
    notes: tuple[str, ...] = ()
    """The evidence for phrases, other spellings, columns and new words."""


@dataclass(frozen=True)
class Discovery:
    """Classes, the evidence for each, words in no class, and pairs that do not fit."""

    classes: tuple[LexicalClass, ...]
    evidence: tuple[Evidence, ...]
    left_out: dict[str, str]
    """Source words in no class, with the reason."""
    misfits: tuple[Pair, ...]
    """Pairs that do not fit the classes: wrong or irregular ones."""
    rivals: tuple[tuple[LexicalClass, ...], ...] = ()
    """Other classes that few pairs allow: all words with a translation in one class."""


def discover(pairs: Iterable[Pair], *, tolerance: float = 0.2) -> Discovery:
    """Find the lexical classes of some pairs.

    ``tolerance`` is the largest fraction of comparisons that may contradict a class. A wrong pair
    makes all its comparisons wrong, so the tolerance should be more than twice the fraction of
    wrong pairs.

    >>> pairs = [Pair((w, "twice"), (w.upper(),) * 2) for w in ("walk", "look")]
    >>> alone = [Pair((w,), (w.upper(),)) for w in ("walk", "jump")]
    >>> found = discover([*pairs, *alone]).classes
    >>> [(c.source, c.target) for c in found]
    [(('walk', 'look', 'jump'), ('WALK', 'LOOK', 'JUMP'))]
    """
    distinct = list(dict.fromkeys(pairs))
    lexemes, lexicon = find_lexemes(distinct, tolerance=tolerance)
    lexicon = without_fillers(lexicon)
    originals: defaultdict[Pair, list[Pair]] = defaultdict(list)
    for pair, other in zip(distinct, lexemes.write(distinct), strict=True):
        originals[other].append(pair)
    written = list(originals)
    grouping = group_words(written, lexicon, tolerance=tolerance)
    if pool := pool_copies(written, lexicon, grouping.lonely):
        grouping = group_words(written, lexicon, tolerance=tolerance, together=pool)
    lonely = [*grouping.lonely, *pool]
    group, parted = part_strangers(written, grouping.group, lexicon)
    group = adopt(written, group, lexicon, lonely, tolerance=tolerance)
    group, lexicon = with_dropped(written, group, lexicon)
    size = Counter(group.values())
    adopted = {word: ADOPTED for word in lonely if size[group[word]] > 1}
    alone = grouping.alone | parted
    reasons = {w: why for w, why in alone.items() if w not in adopted} | lexicon.missing
    return _report(originals, group, lexicon, lexemes, grouping.thin | adopted, reasons)


def without_fillers(lexicon: Lexicon) -> Lexicon:
    """The lexicon without the places of numbers and the marks of columns."""
    return Lexicon(
        {w: t for w, t in lexicon.target.items() if not is_filler(w) and not is_filler(t)},
        {word: why for word, why in lexicon.missing.items() if not is_filler(word)},
    )


def _report(
    originals: Mapping[Pair, Sequence[Pair]],
    group: Mapping[str, int],
    lexicon: Lexicon,
    lexemes: Lexemes,
    thin: Mapping[str, str],
    left_out: dict[str, str],
) -> Discovery:
    """The discovery with classes in order of their first words, numbers last."""
    size = Counter(group.values())
    special = {*lexemes.aliases.values(), *map(" ".join, lexemes.phrases)}
    special |= {stem for form, (stem, _) in lexemes.columns.items() if form in special}
    in_class = {word: g for word, g in group.items() if size[g] > 1 or word in special}
    members: defaultdict[int, list[str]] = defaultdict(list)
    for word, g in in_class.items():
        members[g].append(word)
    forms = _by_form(originals, in_class, lexicon)
    having: defaultdict[int, list[dict[Abstract, list[Pair]]]] = defaultdict(list)
    for form in forms:
        pair = next(iter(form.values()))[0]
        for g in dict.fromkeys(in_class[word] for word in pair.source if word in in_class):
            having[g].append(form)
    classes, evidence = [], []
    for number, (g, words) in enumerate(members.items(), start=1):
        c = _table(f"class{number}", words, lexicon, lexemes)
        classes.append(c)
        notes = _notes(c, lexemes)
        evidence.append(replace(_evidence(words, having[g], thin, originals), notes=notes))
    if (copied := copied_group(group, lexicon)) is not None:
        which = list(members).index(copied)
        names = {word: f"<class{n}>" for n, m in enumerate(members.values(), 1) for word in m}
        marks = {marked(column) for _, column in lexemes.columns.values()}
        after = _symbols_before({*members[copied]}, originals, names, marks)
        classes[which] = replace(classes[which], open=True, after=after)
        note = (
            "its words are copied and most words are of it, so unknown words join it where its "
            "words stand"
        )
        evidence[which] = replace(evidence[which], notes=(*evidence[which].notes, note))
    if lexemes.numbers is not None:
        classes.append(lexemes.numbers)
        evidence.append(_number_evidence(originals, lexemes.numbers))
    outvoted = {
        pair
        for form in forms
        for same in form.values()
        if len(same) < max(map(len, form.values()))
        for pair in same
    }
    # a misfit has a rarer target than other pairs of its form, or a translation without its word
    misfits = [
        original
        for pair, some in originals.items()
        if pair in outvoted or not is_sound(pair, in_class, lexicon)
        for original in some
    ]
    known = {word for c in classes for word in (*c.words[0], *(s for s, _ in c.aliases))}
    left_out = {word: why for word, why in left_out.items() if word not in known}
    rivals: tuple[tuple[LexicalClass, ...], ...] = ()
    length = sum(len(pair.source) for pair in originals)
    if length <= FEW and len(group) > max([1, *map(len, members.values())]):
        whole = _table("class1", list(group), lexicon, lexemes)
        rivals = ((whole, *([lexemes.numbers] if lexemes.numbers else [])),)
    return Discovery(tuple(classes), tuple(evidence), left_out, tuple(misfits), rivals)


def _table(name: str, words: Sequence[str], lexicon: Lexicon, lexemes: Lexemes) -> LexicalClass:
    """The table of some stems: their columns and other spellings."""
    row = {word: i for i, word in enumerate(words)}
    columns: dict[str, list[str]] = {}
    for form, (stem, column) in lexemes.columns.items():
        if stem in row:
            columns.setdefault(column, [""] * len(words))[row[stem]] = form
    cells = {*words, *(form for column in columns.values() for form in column)}
    target = {lexicon.target[word]: i for word, i in row.items()}
    others: dict[str, list[str]] = {}
    for form, (stem, column) in lexemes.inflected.items():
        if stem in target:
            others.setdefault(column, [""] * len(words))[target[stem]] = form
    return LexicalClass(
        name,
        tuple("" if is_filler(word) else word for word in words),
        tuple(target),
        tuple((column, tuple(forms)) for column, forms in columns.items()),
        tuple((column, tuple(forms)) for column, forms in others.items()),
        aliases=tuple((form, of) for form, of in lexemes.aliases.items() if of in cells),
        inserted=tuple(" ".join(run) for run in sorted(lexemes.inserted[0]) if {*run} & {*words}),
    )


def _notes(c: LexicalClass, lexemes: Lexemes) -> tuple[str, ...]:
    """What speaks for the phrases, other spellings and columns of a class."""
    phrases = {" ".join(g): t for g, t in lexemes.phrases.items()}
    return (
        *(
            f"{word!r} is in the same pairs as {phrases[word]}"
            for word in c.source
            if word in phrases
        ),
        *(f"{form!r} has the targets of {of!r} in the same contexts" for form, of in c.aliases),
        *(
            f"{sum(map(bool, column))} words have a form {name!r}"
            for name, forms in c.source_forms
            for column in [[not is_filler(form) for form in forms]]
        ),
        *(
            f"{len(c.inflected)} words have another translation {name!r}; the words around them "
            "choose it"
            for name, _ in c.target_forms
        ),
        *(f"targets have {text!r} besides words that are copied" for text in c.inserted),
    )


def _symbols_before(
    words: set[str], pairs: Iterable[Pair], names: Mapping[str, str], marks: Container[str]
) -> tuple[str, ...]:
    """The words and the names of classes before some words; of the start, the empty text. A mark
    belongs to the word before it.
    """
    found: dict[str, None] = {}
    for pair in pairs:
        source = [word for word in pair.source if word not in marks]
        for before, word in zip(["", *source], source, strict=False):
            if word in words:
                other = "<numbers>" if is_filler(before) else before
                found.setdefault(names.get(before, other))
    return tuple(found)


def _number_evidence(originals: Mapping[Pair, Sequence[Pair]], numbers: LexicalClass) -> Evidence:
    places = {*numbers.source}
    copied = [some for pair, some in originals.items() if places & {*pair.source} & {*pair.target}]
    pairs = [pair for some in copied for pair in some]
    note = f"numbers of {len(pairs)} pairs are copied, so every number is"
    example = (pairs[0], pairs[1]) if len(pairs) > 1 else None
    return Evidence(len(pairs), 0, example, {}, (note,))


def _by_form(
    pairs: Iterable[Pair], group: Mapping[str, int], lexicon: Lexicon
) -> list[dict[Abstract, list[Pair]]]:
    """The pairs of each source that the classes write alike, by the target they write."""
    forms: defaultdict[Abstract, dict[Abstract, list[Pair]]] = defaultdict(dict)
    for pair in pairs:
        source, target = abstract(pair, group, lexicon)
        forms[source].setdefault(target, []).append(pair)
    return list(forms.values())


def _evidence(
    words: Sequence[str],
    forms: Iterable[dict[Abstract, list[Pair]]],
    thin: Mapping[str, str],
    originals: Mapping[Pair, Sequence[Pair]],
) -> Evidence:
    """Count the pairs that differ in words of the class only, and choose the shortest example."""
    tally, example = Tally(), None
    support: Counter[str] = Counter()
    members = set(words)
    for form in forms:
        best = max(form.values(), key=len)
        chosen: dict[tuple[str, ...], Pair] = {}
        for pair in best:
            chosen.setdefault(tuple(word for word in pair.source if word in members), pair)
        tally.contradicted += sum(map(len, form.values())) - len(best)
        if len(chosen) > 1:
            tally.confirmed += len(best)
            first, second, *_ = chosen.values()
            if example is None or _length(first) < _length(example[0]):
                example = first, second
            support.update({word for key in chosen for word in key})
    weak = {w: "only one form of sentence confirms it" for w in words if support[w] == 1}
    return Evidence(
        tally.confirmed,
        tally.contradicted,
        example and (originals[example[0]][0], originals[example[1]][0]),
        {**weak, **{w: thin[w] for w in words if w in thin}},
    )


def _length(pair: Pair) -> float:
    """The length of an example; a source of one word counts as the longest."""
    return float(len(pair.source)) if len(pair.source) > 1 else math.inf
