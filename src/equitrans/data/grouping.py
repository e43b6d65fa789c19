"""Groups of exchangeable words, merged step by step.

Two words are exchangeable if exchanging them and their translations turns pairs of the data into
pairs of the data. Such a pair *confirms* the exchange. A pair whose exchanged source has another
target in the data *contradicts* it. The words of a group are written as one symbol, numbered by
first appearance in the pair, so that each merge makes more pairs comparable.
"""

import math
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
NO_CONTEXT = "no other word occurs in its contexts"
"""The reason of a word that cannot be compared with any other."""
NEIGHBOURS = 8
"""Each group in a context is compared with this many others; comparing all takes quadratic time."""

ROUNDS = 6
"""Largest number of times that words are grouped."""
SURE = 3.0
"""Bits of surprise that a word is in the pairs which contradict others, beyond the number of words,
above which it is grouped apart."""
FALSE, MOST_CONFIRMATIONS = 0.1, 4
"""Largest share of words that agree by chance among those that agree, and the largest number of
confirmations that is asked for to get below it."""
WRONG = 3.0
"""Bits of the surprise that a wrong pair has no translation without its word."""
DISSENT = "its pairs contradict those of the words that it fits"


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


@dataclass(frozen=True)
class Grouping:
    """The group number of every word, and reasons: for words with little evidence for their group
    (``thin``) and for words that are alone in theirs (``alone``).
    """

    group: dict[str, int]
    thin: dict[str, str]
    alone: dict[str, str]

    @property
    def lonely(self) -> list[str]:
        """The words that cannot be compared with any other."""
        return [word for word, why in self.alone.items() if why == NO_CONTEXT]


def group_words(
    pairs: Sequence[Pair], lexicon: Lexicon, *, tolerance: float, together: Iterable[str] = ()
) -> Grouping:
    """Group the exchangeable words of some distinct pairs; ``together`` begin in one group.

    Words that account for the contradictions within their group are grouped again, apart from the
    others.
    """
    sound = [pair for pair in pairs if is_sound(pair, lexicon.target, lexicon)]
    # if some pairs are wrong, two wrong ones may agree by chance
    several = 2 if len(sound) == len(pairs) else 3
    apart: dict[str, int] = {}
    for number in range(1, ROUNDS + 1):
        pool = [word for word in together if word not in apart]
        found = _group_apart(sound, lexicon, several, tolerance, pool, apart)
        bad = _dissenter(sound, found.group, lexicon, noisy=len(sound) < len(pairs))
        if bad is None:
            break
        apart[bad] = number
    return found


def _dissenter(
    pairs: Iterable[Pair], group: Mapping[str, int], lexicon: Lexicon, *, noisy: bool
) -> str | None:
    """The word of a group whose pairs have other targets than most pairs of their form, more often
    than the pairs of all words do, and more often than by chance; None if there is none.
    """
    forms: defaultdict[Abstract, defaultdict[Abstract, list[Pair]]]
    forms = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        source, target = abstract(pair, group, lexicon)
        forms[source][target].append(pair)
    size = Counter(group.values())
    seen: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    total = outvoted = 0
    for targets in forms.values():
        most = max(targets.values(), key=len)
        if len(targets) == len(most) == 1:
            continue
        for some in targets.values():
            total += len(some)
            outvoted += len(some) * (some is not most)
            for pair in some:
                words = {w for w in pair.source if w in group and size[group[w]] > 1}
                seen.update(words)
                wrong.update(words if some is not most else ())
    chance = math.log2(max(1, len(seen))) + SURE

    def surprise(n: int, expected: float) -> float:
        """Bits of the surprise at ``n`` such pairs, and at each if no pair of the data is wrong."""
        bits = n * math.log2(n / expected) - (n - expected) / math.log(2)
        return bits + n * WRONG * (not noisy)

    share = outvoted / max(1, total)
    bits = {w: surprise(n, seen[w] * share) for w, n in wrong.items() if n > 1}
    worst = max(bits, key=lambda word: bits[word], default=None)
    return worst if worst is not None and bits[worst] > chance else None


def _group_apart(
    sound: Sequence[Pair],
    lexicon: Lexicon,
    several: int,
    tolerance: float,
    together: Sequence[str],
    apart: Mapping[str, int],
) -> Grouping:
    """Group words; words with different numbers in ``apart`` do not join one group."""
    group = {word: i for i, word in enumerate(lexicon.target)}
    group |= dict.fromkeys(together, min((group[word] for word in together), default=0))
    kind = {group[word]: apart.get(word, 0) for word in group}
    table = table_of(sound, group, lexicon)
    refused: set[Edge] = set()
    least = _least_confirmations(_compare(table, several).values())
    while True:
        tallies = _compare(table, several)
        refused.update(
            edge
            for edge, tally in tallies.items()
            if kind[edge[0]] != kind[edge[1]] or tally.confirmed < least
        )
        merged = _choose(tallies, refused, tolerance)
        if not merged:
            break
        joined = _merge(table, merged)
        while bad := _contradictory(joined, merged, several, tolerance):
            # of several groups that join one, only the best does; the others are tried later
            for host in bad:
                first, *others = (b for b, a in merged.items() if a == host)
                for b in others or [first]:
                    del merged[b]
                if not others:
                    refused.add((min(host, first), max(host, first)))
            joined = _merge(table, merged)
        table, group = joined, {word: merged.get(g, g) for word, g in group.items()}
    thin, alone = _join_alone(sound, group, lexicon)
    size = Counter(group.values())
    names: dict[int, str] = {}
    for word, g in group.items():
        names.setdefault(g, word)
    near: defaultdict[int, dict[int, Tally]] = defaultdict(dict)
    for (a, b), tally in tallies.items():
        near[a][b] = near[b][a] = tally
    for word, g in group.items():
        if size[g] == 1 and word not in alone:
            alone[word] = DISSENT if word in apart else _reason(near[g], names, tolerance)
    return Grouping(group, thin, alone)


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


def _compare(table: Table, several: int = 2) -> dict[Edge, Tally]:
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


def _least_confirmations(tallies: Iterable[Tally]) -> int:
    """The smallest number of confirmations that words which cannot be exchanged rarely have by
    chance. How often these agree is known from words that contradict each other.
    """
    tallies = list(tallies)
    bad = [tally for tally in tallies if tally.contradicted]
    agree = sum(tally.confirmed for tally in bad)
    share = agree / max(1, agree + sum(tally.contradicted for tally in bad))
    for least in range(1, MOST_CONFIRMATIONS):
        good = sum(tally.confirmed >= least for tally in tallies if not tally.contradicted)
        if len(bad) * share**least <= good * FALSE:
            return least
    return MOST_CONFIRMATIONS


def _neighbours(groups: Sequence[int]) -> Iterator[Edge]:
    """Each group with the NEIGHBOURS groups after it."""
    for i, a in enumerate(groups):
        for b in groups[i + 1 : i + 1 + NEIGHBOURS]:
            yield a, b


def _choose(tallies: Mapping[Edge, Tally], refused: set[Edge], tolerance: float) -> dict[int, int]:
    """The groups to merge now, {group: group it joins}: each has at least half of the most
    confirmations that its two groups have anywhere.
    """
    accepted = {
        edge: tally.confirmed
        for edge, tally in tallies.items()
        if tally.confirmed and not tally.is_contradicted(tolerance) and edge not in refused
    }
    best: defaultdict[int, int] = defaultdict(int)
    for edge, confirmed in accepted.items():
        for g in edge:
            best[g] = max(best[g], confirmed)
    taken = _undecided(accepted, best, tallies, tolerance)
    merged: dict[int, int] = {}
    hosts: set[int] = set()
    for (a, b), confirmed in sorted(accepted.items(), key=lambda item: (-item[1], item[0])):
        # with a contradiction it must have the most confirmations of both groups
        least = max(best[a], best[b]) / (1 if tallies[a, b].contradicted else 2)
        if confirmed < least:
            continue
        for one, other in ((a, b), (b, a)):
            if other not in taken and (one in hosts or one not in taken):
                merged[other] = one
                hosts.add(one)
                taken |= {a, b}
                break
    return merged


def _undecided(
    accepted: Mapping[Edge, int],
    best: Mapping[int, int],
    tallies: Mapping[Edge, Tally],
    tolerance: float,
) -> set[int]:
    """Groups that fit two others equally well, where the two others contradict each other."""
    favourites: defaultdict[int, list[int]] = defaultdict(list)
    for (a, b), confirmed in accepted.items():
        for one, other in ((a, b), (b, a)):
            if confirmed == best[one] and len(favourites[one]) < NEIGHBOURS:
                favourites[one].append(other)
    return {
        g
        for g, others in favourites.items()
        for a, b in combinations(sorted(others), 2)
        if (a, b) in tallies and tallies[a, b].is_contradicted(tolerance)
    }


def _merge(table: Table, merged: Mapping[int, int]) -> Table:
    """The table with some groups merged into others and their words numbered again."""
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
) -> set[int]:
    """Groups that others joined and whose pairs contradict each other when they are written with
    one symbol.
    """
    tallies: defaultdict[int, Tally] = defaultdict(Tally)
    for source, targets in joined.items():
        majority = max(targets.values())
        second = sorted(targets.values())[-2] if len(targets) > 1 else 0
        for g in groups_in(source):
            tallies[g].confirmed += majority - 1
            tallies[g].contradicted += targets.total() - majority
            tallies[g].certain += second >= several and 4 * second > majority
    return {a for a in merged.values() if tallies[a].is_contradicted(tolerance)}


def _join_alone(
    pairs: Iterable[Pair], group: dict[str, int], lexicon: Lexicon
) -> tuple[dict[str, str], dict[str, str]]:
    """Let words that are seen only alone join the class with words that are also seen alone, if
    there is exactly one such class.

    Changes ``group``. Returns the words that joined and those that did not, with reasons.
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
            thin[word] = "seen only alone; no other class has such words"
        elif hosts:
            fits = " and ".join(f"{name!r}" for name in names.values())
            left_out[word] = f"seen only alone; several classes have such words: those of {fits}"
        else:
            left_out[word] = "seen only alone; no class has such words"
    return thin, left_out


def _reason(near: Mapping[int, Tally], names: Mapping[int, str], tolerance: float) -> str:
    """The reason why a word that has a translation is in no class."""
    fits = [names[o] for o, t in near.items() if t.confirmed and not t.is_contradicted(tolerance)]
    if len(fits) > 1:
        return f"fits {' and '.join(map(repr, fits[:3]))}, which do not fit each other"
    if fits:
        return f"fits {fits[0]!r}, but as one class their pairs contradict each other"
    if not near:
        return NO_CONTEXT
    other, tally = max(near.items(), key=lambda item: (item[1].confirmed, -item[1].contradicted))
    return (
        f"exchanging it with {names[other]!r} is confirmed {tally.confirmed} times and "
        f"contradicted {tally.contradicted} times"
    )
