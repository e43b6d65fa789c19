"""SCAN (Lake & Baroni 2018): its grammar, its meaning, its splits and its official files.

All commands are made from the grammar. Splits that follow from a rule are made from the rule and
are the official ones, row for row; the two random families (``simple`` and ``simple_pX``) are the
official draws when their files are given, and draws of our own, with a fixed seed, when not.
"""

import hashlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from equitrans.data.pairs import Pair, Split, join_words, read_pairs
from equitrans.errors import ConfigError, DataError, nearest
from equitrans.paper import LexicalClass

VERBS = LexicalClass(
    "verbs", ("walk", "look", "run", "jump"), ("I_WALK", "I_LOOK", "I_RUN", "I_JUMP")
)
DIRECTIONS = LexicalClass("directions", ("left", "right"), ("I_TURN_LEFT", "I_TURN_RIGHT"))
CLASSES = {
    "verbs": (VERBS,),
    "directions": (DIRECTIONS,),
    "both": (VERBS, DIRECTIONS),
    "none": (),
}

_MEANING = dict(
    zip(VERBS.source + DIRECTIONS.source, VERBS.target + DIRECTIONS.target, strict=True)
)
Parts = tuple[tuple[Pair, ...], tuple[Pair, ...]]
"""Training and test pairs."""

_TIMES = {"twice": 2, "thrice": 3}
_DRAW_SEED = 2018


def interpret(command: tuple[str, ...]) -> tuple[str, ...]:
    """The actions that a command means.

    >>> interpret(("jump", "around", "left")) == ("I_TURN_LEFT", "I_JUMP") * 4
    True
    >>> interpret(("walk", "after", "turn", "right", "twice"))
    ('I_TURN_RIGHT', 'I_TURN_RIGHT', 'I_WALK')
    """
    for word in ("and", "after"):
        if word in command:
            i = command.index(word)
            first, second = interpret(command[:i]), interpret(command[i + 1 :])
            return first + second if word == "and" else second + first
    if command[-1] in _TIMES:
        return interpret(command[:-1]) * _TIMES[command[-1]]
    verb, *rest = command
    action = (_MEANING[verb],) if verb != "turn" else ()
    match rest:
        case []:
            return action
        case [direction]:
            return (_MEANING[direction], *action)
        case ["opposite", direction]:
            return (_MEANING[direction], _MEANING[direction], *action)
        case ["around", direction]:
            return (_MEANING[direction], *action) * 4
    raise DataError(f"not a SCAN command: {join_words(command)!r}")


@cache
def everything() -> tuple[Pair, ...]:
    """All 20,910 pairs, in the grammar's order.

    >>> len(everything()), everything()[0]
    (20910, Pair(source=('walk',), target=('I_WALK',)))
    """
    directed = [
        (verb, *how, direction)
        for verb in (*VERBS.source, "turn")
        for how in ((), ("opposite",), ("around",))
        for direction in DIRECTIONS.source
    ]
    phrases = [(verb,) for verb in VERBS.source] + directed
    sentences = [v + times for v in phrases for times in ((), ("twice",), ("thrice",))]
    joined = [(*s, word, *t) for word in ("and", "after") for s, t in product(sentences, sentences)]
    return tuple(Pair(c, interpret(c)) for c in sentences + joined)


@dataclass(frozen=True)
class Rule:
    """How a split is made: its official files, and who goes where."""

    files: str
    make: Callable[[], Parts]
    shas: tuple[str, str]
    drawn: bool = False
    about: str = ""


def _pick(keep: Callable[[str], bool]) -> tuple[Pair, ...]:
    return tuple(p for p in everything() if keep(join_words(p.source)))


def _added(phrase: str, copies: int) -> Callable[[], Parts]:
    """The phrase is learned alone, in many copies, and judged in all other commands."""

    def make() -> Parts:
        alone = _pick(lambda c: c == phrase)
        return (
            _pick(lambda c: phrase not in c) + alone * copies,
            _pick(lambda c: phrase in c and c != phrase),
        )

    return make


def _withheld(verbs: Iterable[str], rest: str) -> Callable[[], Parts]:
    """Nothing of the template is learned; commands that have it with ``turn`` are in neither
    part.
    """

    def make() -> Parts:
        phrases, turn = [f"{verb} {rest}" for verb in verbs], f"turn {rest}"
        return (
            _pick(lambda c: turn not in c and not any(p in c for p in phrases)),
            _pick(lambda c: turn not in c and any(p in c for p in phrases)),
        )

    return make


def _short() -> Parts:
    pairs = everything()
    return (
        tuple(p for p in pairs if len(p.target) <= 22),
        tuple(p for p in pairs if len(p.target) > 22),
    )


def _drawn(rows: int) -> Callable[[], Parts]:
    def make() -> Parts:
        pairs = list(everything())
        random.Random(_DRAW_SEED + rows).shuffle(pairs)
        return tuple(pairs[:rows]), tuple(pairs[rows:])

    return make


# sha: first 16 hex digits of the SHA-256 of the distinct rows, sorted and joined by line feeds
RULES: dict[str, Rule] = {
    "simple": Rule(
        "simple_split/tasks_{}_simple.txt",
        _drawn(16728),
        ("e34b60a1bdad3b55", "faa3707d325ccaf3"),
        drawn=True,
        about="a random four fifths of all commands",
    ),
    "add_jump": Rule(
        "add_prim_split/tasks_{}_addprim_jump.txt",
        _added("jump", 1467),
        ("bae86988d6f11a9b", "48956239771e67de"),
        about="'jump' is learned alone",
    ),
    "add_turn_left": Rule(
        "add_prim_split/tasks_{}_addprim_turn_left.txt",
        _added("turn left", 2189),
        ("d4da71606f165964", "81acae1af5137165"),
        about="'turn left' is learned alone",
    ),
    "around_right": Rule(
        "template_split/tasks_{}_template_around_right.txt",
        _withheld(VERBS.source, "around right"),
        ("aaf218dfd82a8b6a", "f5f94bb13ea393fb"),
        about="'around right' is never shown",
    ),
    "opposite_right": Rule(
        "template_split/tasks_{}_template_opposite_right.txt",
        _withheld(VERBS.source, "opposite right"),
        ("8f0e969c24011176", "e148c4261607e2d9"),
        about="'opposite right' is never shown",
    ),
    "right": Rule(
        "template_split/tasks_{}_template_right.txt",
        _withheld(VERBS.source, "right"),
        ("d98bd73f93f488dc", "770738098ffaef03"),
        about="'right' directly after a verb is never shown",
    ),
    "jump_around_right": Rule(
        "template_split/tasks_{}_template_jump_around_right.txt",
        _withheld(["jump"], "around right"),
        ("d3f82d1c47c35af1", "3590e013eaa75106"),
        about="'jump around right' is never shown",
    ),
    "length": Rule(
        "length_split/tasks_{}_length.txt",
        _short,
        ("114e6bdb1575f27d", "45bb5e5f0e0678da"),
        about="at most 22 actions are learned, more are judged",
    ),
}
_PERCENT = {
    1: (209, "f7d8136f636b69d6", "568a9e98a9807ac2"),
    2: (418, "ad3d359dd4f93d0e", "fd2e8ae49a80a6fd"),
    4: (836, "cc9f73b86cbeb852", "7b2024ffeb7b37ac"),
    8: (1672, "40880bfbf5c0b592", "967ae29e9cb5059a"),
    16: (3345, "7297c067a986a740", "89d14f3075c4020e"),
    32: (6691, "db716d683c0a6314", "c6ed9e4cc539046c"),
    64: (13382, "0b4e02950b15e13c", "4f15ae9c8550951b"),
}
for _percent, (_rows, _train, _test) in _PERCENT.items():
    RULES[f"simple_p{_percent}"] = Rule(
        f"simple_split/size_variations/tasks_{{}}_simple_p{_percent}.txt",
        _drawn(_rows),
        (_train, _test),
        drawn=True,
        about=f"a random {_percent} % of all commands",
    )


def checksum(pairs: Iterable[Pair]) -> str:
    """The fingerprint of a set of pairs, whatever their order and number."""
    rows = sorted({f"IN: {join_words(x)} OUT: {join_words(y)}" for x, y in pairs})
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def load_split(name: str, scan_dir: Path | str | None = None) -> Split:
    """A split by name: from the official files in ``scan_dir`` or, where they are not, from its
    rule.

    A random draw has no rule, so a folder without its files is an error.

    >>> split = load_split("add_jump")
    >>> len(split.train), len(split.test), split.origin
    (14670, 7706, 'rule')
    """
    if name not in RULES:
        raise ConfigError(f"unknown split {name!r}{nearest(name, RULES)}")
    rule = RULES[name]
    if scan_dir is not None:
        paths = [Path(scan_dir) / rule.files.format(part) for part in ("train", "test")]
        if rule.drawn or all(path.is_file() for path in paths):
            train, test = (official_rows(name, *at) for at in zip(paths, rule.shas, strict=True))
            return Split(name, train, test, "official")
        if not Path(scan_dir).is_dir():
            raise DataError(f"{scan_dir}: no such folder")
    train, test = rule.make()
    return Split(name, train, test, f"drawn with seed {_DRAW_SEED}" if rule.drawn else "rule")


def official_rows(name: str, path: Path, sha: str) -> tuple[Pair, ...]:
    """The pairs of an official file, checked to be the official ones."""
    if not path.is_file():
        raise DataError(
            f"{path}: no such file; {name} is a random draw, so its files must be there"
        )
    pairs = read_pairs(path)
    if (found := checksum(pairs)) != sha:
        raise DataError(
            f"{path}: not the official rows of {name}: checksum {found}, expected {sha}"
        )
    return pairs
