"""Forms that share a translation: other spellings, and forms of columns."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from equitrans.data.lexicon import Lexicon, Places, count_together, places_of, shared_out
from equitrans.data.pairs import Pair

SURE = 4.0
"""Bits by which the pairs of a form and of its translation agree more than by chance, beyond the
number of forms that could agree."""


def find_forms(
    pairs: Sequence[Pair], lexicon: Lexicon, *, tolerance: float
) -> dict[str, tuple[str, ...]]:
    """Target words whose pairs several source words share out among them, with these forms.

    Only words that the lexicon does not explain are forms. A form is in no pair without its
    translation, except for noise, and the forms together are in all its pairs.
    """
    sources, targets = places_of(p.source for p in pairs), places_of(p.target for p in pairs)
    open_sources = {w: set(place) for w, place in sources.items() if w not in lexicon.target}
    open_targets = {t: set(place) for t, place in targets.items() if t not in lexicon.source}
    total = len(pairs)
    alone = {p.source[0]: p.target[0] for p in pairs if len(p.source) == len(p.target) == 1}
    together = count_together(pairs, open_sources, open_targets)
    chance = math.log2(max(1, len(open_sources)) * max(1, len(open_targets)))
    best: defaultdict[str, list[str]] = defaultdict(list)
    for word, counts in together.items():
        n = len(open_sources[word])
        possible = [
            t
            for t, count in counts.items()
            if count >= (1 - tolerance / 2) * n
            and (
                alone.get(word) == t
                or count * math.log2(total / len(open_targets[t])) > chance + SURE
            )
        ]
        if possible:
            best[min(possible, key=lambda t: (len(open_targets[t]), t))].append(word)
    found = {}
    for t, words in best.items():
        missing, kept = set(open_targets[t]), []
        for word in sorted(words, key=lambda w: (-len(open_sources[w] & open_targets[t]), w)):
            if len(missing & open_sources[word]) >= min(2, len(open_targets[t])) or (
                alone.get(word) == t
            ):
                kept.append(word)
                missing -= open_sources[word]
        if len(kept) > 1 and len(missing) <= tolerance / 2 * len(open_targets[t]):
            found[t] = tuple(kept)
    return found | _shared(together, sources, {t: targets[t] for t in open_targets}, found, total)


def _shared(
    together: Mapping[str, Counter[str]],
    sources: Places,
    targets: Places,
    found: Mapping[str, Sequence[str]],
    total: int,
) -> dict[str, tuple[str, ...]]:
    """Further target words whose pairs a few rare words share out exactly."""
    known = {word for words in found.values() for word in words}
    inside: defaultdict[str, dict[tuple[int, ...], list[str]]] = defaultdict(dict)
    for word, counts in together.items():
        for t, count in counts.items() if word not in known else ():
            if count == len(sources[word]) > 1 and t not in found:
                inside[t].setdefault(sources[word], []).append(word)
    shared = {}
    for t, words in inside.items():
        parts = shared_out(targets[t], words, total, (len(sources), len(targets)))
        if parts and all(len(words[part]) == 1 for part in parts):
            shared[t] = tuple(words[part][0] for part in parts)
    uses = Counter(word for words in shared.values() for word in words)
    return {t: words for t, words in shared.items() if all(uses[word] == 1 for word in words)}


def find_marks(
    pairs: Sequence[Pair], forms: Mapping[str, tuple[str, ...]], lexicon: Lexicon
) -> dict[str, str]:
    """The mark of forms that a target word without a source word goes with, and not with another
    form of the same translation: ``PL`` of ``cats``. A mark marks two forms or more.
    """
    sources, targets = places_of(p.source for p in pairs), places_of(p.target for p in pairs)
    signs = sorted(
        (
            t
            for t, place in targets.items()
            if t not in lexicon.source and t not in forms and len(place) < 0.9 * len(pairs)
        ),
        key=lambda t: (len(targets[t]), t),
    )
    at = {t: set(targets[t]) for t in signs}
    chance = math.log2(max(1, len(signs)) * max(1, sum(map(len, forms.values()))))
    found: dict[str, str] = {}
    for words in forms.values():
        for word in words:
            n = len(sources[word])
            for sign in signs:
                if len(at[sign].intersection(sources[word])) < 0.9 * n:
                    continue
                mates = [len(sources[m]) for m in words if m != word]
                with_sign = [len(at[sign].intersection(sources[m])) for m in words if m != word]
                share = min((k + 1) / (m + 2) for k, m in zip(with_sign, mates, strict=True))
                if n * -math.log2(share) > chance + SURE:
                    found[word] = sign
                    break
    uses = Counter(found.values())
    return {word: sign for word, sign in found.items() if uses[sign] > 1}


def tell_apart(
    pairs: Sequence[Pair],
    forms: Mapping[str, Sequence[str]],
    row: Mapping[str, str],
    *,
    tolerance: float,
) -> tuple[dict[str, str], dict[str, str]]:
    """Forms that are other spellings, each with the form that is read instead, and forms of a
    second column, each with its stem.

    Other spellings have the same targets in the same contexts, or stand between the same
    neighbours. There is a second column if the forms of two rows or more have other targets in the
    same contexts, or stand between other neighbours.
    """
    some = {t: words for t, words in forms.items() if len(words) > 1}
    profiles = neighbours(pairs, {word for words in some.values() for word in words})

    def compared(t: str, row: Mapping[str, str]) -> tuple[int, int]:
        head, *others = some[t]
        both = [compare_forms(pairs, head, word, row) for word in others]
        return sum(same for same, _ in both), sum(different for _, different in both)

    counts = {t: compared(t, row) for t in some}
    # words of a row that differ in most contexts are no context of other rows
    unlike = {t for t, (same, different) in counts.items() if different > same}
    plain = {word: t for word, t in row.items() if t not in unlike}
    alike: dict[str, str] = {}
    apart: set[str] = set()
    for t, (same, different) in counts.items():
        head, *others = some[t]
        if different > tolerance * (same + different) and t not in unlike:
            same, different = compared(t, plain)
        bits = min(kinship(profiles[head], profiles[word]) for word in others)
        if bits < -SURE or different > tolerance * (same + different):
            apart.add(t)
        elif same or bits > SURE:
            alike |= dict.fromkeys(others, head)
    if len(apart) < 2:
        return alike, {}
    undecided = {t: words for t, words in some.items() if words[0] not in alike.values()}
    return alike, split_columns(pairs, undecided)


def compare_forms(
    pairs: Sequence[Pair], one: str, other: str, row: Mapping[str, str]
) -> tuple[int, int]:
    """The numbers of contexts in which two forms of a translation have the same target, and other
    targets; the words of other rows are written alike.
    """
    views: tuple[dict[object, set[object]], ...] = ({}, {})
    for pair in pairs:
        for views_of, word, mate in ((views[0], one, other), (views[1], other, one)):
            if word in pair.source and mate not in pair.source:
                source, target = _view(pair, word, row)
                views_of.setdefault(source, set()).add(target)
    common = views[0].keys() & views[1].keys()
    same = sum(bool(views[0][key] & views[1][key]) for key in common)
    return same, len(common) - same


def _view(pair: Pair, word: str, row: Mapping[str, str]) -> tuple[object, object]:
    """A pair in which the row of a word, and rows of other words, are numbered."""
    numbers: dict[str, int] = {row[word]: -1}
    source = [numbers.setdefault(row[w], len(numbers)) if w in row else w for w in pair.source]
    return tuple(source), tuple([numbers.get(t, t) for t in pair.target])


def split_columns(pairs: Sequence[Pair], forms: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Forms of a second column, each with its stem of the first, by the neighbours of the words:
    the forms of each translation go to the columns in which they cost the fewest bits.
    """
    profiles = neighbours(pairs, {word for words in forms.values() for word in words})
    rows = sorted(
        (tuple(words[:2]) for words in forms.values()),
        key=lambda two: -loss(profiles[two[0]], profiles[two[1]]),
    )
    columns: tuple[Counter[object], Counter[object]] = (Counter(), Counter())
    chosen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for _, two in product(range(3), rows):
        if two in chosen:
            for column, word in zip(columns, chosen[two], strict=True):
                column.subtract(profiles[word])
        orders = (two, two[::-1])
        chosen[two] = min(
            orders,
            key=lambda order: sum(
                loss(+column, profiles[word]) for column, word in zip(columns, order, strict=True)
            ),
        )
        for column, word in zip(columns, chosen[two], strict=True):
            column.update(profiles[word])
    first = 0 if columns[0].total() >= columns[1].total() else 1
    return {two[1 - first]: two[first] for two in chosen.values()}


def neighbours(pairs: Iterable[Pair], words: Iterable[str]) -> defaultdict[str, Counter[object]]:
    """The left and right neighbours of some words in the sources."""
    wanted = set(words)
    found: defaultdict[str, Counter[object]] = defaultdict(Counter)
    for pair in pairs:
        padded = ("", *pair.source, "")
        for i, word in enumerate(pair.source, start=1):
            if word in wanted:
                found[word].update([("left", padded[i - 1]), ("right", padded[i + 1])])
    return found


def kinship(one: Counter[object], other: Counter[object]) -> float:
    """Bits that one code for the neighbours of two words saves; the code learns the shares of all
    neighbours as it goes.

    >>> round(kinship(Counter(a=3), Counter(a=3)), 2), round(kinship(Counter(a=3), Counter(b=3)), 2)
    (0.0, -4.32)
    """
    both = one + other
    return _coded(one, len(both)) + _coded(other, len(both)) - _coded(both, len(both))


def _coded(counts: Counter[object], kinds: int) -> float:
    """Bits of a sequence with these counts."""
    bits = math.lgamma(kinds / 2 + counts.total()) - math.lgamma(kinds / 2)
    bits -= sum(math.lgamma(0.5 + n) - math.lgamma(0.5) for n in counts.values() if n > 0)
    return bits / math.log(2)


def loss(one: Counter[object], other: Counter[object]) -> float:
    """Bits that are lost if two counts get one distribution.

    >>> loss(Counter(a=2), Counter(a=1)), loss(Counter(a=1), Counter(b=1))
    (0.0, 2.0)
    """
    return _entropy(one + other) - _entropy(one) - _entropy(other)


def _entropy(counts: Counter[object]) -> float:
    total = counts.total()
    return -math.fsum(n * math.log2(n / total) for n in counts.values() if n > 0)
