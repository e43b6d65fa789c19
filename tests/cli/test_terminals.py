"""Output on a terminal, and output that nobody reads."""

import io
import os
import pty
import re
import sys

import pytest

from equitrans.cli import console, predict, progress, reproduce, work
from equitrans.cli.console import Console
from equitrans.cli.main import main
from equitrans.errors import ConfigError, DataError
from equitrans.experiments.records import Records
from equitrans.training.loop import Epoch
from tiny import tiny_job, tiny_record

EPOCHS = [
    Epoch(number, 4, 10 * number, 1 / number, 0.5, 0.25, is_best=True, seconds=1.0)
    for number in (1, 2)
]


pytestmark = pytest.mark.usefixtures("float32")


def terminal() -> tuple[Console, io.StringIO]:
    """A console on a terminal, and its output."""
    shown = Console(stderr=True)
    shown.file = io.StringIO()
    shown._force_terminal = True
    return shown, shown.file


@pytest.mark.parametrize("is_terminal", [True, False])
def test_training_is_followed_by_a_bar_or_by_lines(is_terminal):
    shown, written = terminal()
    shown._force_terminal = is_terminal
    progress.follow(lambda report: iter(EPOCHS), shown)
    text = written.getvalue()
    assert str(EPOCHS[1]) in text
    assert ("\x1b[" in text) == is_terminal  # a bar is drawn anew where it was


@pytest.mark.parametrize("is_terminal", [True, False])
def test_jobs_are_counted_as_they_end(is_terminal):
    shown, written = terminal()
    shown._force_terminal = is_terminal
    with progress.bar(shown, jobs=2) as show:
        show("one", 1, 2)
        show("other", 2, 2)
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    if is_terminal:
        assert any(line.endswith("one") for line in lines)
        assert "2/2" in written.getvalue()
    else:
        assert lines == ["1 of 2: one", "2 of 2: other"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_shows_the_share_of_work_that_a_text_names(is_terminal):
    shown, written = terminal()
    shown._force_terminal = is_terminal
    with progress.watched(shown) as report:
        if report is not None:
            report("searching: 25 of 100 forms, 3 rules")
    assert (report is not None) == is_terminal
    assert ("25 of 100" in written.getvalue()) == is_terminal


def test_learning_rules_reports_its_stages(tmp_path, monkeypatch, capsys):
    """Without a terminal, a line appears when learning takes long, and not at once."""
    (tmp_path / "pairs.tsv").write_text("walk\tWALK\nwalk twice\tWALK WALK\njump\tJUMP\n")
    data = [
        "--data",
        str(tmp_path / "pairs.tsv"),
        "--classes",
        "none",
        "--model.aligner",
        "recursive",
    ]
    assert main(["train", *data, "--out", str(tmp_path / "quick")]) == 0
    assert "observing" not in capsys.readouterr().err
    monkeypatch.setattr(progress, "EVERY", -1.0)
    assert main(["train", *data, "--out", str(tmp_path / "slow")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "observing: 3 pairs" in lines
    assert any(re.fullmatch(r"searching: \d of 3 forms, \d rules", line) for line in lines)
    assert any(re.fullmatch(r"pruning: \d rules", line) for line in lines)
    assert any(re.fullmatch(r"weighing: \d rules", line) for line in lines)
    assert "checking: 3 pairs" in lines


def test_a_broken_pipe_ends_a_command_but_not_a_training():
    with pytest.raises(BrokenPipeError):
        Console().on_broken_pipe()
    reports = Console(stderr=True)
    reports.on_broken_pipe()
    reports.print("training goes on")
    assert reports.file.name == os.devnull
    reports.file.close()


def test_a_picture_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "equitrans.analysis.plots", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"a picture needs matplotlib.*equitrans\[plot\]"):
        console.load_plots()


def test_predict_prompts_at_a_terminal_and_refuses_a_closed_input(monkeypatch, capsys):
    asked = predict.options().parse(["RUN"])
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed; give sentences or --file"):
        list(predict._lines(asked))
    ours, theirs = pty.openpty()
    with open(ours, "wb", buffering=0) as keyboard, open(theirs, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        keyboard.write(b"walk twice\n\x04")
        assert list(predict._lines(asked)) == [("line 1", "walk twice")]
    assert "one per line; end with Ctrl-D" in capsys.readouterr().err


def test_runs_that_are_kept_stay_and_others_go(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "run_locally", lambda do, orders, workers: _done(orders))
    for keep in (True, False):
        folder = tmp_path / str(keep)
        options = ["table1", "--quiet", "--runs", str(folder), *(["--keep"] if keep else [])]
        one = work.Work(reproduce.options().parse(options))
        one.finish([tiny_job()], Records(folder / "records"))
        assert (folder / tiny_job().name).is_dir() == keep


def _done(orders):
    for order in orders:
        os.makedirs(order.directory)
        yield order, tiny_record()
