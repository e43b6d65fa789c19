"""Targets as trees: ``count ( river ( loc_2 ( x ) ) )``."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from equitrans.models.recursive import find_brackets
from equitrans.paper import Sentence

LEAF, THEN, INSIDE, BOTH = range(4)
"""What follows the word of a node: nothing, a child without brackets, a child in brackets, or one
in brackets and one after them. The separator has two children and stands between them."""

ARITY = (0, 1, 1, 2)
"""Number of children, by what follows the word."""


class Tree(NamedTuple):
    """A node: the number of its target word, what follows it, and its children."""

    word: int
    layout: int
    children: tuple["Tree", ...] = ()

    @property
    def label(self) -> int:
        """The number of the word and the layout."""
        return len(ARITY) * self.word + self.layout


class Signs(NamedTuple):
    """The words that open and close brackets and separate their parts; −1 where there is none."""

    open: int
    close: int
    separator: int

    def read(self, target: Sequence[int]) -> Tree | None:
        """The tree of a target; None if it is none.

        >>> tree = Signs(8, 9, 7).read((3, 8, 4, 7, 5, 6, 9))
        >>> tree.word, [child.word for child in tree.children]
        (3, [7])
        """
        tree, end = self._read(target, 0)
        return tree if end == len(target) else None

    def _read(self, target: Sequence[int], at: int) -> tuple[Tree | None, int]:
        """The tree that begins at a word, up to a closed bracket or the end, and where it ends."""
        first, at = self._node(target, at)
        if first is None or at == len(target) or target[at] != self.separator:
            return first, at
        rest, at = self._read(target, at + 1)
        return rest and Tree(self.separator, BOTH, (first, rest)), at

    def _node(self, target: Sequence[int], at: int) -> tuple[Tree | None, int]:
        if at == len(target) or target[at] in self:
            return None, at
        word, at = target[at], at + 1
        inside: Tree | None = None
        if at < len(target) and target[at] == self.open:
            inside, at = self._read(target, at + 1)
            if inside is None or at == len(target):
                return None, at
            at += 1
        if at == len(target) or target[at] in (self.close, self.separator):
            return (Tree(word, INSIDE, (inside,)) if inside else Tree(word, LEAF)), at
        rest, at = self._node(target, at)
        if rest is None:
            return None, at
        return (Tree(word, BOTH, (inside, rest)) if inside else Tree(word, THEN, (rest,))), at

    def write(self, tree: Tree) -> Sentence:
        """The target of a tree."""
        word, layout, children = tree
        parts = [self.write(child) for child in children]
        if word == self.separator:
            return (*parts[0], word, *parts[1])
        if layout in (INSIDE, BOTH):
            parts[0] = (self.open, *parts[0], self.close)
        return (word, *(w for part in parts for w in part))


def find_signs(targets: Sequence[Sentence]) -> Signs:
    """The brackets of targets, and the word that stands after most closed ones."""
    brackets = find_brackets(targets)
    if brackets is None:
        return Signs(-1, -1, -1)
    after: dict[int, int] = {}
    for target in targets:
        for word, following in itertools.pairwise(target):
            if word == brackets.close and following not in (brackets.open, brackets.close):
                after[following] = after.get(following, 0) + 1
    separator = max(after, key=lambda word: (after[word], word), default=-1)
    return Signs(brackets.open, brackets.close, separator)


def flatten(tree: Tree) -> list[tuple[Tree, list[int]]]:
    """The nodes of a tree, each with the numbers of its children, the root first."""
    nodes: list[tuple[Tree, list[int]]] = [(tree, [])]
    for child in tree.children:
        nodes[0][1].append(len(nodes))
        shift = len(nodes)
        nodes += [(node, [shift + c for c in children]) for node, children in flatten(child)]
    return nodes


def owners(signs: Signs, tree: Tree, first: int = 0) -> list[int]:
    """The number of the node that each word of a target belongs to."""
    parts, after = [], first + 1
    for child in tree.children:
        parts.append(owners(signs, child, after))
        after += len(flatten(child))
    if tree.word == signs.separator:
        return [*parts[0], first, *parts[1]]
    if tree.layout in (INSIDE, BOTH):
        parts[0] = [first, *parts[0], first]
    return [first, *(node for part in parts for node in part)]
