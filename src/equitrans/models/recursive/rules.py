"""Rules over class sequences, and grammars of such rules. Independent of data and learning.

A rule pairs a left side of symbols and holes with a right side that composes the alignments of the
parts into the alignment of the whole: ``□ twice → 0 0``. A hole stands for a constituent; on the
right side it stands for that constituent's whole output. Symbols are the numbers of ℓ_Σ, so a rule
cannot distinguish the words of a class.

A derivation gives a *yield*: a string with one character for each target word. The character is
either a source position (the translator translates the word there) or a constant (a target word
outside all classes, written by the rule). Strings are cheap to join, compare and search.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import cast

from equitrans.models.recursive.uses import (
    CONSTANTS as CONSTANTS,
    PLAIN,
    VARIABLE,
    Operation,
    Use,
    constant as constant,
    constant_word as constant_word,
    count_primitives,
    operate,
)
from equitrans.settings import LONGEST_PREDICTION

HOLE = -1
"""The symbol of a hole; all other symbols are classes of source words, numbered from 0."""

Form = tuple[int, ...]
"""The classes of a source sentence, ℓ_Σ(x)."""

Span = tuple[int, int]

Yield = str | int
"""The yield of a derivation. A yield that is too long is never built: it is its length."""


@dataclass(frozen=True, order=True)
class Rule:
    """``right[k] ≥ 0`` is the symbol ``left[right[k]]``, or the use of a part with an operation;
    ``~y`` is the constant y.

    >>> Rule((HOLE, 5), (0, 0)).holes
    (0,)
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    @cached_property
    def holes(self) -> tuple[int, ...]:
        """The places of the holes."""
        return tuple(k for k, s in enumerate(self.left) if s == HOLE)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The holes that the right side mentions; the others are derived and dropped."""
        mentioned = {*self.right}
        for use in self.uses:
            mentioned |= {use.place, use.other} if use.operation == 3 else {use.place}
        return tuple(k for k in self.holes if k in mentioned)

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The uses of parts with an operation."""
        return tuple(Use.of(k) for k in self.right if k >= PLAIN)

    @cached_property
    def has_primitives(self) -> bool:
        """Whether the right side takes words of parts by their order."""
        return count_primitives(self.right) > 0

    @cached_property
    def is_open(self) -> bool:
        """Whether the yield has a variable."""
        return ~VARIABLE in self.right or any(use.operation == Operation.KEEP for use in self.uses)

    @cached_property
    def words(self) -> frozenset[int]:
        """The symbols of the left side without holes; the rule applies only to forms with all."""
        return frozenset(s for s in self.left if s != HOLE)

    @cached_property
    def anchor(self) -> int:
        """The place whose source word is reported as the origin of constants."""
        return next((k for k, s in enumerate(self.left) if s != HOLE), 0)

    def __post_init__(self) -> None:
        # rules are keys of many tables
        object.__setattr__(self, "_hash", hash((self.left, self.right)))

    def __hash__(self) -> int:
        return self._hash

    def join(
        self,
        spans: Sequence[Span],
        yields: Mapping[int, Yield],
        longest: int = LONGEST_PREDICTION,
    ) -> Yield:
        """The yield of the whole from the yields of its holes; its length if it is longer than
        ``longest``.

        >>> Rule((HOLE, 5), (0, 0)).join([(0, 1), (1, 2)], {0: 3000})
        6000
        """
        if self.uses:
            parts = {k: yields[k] if k in yields else chr(i) for k, (i, _) in enumerate(spans)}
            if all(isinstance(parts[k], str) for k in self.used):
                text = operate(self.right, cast(dict[int, str], parts), constant, "")
                return text if len(text) <= longest else len(text)
        whole = [
            constant(~k)
            if k < 0
            else yields[k & 0xFFF]
            if k & 0xFFF in yields
            else chr(spans[k][0])
            for k in self.right
        ]
        length = sum([part if isinstance(part, int) else len(part) for part in whole])
        return "".join(cast(list[str], whole)) if length <= longest else length


MOST_ANALYSES = 500_000
"""Largest number of analyses of all spans of a form; a form with more has no derivation."""

LONGEST_CACHED = 100
"""Largest number of symbols of a part in a grammar's cache."""

CACHED = 20_000_000
"""Largest size of a grammar's cache, in symbols; the cache is cleared beyond it. An analysis counts
as 30 symbols, because it takes as much memory."""

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
        self._cached = 0

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

    @property
    def parents(self) -> int:
        """The number of rules that may have others in their holes; they come first."""
        return len(self.rules)

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

        A span comes after all spans inside it. Equal parts of forms are analysed once. A form with
        more than MOST_ANALYSES analyses gets none.
        """
        return self._analyses(form) or {}

    def has_too_many(self, form: Form) -> bool:
        """Whether a form has more than MOST_ANALYSES analyses."""
        return self._analyses(form) is None

    def _analyses(self, form: Form) -> dict[Span, tuple[Analysis, ...]] | None:
        n, left = len(form), MOST_ANALYSES
        rules = [
            (r, rule.left, len(rule.left), rule.left[0], rule.left[-1])
            for r, rule in self.usable(form)
        ]
        found: dict[Span, tuple[Analysis, ...]] = {}
        ends: list[list[int]] = [[] for _ in range(n)]
        for j in range(1, n + 1):
            ending = [rule for rule in rules if rule[4] in (form[j - 1], HOLE)]
            for i in range(j - 1, -1, -1):
                part = form[i:j] if j - i <= LONGEST_CACHED else None
                known = None if part is None else self._cache.get(part)
                if known is None:
                    first, size = form[i], j - i
                    ways = (
                        (r, tuple([(p - i, q - i) for p, q in spans]))
                        for r, side, m, begin, _ in ending
                        if m <= size and (begin == first or (begin == HOLE and ends[i]))
                        for spans in lay(side, form, i, j, ends)
                    )
                    known = tuple(islice(ways, left + 1))
                    if part is not None and len(known) <= left:
                        self._keep(part, known)
                left -= len(known)
                if left < 0:
                    return None
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

    def _keep(self, part: Form, known: tuple[Analysis, ...]) -> None:
        """Add the analyses of a part to the cache."""
        self._cached += len(part) + 30 * len(known)
        if self._cached > CACHED:
            self._cache.clear()
            self._cached = 0
        self._cache[part] = known


def lay(
    left: Sequence[int], form: Form, i: int, j: int, ends: Sequence[Sequence[int]]
) -> Iterator[tuple[Span, ...]]:
    """Every way to lay the symbols of a left side over ``form[i:j]``; a hole covers a span (p, q)
    with q in ``ends[p]``.
    """
    m = len(left)
    # a stack instead of recursion: a left side may have as many symbols as a sentence has words
    stack: list[tuple[int, int, tuple[Span, ...]]] = [(0, i, ())]
    while stack:
        k, p, spans = stack.pop()
        symbol = left[k]
        if symbol != HOLE:
            if form[p] != symbol:
                continue
            if k == m - 1:
                if p + 1 == j:
                    yield (*spans, (p, j))
            elif p + 1 < j:
                stack.append((k + 1, p + 1, (*spans, (p, p + 1))))
        elif k == m - 1:
            if j in ends[p] and (p, j) != (i, j):
                yield (*spans, (p, j))
        else:
            following, limit = left[k + 1], j - (m - k - 1)
            stack += [
                (k + 1, q, (*spans, (p, q)))
                for q in reversed(ends[p])
                if q <= limit and following in (HOLE, form[q])
            ]
