"""Answers of a rule model without torch: this module needs the standard library alone.

``equitrans export --standalone`` writes it into one file together with plain_grammar.py and the
words, classes and rules of a model (STATE), and ``equitrans serve`` answers with it. It follows
equitrans.data.reading and equitrans.models.recursive, and tests compare the answers.
"""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
from collections import namedtuple
from collections.abc import Sequence
from threading import Lock

from equitrans.training.plain_grammar import CONSTANTS, PlainGrammar

STATE = None

LONGEST_SENTENCE, LONGEST_WORD = 1000, 100
REMEMBERED = 20_000
"""Largest number of forms in the cache; it is cleared beyond it."""
TIE = "⁀"

Answer = namedtuple("Answer", "text words reason log_prob margin rival")
"""A target, or the reason why there is none; the margin is log p less that of the rival."""


class Refusal(Exception):  # noqa: N818
    """The reason why a sentence has no target."""


class Answerer:
    """Answers sentences; threads may share it."""

    def __init__(self, state: dict) -> None:  # type: ignore[type-arg]
        self.characters, self.longest = state["characters"], state["max_length"]
        self.source = {word: i for i, word in enumerate(state["source"])}
        self.target, self.symbols = state["target"], state["symbols"]
        self.phrases = {
            first: [(tuple(words), symbol) for words, symbol in some]
            for first, some in state["phrases"].items()
        }
        self.spelled = {symbol: tuple(words) for symbol, words in state["spelled"].items()}
        self.forms = {(stem, mark): form for stem, mark, form in state["inflected"]}
        self.marks = {mark for _, mark in self.forms}
        self.listed = frozenset(state["listed"])
        self.open = [
            (name, pattern and re.compile(pattern), places, frozenset(after))
            for name, pattern, places, after in state["open"]
        ]
        self.homes = {int(word): tuple(home) for word, home in state["homes"].items()}
        self.rows, self.table = state["rows"], state["table"]
        self.target_rows = {int(word): tuple(home) for word, home in state["target_rows"].items()}
        self.columns, self.target_columns = state["columns"], state["target_columns"]
        self.noise, self.maximum = state["noise"], state["maximum"]
        self.share = -math.log(len(self.target) + 1)
        self.grammar = PlainGrammar(state)
        self._forms: dict[tuple[int, ...], list[tuple[str | int, float]]] = {}
        self._lock = Lock()

    def answer(self, sentence: str | Sequence[str]) -> Answer:
        """The answer to a sentence, given as text or as words."""
        if isinstance(sentence, str):
            text = unicodedata.normalize("NFC", sentence)
            sentence = text if self.characters else text.split()
        words = tuple(sentence)
        try:
            return self._answer(words)
        except Refusal as refusal:
            return Answer(None, (), str(refusal), None, None, None)

    def _answer(self, words: tuple[str, ...]) -> Answer:
        if not words:
            raise Refusal("no words")
        if len(words) > LONGEST_SENTENCE:
            raise Refusal(f"{len(words)} words; the limit is {LONGEST_SENTENCE}")
        read, names = self._read(words)
        unknown = next((symbol for symbol in read if symbol not in self.source), None)
        if unknown is not None:
            raise Refusal(f"unknown word {unknown!r}")
        source = [self.source[symbol] for symbol in read]
        form = tuple([self.symbols[word] for word in source])
        alignments = self._forms.get(form)
        if alignments is None:
            alignments = self.grammar.alignments(form)
            with self._lock:
                if len(self._forms) >= REMEMBERED:
                    self._forms.clear()
                self._forms[form] = alignments
        if not alignments:
            raise Refusal("no derivation whose parts stand as in some training pair")
        length = alignments[0][0] if isinstance(alignments[0][0], int) else len(alignments[0][0])
        if length > self.longest:
            raise Refusal(f"the target would have {length} words; the limit is {self.longest}")
        noise = max(self.noise, self.grammar.doubt(form))
        (best, log_prob), *others = self._ranked(source, alignments, noise)
        least = math.log(noise)
        rival = None
        if others:
            rival, least = self._write(others[0][0], names), max(others[0][1], least)
        written = self._write(best, names)
        between = "" if self.characters else " "
        return Answer(between.join(written), written, None, log_prob, log_prob - least, rival)

    def _ranked(
        self, source: list[int], alignments: list[tuple[str | int, float]], share: float
    ) -> list[tuple[tuple[int, ...], float]]:
        """The targets of all alignments with their log-probabilities, best first."""
        fitting = [
            (text, log_prob)
            for text, log_prob in alignments
            if isinstance(text, str) and len(text) <= self.longest
        ]
        targets = dict.fromkeys(tuple([self._word(source, c) for c in text]) for text, _ in fitting)
        found = []
        for target in targets:
            scores = [
                log_prob + sum(map(self._spoken, [source] * len(text), text, target))
                for text, log_prob in fitting
                if len(text) == len(target)
            ]
            best = max(scores)
            likely = best
            if not self.maximum:
                likely += math.log(math.fsum([math.exp(score - best) for score in scores]))
            likely += math.log1p(-share)
            noise = math.log(share) + (len(target) + 1) * self.share
            top = max(likely, noise)
            found.append((target, top + math.log1p(math.exp(min(likely, noise) - top))))
        return sorted(found, key=lambda each: -each[1])

    def _word(self, source: list[int], atom: str) -> int:
        """The likeliest target word of an atom."""
        place = ord(atom)
        if place >= CONSTANTS:
            return place - CONSTANTS
        column, row = self.homes[source[place]]
        word: int = self.columns[column][row]
        return word

    def _spoken(self, source: list[int], atom: str, word: int) -> float:
        """The log-probability of a target word, given its atom."""
        place = ord(atom)
        if place >= CONSTANTS:
            return 0.0 if place - CONSTANTS == word else -math.inf
        column, row = self.homes[source[place]]
        home = self.target_rows.get(word)
        if home is not None and home[0] == self.rows[column][0]:
            # by equivariance, the value is that of the class's first row
            word = self.target_columns[home[2]][(home[1] - row) % self.rows[column][1]]
        value: float = self.table[column][word]
        return value

    # --- reading and writing

    def _read(self, words: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        """The symbols of words (phrases, other spellings, places of open classes), and the words at
        the places of open classes.
        """
        names: dict[str, str] = {}
        out: list[str] = []
        i = 0
        while i < len(words):
            found = self._longest(words, i)
            if found is None:
                out.append(self._joined(words[i], names, out[-1] if out else ""))
                i += 1
                continue
            size, symbol = found
            for j in range(i + 1, i + size):
                later = self._longest(words, j)
                if later is not None and j + later[0] > i + size and later[0] > 1:
                    raise Refusal("two phrases overlap; the sentence has two readings")
            out.append(symbol)
            i += size
        return out, {place: word for word, place in names.items()}

    def _longest(self, words: tuple[str, ...], i: int) -> tuple[int, str] | None:
        for phrase, symbol in self.phrases.get(words[i], ()):
            if words[i : i + len(phrase)] == phrase:
                return len(phrase), symbol
        return None

    def _joined(self, word: str, names: dict[str, str], before: str) -> str:
        if word in names or word in self.listed or is_filler(word):
            return names.get(word, word)
        for name, pattern, places, after in self.open:
            if pattern is None:
                joins = word not in self.source
                if joins and after and before not in after:
                    raise Refusal(f"unknown word {word!r}; class {name!r} does not stand here")
            else:
                joins = len(word) <= LONGEST_WORD and pattern.fullmatch(word) is not None
            if joins:
                free = [place for place in places if place not in names.values()]
                if not free:
                    raise Refusal(f"{word!r}: more than {len(places)} new words of class {name!r}")
                names[word] = free[0]
                return names[word]
        return word

    def _write(self, target: tuple[int, ...], names: dict[str, str]) -> tuple[str, ...]:
        """The words of a target."""
        out: list[str] = []
        tied = False
        symbols = [self.target[number] for number in target]
        for symbol, mark in zip(symbols, [*symbols, ""][1:], strict=True):
            if symbol in self.marks:
                continue
            symbol = self.forms.get((symbol, mark), symbol)
            words = self.spelled.get(symbol) or (names.get(symbol, symbol),)
            for word in words:
                before = out.pop() if out and (tied or word.startswith(TIE)) else ""
                out.append(before + word.removeprefix(TIE).removesuffix(TIE))
                tied = word.endswith(TIE)
        return tuple(out)


def is_filler(word: str) -> bool:
    """Whether a word is a place of an open class or fills an empty cell."""
    return word[:1] == "‹" and word[-1:] == "›" and " " in word


USAGE = """\
usage: python {name} [--json] [SENTENCE ...]

Print the target of each sentence; without sentences, those of standard input, one per line. A
refused sentence has an empty line, and the reason on standard error. --json prints one object per
sentence: source, target, reason, margin.

exit status: 0 success, 1 a sentence was refused
example: python {name} "a sentence" "another sentence"
"""


def main() -> int:
    """Answer the sentences of the command line, or those of standard input, one per line."""
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(USAGE.format(name=sys.argv[0].rpartition("/")[2]), end="")
        return 0
    answerer = Answerer(STATE or {})
    as_json = "--json" in sys.argv[1:2]
    given = sys.argv[2 if as_json else 1 :]
    status = 0
    for number, sentence in enumerate(given or sys.stdin, start=1):
        found = answerer.answer(sentence)
        if found.reason is not None:
            print(f"sentence {number}: {found.reason}", file=sys.stderr)
            status = 1
        if as_json:
            keys = {"target": found.text, "reason": found.reason, "margin": found.margin}
            print(json.dumps({"source": sentence.strip()} | keys, ensure_ascii=False))
        else:
            print(found.text or "")
    return status


if __name__ == "__main__":
    sys.exit(main())
