"""Rules over class sequences, and grammars of such rules. Independent of data and learning.

A rule pairs a left side of symbols and holes with a right side that composes the alignments of the
parts into the alignment of the whole: ``□ twice → 0 0``. A hole stands for a constituent; on the
right side it stands for that constituent's whole output. Symbols are the numbers of ℓ_Σ, so a rule
cannot distinguish the words of a class.

A derivation gives a *yield*: a string with one character for each target word. The character is
either a source position (the translator translates the word there) or a constant (a target word
outside all classes, written by the rule). Strings are cheap to join, compare and search.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

HOLE = -1
"""The symbol of a hole; all other symbols are classes of source words, numbered from 0."""

CONSTANTS = 0x10000
"""Code point of the first constant; smaller code points are source positions."""

Form = tuple[int, ...]
"""The classes of a source sentence, ℓ_Σ(x)."""

Span = tuple[int, int]


def constant(word: int) -> str:
    """The character of a target word that a rule writes."""
    return chr(CONSTANTS + word)


def constant_word(atom: str) -> int | None:
    """The target word of a constant, or None for a position.

    >>> constant_word(constant(7)), constant_word(chr(7))
    (7, None)
    """
    return ord(atom) - CONSTANTS if ord(atom) >= CONSTANTS else None


@dataclass(frozen=True, order=True)
class Rule:
    """``right[k] ≥ 0`` is the symbol ``left[right[k]]``; ``~y`` is the constant y.

    >>> Rule((HOLE, 5), (0, 0)).holes
    (0,)
    """

    left: tuple[int, ...]
    right: tuple[int, ...]

    @cached_property
    def holes(self) -> tuple[int, ...]:
        """The places of the holes."""
        return tuple(k for k, s in enumerate(self.left) if s == HOLE)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The holes that the right side mentions; the others are derived and dropped."""
        return tuple(k for k in self.holes if k in self.right)

    @cached_property
    def words(self) -> frozenset[int]:
        """The symbols of the left side without holes; the rule applies only to forms with all."""
        return frozenset(s for s in self.left if s != HOLE)

    @cached_property
    def anchor(self) -> int:
        """The place whose source word is reported as the origin of constants."""
        return next((k for k, s in enumerate(self.left) if s != HOLE), 0)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.left, self.right))

    def join(self, spans: Sequence[Span], yields: dict[int, str]) -> str:
        """The yield of the whole from the yields of its holes."""
        return "".join(
            constant(~k) if k < 0 else yields[k] if k in yields else chr(spans[k][0])
            for k in self.right
        )


CACHED_PARTS = 300_000
"""Largest number of parts of forms in a grammar's cache; the cache is cleared beyond it."""

Analysis = tuple[int, tuple[Span, ...]]
"""A rule's number, and the span of each symbol of its left side."""


class Grammar:
    """Distinct rules, with a cache of the analyses of forms and their parts.

    >>> grammar = Grammar([Rule((3,), (0,)), Rule((HOLE, 5), (0, 0))])
    >>> grammar.analyses((3, 5))[0, 2]
    ((1, ((0, 1), (1, 2))),)
    """

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(dict.fromkeys(rules))
        self._cache: dict[Form, tuple[Analysis, ...]] = {}

    def __contains__(self, rule: Rule) -> bool:
        return rule in self._members

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def _members(self) -> frozenset[Rule]:
        return frozenset(self.rules)

    @cached_property
    def most_holes(self) -> int:
        """The largest number of holes in a rule, at least one."""
        return max([1, *(len(rule.holes) for rule in self.rules)])

    def plus(self, rules: Iterable[Rule]) -> "Grammar":
        """The grammar with more rules."""
        return Grammar((*self.rules, *rules))

    def minus(self, rule: Rule) -> "Grammar":
        """The grammar without a rule."""
        return Grammar(r for r in self.rules if r != rule)

    def usable(self, form: Form) -> list[tuple[int, Rule]]:
        """The rules whose words all occur in a form, with their numbers."""
        words, n = set(form), len(form)
        return [
            (r, rule)
            for r, rule in enumerate(self.rules)
            if len(rule.left) <= n and rule.words <= words
        ]

    def analyses(self, form: Form) -> dict[Span, tuple[Analysis, ...]]:
        """For every derivable span: each rule at its root, with the spans of the rule's symbols.

        A span comes after all spans inside it. Equal parts of forms are analysed once.
        """
        n, cache = len(form), self._cache
        if len(cache) > CACHED_PARTS:
            cache.clear()
        rules = [
            (r, rule.left, len(rule.left), rule.left[0], rule.left[-1])
            for r, rule in self.usable(form)
        ]
        found: dict[Span, tuple[Analysis, ...]] = {}
        ends: list[list[int]] = [[] for _ in range(n)]
        for j in range(1, n + 1):
            last = form[j - 1]
            for i in range(j - 1, -1, -1):
                part = form[i:j]
                known = cache.get(part)
                if known is None:
                    first, size = form[i], j - i
                    known = cache[part] = tuple(
                        (r, tuple((p - i, q - i) for p, q in spans))
                        for r, left, m, begin, end in rules
                        if m <= size and begin in (first, HOLE) and end in (last, HOLE)
                        for spans in lay(left, form, i, j, ends)
                    )
                if known:
                    ends[i].append(j)
                    found[i, j] = (
                        known
                        if i == 0
                        else tuple(
                            (r, tuple([(p + i, q + i) for p, q in spans])) for r, spans in known
                        )
                    )
        return found


def lay(
    left: Sequence[int], form: Form, i: int, j: int, ends: Sequence[Sequence[int]]
) -> Iterator[tuple[Span, ...]]:
    """Every way to lay the symbols of a left side over ``form[i:j]``; a hole covers a span (p, q)
    with q in ``ends[p]``.
    """
    m = len(left)

    def go(k: int, p: int) -> Iterator[tuple[Span, ...]]:
        symbol = left[k]
        if symbol != HOLE:
            if form[p] != symbol:
                return
            if k == m - 1:
                if p + 1 == j:
                    yield ((p, j),)
            elif p + 1 < j:
                for rest in go(k + 1, p + 1):
                    yield ((p, p + 1), *rest)
        elif k == m - 1:
            if j in ends[p] and (p, j) != (i, j):
                yield ((p, j),)
        else:
            following = left[k + 1]
            limit = j - (m - k - 1)
            for q in ends[p]:
                if q > limit:
                    break
                if following == HOLE or form[q] == following:
                    for rest in go(k + 1, q):
                        yield ((p, q), *rest)

    return go(0, i)
