"""Fragments: parts of long pairs that stand for themselves, as short observations.

Some words that follow each other in a source may have a yield of their own, whatever is around
them: all target words that come from them stand together, in the same order in every pair, perhaps
several times. Such fragments show rules where no sentence is short.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from equitrans.models.recursive.chart import Target
from equitrans.models.recursive.cooccurrence import find_translations
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.rules import CONSTANTS, Form, constant, constant_word
from equitrans.models.recursive.starts import translated_symbols

LONGEST = 10
"""Largest number of words of a fragment."""

PAIRS = 1000
"""Largest number of pairs that are divided."""

LEAST = 3
"""Smallest number of uses of a fragment."""

PURE = 0.9
"""Share of the uses of a fragment that have its yield; of one with more, all have it."""

CONTIGUOUS = 0.25
"""Smallest share of the uses of a fragment that have its yield; in the others, some of its words
belong to something else."""

BOUND = 0.95
"""Share of uses with one and the same neighbour; a fragment with more is part of a larger one."""

ROUNDS = 6
"""Largest number of rounds in which fragments tell where target words come from."""

CANDIDATES = 4
"""Largest number of yields that are tried for a fragment."""

EACH = 15
"""Largest number of fragments of one length."""

EDGE = -2
"""The neighbour of a fragment at the beginning or end of a pair."""


class _Aligned:
    """A pair: a form, and for each target word the positions that it may come from. A target word
    that comes from none is a constant.
    """

    def __init__(self, o: Observation, words: Mapping[int, int]) -> None:
        self.form = o.form
        places: defaultdict[str, set[int]] = defaultdict(set)
        for p, symbol in enumerate(o.form):
            places[chr(p)].add(p)
            if symbol in words:
                places[constant(words[symbol])].add(p)
        self.origins = [set[int]().union(*(places.get(a, ()) for a in atoms)) for atoms in o.target]
        self.constants = [
            "" if here else atoms for atoms, here in zip(o.target, self.origins, strict=True)
        ]

    def spans(self) -> Iterator[tuple[int, int]]:
        """All spans that may be fragments, small ones first."""
        n = len(self.form)
        for size in range(1, min(n, LONGEST) + 1):
            yield from ((i, i + size) for i in range(n - size + 1))

    def use(self, i: int, j: int) -> "_Use | None":
        """The use of the fragment of a span; None if it is not clear which words come from it."""
        parts: list[tuple[str, str, str]] = []
        before, piece, behind = "", "", ""
        for here, written in zip(self.origins, self.constants, strict=True):
            if not here:
                if piece:
                    behind += written
                else:
                    before += written
                continue
            inside = [p for p in here if i <= p < j]
            if inside and len(here) > 1:
                return None
            if inside:
                piece += behind + chr(inside[0] - i)
                behind = ""
            else:
                if piece:
                    parts.append((before, piece, behind))
                before, piece, behind = "", "", ""
        if piece:
            parts.append((before, piece, behind))
        beside = (
            self.form[i - 1] if i else EDGE,
            self.form[j] if j < len(self.form) else EDGE,
        )
        return _Use(tuple(parts), beside) if parts else None

    def narrow(self, found: Mapping[Form, str]) -> None:
        """Take out origins that contradict the yields of fragments."""
        for i, j in self.spans():
            text = found.get(self.form[i:j])
            if text is None or not any(
                len(here) > 1 and any(i <= p < j for p in here) for here in self.origins
            ):
                continue
            starts = [p for p in range(len(self.origins)) if self._fits(text, p, i)]
            if not starts:
                continue
            covered = [set[int]() for _ in self.origins]
            for start in starts:
                for k, a in enumerate(text):
                    covered[start + k].add(ord(a) + i)
            for here, possible in zip(self.origins, covered, strict=True):
                lost = {p for p in here if i <= p < j and p not in possible}
                if lost and lost != here:
                    here -= lost
            if len(starts) == 1:
                for k, a in enumerate(text):
                    if ord(a) < CONSTANTS:
                        self.origins[starts[0] + k] = {ord(a) + i}

    def _fits(self, text: str, start: int, i: int) -> bool:
        """Whether the yield of a fragment at position ``i`` may stand at a place of the target."""
        if start + len(text) > len(self.origins):
            return False
        return all(
            ord(a) + i in self.origins[start + k]
            if ord(a) < CONSTANTS
            else a == self.constants[start + k]
            for k, a in enumerate(text)
        )


class _Use(NamedTuple):
    """One use of a fragment: its copies in the target, with the constants around each, and the
    source words beside it.
    """

    copies: tuple[tuple[str, str, str], ...]
    beside: tuple[int, int]


class _Text(NamedTuple):
    """The yield of a fragment, and whether nearly all its uses have it."""

    text: str
    pure: bool


def fragments(observations: Sequence[Observation]) -> list[Observation]:
    """Observations of the fragments that are used most, shortest first."""
    sample = observations[:: -(-len(observations) // PAIRS)]
    words = _translations(sample)
    aligned = [_Aligned(o, words) for o in sample]
    found: dict[Form, _Text] = {}
    for _ in range(ROUNDS):
        uses: defaultdict[Form, list[_Use]] = defaultdict(list)
        for pair in aligned:
            for i, j in pair.spans():
                if (use := pair.use(i, j)) is not None:
                    uses[pair.form[i:j]].append(use)
        before, found = found, _yields(uses)
        if found == before:
            break
        for pair in aligned:
            pair.narrow({form: text for form, (text, pure) in found.items() if pure})
    closed = {
        form: text
        for form, (text, _) in found.items()
        if not any(_bound(use.beside[side] for use in uses[form]) for side in (0, 1))
    }
    kept: defaultdict[int, list[Form]] = defaultdict(list)
    for form, text in closed.items():
        # a word at an edge that changes nothing belongs to something else
        if text not in (closed.get(form[:-1]), _shifted(closed.get(form[1:]), 1)):
            kept[len(form)].append(form)
    return [
        Observation(form, _target(form, closed[form], words), (), 1)
        for size in sorted(kept)
        for form in sorted(kept[size], key=lambda form: (-len(uses[form]), form))[:EACH]
    ]


def _translations(observations: Iterable[Observation]) -> dict[int, int]:
    """The target word of each source word of no class that has one."""
    translated = translated_symbols(observations)
    sources, targets = [], []
    for o in observations:
        sources.append(tuple(s for s in o.form if s not in translated))
        targets.append(tuple(w for atoms in o.target if (w := constant_word(atoms[0])) is not None))
    return find_translations(sources, targets, {})


def _target(form: Form, text: str, words: Mapping[int, int]) -> Target:
    """The target of a fragment."""
    return tuple(
        constant(words[form[ord(a)]]) if ord(a) < CONSTANTS and form[ord(a)] in words else a
        for a in text
    )


def _yields(uses: Mapping[Form, Sequence[_Use]]) -> dict[Form, _Text]:
    """The yields of the fragments that have one."""
    texts = {form: _yield(its) for form, its in uses.items() if len(its) >= LEAST}
    return {form: text for form, text in texts.items() if text is not None}


def _bound(neighbours: Iterable[int]) -> bool:
    """Whether the neighbours of a fragment are nearly all the same word."""
    counts = Counter(neighbours)
    word, most = counts.most_common(1)[0]
    return word != EDGE and most > BOUND * counts.total()


def _yield(uses: Sequence[_Use]) -> _Text | None:
    """The yield that most uses of a fragment have, with the constants that always stand beside it;
    None if too few uses have it.
    """
    counts = Counter(piece for use in uses for _, piece, _ in use.copies)
    often = [piece for piece, _ in counts.most_common(CANDIDATES)]
    n, text, sides = 0, "", list[tuple[str, str]]()
    for candidate in sorted({*often, min(counts, key=len)}, key=lambda text: (len(text), text)):
        around = [found for use in uses if (found := _around(use, candidate)) is not None]
        if len(around) > n:
            n, text, sides = len(around), candidate, [side for found in around for side in found]
    if n < max(LEAST, CONTIGUOUS * len(uses)):
        return None
    others = sum(len(use.copies) == 1 and _around(use, text) is None for use in uses)
    if n < PURE * (n + others):
        return None
    before = _common([left[::-1] for left, _ in sides])[::-1]
    return _Text(before + text + _common([right for _, right in sides]), n >= PURE * len(uses))


def _around(use: _Use, text: str) -> list[tuple[str, str]] | None:
    """The constants before and behind each copy of a yield in a use; None if the use has others."""
    found = []
    for before, piece, behind in use.copies:
        between = piece.split(text)
        if any(ord(a) < CONSTANTS for part in between for a in part) or between[0] or between[-1]:
            return None
        around = [before, *between[1:-1], behind]
        found += list(pairwise(around))
    return found


def _common(texts: Sequence[str]) -> str:
    """The longest beginning that nearly all texts have."""
    found = ""
    while True:
        counts = Counter(text[len(found)] for text in texts if len(text) > len(found))
        if not counts or counts.most_common(1)[0][1] < BOUND * len(texts):
            return found
        letter = counts.most_common(1)[0][0]
        found += letter
        texts = [text for text in texts if text.startswith(found)]


def _shifted(text: str | None, by: int) -> str | None:
    """A yield of a part that begins later in the form."""
    if text is None:
        return None
    return "".join(a if ord(a) >= CONSTANTS else chr(ord(a) + by) for a in text)
