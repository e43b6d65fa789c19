"""Words that no comparison groups, such as rare ones, join the class whose places they stand in.

A word has a *profile*: the neighbours of its occurrences in the source, and of its translation in
the target. Two groups are joined if one code for both their profiles is shorter than two codes, and
if no pairs contradict the joined group. The best join comes first.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from equitrans.data.comparisons import Abstract, Tally, abstract, groups_in
from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair
from equitrans.data.profiles import ANYWHERE, BOTH, PLACES, Profile, profiles_of, saved

SEEDS = 60
"""Largest number of words without a class that are compared with each other, the most frequent
ones; the others are compared with classes only."""

HOSTS = 30
"""Largest number of classes that words may join, the largest ones."""

UNEQUAL = 10.0
"""Largest ratio of the occurrences per word of a group without comparisons and of a word that joins
it; a frequent word that is like no other is not of a class of rare words. Two words that occur once
are no class."""

OPEN = 4
"""Smallest number of words of a class that unknown words join."""

SLACK = 0.05
"""Largest number of bits that a join loses in one place, per occurrence of the rarer group."""

STRANGE, UNKNOWN = 7.0, 4
"""Bits of the surprise that no pair of a word was compared with a pair of a class, above which they
speak against a join, and the number of further pairs in the count of pairs that were compared."""

LEAST = 4.0
"""Smallest number of bits that a join saves."""

ROUNDS = 12
"""Largest number of passes over all words; later ones join groups that earlier ones made."""

ELSEWHERE = 4.0
"""Largest number of bits that a join loses at the other words of the pairs."""

COVERED = 0.8
"""Smallest share of a group's occurrences that stand between two neighbours of the group it joins,
in the source and in the target; one of several may stand elsewhere if the group was compared."""

CONFIRMED = 10.0
"""Bits of evidence for a class from one form of sentence in which its words were compared."""

RARE = 5
"""Smallest number of a word's occurrences per form of sentence that confirms its class, for which
its places are looked at."""

CERTAIN = 3
"""Smallest number of pairs on both sides of a contradiction that wrong pairs do not explain."""

STRANGER = "stands in other places than the words that it was compared with"


def adopt(
    pairs: Sequence[Pair],
    group: Mapping[str, int],
    lexicon: Lexicon,
    lonely: Iterable[str],
    *,
    tolerance: float,
) -> dict[str, int]:
    """The groups after ``lonely`` words have joined each other and other groups."""
    group, lonely = dict(group), set(lonely)
    compared = _compared(pairs, group, lexicon)
    for _ in range(ROUNDS):
        joined = _joins(profiles_of(pairs, group, lexicon), group, lonely, compared)
        if not joined:
            break
        new = {word for word, g in group.items() if g in joined}
        after = {word: joined.get(g, g) for word, g in group.items()}
        lonely -= (bad := _contradicted(pairs, after, lexicon, new, tolerance))
        group = {word: g if word in bad else after[word] for word, g in group.items()}
    group = _join_classes(pairs, group, lexicon, tolerance)
    if (copied := copied_group(group, lexicon)) is None:
        return group
    settled = {g for word, g in group.items() if word not in lonely}
    copies = {w for w in lonely if lexicon.target[w] == w and group[w] not in settled}
    after = group | dict.fromkeys(copies, copied)
    bad = _contradicted(pairs, after, lexicon, copies, tolerance)
    return {word: g if word in bad else after[word] for word, g in group.items()}


def _join_classes(
    pairs: Sequence[Pair], group: dict[str, int], lexicon: Lexicon, tolerance: float
) -> dict[str, int]:
    """The groups after classes that stand in the same places have joined each other; few pairs may
    compare some words of a class with each other and not with the others.
    """
    compared, refused = _compared(pairs, group, lexicon), set[int]()
    for _ in range(ROUNDS):
        size = Counter(group.values())
        profiles = profiles_of(pairs, group, lexicon)
        some = {w for w, g in group.items() if size[g] > 1 and g not in refused}
        joined = _joins(profiles, {w: g for w, g in group.items() if size[g] > 1}, some, compared)
        if not joined:
            break
        first, host = next(iter(joined.items()))
        after = {word: host if g == first else g for word, g in group.items()}
        new = {word for word, g in group.items() if g == first}
        if _contradicted(pairs, after, lexicon, new, tolerance):
            refused.add(first)
        else:
            group = after
    return group


def part_strangers(
    pairs: Sequence[Pair], group: Mapping[str, int], lexicon: Lexicon
) -> tuple[dict[str, int], dict[str, str]]:
    """The groups without words whose places speak more against their group than comparisons speak
    for it, and the reason of each such word.
    """
    group, parted = dict(group), dict[str, str]()
    support = _support(pairs, group, lexicon)
    size = Counter(group.values())
    seen = Counter(word for pair in pairs for word in set(pair.source) if word in group)
    thin = {w for w in group if size[group[w]] > 1 and seen[w] >= RARE * support[w]}
    if not thin:
        return group, parted
    chance = math.log2(len(thin))  # one word of many stands in strange places by chance
    profiles = profiles_of(pairs, group, lexicon)
    kinds = [len({f for p in profiles.values() for f in p[k]}) for k in range(BOTH[0])]
    members: defaultdict[int, set[str]] = defaultdict(set)
    for word, g in group.items():
        members[g].add(word)
    for g in {group[word]: None for word in group if word in thin}:
        total = [sum((profiles[w][k] for w in members[g]), Counter()) for k in range(BOTH[0])]

        def evidence(word: str, total: Sequence[Counter[object]] = total) -> float:
            """Bits for the word's group: comparisons, and one code for its places."""
            places = zip(profiles[word], total, kinds, strict=False)
            bits = sum(saved(own, all_ - own, n) for own, all_, n in places)
            return bits + CONFIRMED * support[word]

        while worst := min(((evidence(w), w) for w in members[g] & thin), default=None):
            if worst[0] >= -chance or len(members[g]) < 2:
                break
            members[g].remove(worst[1])
            parted[worst[1]] = STRANGER
            for counts, own in zip(total, profiles[worst[1]], strict=False):
                counts.subtract(own)
        if len(members[g]) == 1:
            parted |= dict.fromkeys(members[g], STRANGER)
    fresh = max(group.values()) + 1
    return group | {word: fresh + i for i, word in enumerate(parted)}, parted


def _support(pairs: Iterable[Pair], group: Mapping[str, int], lexicon: Lexicon) -> Counter[str]:
    """The number of forms of sentences in which each word was compared with others of its group."""
    forms: defaultdict[Abstract, list[Pair]] = defaultdict(list)
    for pair in pairs:
        forms[abstract(pair, group, lexicon)[0]].append(pair)
    support: Counter[str] = Counter()
    for form, same in forms.items():
        for g in groups_in(form) if len(same) > 1 else ():
            words = {tuple(w for w in pair.source if group.get(w) == g) for pair in same}
            if len(words) > 1:
                support.update({word for some in words for word in some})
    return support


def pool_copies(pairs: Sequence[Pair], lexicon: Lexicon, lonely: Iterable[str]) -> set[str]:
    """The words that are copied and stand in the same places, if most source words are copied and
    cannot be compared: they are one group until pairs contradict it.
    """
    copies = {word for word, translation in lexicon.target.items() if word == translation}
    words = len(lexicon.target) + len(lexicon.missing)
    if len(copies.intersection(lonely)) < max(OPEN, words / 2):
        return set()
    return _in_one_place(copies, profiles_of(pairs, dict.fromkeys(lexicon.target, 0), lexicon))


def _in_one_place(words: set[str], profiles: Mapping[str, Profile]) -> set[str]:
    """The words that stand between neighbours which other words stand between too."""
    for k in BOTH:
        users = Counter(both for word in words for both in profiles[word][k])
        words = {
            word
            for word in words
            if sum(n for both, n in profiles[word][k].items() if users[both] > 1)
            >= COVERED * profiles[word][k].total()
        }
    return words


def _compared(
    pairs: Iterable[Pair], group: Mapping[str, int], lexicon: Lexicon
) -> dict[int, float]:
    """For each group, the share of its pairs that differ from another pair in its words only; few
    pairs say little.
    """
    forms: defaultdict[Abstract, list[Pair]] = defaultdict(list)
    for pair in pairs:
        forms[abstract(pair, group, lexicon)[0]].append(pair)
    total: Counter[int] = Counter()
    inside: Counter[int] = Counter()
    for same in forms.values():
        for g in groups_in(abstract(same[0], group, lexicon)[0]):
            total[g] += len(same)
            if len({tuple(w for w in p.source if group.get(w) == g) for p in same}) > 1:
                inside[g] += len(same)
    return {g: inside[g] / (n + UNKNOWN) for g, n in total.items()}


def copied_group(group: Mapping[str, int], lexicon: Lexicon) -> int | None:
    """The group of four or more words, and of most source words, whose words are all copied: an
    unknown word is probably of it, and is copied too.
    """
    size = Counter(group.values())
    words = len(group) + len(lexicon.missing)
    changed = {g for word, g in group.items() if lexicon.target[word] != word}
    large = [g for g, n in size.items() if n >= max(OPEN, words / 2)]
    return next((g for g in large if g not in changed), None)


def with_dropped(
    pairs: Sequence[Pair], group: Mapping[str, int], lexicon: Lexicon
) -> tuple[dict[str, int], Lexicon]:
    """The groups and the lexicon with words that no target has and that stand where copied words
    stand: these would be copied if rules did not drop them.
    """
    group = dict(group)
    if (copied := copied_group(group, lexicon)) is None:
        return group, lexicon
    written = {word for pair in pairs for word in pair.target}
    members = [word for word, g in group.items() if g == copied]
    uses = Counter(word for pair in pairs for word in pair.source)
    most = max(uses[word] for word in members)
    new = {w: copied for w in lexicon.missing if w not in written and uses[w] <= most}
    while new:
        looks = {**group, **new}
        between: defaultdict[str, set[object]] = defaultdict(set)
        for pair in pairs:
            padded = ["", *(looks.get(word, word) for word in pair.source), ""]
            for word, *both in zip(pair.source, padded, padded[2:], strict=False):
                between[word].add(tuple(both))
        users = Counter(both for word in members for both in between[word])
        kept = {word: copied for word in new if all(users[both] > 1 for both in between[word])}
        if kept == new:
            break
        new = kept
    target = {**lexicon.target, **{word: word for word in new}}
    missing = {word: why for word, why in lexicon.missing.items() if word not in new}
    return {**group, **new}, Lexicon(target, missing)


def _contradicted(
    pairs: Iterable[Pair],
    group: Mapping[str, int],
    lexicon: Lexicon,
    new: set[str],
    tolerance: float,
) -> set[str]:
    """New words of groups with too many pairs whose targets differ from those of other pairs of
    their form.
    """
    forms: defaultdict[Abstract, list[tuple[Abstract, set[str]]]] = defaultdict(list)
    for pair in pairs:
        source, target = abstract(pair, group, lexicon)
        forms[source].append((target, new.intersection(pair.source)))
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for same in forms.values():
        for word in {word for _, words in same for word in words}:
            own = Counter(target for target, words in same if word in words)
            others = Counter(target for target, words in same if word not in words)
            if others:
                expected, most = others.most_common(1)[0]
                tallies[word].confirmed += own[expected]
                tallies[word].contradicted += own.total() - own[expected]
                mine, n = own.most_common(1)[0]
                tallies[word].certain += mine != expected and min(n, most) >= CERTAIN
    return {word for word, tally in tallies.items() if tally.is_contradicted(tolerance)}


def _joins(
    profiles: Mapping[str, Profile],
    group: Mapping[str, int],
    lonely: set[str],
    compared: Mapping[int, float],
) -> dict[int, int]:
    """The groups of lonely words that join another group now, {group: group it joins}."""
    size = Counter(group.values())
    total: defaultdict[int, Profile] = defaultdict(lambda: tuple(Counter() for _ in range(PLACES)))
    for word, g in group.items():
        for counts, more in zip(total[g], profiles[word], strict=True):
            counts.update(more)
    uses = {g: places[0].total() for g, places in total.items()}
    kinds = [len({f for p in total.values() for f in p[k]}) for k in range(PLACES)]
    settled = {g for word, g in group.items() if word not in lonely}
    alone = sorted({*size} - settled, key=lambda g: (-uses[g], g))
    seeds, classes = {*alone[:SEEDS]}, [g for g, n in size.most_common(HOSTS) if n > 1]
    naming = math.log2(len(classes) + 2)

    def gain(a: int, b: int) -> float:
        """Bits that one code for both saves; −∞ if a does not stand in the places of b. It is a
        surprise if none of its pairs was compared with a pair of b.
        """
        strange = max(0.0, -uses[a] * math.log2(1.001 - compared.get(b, 0.0)) - STRANGE)
        if b not in settled and (
            uses[b] * size[a] > UNEQUAL * uses[a] * size[b] or 1 in (uses[a], uses[b])
        ):
            return -math.inf
        for k in BOTH:
            outside = sum(n for both, n in total[a][k].items() if both not in total[b][k])
            n = total[a][k].total()
            if outside > max((1 - COVERED) * n, n > 1 and b in settled):
                return -math.inf
        if saved(total[a][ANYWHERE], total[b][ANYWHERE], kinds[ANYWHERE]) < -ELSEWHERE:
            return -math.inf
        places = list(zip(total[a], total[b], kinds, strict=True))[: BOTH[0]]
        gains = [saved(x, y, n) for x, y, n in places]
        least = -SLACK * min(uses[a], uses[b])
        return sum(gains) - naming - strange if min(gains) >= least else -math.inf

    joined: dict[int, int] = {}
    for g in alone:
        hosts = ({*classes} | seeds if g in seeds else {*classes}) - joined.keys() - {g}
        best, host = max(((gain(g, h), -h) for h in hosts), default=(-math.inf, 0))
        if g not in joined.values() and best >= LEAST:
            joined[g] = -host
            uses[-host] += uses[g]
            for counts, more in zip(total[-host], total[g], strict=True):
                counts.update(more)
    return joined
