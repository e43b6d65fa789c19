"""Small languages with known rules, to learn and to be judged on.

A tongue is a synchronous grammar: each production pairs symbols with how their meanings are joined.
Training sentences are short; sentences to judge by are longer than any of them, and of new forms.
"""

import random
from dataclasses import dataclass, field

from equitrans.pairs import Pair
from equitrans.symmetry import LexicalClass

Production = tuple[str, str]
"""Symbols, and what they mean: numbers are symbols by place, other words stand for themselves.
Capitals are nonterminals, words in angle brackets classes."""


@dataclass(frozen=True)
class Tongue:
    """Productions by nonterminal; sentences are S."""

    name: str
    rules: dict[str, list[Production]]
    shortest: int = 1
    longest: int = 9
    beyond: int = 20
    within: bool = True
    """Whether rules of the aligner's kind can say it."""
    size: int = 4
    """Words in a class."""
    least: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # the least depth from which each nonterminal ends
        self.least.update(dict.fromkeys(self.rules, 99))
        for _ in self.rules:
            for head, productions in self.rules.items():
                self.least[head] = min(self._depth(symbols) for symbols, _ in productions)

    def _depth(self, symbols: str) -> int:
        return 1 + max((self.least[s] for s in symbols.split() if s in self.rules), default=0)

    @property
    def classes(self) -> list[LexicalClass]:
        """The classes that the productions name."""
        names = {
            s
            for productions in self.rules.values()
            for symbols, _ in productions
            for s in symbols.split()
            if s.startswith("<")
        }
        return [LexicalClass(name[1:-1], *self.words(name)) for name in sorted(names)]

    def words(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The two sides of a class."""
        source = tuple(f"{name[1:-1]}{i}" for i in range(self.size))
        return source, tuple(word.upper() for word in source)

    def say(self, draw: random.Random, depth: int, head: str = "S") -> tuple[list[str], list[str]]:
        """A random sentence and its meaning."""
        possible = [p for p in self.rules[head] if self._depth(p[0]) <= depth]
        symbols, meaning = draw.choice(possible)
        source: list[str] = []
        parts: list[list[str]] = []
        for symbol in symbols.split():
            if symbol in self.rules:
                words, means = self.say(draw, depth - 1, symbol)
            elif symbol.startswith("<"):
                ours, theirs = self.words(symbol)
                i = draw.randrange(self.size)
                words, means = [ours[i]], [theirs[i]]
            else:
                words, means = [symbol], []
            source += words
            parts.append(means)
        target: list[str] = []
        for item in meaning.split():
            if item == "REVERSED":
                target.reverse()
            else:
                target += parts[int(item)] if item.isdigit() else [item]
        return source, target

    def pairs(self, count: int, *, seed: int, wrong: float = 0.0) -> tuple[list[Pair], list[Pair]]:
        """Training pairs, a share of them wrong, and the wrong ones among them."""
        draw = random.Random(seed)
        found: list[Pair] = []
        while len(found) < count:
            source, target = self.say(draw, draw.randint(self.least["S"], self.least["S"] + 3))
            if self.shortest <= len(source) <= self.longest and 0 < len(target) <= 40:
                found.append(Pair(tuple(source), tuple(target)))
        vocabulary = sorted({word for pair in found for word in pair.target})
        spoiled = []
        for i in draw.sample(range(count), round(wrong * count)):
            pair = found[i]
            other = spoil(draw, pair.target, vocabulary)
            found[i] = Pair(pair.source, other)
            spoiled.append(found[i])
        return found, spoiled

    def judge(self, trained_on: list[Pair], count: int, *, seed: int) -> list[Pair]:
        """Longer sentences than those trained on."""
        draw = random.Random(seed + 1000)
        found: list[Pair] = []
        tries = 0
        while len(found) < count and tries < 20_000:
            tries += 1
            source, target = self.say(draw, draw.randint(self.least["S"] + 2, self.least["S"] + 7))
            if self.longest < len(source) <= self.beyond and 0 < len(target) <= 150:
                found.append(Pair(tuple(source), tuple(target)))
        return found


def spoil(draw: random.Random, target: tuple[str, ...], words: list[str]) -> tuple[str, ...]:
    """A target with a word changed, left out or put in."""
    while True:
        other = list(target)
        at = draw.randrange(len(other))
        what = draw.randrange(3)
        if what == 0:
            other[at] = draw.choice(words)
        elif what == 1:
            other.insert(at, draw.choice(words))
        else:
            del other[at]
        if tuple(other) != target:
            return tuple(other)


TONGUES = [
    Tongue(
        "doubling",
        {"S": [("<a>", "0"), ("again S", "1 1"), ("S back", "0 0 0")]},
        longest=4,
        beyond=8,
    ),
    Tongue(
        "chains without short ones",
        {"S": [("<a>", "0"), ("dup S", "1 1"), ("tri S", "1 1 1")]},
        shortest=3,
        longest=4,
        beyond=7,
    ),
    Tongue("owners", {"S": [("<n>", "0"), ("S 's <n>", "2 of 0")]}, longest=7),
    Tongue(
        "verb first",
        {
            "S": [("C", "0"), ("S then C", "0 2"), ("S before C", "2 0")],
            "C": [("P <v> P", "1 0 2"), ("P <v>", "1 0")],
            "P": [("<n>", "0"), ("<j> <n>", "1 0"), ("the <n>", "1")],
        },
        longest=13,
        beyond=22,
    ),
    Tongue(
        "calls",
        {"S": [("<a>", "0"), ("f S S", "F ( 1 , 2 )"), ("g S", "G ( 1 )")]},
        longest=8,
    ),
    Tongue(
        "lists", {"S": [("<a>", "0"), ("[ L ]", "1")], "L": [("S", "0"), ("S L", "1 0")]}, longest=9
    ),
    Tongue(
        "juxtaposed commands",
        {"S": [("C", "0"), ("C S", "0 1")], "C": [("<v> <n>", "1 0"), ("stop <v>", "1 1")]},
    ),
    Tongue(
        "four places",
        {"S": [("<a>", "0"), ("from S to S by S do S end", "7 1 5 3")]},
        longest=17,
        beyond=33,
    ),
    Tongue(
        "words of no class",
        {
            "S": [("W", "0"), ("S and W", "0 2"), ("S after W", "2 0")],
            "W": [("walk", "WALK"), ("run", "RUN"), ("hop", "HOP"), ("W twice", "0 0")],
        },
    ),
    Tongue(
        "polite",
        {
            "S": [("C", "0"), ("please C", "1"), ("S and C", "0 2")],
            "C": [("<v>", "0"), ("<v> not", "NOT 0"), ("<v> slowly", "0 0")],
        },
    ),
    Tongue(
        "kinds of phrases",
        {
            "S": [("many P", "1 1"), ("many Q", "1 1 1"), ("P", "0"), ("Q", "0")],
            "P": [("<a>", "0"), ("P or <a>", "2 0")],
            "Q": [("<b>", "0"), ("Q or <b>", "2 0")],
        },
        longest=6,
    ),
    Tongue(
        "postfix without short ones",
        {"S": [("<a>", "0"), ("S S flip", "1 0"), ("S S keep", "0 1"), ("S S wrap", "0 1 0")]},
        shortest=5,
        longest=9,
    ),
    Tongue(
        "whole reversal",
        {"S": [("<a>", "0"), ("turn S", "1 REVERSED"), ("put S S", "1 2")]},
        within=False,
    ),
]
