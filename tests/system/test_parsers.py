"""Parsers return a value or raise one line with place and cause, whatever the file holds."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

import parsers
from equitrans.data import symmetry_from_json
from equitrans.data.classes import read_classes
from equitrans.data.pairs import Pair, format_tsv, read_pairs
from equitrans.errors import ConfigError, DataError, EquitransError, shown
from equitrans.experiments import Space
from equitrans.files import TOML_DOTS, TOML_KEYS, TOML_TOKEN, read_json, read_toml
from equitrans.models.recursive.io import learned_from_json as from_json
from equitrans.paper.vocabulary import N_SPECIAL, Vocabulary
from equitrans.training.config import RunConfig

FRAGMENTS = {name: b" ".join(seeds).split() for name, seeds in parsers.SEEDS.items()}
BREAKS = [b" ", b"\n", b"\t", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xe2\x80\x8b", b"\xff", b"="]


def files(name: str) -> st.SearchStrategy[bytes]:
    """Bytes for a target: pieces of correct files in a random order."""
    if name not in FRAGMENTS:
        return st.binary(max_size=40)
    pieces = st.sampled_from(FRAGMENTS[name] + BREAKS) | st.binary(max_size=3)
    return st.lists(pieces, max_size=12).map(b"".join) | st.sampled_from(parsers.SEEDS[name])


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


@pytest.mark.parametrize("name", parsers.TARGETS)
def test_a_parser_raises_no_error_but_its_own(name, folder):
    seeds = parsers.SEEDS.get(name, [b""])

    @settings(max_examples=15 if name == "model" else 50)
    @given(files(name))
    @example(seeds[-1])
    @example(seeds[0])
    def check(data):
        parsers.TARGETS[name](data, folder)

    check()


@pytest.mark.parametrize("name", parsers.TARGETS)
def test_the_first_seed_of_a_target_is_accepted(name, folder, monkeypatch):
    """Otherwise every damaged file would be refused for the same reason."""
    refused = []
    parsed = parsers._parsed

    def noticing(parse, path=None):
        try:
            parse()
        except EquitransError as error:
            refused.append(str(error))
        parsed(parse, path)

    monkeypatch.setattr(parsers, "_parsed", noticing)
    parsers.TARGETS[name](parsers.SEEDS.get(name, [b""])[0], folder)
    # an official file has a checksum that no other file has
    assert all("not the official rows" in message for message in refused)


def test_a_foreign_error_or_a_bad_message_fails_a_target(tmp_path):
    def fails(error):
        def parse():
            raise error

        return parse

    path = tmp_path / "file"
    parsers._parsed(fails(DataError(f"{path}:3: wrong")), path)
    with pytest.raises(ValueError, match="bad"):
        parsers._parsed(fails(ValueError("bad")), path)
    for message in ("wrong, but where?", f"{path}: two\nlines", f"{path}: " + "x" * 2000):
        with pytest.raises(AssertionError):
            parsers._parsed(fails(DataError(message)), path)


def test_damaging_a_document_changes_a_copy():
    before = json.dumps(parsers.RECORD)
    made = {json.dumps(parsers.damaged(parsers.RECORD, parsers.Choices(bytes([1, 0, n, m, 0, k]))))
            for n in range(9) for m in range(5) for k in range(7)}  # fmt: skip
    assert len(made) > 50
    assert json.dumps(parsers.RECORD) == before
    assert parsers.damaged(parsers.RECORD, parsers.Choices(b"")) == parsers.RECORD


A = Pair(("a",), ("A",))


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("\ufeffa\tA\n".encode(), (A,)),
        (b"a\tA\r\n", (A,)),
        (b"a\tA", (A,)),
        (b"\n \na\tA\n\t\n", (A,)),
        ("a\u00a0\u3000a\tA\n".encode(), (Pair(("a", "a"), ("A",)),)),
        ("cafe\u0301\tÅ\n".encode(), (Pair(("caf\u00e9",), ("\u00c5",)),)),
        ("क\u200dष\tA\n".encode(), (Pair(("क\u200dष",), ("A",)),)),
        (b"PAD BOS EOS <pad> \tEOS\n", (Pair(("PAD", "BOS", "EOS", "<pad>"), ("EOS",)),)),
        (b"IN: IN: OUT: OUT:\n", ":1: expected 'IN: … OUT: …'"),
        (b"a\tA\nb\tB\0\n", ":2: invisible character U+0000 NUL at position 4"),
        (b"a\tA\n\x1b[2J\tB\n", ":2: invisible character U+001B control character at position 1"),
        (
            "a\tA\nju\u200bmp\tB\n".encode(),
            ":2: invisible character U+200B",
        ),
        (
            "a\tA\n\ufeffb\tB\n".encode(),
            ":2: invisible character U+FEFF",
        ),
        ("a\u2060\tA\n".encode(), ":1: invisible character U+2060 WORD JOINER at position 2"),
        (b"a\tA\nb\xff\tB\n", ":2: not UTF-8: invalid start byte"),
        (b"\xed\xa0\x80\tA\n", ":1: not UTF-8: invalid continuation byte"),
        ("a\tA\n".encode("utf-16"), ":1: not UTF-8: invalid start byte"),
        (b"a\tA\rb\tB\r", ":1: a carriage return in 'a\\tA\\rb\\tB'"),
    ],
)
def test_pairs_are_read_normalised_or_refused(tmp_path, content, outcome):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    if not isinstance(outcome, str):
        assert read_pairs(path) == outcome
        return
    with pytest.raises(DataError) as error:
        read_pairs(path)
    assert str(error.value).startswith(f"{path}{outcome}")


def test_names_of_special_symbols_are_ordinary_words():
    words = ("PAD", "BOS", "EOS", "<pad>", "<s>", "</s>", "\u25a1", "<verbs>")
    vocabulary = Vocabulary(words)
    assert min(vocabulary.encode(words)) == N_SPECIAL
    assert vocabulary.decode(vocabulary.encode(words)) == words


CLASS = '[[class]]\nname = "v"\nsource = ["a", "b"]\ntarget = ["A", "B"]\n'


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("\ufeff" + CLASS, ("a", "b")),
        (CLASS.replace("\n", "\r\n"), ("a", "b")),
        (CLASS.replace('"b"', '"e\u0301"'), ("a", "\u00e9")),
        (CLASS.replace('"b"', '"\u00e9", "e\u0301"'), "3 source words but 2"),
        (CLASS.replace('"b"', '"EOS"'), ("a", "EOS")),
        (
            CLASS.replace('"b"', r'"b\u0000"'),
            r"class 'v': 'b\x00': invisible character U+0000",
        ),
        (
            CLASS.replace('"b"', '"\u200b"'),
            r"class 'v': '\u200b': invisible character",
        ),
        (CLASS.replace('"b"', '"b\0"'), "not a TOML file: Illegal character"),
        ("a = [", "not a TOML file: Invalid value (at end of document"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("class = 0x" + "f" * 1500, "[[class]] tables"),
        ("a = 1" + "0" * 5000, f"a key or number of more than {TOML_TOKEN} characters"),
        ("a = 1" + "_0" * 990, "'a' is unknown"),
        ("a." * 300 + "a = 1", f"a line with more than {TOML_DOTS} dots"),
        ("".join(f"[a{i}]\n" for i in range(TOML_KEYS + 1)), f"{TOML_KEYS + 1} keys and tables"),
        (CLASS + "b = '" + "x." * 300 + "'", "unknown key 'b'"),
    ],
)
def test_classes_are_read_normalised_or_refused(tmp_path, content, outcome):
    path = tmp_path / "classes.toml"
    path.write_bytes(content.encode())
    if not isinstance(outcome, str):
        assert read_classes(path)[0].source == outcome
        return
    with pytest.raises(EquitransError) as error:
        read_classes(path)
    assert str(error.value).startswith(str(path))
    assert outcome in str(error.value)


def test_invalid_utf8_is_refused_with_its_line(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a = 1\n\nb = '\xff'\n")
    for read in (read_toml, read_json, read_classes, Space.read):
        with pytest.raises(EquitransError, match=r"file:3: not UTF-8: invalid start byte"):
            read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "is damaged: its values are nested too deeply"),
        (b"1" * 5000, "is damaged: a number has too many digits"),
        (b'{"a": "\xe2\x80', "file:1: not UTF-8: unexpected end of data"),
        (b'{\n"a": tru}', r"is damaged: Expecting value: line 2 column 6"),
        (b'{"a": "\0"}', r"is damaged: Invalid control character at: line 1 column 8"),
    ],
)
def test_invalid_json_is_refused_with_its_place(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_json(path)
    path.write_bytes(b'\xef\xbb\xbf{"a":\r\n [1]}')
    assert read_json(path) == {"a": [1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "walk"}, "its source words are 'walk'; expected a list of words"),
        ({"target": ["WALK", 3]}, "its target words are .*; expected a list of words"),
        ({"target": ["WALK", ""]}, "expected a list of words"),
        ({"source": ["walk", "\ud800"]}, r"U\+D800"),
        ({"source": ["walk", "walk"]}, "duplicate word 'walk'"),
        ({"classes": {}}, "its classes are not a list"),
        ({"classes": [{"name": 1}]}, "class 1 is .*; it must have a name"),
        ({"classes": [["verbs"]]}, "class 1 is .*; it must have a name"),
    ],
)
def test_an_invalid_vocabulary_is_refused(change, message):
    assert symmetry_from_json(parsers.VOCABULARY, "cyclic").source.words[0] == "walk"
    with pytest.raises(EquitransError, match=message):
        symmetry_from_json(parsers.VOCABULARY | change, "cyclic")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": []}, "rule 1: the left side is empty"),
        ({"left": [3]}, "rule 1: invalid symbol 3"),
        ({"left": [{"class": "nouns"}]}, "rule 1: invalid symbol .*class"),
        ({"left": ["wlak"]}, "rule 1: unknown word 'wlak'; did you mean 'walk'?"),
        ({"right": [1]}, "rule 1: invalid place 1"),
        ({"right": [True]}, "rule 1: invalid place True"),
        ({"right": "WALK"}, "rule 1: right is 'WALK'"),
        ({"left": [None, "twice"], "right": [0, 0]}, "rule 2: duplicate of an earlier rule"),
        ({"support": -1}, "rule 1: support is -1"),
        ({"support": "many"}, "support is 'many'; it must be a number"),
    ],
)
def test_an_invalid_rule_is_refused(change, message):
    symmetry = symmetry_from_json(parsers.VOCABULARY, "cyclic")
    first, *others = parsers.GRAMMAR["rules"]
    assert len(from_json(parsers.GRAMMAR, symmetry).grammar) == 3
    with pytest.raises(DataError, match=message):
        from_json(parsers.GRAMMAR | {"rules": [first | change, *others]}, symmetry)
    for name in ("rules", "pairs", "exceptions", "warnings", "bits", "noise"):
        with pytest.raises(DataError, match=f"not a grammar: {name} is 'x'"):
            from_json(parsers.GRAMMAR | {name: "x"}, symmetry)
    for name in ("pairs", "bits", "noise"):  # found by the fuzzer: no tensor holds such a number
        with pytest.raises(DataError, match=f"{name} is a very long number.* from 0 to"):
            from_json(parsers.GRAMMAR | {name: 10**400}, symmetry)
    assert isinstance(from_json(parsers.GRAMMAR | {"noise": 0}, symmetry).noise, float)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("training.weight_decay", float("nan"), "training.weight_decay is nan; expected float"),
        ("training.seconds", float("inf"), "training.seconds is inf; expected float"),
        ("training.weight_decay", 10**400, "weight_decay is a very long number; expected float"),
        ("model.hidden", 2**31, r"model.hidden is 2147483648; it must be below 2\*\*31"),
        ("orbits", 3, "run.orbits is 3; expected str"),
        ("orbits_every", "x", "run.orbits_every is 'x'; expected int"),
        ("model.x" * 1000, 1, "is not a setting"),
    ],
)
def test_a_setting_of_the_wrong_type_or_size_is_refused(name, value, message):
    RunConfig.from_settings({"split": "length"})
    with pytest.raises(ConfigError, match=message) as error:
        RunConfig.from_settings({"split": "length", name: value})
    assert len(str(error.value)) < 400


@pytest.fixture(scope="module")
def peaks():
    """The peak of memory for each large file, in a process without type checks."""
    done = subprocess.run([sys.executable, parsers.__file__], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", parsers.HEAVY)
def test_memory_is_a_small_multiple_of_the_file(name, peaks):
    size, memory, message = peaks[name]
    most, told = parsers.HEAVY[name][2:]
    assert memory <= most * size + 2**20
    assert memory >= size or name == "no lines"  # otherwise nothing was measured
    assert told in message
    assert len(message) < parsers.LONGEST


def test_memory_for_names_in_toml_is_bounded(peaks):
    size, memory, _ = peaks["names in TOML"]
    assert 20 * size < memory <= 64 * size + 2**25


def test_a_line_of_10_mb_is_read_and_written_unchanged(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"ab " * (10**7 // 3) + b"\tA\n")
    (pair,) = read_pairs(path)
    assert len(pair.source) == 10**7 // 3
    assert set(pair.source) == {"ab"}
    assert len(format_tsv([pair])) == path.stat().st_size - 1


def test_values_in_messages_are_short():
    deep: list = []
    for _ in range(10**5):
        deep = [deep]
    for value in ("x" * 10**6, b"x" * 10**6, 10**10**4, deep, [deep] * 9):
        assert len(shown(value)) < 300
    assert shown({"a": [1, "x"]}) == "{'a': [1, 'x']}"
