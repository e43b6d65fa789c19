"""What only a terminal shows, and what happens when nobody is there to see it."""

import io
import json
import os
import pty
import sys

import pytest

from equitrans.cli import console, predict, progress, reproduce, work
from equitrans.cli.console import Console
from equitrans.data.classes import format_classes
from equitrans.data.pairs import Pair, format_tsv
from equitrans.data.scan import CLASSES, everything
from equitrans.errors import ConfigError, DataError
from equitrans.experiments.records import Records
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import Symmetry
from equitrans.training.loop import Epoch
from equitrans.training.trained import Trained
from tiny import tiny_job, tiny_record

EPOCHS = [
    Epoch(number, 4, 10 * number, 1 / number, 0.5, 0.25, is_best=True, seconds=1.0)
    for number in (1, 2)
]


pytestmark = pytest.mark.usefixtures("float32")


def terminal() -> tuple[Console, io.StringIO]:
    """A console that writes to a terminal, and what it has written."""
    shown = Console(stderr=True)
    shown.file = io.StringIO()
    shown._force_terminal = True
    return shown, shown.file


@pytest.mark.parametrize("is_terminal", [True, False])
def test_training_is_followed_by_a_bar_or_by_lines(is_terminal):
    shown, written = terminal()
    shown._force_terminal = is_terminal
    progress.follow(iter(EPOCHS), shown)
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


def test_whoever_stops_reading_a_result_ends_the_command_but_no_training():
    with pytest.raises(BrokenPipeError):
        Console().on_broken_pipe()
    reports = Console(stderr=True)
    reports.on_broken_pipe()
    reports.print("training goes on")
    assert reports.file.name == os.devnull
    reports.file.close()


def test_without_matplotlib_one_is_told_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "equitrans.analysis.plots", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pictures need matplotlib.*equitrans\[plot\]"):
        console.load_plots()


def test_sentences_are_asked_for_at_a_terminal_and_missed_without_any_input(monkeypatch, capsys):
    asked = predict.options().parse(["RUN"])
    symmetry = Symmetry.of([], [Pair(("walk", "twice"), ("WALK", "WALK"))], "cyclic")
    trained = Trained.new(TransducerConfig(k=2, d=2, hidden=3), symmetry, max_length=3)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="no standard input; give sentences or --file"):
        list(predict._sentences(asked, trained))
    ours, theirs = pty.openpty()
    with open(ours, "wb", buffering=0) as keyboard, open(theirs, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        keyboard.write(b"walk twice\n\x04")
        assert list(predict._sentences(asked, trained)) == [("walk", "twice")]
    assert "one a line; end with Ctrl-D" in capsys.readouterr().err


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


def test_pairs_that_fit_no_class_are_listed(run, tmp_path):
    pairs = [pair for pair in everything() if len(pair.source) <= 5]
    wrong = pairs[200]._replace(target=("I_RUN", "I_LOOK", "I_RUN"))
    (tmp_path / "pairs.tsv").write_text(format_tsv([*pairs[:200], wrong, *pairs[201:]]))
    status, out, _ = run("discover", tmp_path / "pairs.tsv")
    assert status == 0
    assert "1 pairs do not fit the classes, wrong or irregular:" in out
    assert f"  {' '.join(wrong.source)} → {' '.join(wrong.target)}" in out


def test_pairs_that_no_rule_explains_are_listed_with_the_reason(run, tmp_path):
    pairs = [pair for pair in everything() if len(pair.source) <= 3]
    wrong = [pair._replace(target=("I_RUN",) * 7) for pair in pairs[30:32]]
    (tmp_path / "pairs.tsv").write_text(format_tsv([*pairs[:30], *wrong, *pairs[32:]]))
    (tmp_path / "classes.toml").write_text(format_classes(CLASSES["both"]))
    data = ["--data", tmp_path / "pairs.tsv", "--classes", tmp_path / "classes.toml", "--quiet"]
    rules = ["--model.aligner", "recursive", "--out", tmp_path / "run"]
    assert run("train", *data, *rules)[0] == 0
    _, out, _ = run("grammar", tmp_path / "run")
    assert "2 pairs are not explained:" in out
    assert f"  {' '.join(wrong[0].source)} → {' '.join(wrong[0].target)}   (" in out
    _, out, _ = run("grammar", tmp_path / "run", "--derive", "jump left", "--json")
    found = json.loads(out)
    assert found["source"] == "jump left"
    assert found["target"] == "I_TURN_LEFT I_JUMP"
    assert found["tree"]
