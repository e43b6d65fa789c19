"""Words that can be exchanged for one another, grouped step by step.

Two words belong together if exchanging them, and their translations with them, takes pairs of the
data to pairs of the data. Such a pair *confirms* them; one whose exchanged source is there with
another target *contradicts*. Words already found to belong together are written as one symbol,
numbered by first appearance, so that more pairs can be compared.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair

Symbol = str | tuple[int, int]
"""A word of no group; or a group, and the how-manieth of its words in this pair."""
Abstract = tuple[Symbol, ...]
Table = Mapping[Abstract, Counter[Abstract]]
"""The targets of every source, written with groups, and how many pairs have them."""
Edge = tuple[int, int]

BLANK = -1
"""The group written for one that is left open."""
ALONE: Abstract = ((BLANK, 0),)
"""The context of a word that stands alone. It shows no more than that the word has a translation,
so it may contradict but cannot confirm."""
NEIGHBOURS = 8
"""Of the many groups that may stand in one context, each is compared with so many."""


@dataclass
class Tally:
    """Comparisons that came out one way or the other."""

    confirmed: int = 0
    contradicted: int = 0
    firmly: int = 0
    """Contradictions with so many pairs on both sides that wrong ones do not explain them."""

    def spoiled(self, tolerance: float) -> bool:
        """Whether more speaks against it than noise would explain."""
        total = self.confirmed + self.contradicted
        return self.firmly > 0 or self.contradicted > tolerance * total


@dataclass(frozen=True)
class Grouping:
    """Words with a number for their group each, those in one on little evidence, and those alone
    in theirs, each with the reason.
    """

    group: dict[str, int]
    thin: dict[str, str]
    alone: dict[str, str]


def group_words(pairs: Sequence[Pair], lexicon: Lexicon, *, tolerance: float) -> Grouping:
    """Group words that can be exchanged; the pairs are taken to be distinct."""
    sound = [pair for pair in pairs if is_sound(pair, lexicon.target, lexicon)]
    group = {word: i for i, word in enumerate(lexicon.target)}
    table = table_of(sound, group, lexicon)
    # where wrong pairs are known to be, two of them may happen to agree
    several = 2 if len(sound) == len(pairs) else 3
    refused: set[Edge] = set()
    while True:
        tallies = _compare(table, several)
        merged = _choose(tallies, refused, tolerance)
        if not merged:
            break
        joined = _merge(table, merged)
        if bad := _contradictory(joined, merged, several, tolerance):
            refused |= bad
            merged = {b: a for b, a in merged.items() if (a, b) not in bad}
            joined = _merge(table, merged)
        table, group = joined, {word: merged.get(g, g) for word, g in group.items()}
    thin, alone = _join_alone(sound, group, lexicon)
    size = Counter(group.values())
    for word, g in group.items():
        if size[g] == 1 and word not in alone:
            alone[word] = _reason(g, group, tallies, tolerance)
    return Grouping(group, thin, alone)


def is_sound(pair: Pair, words: Container[str], lexicon: Lexicon) -> bool:
    """Whether no translation of some words stands in a target without its word in the source."""
    sources = (lexicon.source.get(translation) for translation in pair.target)
    return all(word not in words or word in pair.source for word in sources)


def abstract(pair: Pair, group: Mapping[str, int], lexicon: Lexicon) -> tuple[Abstract, Abstract]:
    """A pair with the words of groups as symbols, and their translations with them."""
    symbols: dict[str, Symbol] = {}
    translated: dict[str, Symbol] = {}
    seen: Counter[int] = Counter()
    for word in pair.source:
        if word in group and word not in symbols:
            number = group[word]
            symbols[word] = translated[lexicon.target[word]] = (number, seen[number])
            seen[number] += 1
    return (
        tuple([symbols.get(word, word) for word in pair.source]),
        tuple([translated.get(word, word) for word in pair.target]),
    )


def _exchanged(sentence: Abstract, groups: Mapping[int, int]) -> Abstract:
    """A sentence with groups put for others."""
    return tuple([s if isinstance(s, str) else (groups.get(s[0], s[0]), s[1]) for s in sentence])


def groups_in(sentence: Abstract) -> list[int]:
    """The groups of which a sentence has words."""
    return sorted({s[0] for s in sentence if not isinstance(s, str)})


def table_of(pairs: Iterable[Pair], group: Mapping[str, int], lexicon: Lexicon) -> Table:
    """All pairs, written with groups."""
    table: defaultdict[Abstract, Counter[Abstract]] = defaultdict(Counter)
    for pair in pairs:
        source, target = abstract(pair, group, lexicon)
        table[source][target] += 1
    return table


def _compare(table: Table, several: int = 2) -> dict[Edge, Tally]:
    """What exchanging two groups does to the pairs, for all groups with something to compare."""
    chosen = {source: targets.most_common(1)[0] for source, targets in table.items()}
    best = {source: target for source, (target, _) in chosen.items()}
    tallies: defaultdict[Edge, Tally] = defaultdict(Tally)
    # sentences with both groups: the exchanged one is looked up among those that went before
    before: set[Abstract] = set()
    for source, target in best.items():
        for a, b in combinations(groups_in(source), 2):
            swap = {a: b, b: a}
            if (other := _exchanged(source, swap)) in before:
                same = best[other] == _exchanged(target, swap)
                tallies[a, b].confirmed += same
                tallies[a, b].contradicted += not same
                tallies[a, b].firmly += (
                    not same and min(chosen[source][1], chosen[other][1]) >= several
                )
        before.add(source)
    # sentences with one of them: they meet in the context that is left without it
    contexts: defaultdict[Abstract, dict[int, tuple[Abstract, int]]] = defaultdict(dict)
    for source, (target, count) in chosen.items():
        for g in groups_in(source):
            blank = {g: BLANK}
            contexts[_exchanged(source, blank)][g] = _exchanged(target, blank), count
    for context, targets in contexts.items():
        for a, b in _neighbours(sorted(targets)):
            if targets[a][0] != targets[b][0]:
                tallies[a, b].contradicted += 1
                tallies[a, b].firmly += min(targets[a][1], targets[b][1]) >= several
            elif context != ALONE:
                tallies[a, b].confirmed += 1
    return tallies


def _neighbours(groups: Sequence[int]) -> Iterator[Edge]:
    for i, a in enumerate(groups):
        for b in groups[i + 1 : i + 1 + NEIGHBOURS]:
            yield a, b


def _choose(tallies: Mapping[Edge, Tally], refused: set[Edge], tolerance: float) -> dict[int, int]:
    """Groups to merge now, each into one other: those with about the most evidence they have."""
    accepted = {
        edge: tally.confirmed
        for edge, tally in tallies.items()
        if tally.confirmed and not tally.spoiled(tolerance) and edge not in refused
    }
    best: defaultdict[int, int] = defaultdict(int)
    for edge, confirmed in accepted.items():
        for g in edge:
            best[g] = max(best[g], confirmed)
    taken = _torn(accepted, best, tallies, tolerance)
    merged: dict[int, int] = {}
    for (a, b), confirmed in sorted(accepted.items(), key=lambda item: (-item[1], item[0])):
        # where something speaks against it, it must be the best that either could do
        least = max(best[a], best[b]) / (1 if tallies[a, b].contradicted else 2)
        if a not in taken and b not in taken and confirmed >= least:
            merged[b] = a
            taken |= {a, b}
    return merged


def _torn(
    accepted: Mapping[Edge, int],
    best: Mapping[int, int],
    tallies: Mapping[Edge, Tally],
    tolerance: float,
) -> set[int]:
    """Groups that would go equally well with two others that contradict one another."""
    favourites: defaultdict[int, list[int]] = defaultdict(list)
    for (a, b), confirmed in accepted.items():
        for one, other in ((a, b), (b, a)):
            if confirmed == best[one] and len(favourites[one]) < NEIGHBOURS:
                favourites[one].append(other)
    return {
        g
        for g, others in favourites.items()
        for a, b in combinations(sorted(others), 2)
        if (a, b) in tallies and tallies[a, b].spoiled(tolerance)
    }


def _merge(table: Table, merged: Mapping[int, int]) -> Table:
    """The table with some groups merged into others, and words numbered anew."""
    joined: defaultdict[Abstract, Counter[Abstract]] = defaultdict(Counter)
    for source, targets in table.items():
        symbols: dict[Symbol, Symbol] = {}
        seen: Counter[int] = Counter()
        for symbol in source:
            if not isinstance(symbol, str) and symbol not in symbols:
                number = merged.get(symbol[0], symbol[0])
                symbols[symbol] = (number, seen[number])
                seen[number] += 1
        row = joined[tuple([symbols.get(s, s) for s in source])]
        for target, count in targets.items():
            row[tuple([symbols.get(s, s) for s in target])] += count
    return joined


def _contradictory(
    joined: Table, merged: Mapping[int, int], several: int, tolerance: float
) -> set[Edge]:
    """Merged groups that contradict one another now that they are written alike."""
    tallies: defaultdict[int, Tally] = defaultdict(Tally)
    for source, targets in joined.items():
        majority = max(targets.values())
        second = sorted(targets.values())[-2] if len(targets) > 1 else 0
        for g in groups_in(source):
            tallies[g].confirmed += majority - 1
            tallies[g].contradicted += targets.total() - majority
            tallies[g].firmly += second >= several and 4 * second > majority
    return {(a, b) for b, a in merged.items() if tallies[a].spoiled(tolerance)}


def _join_alone(
    pairs: Iterable[Pair], group: dict[str, int], lexicon: Lexicon
) -> tuple[dict[str, str], dict[str, str]]:
    """Words seen only alone join the class, if there is just one, whose words are seen alone too.

    Changes ``group``; gives the words that joined and those that did not, and why.
    """
    contexts: defaultdict[str, set[tuple[Abstract, Abstract]]] = defaultdict(set)
    for pair in pairs:
        for word in set(pair.source) & group.keys():
            contexts[word].add(abstract(pair, {word: BLANK}, lexicon))
    size = Counter(group.values())
    only = (ALONE, ALONE)
    hosts = {group[w] for w, seen in contexts.items() if only in seen and size[group[w]] > 1}
    names = {g: next(w for w in group if group[w] == g) for g in hosts}
    thin: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for word, seen in contexts.items():
        if seen != {only} or size[group[word]] > 1:
            continue
        if len(hosts) == 1:
            (group[word],) = hosts
            thin[word] = "seen only alone, as are words of no other class"
        elif hosts:
            fits = " and ".join(f"{name!r}" for name in names.values())
            left_out[word] = f"seen only alone, as are words of several classes: those of {fits}"
        else:
            left_out[word] = "seen only alone, as are words of no class"
    return thin, left_out


def _reason(
    g: int,
    group: Mapping[str, int],
    tallies: Mapping[Edge, Tally],
    tolerance: float,
) -> str:
    """Why a word with a translation is in no class."""
    names: dict[int, str] = {}
    for word, number in group.items():
        names.setdefault(number, word)
    near = {a if b == g else b: t for (a, b), t in tallies.items() if g in (a, b)}
    fits = [names[o] for o, t in near.items() if t.confirmed and not t.spoiled(tolerance)]
    if len(fits) > 1:
        return f"fits {' and '.join(map(repr, fits[:3]))}, which do not belong together"
    if fits:
        return f"fits {fits[0]!r}, but together their pairs contradict one another"
    if not near:
        return "no other word stands where it stands"
    other, tally = max(near.items(), key=lambda item: (item[1].confirmed, -item[1].contradicted))
    return (
        f"exchanged with {names[other]!r}, {tally.confirmed} pairs confirm it and "
        f"{tally.contradicted} contradict it"
    )
