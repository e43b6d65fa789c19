"""Ctrl-C, once or many times: one message, status 130, no traceback."""

import random
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import sys
from equitrans.cli.main import main
print("ready", flush=True)
sys.exit(main())
"""


@pytest.fixture
def commands(shown, tmp_path):
    """Commands that take a while, or wait for input."""
    files = ["--data", shown / "pairs.tsv", "--classes", shown / "classes.toml"]
    return {
        "train": ["train", *files, "--training.epochs", "100000", "--out", tmp_path / "run"],
        "predict": ["predict", shown / "jump"],
        "reproduce": [
            *("reproduce", "table1", "--only", "recursive", "--runs", tmp_path / "runs"),
            *("--records", tmp_path / "records"),
        ],
    }


def interrupt(command, waits):
    """Start a command and interrupt it after each of some waits; its status and its last words."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    for wait in waits:
        time.sleep(wait)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


@pytest.mark.parametrize("name", ["train", "predict", "reproduce"])
@pytest.mark.parametrize("seed", range(3))
def test_repeated_interrupts_end_a_command_with_one_message(commands, name, seed):
    draw = random.Random(f"{name} {seed}")
    first = draw.choice([0.05, 0.3, 1.0, 3.0])  # in an import, in a load, at work
    gaps = [draw.choice([0.0, 0.001, 0.01, 0.1]) for _ in range(draw.randint(1, 30))]
    status, said = interrupt(commands[name], [first, *gaps])
    lines = [line for line in said.splitlines() if line.startswith("equitrans: interrupted")]
    assert "Traceback" not in said
    assert "Error" not in said
    assert (status, len(lines)) == (130, 1), said


def test_an_ignored_interrupt_stays_ignored(commands, tmp_path):
    """As in the background of a shell script."""
    program = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + PROGRAM
    (tmp_path / "in").write_text("walk\n")
    with (tmp_path / "in").open() as given:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, commands["predict"])],
            stdin=given,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        for _ in range(20):
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "I_WALK\n")
