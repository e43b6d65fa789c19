"""equitrans check, what train and discover print of it, and the option --columns."""

import io
import json
import os
import threading

import pytest

from equitrans.training.runs import Run

PAIRS = """\
plain	dim the lamp	LAMP dim
plain	dim the fan	FAN dim
plain	start the lamp	LAMP start
plain	start the fan	FAN start
long	dim the lamp twice	LAMP dim dim
long	start the fan twice	FAN start start
"""
CLASSES = '[[class]]\nname = "d"\nsource = ["the lamp", "dim the"]\ntarget = ["LAMP", "DESK"]\n'

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS)
    return path


def test_check_prints_findings_with_lines_and_advice(run, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("source\ttarget\ndim it\tDIM\ndim it\tLAMP\n\ndim\tDIM\n")
    status, out, err = run("check", path)
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == f"{path}: 4 pairs, 3 source words, 3 target words"
    assert lines[1:4] == [
        "WRONG  the first line looks like a header row: 'source\\ttarget'",
        "       line 1",
        "       → delete the line",
    ]
    assert "       lines 2, 3" in lines
    assert "note   1 line is blank" in lines


def test_check_ends_with_0_without_serious_findings(run, pairs):
    status, out, _ = run("check", pairs, "--columns", "2,3")
    assert status == 0
    assert out.endswith("nothing that harms training was found\n")


def test_check_reads_standard_input_and_classes_and_prints_json(run, pairs, tmp_path, monkeypatch):
    (tmp_path / "classes.toml").write_text(CLASSES)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PAIRS.encode())))
    line = ("check", "-", "--classes", tmp_path / "classes.toml", "--columns", "2,3", "--json")
    status, out, _ = run(*line)
    assert status == 1
    content = json.loads(out)
    assert (content["pairs"], content["unreadable"]) == (6, 0)
    serious = [finding for finding in content["findings"] if finding["serious"]]
    assert [f["kind"] for f in serious] == ["class"]
    assert "two readings" in serious[0]["message"]
    dimmed = [n for n, text in enumerate(PAIRS.splitlines(), start=1) if "dim the lamp" in text]
    assert serious[0]["lines"] == dimmed


def test_train_and_discover_warn_and_name_check(run, pairs, tmp_path):
    expected = "warning: column 1, the source, has only 2 different values: plain, long"
    _, _, err = run("discover", pairs)
    assert expected in err
    assert f"equitrans check {pairs} shows the lines and what to do" in err
    assert len(err.splitlines()) <= 3
    assert run("discover", pairs, "--quiet")[2] == ""
    line = ("--classes", "none", "--training.updates", "1", "--out", tmp_path / "run")
    _, _, err = run("train", "--data", pairs, *line)
    assert expected in err


def test_a_file_of_many_bad_lines_is_refused_in_one_line(run, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("walk,WALK\nrun,RUN\njump,JUMP\n")
    for line in (("discover", path), ("train", "--data", path, "--classes", "none", "--out", "x")):
        _, _, err = run(*line)
        assert err.startswith(f"equitrans: {path}:1: 3 lines are not pairs: expected source<TAB>")
        assert err.endswith(f"is this CSV? (equitrans check {path} lists all lines)\n")


def test_a_named_pipe_is_read_once(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = "".join(line.partition("\t")[2] + "\n" for line in PAIRS.splitlines())
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,), daemon=True)
    writer.start()
    status, out, _ = run("discover", tmp_path / "pipe")
    assert status == 0
    assert " lamp    LAMP" in out


def test_chosen_columns_are_used_by_every_command_and_by_resume(run, pairs, tmp_path):
    _, out, err = run("discover", pairs, "--columns", "2,3", "--out", tmp_path / "c.toml")
    assert " lamp    LAMP" in out
    assert "warning: column 1 is ignored: plain, long" in err
    line = ("--classes", tmp_path / "c.toml", "--out", tmp_path / "run", "--training.updates", "40")
    assert run("train", "--data", pairs, "--columns", "2,3", *line)[0] == 0
    opened = Run.open(tmp_path / "run")
    assert opened.config.data.columns == "2,3"
    assert opened.load_data().train[0].source == ("dim", "the", "lamp")
    for command in ("evaluate", "audit"):
        status, out, _ = run(command, tmp_path / "run", "--data", pairs, "--columns", "2,3")
        assert status == 0
        assert "6" in out
    assert run("train", "--resume", tmp_path / "run")[0] == 0


def test_a_run_of_an_earlier_version_has_no_columns(run, pairs, tmp_path):
    path = tmp_path / "two.tsv"
    path.write_text("walk\tWALK\nrun\tRUN\n")
    out = tmp_path / "run"
    line = ("--data", path, "--classes", "none", "--training.updates", "1", "--out", out)
    assert run("train", *line)[0] == 0
    content = json.loads((out / "config.json").read_text())
    del content["data"]["columns"]
    (out / "config.json").write_text(json.dumps(content))
    assert Run.open(out).config.data.columns is None
    assert len(Run.open(out).load_data().train) == 2


def test_the_advice_for_a_class_that_was_not_learned_helps(run, tmp_path):
    rows, things = [], ("lamp", "fan")
    for i, number in enumerate((3, 42, 99)):
        rows.append(f"dim {things[i % 2]} {number}\t{things[i % 2]} {number}")
        rows.append(f"wait {number}\twait {number}")
    (tmp_path / "pairs.tsv").write_text("\n".join(rows))
    unseen = [f"dim {t} {n}\t{t} {n}" for t in things for n in (0, 50, 100)]
    (tmp_path / "test.tsv").write_text("\n".join(unseen))
    numbers = json.dumps([str(i) for i in range(101)])
    (tmp_path / "classes.toml").write_text(
        f'[[class]]\nname = "numbers"\nsource = {numbers}\ntarget = {numbers}\n'
        '[[class]]\nname = "things"\nsource = ["lamp", "fan"]\ntarget = ["lamp", "fan"]\n'
    )
    line = ("train", "--data", tmp_path / "pairs.tsv", "--classes", tmp_path / "classes.toml")
    short = ("--training.updates", "1", "--training.lexicon", "false")
    _, _, err = run(*line, *short, "--out", tmp_path / "stuck")
    assert "class 'numbers' was not learned" in err
    assert "--model.aligner recursive" in err
    run(*line, "--model.aligner", "recursive", "--out", tmp_path / "rules")
    _, out, _ = run("evaluate", tmp_path / "rules", "--data", tmp_path / "test.tsv")
    assert out.startswith("exact match 100.00 % (6 of 6)")


@pytest.mark.parametrize("command", ["discover", "check"])
def test_pairs_are_read_from_standard_input(run, command, monkeypatch):
    text = "".join(line.partition("\t")[2] + "\n" for line in PAIRS.splitlines())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    status, out, _ = run(command, "-")
    assert status == 0
    assert out
    monkeypatch.setattr("sys.stdin", None)
    assert run(command, "-")[::2] == (
        2,
        "equitrans: standard input is closed; give the name of a file\n",
    )
