"""The command line in a shell: help, signals, pipes, colors and completion."""

import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.table import Table

from equitrans.cli.console import Console
from equitrans.cli.main import COMMANDS
from equitrans.data.pairs import Pair, format_tsv
from equitrans.data.scan import VERBS
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import Symmetry
from equitrans.training.trained import Trained

COMMAND = [sys.executable, "-m", "equitrans.cli.main"]
PAIRS = [Pair((v,), (a,)) for v, a in zip(VERBS.source, VERBS.target, strict=True)]

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with an untrained model and its pairs."""
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("world")
    symmetry = Symmetry.of([VERBS], PAIRS, "cyclic")
    config = TransducerConfig(k=2, d=2, hidden=3)
    Trained.new(config, symmetry, max_length=3).save(folder / "model")
    (folder / "pairs.tsv").write_text(format_tsv(PAIRS))
    return folder


# --- help


def without_torch(*arguments):
    """Run a command line in a process that fails if torch was imported."""
    program = (
        "import sys\n"
        "from equitrans.cli.main import main\n"
        "try:\n"
        "    status = main(sys.argv[1:])\n"
        "except SystemExit as done:\n"
        "    status = done.code\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(status)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_examples_and_needs_no_torch(command):
    done = without_torch(command, "--help")
    assert done.returncode == 0, done.stderr
    assert "examples:" in done.stdout
    assert f"  equitrans {command} " in done.stdout
    assert "--quiet" in done.stdout


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("--version", 0),
        ("scan show length --rows 1", 0),
        ("predict runs/jump --n-best 0", 2),
        ("evaluate runs/jump --width 0", 2),
        ("train --split length", 2),
    ],
)
def test_data_and_mistakes_are_answered_without_torch(line, status):
    assert without_torch(*line.split()).returncode == status


def test_the_overview_lists_commands_and_exit_statuses(run):
    status, out, _ = run("--help")
    assert status == 0
    assert all(f"\n  {command} " in out for command in COMMANDS)
    statuses = out.partition("exit status:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in statuses.splitlines()] == ["0", "1", "2", "130"]
    assert run()[0] == 2


# --- signals and pipes


def test_ctrl_c_during_training_prints_how_to_resume(world, tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [
            *(*COMMAND, "train", "--data", world / "pairs.tsv", "--classes", "none"),
            *("--training.epochs", "100000", "--out", out),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (out / "state.safetensors").is_file():  # the log is written before the checkpoint
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.splitlines()[-1] == (
        f"equitrans: interrupted; continue with: equitrans train --resume {out}"
    )
    assert "Traceback" not in err


def test_a_closed_output_pipe_ends_predict_without_an_error(world):
    predict = shlex.join([*COMMAND, "predict", str(world / "model"), "--tsv"])
    command = f"yes jump | head -20000 | {predict} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("jump\t")
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_ctrl_c_while_torch_is_imported_ends_with_130(world):
    for wait in (0.0, 0.4):
        process = subprocess.Popen(
            [*COMMAND, "predict", str(world / "model")],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while "torch" not in Path(f"/proc/{process.pid}/maps").read_text():  # its libraries
            time.sleep(0.01)
            assert process.poll() is None
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "Traceback" not in err


def test_an_ascii_terminal_gets_replacement_characters(world):
    done = subprocess.run(
        [*COMMAND, "predict", str(world / "model"), "jump", "--alignments"],
        capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert " ? " in done.stdout


# --- colors


def printed_on_a_terminal(**environment):
    """The bytes of a table on a terminal, with its escape codes."""
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


def test_only_color_terminals_without_no_color_get_escape_codes(capsys):
    assert b"\x1b[" in printed_on_a_terminal()
    assert b"\x1b[" not in printed_on_a_terminal(NO_COLOR="1")
    assert b"\x1b[" not in printed_on_a_terminal(TERM="dumb")
    Console().print(Table("head", box=None))  # not on a terminal
    assert capsys.readouterr().out.split() == ["head"]


# --- completion


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
def test_completion_scripts_of_other_shells_have_all_commands(run, shell):
    status, out, _ = run("completion", shell)
    assert status == 0
    assert {"zsh": "#compdef equitrans", "fish": "complete -c equitrans"}[shell] in out
    for command, about in COMMANDS.items():
        assert command in out
        assert about in out


def test_completion_without_shtab_prints_how_to_install_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    status, out, err = run("completion", "bash")
    assert (status, out) == (2, "")
    assert err == "equitrans: completion needs shtab: pip install 'equitrans[completion]'\n"
