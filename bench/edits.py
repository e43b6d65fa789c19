"""Rules with primitives, measured on languages of string functions: python bench/edits.py

Every language has its own words, functions and order of words. One JSON line per language: exact
matches at training length (``in``) and on longer sentences (``long``); seconds are CPU time.
"""

import argparse
import json
import random
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from equitrans import Pair, TransducerConfig, fit

Words = list[str]
Sentence = tuple[Words, Words]

LETTERS = tuple("abcdefghijklmnopqrst")


@dataclass(frozen=True)
class Edits:
    """A language of functions of one and of two sequences of letters."""

    name: str
    one: Mapping[str, Callable[[Words], Words]]
    two: Mapping[str, Callable[[Words, Words], Words]]
    order: str
    """Where a function stands: before, after, in brackets before, or in brackets between."""
    shortest: int = 2
    longest: int = 4

    def sentence(self, rng: random.Random, depth: int) -> Sentence:
        """A sentence with functions up to some depth, and its target."""
        if depth == 0 or rng.random() < 0.2:
            words = rng.choices(LETTERS, k=rng.randint(self.shortest, self.longest))
            return words, [word.upper() for word in words]
        source, target = self.sentence(rng, depth - 1)
        if rng.random() < 0.35:
            other, more = self.sentence(rng, depth - 1)
            name = rng.choice(sorted(self.two))
            return self._placed(name, source, other), self.two[name](target, more)
        name = rng.choice(sorted(self.one))
        return self._placed(name, source), self.one[name](target)

    def _placed(self, name: str, first: Words, *second: Words) -> Words:
        arguments = [*first, *(word for part in second for word in (",", *part))]
        if self.order == "before":
            return [name, *arguments]
        if self.order == "after":
            return [*arguments, name]
        if self.order == "between" and second:
            return ["[", *first, name, *second[0], "]"]
        return ["[", name, *arguments, "]"]

    def pairs(self, rng: random.Random, n: int, depths: tuple[int, ...], least: int) -> list[Pair]:
        """Different pairs with sources of at least ``least`` words."""
        found: dict[Pair, None] = {}
        while len(found) < n:
            source, target = self.sentence(rng, rng.choice(depths))
            if target and len(target) <= 80 and len(source) >= least:
                found[Pair(tuple(source), tuple(target))] = None
        return [*found]


def flip(x: Words) -> Words:
    """The words in reverse order."""
    return x[::-1]


LANGUAGES = [
    Edits(
        "other words",
        {
            "flip": flip,
            "tail": lambda x: x[1:],
            "twice": lambda x: x + x,
            "rot": lambda x: x[-1:] + x[:-1],
            "stutter": lambda x: x[:1] + x,
        },
        {"glue": lambda x, y: x + y, "weld": lambda x, y: y + x},
        "before",
        3,
        5,
    ),
    Edits(
        "second word",
        {
            "pick": lambda x: x[1:2] + x,
            "skip": lambda x: x[:1] + x[2:],
            "mirror": lambda x: x + x[::-1],
        },
        {"both": lambda x, y: x + y, "tip": lambda x, y: x + y[-1:]},
        "before",
        3,
        5,
    ),
    Edits(
        "function last",
        {"flip": flip, "rot": lambda x: x[1:] + x[:1], "echo": lambda x: x + x[-1:]},
        {"join": lambda x, y: x + y},
        "after",
    ),
    Edits(
        "brackets",
        {
            "flip": flip,
            "rot": lambda x: x[1:] + x[:1],
            "swap": lambda x: x[-1:] + x[1:-1] + x[:1],
        },
        {"plus": lambda x, y: x + y, "ends": lambda x, y: x[:1] + y[-1:]},
        "brackets",
        2,
        5,
    ),
    Edits(
        "operators",
        {"flip": flip, "twice": lambda x: x + x},
        {
            "and": lambda x, y: x + y,
            "after": lambda x, y: y + x,
            "amid": lambda x, y: x[:1] + y + x[1:],
        },
        "between",
    ),
    Edits(
        "constants",
        {
            "quote": lambda x: ["<", *x, ">"],
            "flip": flip,
            "mark": lambda x: [*x, "!", *x[-1:]],
        },
        {"cat": lambda x, y: [*x, "&", *y]},
        "before",
    ),
]


def measure(language: Edits, n: int, seed: int) -> dict[str, object]:
    """Learn a language from ``n`` pairs; its figures."""
    rng = random.Random(seed)
    pairs = language.pairs(rng, n + 100, (1, 1, 2, 2, 3), 1)
    tests = {"in": pairs[:100], "long": language.pairs(rng, 60, (5,), 12)}
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = fit(pairs[100:], "discover", model=TransducerConfig(aligner="recursive"))
    found: dict[str, object] = {"seconds": round(time.process_time() - started, 1)}
    for name, some in tests.items():
        best = trained.predict([pair.source for pair in some])
        right = [not b.refused and b.words == p.target for b, p in zip(best, some, strict=True)]
        found[name] = round(100 * sum(right) / len(some), 1)
    assert trained.grammar is not None
    return {**found, "rules": trained.grammar.texts}


def main() -> None:
    """Print one JSON line for every language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=600)
    parser.add_argument("--only", default="", help="only languages with this text in their names")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for language in LANGUAGES:
        if asked.only in language.name:
            found = measure(language, asked.pairs, asked.seed)
            print(json.dumps({"language": language.name, **found}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
