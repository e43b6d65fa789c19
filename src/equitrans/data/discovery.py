"""Lexical classes found in the pairs themselves, where the paper takes them as given."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from equitrans.data.grouping import Abstract, Tally, abstract, group_words, is_sound
from equitrans.data.lexicon import Lexicon, find_lexicon
from equitrans.data.pairs import Pair
from equitrans.paper import LexicalClass


@dataclass(frozen=True)
class Evidence:
    """What speaks for a class, and against it: pairs of the data that differ in its words only."""

    confirmed: int
    contradicted: int
    example: tuple[Pair, Pair]
    thin: dict[str, str]
    """Words that are in the class on little evidence, and on which."""


@dataclass(frozen=True)
class Discovery:
    """Classes, the evidence for each, and what else was noticed."""

    classes: tuple[LexicalClass, ...]
    evidence: tuple[Evidence, ...]
    left_out: dict[str, str]
    """Source words in no class, and why."""
    misfits: tuple[Pair, ...]
    """Pairs that do not fit the classes: wrong ones, or irregular."""


def discover(pairs: Iterable[Pair], *, tolerance: float = 0.2) -> Discovery:
    """Find the lexical classes of some pairs.

    ``tolerance`` is the share of comparisons that may contradict a class, so that a few wrong pairs
    do no harm. A wrong pair spoils all comparisons it is part of, so this should be more than twice
    the share of wrong pairs.

    >>> pairs = [Pair((w, "twice"), (w.upper(),) * 2) for w in ("walk", "look")]
    >>> alone = [Pair((w,), (w.upper(),)) for w in ("walk", "jump")]
    >>> discover([*pairs, *alone]).classes
    (LexicalClass(name='class1', source=('walk', 'look', 'jump'), target=('WALK', 'LOOK', 'JUMP')),)
    """
    distinct = list(dict.fromkeys(pairs))
    lexicon = find_lexicon(distinct, tolerance=tolerance)
    grouping = group_words(distinct, lexicon, tolerance=tolerance)
    return _report(
        distinct, grouping.group, lexicon, grouping.thin, grouping.alone | lexicon.missing
    )


def _report(
    pairs: Sequence[Pair],
    group: Mapping[str, int],
    lexicon: Lexicon,
    thin: Mapping[str, str],
    left_out: dict[str, str],
) -> Discovery:
    """The classes in order of their first words, each with its evidence."""
    size = Counter(group.values())
    in_class = {word: g for word, g in group.items() if size[g] > 1}
    members: defaultdict[int, list[str]] = defaultdict(list)
    for word, g in in_class.items():
        members[g].append(word)
    forms = _by_form(pairs, in_class, lexicon)
    classes, evidence = [], []
    for number, words in enumerate(members.values(), start=1):
        translations = tuple(lexicon.target[word] for word in words)
        classes.append(LexicalClass(f"class{number}", tuple(words), translations))
        evidence.append(_evidence(words, forms, thin))
    outvoted = {
        pair
        for form in forms
        for same in form.values()
        if len(same) < max(map(len, form.values()))
        for pair in same
    }
    # outvoted by pairs that the classes make the same, or with the translation of a word that is
    # not there
    misfits = [p for p in pairs if p in outvoted or not is_sound(p, in_class, lexicon)]
    return Discovery(tuple(classes), tuple(evidence), left_out, tuple(misfits))


def _by_form(
    pairs: Iterable[Pair], group: Mapping[str, int], lexicon: Lexicon
) -> list[dict[Abstract, list[Pair]]]:
    """Pairs that the classes make the same source, by the target they make."""
    forms: defaultdict[Abstract, dict[Abstract, list[Pair]]] = defaultdict(dict)
    for pair in pairs:
        source, target = abstract(pair, group, lexicon)
        forms[source].setdefault(target, []).append(pair)
    return list(forms.values())


def _evidence(
    words: Sequence[str], forms: Iterable[dict[Abstract, list[Pair]]], thin: Mapping[str, str]
) -> Evidence:
    """Count the pairs that differ in words of the class, and agree or do not."""
    tally, example = Tally(), None
    support: Counter[str] = Counter()
    members = set(words)
    for form in forms:
        best = max(form.values(), key=len)
        chosen: dict[tuple[str, ...], Pair] = {}
        for pair in best:
            chosen.setdefault(tuple(word for word in pair.source if word in members), pair)
        if () in chosen:
            continue
        tally.contradicted += sum(map(len, form.values())) - len(best)
        if len(chosen) > 1:
            tally.confirmed += len(best)
            first, second, *_ = chosen.values()
            if example is None or _length(first) < _length(example[0]):
                example = first, second
            support.update({word for key in chosen for word in key})
    assert example is not None  # groups are merged on confirmations only
    weak = {w: "only one form of sentence confirms it" for w in words if support[w] == 1}
    return Evidence(
        tally.confirmed,
        tally.contradicted,
        example,
        {**weak, **{w: thin[w] for w in words if w in thin}},
    )


def _length(pair: Pair) -> float:
    """How long an example is; words that stand alone show least."""
    return float(len(pair.source)) if len(pair.source) > 1 else math.inf
