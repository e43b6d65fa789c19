"""How the command line behaves among others: shells, pipes, terminals, and people in a hurry."""

import json
import os
import pty
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import torch
from rich.table import Table

from equitrans.cli import doctor, scan
from equitrans.cli.console import Console
from equitrans.cli.main import COMMANDS, main
from equitrans.data.pairs import Pair, format_scan
from equitrans.data.scan import RULES, VERBS, Rule, checksum, everything, load_split
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import Symmetry
from equitrans.training.trained import Trained

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An untrained model on disk."""
    torch.set_default_dtype(torch.float32)
    pairs = [Pair(("walk",), ("I_WALK",))]
    symmetry = Symmetry.of([VERBS], pairs, "cyclic")
    path = tmp_path_factory.mktemp("model")
    Trained.new(TransducerConfig(k=2, d=2, hidden=3), symmetry, max_length=3).save(path)
    return path


pytestmark = pytest.mark.usefixtures("float32")


# --- people in a hurry


def test_what_needs_no_torch_does_not_wait_for_it():
    program = (
        "import sys\n"
        "from contextlib import suppress\n"
        "from equitrans.cli.main import main\n"
        "for line in sys.argv[1:]:\n"
        "    with suppress(SystemExit):\n"
        "        main(line.split())\n"
        "    loaded = [name for name in ('rich', 'torch') if name in sys.modules]\n"
        "    print(line, loaded, file=sys.stderr)\n"
    )
    quick = ["--help", "--version", "doctor --help"]
    quick += ["scan --help", "scan show length", "discover --help"]
    done = subprocess.run(
        [sys.executable, "-c", program, *quick], capture_output=True, text=True, check=True
    )
    for line in quick:
        seen = [] if line.startswith("--") or "doctor" in line else ["rich"]
        assert f"{line} {seen}" in done.stderr.splitlines()


def test_the_overview_says_what_exit_statuses_mean(run):
    _, out, _ = run("--help")
    statuses = out.partition("exit status:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in statuses.splitlines()] == ["0", "1", "2", "130"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_quiet(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "--quiet" in capsys.readouterr().out


def test_quiet_means_no_notes(run, model, tmp_path):
    data = tmp_path / "test.tsv"
    data.write_text("walk\tI_FLY\n")
    told = run("evaluate", model, "--data", data)
    assert "no target word 'I_FLY'" in told[2]
    assert run("evaluate", model, "--data", data, "--quiet") == (*told[:2], "")


# --- programs


def test_lists_and_changes_as_data(run, model, tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "RULES", {"length": RULES["length"]})  # all of them take long
    status, out, _ = run("scan", "list", "--json")
    assert status == 0
    assert json.loads(out)["length"]["train"] == len(load_split("length").train)
    words = ("--class", "verbs", "blick=I_BLICK", "--out", tmp_path / "x")
    status, out, _ = run("extend", model, *words, "--json")
    assert status == 0
    assert json.loads(out)["source"] == [*VERBS.source, "blick"]
    assert json.loads(out)["diluted"] >= 0


def test_tables_as_data_have_what_the_tables_show(run):
    _, text, _ = run("tables", "orbits", "--records", ROOT / "records")
    _, out, _ = run("tables", "orbits", "--records", ROOT / "records", "--json")
    systems = json.loads(out)["orbits"]["systems"]
    assert systems
    for name, splits in systems.items():
        (figure,) = splits["add_jump"]["exact_match"]
        assert f"| {name} | {figure:.2f} (1) |" in text


# --- terminals


def printed_on_a_terminal(**environment):
    """What a table looks like to a terminal, escapes and all."""
    program = (
        "from rich.table import Table; from equitrans.cli.console import Console; "
        "Console().print(Table('head', box=None))"
    )
    ours, theirs = pty.openpty()
    settings = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    subprocess.run(
        [sys.executable, "-c", program],
        stdout=theirs,
        env=settings | {"TERM": "xterm-256color"} | environment,
        check=True,
    )
    os.close(theirs)
    out = os.read(ours, 10_000)
    os.close(ours)
    assert b"head" in out
    return out


def test_colors_are_for_terminals_that_want_them(capsys):
    assert b"\x1b[" in printed_on_a_terminal()
    assert b"\x1b[" not in printed_on_a_terminal(NO_COLOR="1")
    assert b"\x1b[" not in printed_on_a_terminal(TERM="dumb")
    Console().print(Table("head", box=None))  # not on a terminal
    assert capsys.readouterr().out.split() == ["head"]


# --- shells


def test_bash_completes_commands_options_and_values(run, tmp_path):
    status, out, _ = run("completion", "bash")
    assert status == 0
    (tmp_path / "script").write_text(out)
    (tmp_path / "runs").mkdir()
    lines = {
        "equitrans tr": "train",
        "equitrans predict --js": "--json",
        "equitrans train --model.hid": "--model.hidden",
        "equitrans evaluate --split add_j": "add_jump",
        "equitrans completion f": "fish",
        "equitrans predict ru": "runs",
        "equitrans xyz": "",
    }
    program = (
        "source ./script\n"
        'for line in "$@"; do COMP_WORDS=($line); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))\n'
        'COMPREPLY=(); _shtab_equitrans; echo "${COMPREPLY[*]}"; done'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", *lines], capture_output=True, text=True, cwd=tmp_path
    )
    assert dict(zip(lines, done.stdout.splitlines(), strict=True)) == lines
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_of_their_own(run, shell):
    status, out, _ = run("completion", shell)
    assert status == 0
    assert {"zsh": "#compdef equitrans", "fish": "complete -c equitrans"}[shell] in out
    for command, about in COMMANDS.items():
        assert command in out
        assert about in out


def test_completion_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    status, out, err = run("completion", "bash")
    assert (status, out) == (2, "")
    assert err == "equitrans: completion needs shtab: pip install 'equitrans[completion]'\n"


# --- the doctor


def test_the_doctor_says_what_is_there(run):
    status, out, _ = run("doctor")
    assert status == 0
    assert f"torch      {torch.__version__}" in out
    assert "20910 commands from its grammar" in out
    status, out, _ = run("doctor", "--json")
    content = json.loads(out)
    assert status == 0
    assert content["torch"]["threads"] == torch.get_num_threads()
    assert content["problems"] == []
    found = {p["name"]: p for p in content["packages"]}
    assert found["numpy"]["found"] == version("numpy")
    assert found["numpy"]["extra"] is None
    assert found["matplotlib"]["extra"] == "plot"
    assert "pytest" not in found


def without(monkeypatch, missing):
    def installed(name):
        if name == missing:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor, "version", installed)


def test_the_doctor_says_what_is_missing_and_how_to_get_it(run, monkeypatch):
    without(monkeypatch, "matplotlib")
    status, out, _ = run("doctor")
    assert status == 0  # pictures are not for everybody
    assert "matplotlib —: pip install 'equitrans[plot]'" in out
    without(monkeypatch, "numpy")
    status, out, _ = run("doctor")
    assert status == 1
    assert out.endswith("PROBLEM    numpy is missing: pip install 'numpy>=1.26'\n")
    monkeypatch.setattr(doctor, "version", lambda name: "0.1" if name == "rich" else version(name))
    status, out, _ = run("doctor")
    assert status == 1
    assert out.endswith("PROBLEM    rich is 0.1: pip install 'rich>=13'\n")


def test_the_doctor_looks_for_the_official_files(run, tmp_path, monkeypatch):
    parts = {"train": everything()[:9], "test": everything()[9:12]}
    shas = (checksum(parts["train"]), checksum(parts["test"]))
    rules = {name: Rule(name + "_{}.txt", lambda: (), shas) for name in ("here", "absent")}
    monkeypatch.setattr(doctor, "RULES", rules)
    for part, pairs in parts.items():
        (tmp_path / f"here_{part}.txt").write_text(format_scan(pairs))
    _, out, _ = run("doctor", "--scan-dir", tmp_path, "--json")
    assert json.loads(out)["scan"]["official"] == {"here": True, "absent": False}
    (tmp_path / "here_test.txt").write_text(format_scan(parts["test"][1:]))
    _, out, _ = run("doctor", "--scan-dir", tmp_path)
    assert f"official files of 0 splits in {tmp_path}" in out
    assert "missing or changed: here, absent" in out
    assert f"equitrans scan download --out {tmp_path}" in out
