"""The symbolic half of LANE: how a sentence becomes nodes, and nodes become a target. No weights.

A *symbol* is a source word or the variable. An *item* stands for a span of the sentence: its *kind*
is its string of symbols, where an abstracted span is one variable. A *candidate* is a pair of
kinds that are neighbours. A *node* is a string of symbols that is translated by itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Symbols = tuple[int, ...]
"""Numbers of source words, and VARIABLE."""
Output = tuple[int, ...]
"""Target symbols of a node: a word as its number, the i-th variable of the node as ``~i``."""

VARIABLE = 0
"""The symbol of an abstracted span; no word has this number."""


class Node(NamedTuple):
    """An abstracted span: its symbols, and for each variable among them the node it stands for."""

    symbols: Symbols
    children: tuple[int, ...]
    start: int
    stop: int


class Item(NamedTuple):
    """A span with the kind of its symbols and the nodes that its variables stand for."""

    kind: int
    children: tuple[int, ...]
    start: int
    stop: int


class Merge(NamedTuple):
    """A step: the candidates, which of them was merged, and whether the result was abstracted."""

    candidates: tuple[int, ...]
    chosen: int
    abstract: bool


@dataclass
class Trajectory:
    """The decisions of one pass over a sentence, and its nodes; children come before parents."""

    leaves: list[tuple[int, bool]] = field(default_factory=list)
    """The kind of each word, and whether it was abstracted."""
    merges: list[Merge] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    @property
    def solved(self) -> bool:
        """Whether the last decision was to abstract, so that the last node is the sentence."""
        return self.merges[-1].abstract if self.merges else self.leaves[-1][1]


class Policy(ABC):
    """Numbers kinds and candidates as they occur, and takes the decisions.

    A policy is used for one call of ``compose``. So kind 0 is the variable, the kinds of words come
    next, and the kinds of two symbols last.
    """

    def __init__(self) -> None:
        self.kinds: list[Symbols] = [(VARIABLE,)]
        self.candidates: list[tuple[int, int]] = []
        self.opened: list[int] = []
        """The candidates whose two symbols became an item; each is a kind."""
        self._kind: dict[Symbols, int] = {(VARIABLE,): 0}
        self._candidate: dict[tuple[int, int], int] = {}

    def kind_of_word(self, word: int) -> int:
        """The kind of a single word."""
        return self._number((word,))

    def kind_of_candidate(self, candidate: int) -> int:
        """The kind of two merged symbols."""
        symbols = self.symbols(candidate)
        if symbols not in self._kind:
            self.opened.append(candidate)
        return self._number(symbols)

    def _number(self, symbols: Symbols) -> int:
        if symbols not in self._kind:
            self._kind[symbols] = len(self.kinds)
            self.kinds.append(symbols)
        return self._kind[symbols]

    def candidate(self, left: int, right: int) -> int:
        """The number of two neighbouring kinds."""
        found = self._candidate.setdefault((left, right), len(self.candidates))
        if found == len(self.candidates):
            self.candidates.append((left, right))
        return found

    def symbols(self, candidate: int) -> Symbols:
        """The symbols of both kinds of a candidate."""
        left, right = self.candidates[candidate]
        return self.kinds[left] + self.kinds[right]

    def prepare(self) -> None:  # noqa: B027
        """Called when kinds and candidates may be new, before decisions about them."""

    @abstractmethod
    def abstracts_leaf(self, kind: int) -> bool:
        """Whether a word is abstracted."""

    @abstractmethod
    def choose(self, candidates: Sequence[int]) -> int:
        """The position of the candidate that is merged."""

    @abstractmethod
    def abstracts(self, candidate: int) -> bool:
        """Whether a merged candidate is abstracted, where the model may choose."""


def compose(policy: Policy, sentences: Sequence[Sequence[int]]) -> list[Trajectory]:
    """A trajectory for each sentence, which has one word or more. All take a step at a time, so
    that a policy computes what is new for all of them at once.
    """
    kinds = [[policy.kind_of_word(word) for word in sentence] for sentence in sentences]
    policy.prepare()
    rows = [_Row(policy, row) for row in kinds]
    live = [row for row in rows if row.candidates]
    while live:
        policy.prepare()
        for row in live:
            row.merge(policy)
        live = [row for row in live if row.candidates]
    return [row.trajectory for row in rows]


class _Row:
    """A sentence in the middle of its trajectory."""

    def __init__(self, policy: Policy, kinds: Sequence[int]) -> None:
        self.trajectory = Trajectory()
        self.items: list[Item] = []
        for at, kind in enumerate(kinds):
            abstract = policy.abstracts_leaf(kind)
            self.trajectory.leaves.append((kind, abstract))
            item = Item(kind, (), at, at + 1)
            self.items.append(self._abstracted(policy.kinds[kind], item) if abstract else item)
        self.candidates = [
            policy.candidate(left.kind, right.kind)
            for left, right in zip(self.items, self.items[1:], strict=False)
        ]

    def _abstracted(self, symbols: Symbols, item: Item) -> Item:
        """Hand the symbols to the Solver; the item becomes the variable, whose kind is 0."""
        nodes = self.trajectory.nodes
        nodes.append(Node(symbols, item.children, item.start, item.stop))
        return Item(0, (len(nodes) - 1,), item.start, item.stop)

    def merge(self, policy: Policy) -> None:
        """Merge two items. Three symbols, or two variables, are always abstracted."""
        k = policy.choose(self.candidates)
        candidate = self.candidates[k]
        left, right = self.items[k : k + 2]
        symbols, children = policy.symbols(candidate), left.children + right.children
        abstract = len(symbols) >= 3 or len(children) == 2 or policy.abstracts(candidate)
        self.trajectory.merges.append(Merge(tuple(self.candidates), k, abstract))
        kind = 0 if abstract else policy.kind_of_candidate(candidate)
        merged = Item(kind, children, left.start, right.stop)
        if abstract:
            merged = self._abstracted(symbols, merged)
        self.items[k : k + 2] = [merged]
        del self.candidates[k]
        for at in (k - 1, k):
            if 0 <= at < len(self.candidates):
                neighbours = self.items[at].kind, self.items[at + 1].kind
                self.candidates[at] = policy.candidate(*neighbours)


class Value(NamedTuple):
    """The target of a node: its length, and its first words, one character per word."""

    length: int
    text: str


def values(nodes: Sequence[Node], outputs: Sequence[Output], *, longest: int) -> list[Value]:
    """The value of every node: its output with each variable replaced by the value of its node.

    Lengths may grow tenfold with every level; texts end after ``longest`` words.

    >>> nodes = [Node((5,), (), 0, 1), Node((0, 7), (0,), 0, 2)]
    >>> values(nodes, [(65, 66), (~0, ~0, 67)], longest=4)
    [Value(length=2, text='AB'), Value(length=5, text='ABAB')]
    """
    found: list[Value] = []
    for node, output in zip(nodes, outputs, strict=True):
        length, parts = 0, []
        for symbol in output:
            value = found[node.children[~symbol]] if symbol < 0 else Value(1, chr(symbol))
            if length < longest:
                parts.append(value.text)
            length += value.length
        found.append(Value(length, "".join(parts)[:longest]))
    return found
