"""Groups of exchangeable words, merged step by step.

Two words are exchangeable if exchanging them and their translations turns pairs of the data into
pairs of the data. Such a pair *confirms* the exchange. A pair whose exchanged source has another
target in the data *contradicts* it. The words of a group are written as one symbol, numbered by
first appearance in the pair, so that each merge makes more pairs comparable.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from equitrans.data.comparisons import (
    ALONE,
    BLANK,
    NEIGHBOURS,
    Abstract,
    Edge,
    Symbol,
    Table,
    Tally,
    abstract,
    compare,
    groups_in,
    is_sound,
    least_confirmations,
    table_of,
)
from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair

NO_CONTEXT = "no other word occurs in its contexts"
"""The reason of a word that cannot be compared with any other."""
ROUNDS = 6
"""Largest number of times that words are grouped."""
SURE = 3.0
"""Bits of surprise that a word is in the pairs which contradict others, beyond the number of words,
above which it is grouped apart."""
WRONG = 3.0
"""Bits of the surprise that a wrong pair has no translation without its word."""
DISSENT = "its pairs contradict those of the words that it fits"


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
    least = least_confirmations(compare(table, several).values())
    while True:
        tallies = compare(table, several)
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
