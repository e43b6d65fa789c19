"""No command overwrites a file that it reads, whichever options name it."""

import os
from importlib import import_module

import pytest

from equitrans.cli.arguments import WRITTEN
from equitrans.cli.main import COMMANDS
from equitrans.errors import ConfigError

PATHS = ("FILE", "DIR", "RUN")


def paths(command):
    """The options and arguments of a command that are paths."""
    actions = import_module(f"equitrans.cli.{command}").options()._actions
    return [action for action in actions if action.metavar in PATHS]


CASES = [
    (command, written, read)
    for command in COMMANDS
    if command != "train"  # it writes into a new directory only
    for written in paths(command)
    if written.metavar == "FILE" and written.dest in WRITTEN
    for read in paths(command)
    if read is not written and not (read.metavar == "FILE" and read.dest in WRITTEN)
]


def parsed(command, written, out, read, given):
    """Parse a command line with one input, one output and what else is required."""
    parser = import_module(f"equitrans.cli.{command}").options()
    values = {written.dest: out, read.dest: given}
    line = []
    for action in parser._actions:
        positional = not action.option_strings and action.nargs not in ("*", "?")
        if action.dest in values or positional or action.required:
            value = values.get(action.dest) or (action.choices or ["anything"])[0]
            line += [*action.option_strings[:1], str(value)]
    return parser.parse(line)


def test_options_that_write_are_known():
    found = {(command, written.dest) for command, written, _ in CASES}
    assert found == {
        ("curve", "plot"),
        ("discover", "out"),
        ("evaluate", "errors"),
        ("export", "standalone"),
        ("predict", "plot"),
        ("orbits", "plot"),
        ("grammar", "plot"),
        ("plot", "out"),
        ("search", "plot"),
        ("search", "storage"),
    }


@pytest.mark.parametrize(
    ("command", "written", "read"), CASES, ids=[f"{c}-{w.dest}-{r.dest}" for c, w, r in CASES]
)
def test_no_option_overwrites_what_another_one_reads(tmp_path, command, written, read):
    given, kept, new = tmp_path / "given", tmp_path / "given" / "config.json", tmp_path / "new"
    outs = [kept]
    if read.metavar == "FILE":
        given.write_text("content")
        outs = [given, tmp_path / "link", tmp_path / "hard"]
        outs[1].symlink_to(given)
        os.link(given, outs[2])
    else:
        given.mkdir()
        kept.write_text("{}")
        new = given / "picture.png"
        new.write_text("")  # of an earlier command, and may be written again
    for out in outs:
        with pytest.raises(ConfigError, match=f"{out} would overwrite what the command reads"):
            parsed(command, written, out, read, given)
    parsed(command, written, new, read, given)
    parsed(command, written, os.devnull, read, os.devnull)


@pytest.mark.usefixtures("float32")
def test_pairs_stay_when_they_are_named_as_output_too(run, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("walk\tWALK\nrun\tRUN\n")
    before = pairs.read_text()
    assert run("discover", pairs, "--out", pairs)[0] == 2
    out = tmp_path / "run"
    line = ("--data", pairs, "--classes", "none", "--training.updates", "1", "--out", out)
    assert run("train", *line)[0] == 0
    weights = (out / "model.safetensors").read_bytes()
    assert run("evaluate", out, "--data", pairs, "--errors", pairs)[0] == 2
    assert run("evaluate", out, "--data", pairs, "--errors", out / "model.safetensors")[0] == 2
    assert run("export", out, "--no-test", "--out", out)[0] == 2
    assert run("train", "--data", pairs, "--classes", "none", "--out", pairs)[0] == 2
    assert pairs.read_text() == before
    assert (out / "model.safetensors").read_bytes() == weights
