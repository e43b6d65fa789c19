"""Every parser of the project behind one door: bytes in, nothing out, and no error but our own.

What is not plain text begins as a file that is right and is then damaged as the bytes say, so that
it stays a file of its format and the checks behind the format are reached. The tests hand in bytes
of hypothesis, ``fuzz/run.py`` those of a coverage-guided fuzzer.
"""

import copy
import json
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equitrans.errors import EquitransError

Target = Callable[[bytes, Path], None]

LONGEST = 1500
"""A message of ours is shorter than this, whatever the file."""


class Choices:
    """Bytes as decisions; when there are none left, every decision is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        self._at += 1
        return self._data[self._at - 1] % n if self._at <= len(self._data) else 0

    def text(self) -> str:
        """A short text, which may hold anything."""
        raw = self._data[self._at : self._at + self.below(12)]
        self._at += len(raw)
        return raw.decode("utf-8", "surrogateescape")


def _value(choices: Choices) -> Any:
    """A value that may stand where another was."""
    odd = [
        None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, float("nan"),
        float("inf"), "", "a", "walk", "\ud800", "\u200b", "\0", "e\u0301", "two words",
        "x" * 3000, "\n", [], {}, [[]], [None], {"": {}}, [["walk"]], [-1], ["walk", "walk"],
        {"class": "verbs"}, {"class": []}, {"low": 1, "high": 2},
    ]  # fmt: skip
    pick = choices.below(len(odd) + 4)
    if pick < len(odd):
        return odd[pick]
    if pick == len(odd):
        return choices.below(256) - 3
    if pick == len(odd) + 1:
        nest: Any = 1
        for _ in range(choices.below(100)):
            nest = [nest]
        return nest
    return choices.text()


def _containers(document: Any) -> list[Any]:
    """All dictionaries and lists of a document."""
    found, queue = [], [document]
    while queue:
        each = queue.pop()
        if isinstance(each, dict | list):
            found.append(each)
            queue.extend(each.values() if isinstance(each, dict) else each)
    return found


def damaged(document: Any, choices: Choices) -> Any:
    """A document with a few of its values replaced, removed, added or exchanged."""
    document = copy.deepcopy(document)
    for _ in range(choices.below(4)):
        places = _containers(document)
        place = places[(256 * choices.below(256) + choices.below(256)) % len(places)]
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        what = choices.below(5)
        key = keys[choices.below(len(keys))] if keys else None
        if what == 0 and key is not None:
            del place[key]
        elif what == 1 and isinstance(place, list):
            place.insert(choices.below(len(place) + 1), _value(choices))
        elif what == 1:
            place[choices.text() if choices.below(2) else "name"] = _value(choices)
        elif what == 2 and key is not None:
            place[key] = copy.deepcopy(places[choices.below(len(places))])
        elif key is not None:
            place[key] = _value(choices)
    return document


def _put(path: Path, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(data)


def _parsed(parse: Callable[[], object], path: Path | None = None) -> None:
    """What is parsed is a value, or an error of ours in one line that names the file."""
    try:
        parse()
        return
    except EquitransError as error:
        message = str(error)
    if path is not None:
        place = str(path) if str(path) in message else str(path.parent)
        assert place in message, message[:LONGEST]
        message = message.replace(place, "")
    assert len(message) < LONGEST, message[:LONGEST]
    assert "\n" not in message, message


def pairs(data: bytes, folder: Path) -> None:
    """Pairs, as TSV or in SCAN's format; what was read can be written and read again."""
    from equitrans.pairs import format_tsv, read_pairs

    path = folder / "pairs.tsv"
    _put(path, data)

    def parse() -> None:
        found = read_pairs(path)
        _put(path, format_tsv(found).encode())
        if not found[0].source[0].startswith("IN:"):
            assert read_pairs(path) == found

    _parsed(parse, path)


def characters(data: bytes, folder: Path) -> None:
    """Pairs whose words are characters."""
    from equitrans.pairs import read_pairs

    path = folder / "characters.tsv"
    _put(path, data)
    _parsed(lambda: read_pairs(path, characters=True), path)


def scan(data: bytes, folder: Path) -> None:
    """An official file of SCAN, which is the official one or is refused."""
    from equitrans.scan import official_rows

    path = folder / "tasks.txt"
    _put(path, b"IN: " + data)
    _parsed(lambda: official_rows("simple", path, "0" * 16), path)


def classes(data: bytes, folder: Path) -> None:
    """Classes in TOML; what was read can be written and read again."""
    from equitrans.symmetry import format_classes, read_classes

    path = folder / "classes.toml"
    _put(path, data)

    def parse() -> None:
        found = read_classes(path)
        _put(path, format_classes(found).encode())
        assert read_classes(path) == found

    _parsed(parse, path)


def space(data: bytes, folder: Path) -> None:
    """A search space in TOML, and draws from it."""
    from equitrans.spaces import Space

    path = folder / "space.toml"
    _put(path, data)
    _parsed(lambda: Space.read(path).draw(2, seed=0), path)


def settings(data: bytes, folder: Path) -> None:
    """Settings in a YAML file, for ``equitrans train --config``."""
    from equitrans.cli.train import _read_config

    path = folder / "settings.yaml"
    _put(path, data)
    _parsed(lambda: _read_config(str(path)), path)


def recipe(data: bytes, folder: Path) -> None:
    """The settings of a recipe, damaged."""
    from equitrans import config

    choices = Choices(data)
    names = ("default", "paper", "gordon", "russin", "wu", "attention", "x")
    name, split = names[choices.below(7)], (None, "add_jump", "length", "?")[choices.below(4)]

    def parse() -> None:
        found = config.recipe(name, split) | {"split": "length", "seed": 0, "orbits": None}
        config.run_config(damaged(found, choices))

    _parsed(parse)


RECORD: dict[str, Any] = {
    "format": 1,
    "settings": {"kind": "transducer", "width": 3, "official": True, "orbits": None}
    | {"orbits_every": 5, "split": "length", "file": None, "classes": "both", "characters": False}
    | {"hold_out": "longest", "validation": 0.1, "model.hidden": 8, "training.epochs": 2},
    "seed": 0,
    "seconds": {"training": 10.0, "test": 1.0},
    "valid": {"loss": 0.5, "accuracy": 0.5},
    "test": {"exact_match": 0.5},
    "curve": {
        name: [1, 2] for name in ("number", "updates", "train_loss", "valid_loss", "valid_accuracy")
    },
    "orbits": [{"epoch": 0, "observed": [2, 2]}, {"epoch": 5, "observed": [4]}],
}


def record(data: bytes, folder: Path) -> None:
    """The record of a run, and what tables make of it."""
    from equitrans.records import Job, read_record
    from equitrans.tables import _every_seed, _orbit_sizes, _summary

    path = folder / "record.json"
    _put(path, json.dumps(damaged(RECORD, Choices(data))).encode())

    def parse() -> None:
        found = read_record(path)
        _summary([found])
        _every_seed([found])
        if found["test"]:
            _orbit_sizes(found.get("orbits", []))
        try:
            Job.of_record(found)
        except EquitransError as error:
            raise type(error)(f"{path}: {error}") from None

    _parsed(parse, path)


CONFIG: dict[str, Any] = {
    "format": 2,
    "version": "0.1.0",
    "max_length": 5,
    "characters": False,
    "kind": "transducer",
    "model": {"aligner": "recursive", "k": 2, "d": 2, "embedding": 2, "hidden": 2},
}
VOCABULARY: dict[str, Any] = {
    "source": ["walk", "jump", "twice", "and"],
    "target": ["WALK", "JUMP", "DONE"],
    "classes": [{"name": "verbs", "source": ["walk", "jump"], "target": ["WALK", "JUMP"]}],
}
GRAMMAR: dict[str, Any] = {
    "format": 2,
    "rules": [
        {"text": "", "left": [{"class": "verbs"}], "right": [0], "support": 2},
        {"text": "", "left": [None, "twice"], "right": [0, 0], "support": 1},
        {"text": "", "left": [None, "and", None], "right": [2, "DONE", 0], "support": 1},
    ],
    "pairs": 4,
    "exceptions": [{"source": ["walk"], "target": ["DONE"], "reason": "it is wrong"}],
    "warnings": ["a warning"],
    "bits": 12.5,
    "noise": 0.1,
}


def grammar(data: bytes, folder: Path) -> None:
    """The vocabulary, the classes and the rules of a model, damaged."""
    from equitrans.grammar.learned import from_json, to_json
    from equitrans.symmetry import Symmetry
    from equitrans.texts import read_json

    choices = Choices(data)
    words, rules = folder / "words.json", folder / "grammar.json"
    _put(words, json.dumps(damaged(VOCABULARY, choices)).encode())
    _put(rules, json.dumps(damaged(GRAMMAR, choices)).encode())

    def parse() -> None:
        try:
            symmetry = Symmetry.from_json(read_json(words), "cyclic")
            learned = from_json(read_json(rules), symmetry)
        except EquitransError as error:  # a model's folder is named by who reads it
            raise type(error)(f"{folder}: {error}") from None
        learned.grammar.analyses(tuple(symmetry.source_classes[3:6]))
        assert from_json(to_json(learned, symmetry), symmetry).support == learned.support

    _parsed(parse, rules)


def model(data: bytes, folder: Path) -> None:
    """The description of a model, damaged, and the model that is built from it."""
    from equitrans.trained import Trained

    choices = Choices(data)
    document = {"config": CONFIG, "vocabulary": VOCABULARY, "grammar": GRAMMAR}
    if choices.below(2):
        document["config"] = CONFIG | {"model": CONFIG["model"] | {"aligner": "lstm"}}
    for name, content in damaged(document, choices).items():
        if name in document:
            _put((folder / f"{name}.json"), json.dumps(content).encode())
    _parsed(lambda: Trained.load_description(folder), folder / "config.json")


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        pairs, characters, scan, classes, space, settings, recipe, record, grammar, model
    )
}  # fmt: skip

SEEDS: dict[str, list[bytes]] = {
    "pairs": [b"a b\tA\nc\tC\n", b"IN: a OUT: A\n", "\ufeffé\tE\r\n".encode()],
    "characters": [b"ab\tx y\n"],
    "scan": [b"a b OUT: A B\n"],
    "classes": [
        b'[[class]]\nname = "v"\nsource = ["a", "b"]\ntarget = ["A", "B"]\n',
        b"class = [{source = ['''a'''], target = [\"\"\"A\"\"\"]}] # \\",
        b"class = 0x" + b"f" * 400,
        b"[[class]]\nname = [1979-05-27T07:32:00Z, {a.b = 1e9}]\n[x.y]\n",
    ],
    "space": [
        b'[space]\n"model.k" = [4, 6, true, "x"]\n"c" = {low = 1e-4, high = 1, log = true}\n',
        b"[space]\nk = {low = 0x" + b"f" * 400 + b", high = inf}\n",
        b"[space]\n'k\\n' = [0x" + b"f" * 400 + b"]\n",
        b"[space]\nk = " + b"[" * 400,
    ],
    "settings": [
        b"model:\n  hidden: 11\ntraining: {epochs: 1}\nsplit: length\n",
        b"a: &x [*x]\nb: 2001-13-45\n? [c]\n: !!binary x\n",
        b"a: 0x" + b"f" * 400 + b"\nb: !!timestamp 2001-13-45\n",
        b"a: " + b"[" * 400,
    ],
}
"""Files to begin with."""

NUMBERS = b'","'.join(b"%d" % i for i in range(20_000))
HEAVY: dict[str, tuple[bytes, str, int, str]] = {
    "a word of 10 MB": (b"a" * 10**7 + b"\tA\n", "pairs", 8, ""),
    "a line of 10 MB": (b"ab " * (10**7 // 3) + b"\tA\n", "pairs", 64, ""),
    "a million columns": (b"a\t" * 10**6, "pairs", 8, "got 1000001 columns"),
    "short lines": (b"a\tb\n" * 30_000, "pairs", 64, ""),
    "no lines": (b"\n" * 10**5, "pairs", 2, "no pairs"),
    "words in TOML": (
        b'[[class]]\nsource = ["' + NUMBERS + b'"]\ntarget = ["' + NUMBERS + b'"]', "toml", 64, ""
    ),
    "tables in TOML": (b"class = [" + b"{}," * 50_000 + b"]", "toml", 64, "must be a list"),
    "a string in TOML": (b'x = """' + b'a"\\\\' * 50_000 + b'"""', "toml", 8, "is not known here"),
    "dots in TOML": (b"a." * 10**6 + b"a = 1", "toml", 8, "1000001 names and tables"),
    "dots on a line in TOML": (b"a." * 201 + b"a = 1" + b" " * 10**6, "toml", 8, "dots outside of"),
    "digits in TOML": (b"x = " + b"1" * 10**6, "toml", 8, "a name or number of more than"),
    "names in TOML": (b"".join(b"k%d=[]\n" % i for i in range(30_000)), "toml", 200, "not known"),
    "objects in JSON": (b"[" + b"{}," * 10**5 + b"0]", "json", 64, ""),
    "depth in JSON": (b"[" * 10**6, "json", 8, "nested too deeply"),
}  # fmt: skip
"""Files, their format, the most bytes of memory for each of their bytes, and what is said."""


def peaks() -> dict[str, tuple[int, int, str]]:
    """The size of each heavy file, the most memory that parsing it takes, and what is said."""
    from equitrans.pairs import read_pairs
    from equitrans.symmetry import read_classes
    from equitrans.texts import read_json

    parse: dict[str, Callable[[Path], object]]
    parse = {"pairs": read_pairs, "toml": read_classes, "json": read_json}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for name, (data, kind, *_) in HEAVY.items():
            _put(path, data)
            message = ""
            tracemalloc.start()
            try:
                parse[kind](path)
            except EquitransError as error:
                message = str(error)
            found[name] = (len(data), tracemalloc.get_traced_memory()[1], message)
            tracemalloc.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(peaks()))
