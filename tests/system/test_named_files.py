"""A model directory chooses no files: what its config.json names is read only if it is a regular
file whose digest is that of the training, and nothing of another file is shown.
"""

import json
import os
import subprocess
import sys
from shutil import copytree

import pytest

from equitrans.data.pairs import format_scan
from equitrans.data.scan import RULES, Rule, checksum, load_split
from equitrans.errors import RunError
from equitrans.training import Run

SECRET = "hunter2"


@pytest.fixture
def stranger(shown, tmp_path):
    """A copy of a run, and a secret beside it."""
    copytree(shown / "jump", tmp_path / "run")
    (tmp_path / "secret").write_text(f"root:{SECRET}\n")
    (tmp_path / "secret.tsv").write_text(f"root\t{SECRET}\n")
    return tmp_path / "run"


def name(run, **data):
    """Change the data that a run names."""
    path = run / "config.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"data": content["data"] | data}))


def unfinished(run):
    (run / "state.safetensors").unlink()


def command(*arguments):
    """Run a command in a process of its own, with a limit of time and memory."""
    program = (
        "import resource, sys; from equitrans.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000, 6_000_000_000))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "file", ["secret", "secret.tsv", "/dev/zero", "pipe", ".", "empty", "a\0b"]
)
def test_resume_and_export_show_nothing_of_another_file_and_do_not_wait(stranger, file):
    folder = stranger.parent
    os.mkfifo(folder / "pipe")
    (folder / "empty").touch()
    name(stranger, file=str(folder / file), classes=str(folder / file))
    exported = command("export", stranger, "--out", folder / "out", "--no-test", "--json")
    assert exported.returncode == 0
    assert "train_pairs" not in exported.stdout
    unfinished(stranger)
    resumed = command("train", "--resume", stranger)
    assert resumed.returncode == 2
    assert len(resumed.stderr.splitlines()) == 1
    for done in (exported, resumed):
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("file", ["secret", "secret.tsv", "/dev/zero", "pipe"])
def test_the_explorer_shows_nothing_of_another_file(stranger, file):
    from equitrans.explorer.registry import Registry

    os.mkfifo(stranger.parent / "pipe")
    name(stranger, file=str(stranger.parent / file))
    entry = Registry.load([stranger]).find("run")
    assert isinstance(entry.data, str)
    assert SECRET not in entry.data
    assert entry.commands == ()
    assert isinstance(entry.evaluation, str)


def test_one_s_own_data_are_found_by_their_digest(shown, tmp_path):
    copytree(shown / "jump", tmp_path / "run")
    (tmp_path / "moved.tsv").write_bytes((shown / "pairs.tsv").read_bytes())
    name(tmp_path / "run", file=str(tmp_path / "moved.tsv"))
    assert Run.open(tmp_path / "run").load_data().train
    done = command("export", tmp_path / "run", "--out", tmp_path / "out", "--no-test", "--json")
    assert json.loads(done.stdout)["figures"]["train_pairs"] > 0
    with (tmp_path / "moved.tsv").open("a") as file:
        file.write("walk\tI_WALK\n")
    with pytest.raises(RunError, match=r"moved.tsv has changed since"):
        Run.open(tmp_path / "run").load_data()


def test_a_large_file_is_not_read(stranger):
    with (stranger.parent / "large").open("wb") as file:
        file.truncate(2 * 10**9)
    name(stranger, file=str(stranger.parent / "large"))
    with pytest.raises(RunError, match="large has 2000000000 bytes; the limit is 256000000"):
        Run.open(stranger).load_data()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_evaluate_shows_nothing_of_the_files_in_a_named_scan_folder(stranger, kind):
    folder = stranger.parent / "scan"
    for part in ("train", "test"):
        path = folder / RULES["simple_p1"].files.format(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path) if kind == "pipe" else path.symlink_to(stranger.parent / "secret")
    name(stranger, split="simple_p1", scan_dir=str(folder), file=None)
    for line in (["evaluate", stranger], ["audit", stranger], ["export", stranger, "--out", "out"]):
        done = command(*line)
        assert done.returncode == 2
        assert done.stderr == (
            f"equitrans: {folder} does not have the official files of simple_p1, with which the "
            f"model was trained; give --scan-dir DIR\n"
        )


def test_evaluate_finds_the_official_files_of_one_s_own_training(
    stranger, monkeypatch, run, tmp_path
):
    split = load_split("simple_p1")
    parts = (split.train[:90], split.test[:20])
    official = Rule("{}.txt", lambda: parts, tuple(map(checksum, parts)), drawn=True)
    monkeypatch.setitem(RULES, "simple_p1", official)
    for part, pairs in zip(("train", "test"), parts, strict=True):
        (tmp_path / f"{part}.txt").write_text(format_scan(pairs))
    small = ("--training.epochs", 1, "--model.hidden", 8, "--quiet")
    made = tmp_path / "made"
    run("train", "--split", "simple_p1", "--scan-dir", tmp_path, *small, "--out", made)
    status, out, _ = run("evaluate", made, "--json")
    assert (status, json.loads(out)["pairs"]) == (0, 20)


@pytest.mark.parametrize("data", [{"split": 5}, {"split": "simple", "scan_dir": 7}])
def test_a_split_that_is_not_a_text_is_one_clear_error(stranger, data):
    path = stranger / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"data": data}))
    done = command("evaluate", stranger)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
