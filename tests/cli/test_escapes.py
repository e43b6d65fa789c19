"""What strangers wrote does not reach the terminal as it is: no escapes, no endless messages."""

import json
import struct

import pytest
from safetensors.torch import load_file

from equitrans.errors import printable
from equitrans.models.configs import TransducerConfig
from equitrans.paper import LexicalClass, Symmetry
from equitrans.training.tensors import pack
from equitrans.training.trained import Trained

pytestmark = pytest.mark.usefixtures("float32")

ESCAPE = "\x1b[2J\x9b31m\u202e"
LONG = ESCAPE * 20_000


@pytest.fixture
def model(tmp_path):
    """A small model directory."""
    verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
    symmetry = Symmetry.of([verbs], [(("walk", "twice"), ("WALK", "WALK"))])
    small = TransducerConfig(k=4, d=3, embedding=5, hidden=6)
    Trained.new(small, symmetry, max_length=9).save(tmp_path / "model")
    return tmp_path / "model"


def change(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def tensors(path, change):
    found = load_file(path)
    change(found)
    path.write_bytes(pack(found))


def header(path, content):
    text = json.dumps(content).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def rename_class(model):
    words = json.loads((model / "vocabulary.json").read_text())
    words["classes"][0]["name"] = LONG
    (model / "vocabulary.json").write_text(json.dumps(words))


DAMAGE = {
    "a tensor": lambda m: tensors(
        m / "model.safetensors", lambda t: t.update({LONG: t.popitem()[1]})
    ),
    "a header": lambda m: header(m / "model.safetensors", {LONG: LONG}),
    "a class": rename_class,
    "a kind": lambda m: change(m / "config.json", kind=LONG),
    "a setting": lambda m: change(m / "config.json", model={LONG: 1}),
    "a value": lambda m: change(m / "config.json", model={"hidden": LONG}),
    "a version": lambda m: change(m / "config.json", version=LONG, format=77),
    "a format": lambda m: change(m / "config.json", format=LONG),
    "a length": lambda m: change(m / "config.json", max_length=LONG),
    "an origin": lambda m: change(m / "config.json", origin=LONG),
    "a table of origin": lambda m: change(m / "config.json", origin={LONG: 1}),
    "data of origin": lambda m: change(m / "config.json", origin={"data": {"a": [LONG]}}),
    "a version of origin": lambda m: change(m / "config.json", origin={"version": [LONG]}),
    "figures": lambda m: change(m / "config.json", origin={"figures": {"seconds": LONG}}),
    "a figure": lambda m: change(m / "config.json", origin={"figures": {LONG: 1}}),
    "a split": lambda m: change(m / "config.json", origin={"data": {"split": LONG}}),
    "a folder": lambda m: change(
        m / "config.json", origin={"data": {"split": "simple", "scan_dir": LONG}}
    ),
    "a word": lambda m: change(m / "vocabulary.json", source=[LONG]),
    "classes": lambda m: change(m / "vocabulary.json", classes=[LONG]),
    "not JSON": lambda m: (m / "config.json").write_text(LONG),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("command", ["evaluate", "extend"])
def test_messages_about_a_directory_are_short_and_have_no_escapes(model, name, command, run):
    DAMAGE[name](model)
    more = ["--class", "verbs", "a=A", "--out", model.parent / "out"] if command == "extend" else []
    status, out, said = run(command, model, *more)
    if command == "evaluate":
        assert status == 2
        assert len(said.splitlines()) == 1
    assert not {*out + said} & {*ESCAPE} - {*"[2J31m"}
    assert len(said) < 3000


FILES = {
    "pairs.tsv": LONG,
    "tabs.tsv": f"a\tb\t{LONG}",
    "classes.toml": f"[[class]]\nname = {LONG}",
    "more.toml": f'[[class]]\n"{LONG[:5]}" = 1',
    "space.toml": f"[space]\nx = {LONG}",
    "config.yaml": f"a: {LONG}",
}


@pytest.mark.parametrize("name", FILES)
def test_messages_about_a_file_are_short_and_have_no_escapes(tmp_path, name, run):
    (tmp_path / "ok.tsv").write_text("walk\tWALK\n")
    path, out = tmp_path / name, tmp_path / "out"
    path.write_text(FILES[name])
    command = {
        ".tsv": ["train", "--data", path, "--classes", "none", "--out", out],
        ".toml": ["train", "--data", tmp_path / "ok.tsv", "--classes", path, "--out", out],
        ".yaml": ["train", "--config", path, "--out", out],
    }[path.suffix]
    status, shown, said = run(*command)
    assert status == 2
    assert not {*shown + said} & {*ESCAPE} - {*"[2J31m"}
    assert len(said) < 3000


def test_messages_about_arguments_are_short_and_have_no_escapes(run, model):
    for command in (
        [LONG],
        ["predict", LONG, "walk"],
        ["predict", model, "--width", LONG],
        ["train", "--data", LONG, "--classes", "none", "--out", "x"],
        ["train", f"--{LONG}"],
        ["extend", model, "--class", LONG, "a=B", "--out", "x"],
    ):
        status, shown, said = run(*command)
        assert status == 2, command
        assert not {*shown + said} & {*ESCAPE} - {*"[2J31m"}
        assert len(said) < 3000
    status, shown, said = run("predict", model, LONG)  # refused because of an unknown word
    assert (status, shown) == (1, "\n")
    assert not {*said} & {*ESCAPE} - {*"[2J31m"}
    assert len(said) < 3000


def test_words_of_every_script_stay_as_they_are():
    for word in ("میخواهم", "க்ஷ", "👩‍🚀", "nǃxuu", "a b"):
        assert printable(word) == word
