"""Comparison of pairs that differ in one word only, and in its translation."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair

Symbol = str | tuple[int, int]
"""A word of no group, or (number of the group, number of its word in this pair)."""
Abstract = tuple[Symbol, ...]
Table = Mapping[Abstract, Counter[Abstract]]
"""The targets of every source and their numbers of pairs, all written with groups."""
Edge = tuple[int, int]

BLANK = -1
"""The group number that stands for any group in a context."""
ALONE: Abstract = ((BLANK, 0),)
"""The context of a word that is the whole source. It can contradict an exchange but not confirm it,
because every word that has a translation fits it."""
NEIGHBOURS = 8
"""Each group in a context is compared with this many others; comparing all takes quadratic time."""

FALSE, MOST_CONFIRMATIONS = 0.5, 3
"""Largest share of words that agree by chance among those that agree, and the largest number of
confirmations that is asked for to get below it."""


@dataclass
class Tally:
    """The comparisons that confirm or contradict an exchange."""

    confirmed: int = 0
    contradicted: int = 0
    certain: int = 0
    """Contradictions with several pairs on both sides, which wrong pairs do not explain."""

    def is_contradicted(self, tolerance: float) -> bool:
        """Whether there are more contradictions than noise explains."""
        total = self.confirmed + self.contradicted
        return self.certain > 0 or self.contradicted > tolerance * total


def is_sound(pair: Pair, words: Container[str], lexicon: Lexicon) -> bool:
    """Whether each target word that translates one of ``words`` has that word in the source."""
    sources = (lexicon.source.get(translation) for translation in pair.target)
    return all(word not in words or word in pair.source for word in sources)


def abstract(pair: Pair, group: Mapping[str, int], lexicon: Lexicon) -> tuple[Abstract, Abstract]:
    """A pair with symbols for the words of groups and for their translations."""
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
    """A sentence with some groups replaced by others."""
    return tuple([s if isinstance(s, str) else (groups.get(s[0], s[0]), s[1]) for s in sentence])


def groups_in(sentence: Abstract) -> list[int]:
    """The groups that have words in a sentence."""
    return sorted({s[0] for s in sentence if not isinstance(s, str)})


def table_of(pairs: Iterable[Pair], group: Mapping[str, int], lexicon: Lexicon) -> Table:
    """The table of some pairs, written with groups."""
    table: defaultdict[Abstract, Counter[Abstract]] = defaultdict(Counter)
    for pair in pairs:
        source, target = abstract(pair, group, lexicon)
        table[source][target] += 1
    return table


def compare(table: Table, several: int = 2) -> dict[Edge, Tally]:
    """The tally of each two groups that can be compared. A contradiction with ``several`` pairs on
    both sides is certain.
    """
    chosen = {source: targets.most_common(1)[0] for source, targets in table.items()}
    best = {source: target for source, (target, _) in chosen.items()}
    tallies: defaultdict[Edge, Tally] = defaultdict(Tally)
    within = {source: groups_in(source) for source in chosen}
    # sources with both groups: look the exchanged source up among the earlier ones
    alike = Counter((len(source), *groups) for source, groups in within.items())
    before: set[Abstract] = set()
    for source, target in best.items():
        if alike[len(source), *within[source]] == 1:
            continue  # exchanging groups of a source does not change which groups it has
        for a, b in combinations(within[source], 2):
            swap = {a: b, b: a}
            if (other := _exchanged(source, swap)) in before:
                same = best[other] == _exchanged(target, swap)
                tallies[a, b].confirmed += same
                tallies[a, b].contradicted += not same
                tallies[a, b].certain += (
                    not same and min(chosen[source][1], chosen[other][1]) >= several
                )
        before.add(source)
    # sources with one of the two groups: compare those with the same context
    contexts: defaultdict[Abstract, dict[int, Abstract]] = defaultdict(dict)
    for source, groups in within.items():
        for g in groups:
            contexts[_exchanged(source, {g: BLANK})][g] = source
    for context, sources in contexts.items():
        if len(sources) == 1:
            continue
        targets = {g: _exchanged(best[source], {g: BLANK}) for g, source in sources.items()}
        for a, b in _neighbours(sorted(targets)):
            if targets[a] != targets[b]:
                tallies[a, b].contradicted += 1
                pairs = min(chosen[sources[a]][1], chosen[sources[b]][1])
                tallies[a, b].certain += pairs >= several
            elif context != ALONE:
                tallies[a, b].confirmed += 1
    return tallies


def least_confirmations(tallies: Iterable[Tally]) -> int:
    """The smallest number of confirmations that words which cannot be exchanged rarely have by
    chance. How often these agree is known from words that contradict each other; of words that were
    compared once, most must agree.
    """
    tallies = list(tallies)
    bad = [tally for tally in tallies if tally.contradicted]
    agree = sum(tally.confirmed for tally in bad)
    share = agree / max(1, agree + sum(tally.contradicted for tally in bad))
    once = Counter(t.confirmed for t in tallies if t.confirmed + t.contradicted == 1)
    for least in range(1 + (once[0] > once[1]), MOST_CONFIRMATIONS):
        good = sum(tally.confirmed >= least for tally in tallies if not tally.contradicted)
        if len(bad) * share**least <= good * FALSE:
            return least
    return MOST_CONFIRMATIONS


def _neighbours(groups: Sequence[int]) -> Iterator[Edge]:
    """Each group with the NEIGHBOURS groups after it."""
    for i, a in enumerate(groups):
        for b in groups[i + 1 : i + 1 + NEIGHBOURS]:
            yield a, b
