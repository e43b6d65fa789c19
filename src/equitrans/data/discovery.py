"""Discovery of lexical classes in pairs; the paper takes the classes as given."""

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
    """The numbers of pairs that confirm and contradict a class: they differ in its words only."""

    confirmed: int
    contradicted: int
    example: tuple[Pair, Pair]
    thin: dict[str, str]
    """Words with little evidence for the class, and what the evidence is."""


@dataclass(frozen=True)
class Discovery:
    """Classes, the evidence for each, words in no class, and pairs that do not fit."""

    classes: tuple[LexicalClass, ...]
    evidence: tuple[Evidence, ...]
    left_out: dict[str, str]
    """Source words in no class, with the reason."""
    misfits: tuple[Pair, ...]
    """Pairs that do not fit the classes: wrong or irregular ones."""


def discover(pairs: Iterable[Pair], *, tolerance: float = 0.2) -> Discovery:
    """Find the lexical classes of some pairs.

    ``tolerance`` is the largest fraction of comparisons that may contradict a class. A wrong pair
    makes all its comparisons wrong, so the tolerance should be more than twice the fraction of
    wrong pairs.

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
    """The discovery with classes in order of their first words."""
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
    # a misfit has a rarer target than other pairs of its form, or a translation without its word
    misfits = [p for p in pairs if p in outvoted or not is_sound(p, in_class, lexicon)]
    return Discovery(tuple(classes), tuple(evidence), left_out, tuple(misfits))


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
    words: Sequence[str], forms: Iterable[dict[Abstract, list[Pair]]], thin: Mapping[str, str]
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
    """The length of an example; a source of one word counts as the longest."""
    return float(len(pair.source)) if len(pair.source) > 1 else math.inf
