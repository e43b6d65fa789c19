"""Short forms of ``make reliability``: kills, locks, full disks, clocks, seeds, limits."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import kills
from equitrans import files
from equitrans.analysis.evaluation import in_parts, mean_loss
from equitrans.cli.main import main
from equitrans.data.classes import format_classes
from equitrans.data.pairs import Pair, format_tsv
from equitrans.data.scan import CLASSES, load_split
from equitrans.data.source import DataConfig, load_data
from equitrans.errors import ConfigError, DataError, RunError, SymmetryError, VocabularyError
from equitrans.experiments import claim, leading
from equitrans.files import locked, write_atomically
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.settings import LARGEST_CLASS, LARGEST_VOCABULARY, LONGEST_SENTENCE
from equitrans.training.config import RunConfig, TrainingConfig
from equitrans.training.fitting import fit
from equitrans.training.runs import Run
from equitrans.training.trained import WEIGHTS, Trained

SMALL = TransducerConfig(k=4, d=3, embedding=5, hidden=6, dropout=0.2)


pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture
def settings(tmp_path):
    """The settings of a run of two epochs on thirty pairs."""
    (tmp_path / "pairs.tsv").write_text(format_tsv(load_split("simple_p1").train[:30]))
    (tmp_path / "classes.toml").write_text(format_classes(CLASSES["both"]))
    return RunConfig(
        data=DataConfig(file=str(tmp_path / "pairs.tsv"), classes=str(tmp_path / "classes.toml")),
        model=SMALL,
        training=TrainingConfig(epochs=2),
        seed=1,
    )


def create(path, settings):
    return Run.create(path, settings, load_data(settings.data, seed=settings.seed))


def digest(path):
    return hashlib.sha256((path / WEIGHTS).read_bytes()).hexdigest()


# --- kills


def test_killed_and_resumed_work_ends_with_the_same_files():
    done = subprocess.run(
        [sys.executable, kills.__file__, "train=5", "search=1", "reproduce=1", "--seed", "5"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["work"], row["kills"]) for row in found] == [
        ("train", 5),
        ("search", 1),
        ("reproduce", 1),
    ]
    assert all(row["files compared in each"] >= 6 for row in found)


def test_the_kill_tests_notice_partial_files_and_changed_numbers(settings, tmp_path):
    """The negative control of the test above."""
    run = create(tmp_path / "work" / "run", settings)
    list(run.train(run.load_data()))
    kills.check_sound(tmp_path / "work")
    before = kills.made(tmp_path / "work")
    kills.compare(before, kills.made(tmp_path / "work"))
    log = run.path / "epochs.jsonl"
    whole = log.read_text()
    log.write_text(whole.replace('"is_best": true', '"is_best": false', 1))
    with pytest.raises(kills.DifferenceError, match=r"epochs.jsonl: .* became"):
        kills.compare(before, kills.made(tmp_path / "work"))
    log.write_text(re.sub(r'"seconds": [\d.e-]+', '"seconds": 99.0', whole))
    kills.compare(before, kills.made(tmp_path / "work"))  # times may differ
    state = run.path / "state.safetensors"
    content = state.read_bytes()
    for broken in (content[: len(content) // 2], content[:-8] + b"\0" * 8):
        state.write_bytes(broken)
        with pytest.raises(kills.DifferenceError, match=r"state.safetensors is not whole"):
            kills.check_sound(tmp_path / "work")


def test_a_file_is_flushed_then_renamed_then_its_folder_is_flushed(tmp_path, monkeypatch):
    calls = []

    def fsync(opened):
        calls.append(("fsync", os.readlink(f"/proc/self/fd/{opened}")))

    def replace(one, other):
        calls.append(("replace", str(one), str(other)))
        os.rename(one, other)

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(files.os, "replace", replace)
    write_atomically(tmp_path / "a", "text")
    temporary = str(tmp_path / f".a.{os.getpid()}.tmp")
    assert calls == [
        ("fsync", temporary),
        ("replace", temporary, str(tmp_path / "a")),
        ("fsync", str(tmp_path)),
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_temporary_files_of_a_killed_process_are_removed(settings, tmp_path):
    run = create(tmp_path / "run", settings)
    (run.path / ".state.safetensors.99.tmp").write_bytes(b"half")
    (run.path / "lock").write_text("process 99 on a machine that is off\n")
    list(run.train(run.load_data()))
    assert not [p for p in run.path.iterdir() if p.name.startswith(".") or p.name == "lock"]


def test_a_run_whose_creation_was_killed_can_be_created_again(settings, tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / "lock").touch()
    (path / "vocabulary.json").write_text("{}")
    (path / ".config.json.99.tmp").write_text("{")
    with pytest.raises(RunError, match=r"config.json is missing"):
        Run.open(path)
    run = create(path, settings)
    assert len(list(run.train(run.load_data()))) == 2
    # without a lock file the folder is not ours
    other = tmp_path / "other"
    other.mkdir()
    (other / "vocabulary.json").write_text("{}")
    with pytest.raises(RunError, match="already exists"):
        create(other, settings)


# --- two processes

HOLD = """
import sys, time
from equitrans.files import locked
with locked(sys.argv[1], what="it"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder():
    """Processes that hold locks."""
    held = []

    def hold(path):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
        )
        held.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in held:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_locked_run_is_refused_with_the_process_that_holds_it(settings, tmp_path, holder, capsys):
    run = create(tmp_path / "run", settings)
    other = holder(run.path / "lock")
    assert main(["train", "--resume", str(run.path), "--quiet"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        rf"equitrans: {run.path} is in use by process {other.pid} on \S+; "
        "wait until it ends, or end it",
        line,
    )
    assert not (run.path / "epochs.jsonl").exists()
    other.kill()
    other.wait()
    assert (run.path / "lock").exists()  # the file is left, but the lock is free
    assert main(["train", "--resume", str(run.path), "--quiet"]) == 0
    assert not (run.path / "lock").exists()


def test_a_run_can_be_created_by_one_process_only(settings, tmp_path, holder):
    (tmp_path / "run").mkdir()
    holder(tmp_path / "run" / "lock")
    with pytest.raises(RunError, match="is in use by process"):
        create(tmp_path / "run", settings)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["lock"]


def test_a_job_and_a_search_are_locked_for_one_process(tmp_path, holder):
    holder(tmp_path / "job.lock")
    with pytest.raises(RunError, match=r"job is in use by process"), claim(tmp_path / "job"):
        pass
    holder(tmp_path / "s.journal.leader")
    journal = tmp_path / "s.journal"
    with pytest.raises(RunError, match=r"the search in .* is in use"), leading(journal):
        pass


def test_waiting_for_a_lock_ends_with_the_timeout_or_the_lock(tmp_path, holder):
    other = holder(tmp_path / "lock")
    started = time.monotonic()
    with (
        pytest.raises(RunError, match="in use"),
        locked(tmp_path / "lock", what="it", timeout=0.2),
    ):
        pass
    assert time.monotonic() - started >= 0.2
    other.kill()
    with locked(tmp_path / "lock", what="it", timeout=60.0):
        assert f"process {os.getpid()} on " in (tmp_path / "lock").read_text()
    assert not (tmp_path / "lock").exists()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "lock", what="it"):
        pass
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_partial_line_of_a_journal_is_removed_by_the_next_leader(tmp_path):
    journal = tmp_path / "s.journal"
    journal.write_bytes(b'{"a": 1}\n{"b"')
    (tmp_path / "s.journal.lock").symlink_to(journal)  # as Optuna leaves it
    with leading(journal):
        assert journal.read_bytes() == b'{"a": 1}\n'
        assert not os.path.lexists(tmp_path / "s.journal.lock")


# --- folders that cannot be written to, and clocks


@contextmanager
def as_nobody():
    """Run as the user nobody, since root may write anywhere."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_that_cannot_be_written_to_is_named_in_the_error(settings, tmp_path, capsys):
    named = ["--data", settings.data.file, "--classes", settings.data.classes, "--quiet"]
    (tmp_path / "file").write_text("")
    assert main(["train", *named, "--out", str(tmp_path / "file" / "run")]) == 2
    assert capsys.readouterr().err.strip() == f"equitrans: {tmp_path}/file/run: Not a directory"
    (tmp_path / "closed").mkdir(mode=0o555)
    for path in (tmp_path, *list(tmp_path.parents)[:-2]):  # up to the system's temporary folder
        path.chmod(0o755)
    with as_nobody():
        status = main(["train", *named, "--out", str(tmp_path / "closed" / "run")])
    assert status == 2
    assert capsys.readouterr().err.strip() == f"equitrans: {tmp_path}/closed/run: Permission denied"


def test_a_clock_that_goes_backwards_changes_nothing(settings, tmp_path, monkeypatch):
    one = create(tmp_path / "one", settings)
    list(one.train(one.load_data()))
    now = [2e9]

    def backwards():
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    other = create(tmp_path / "other", settings)
    epochs = list(other.train(other.load_data()))
    assert 0 < epochs[0].seconds <= epochs[1].seconds < 600
    assert digest(one.path) == digest(other.path)


# --- seeds


def test_one_seed_gives_the_same_weights_in_every_process(settings, tmp_path):
    here = create(tmp_path / "here", settings)
    list(here.train(here.load_data()))
    sizes = [f"--model.{k}={getattr(SMALL, k)}" for k in ("k", "d", "embedding", "hidden")]
    named = ("--data", settings.data.file, "--classes", settings.data.classes, *sizes)
    more = ("--model.dropout=0.2", "--training.epochs=2", "--training.lexicon=false")
    more += ("--device", "cpu", "--quiet")
    out = tmp_path / "there"
    command = ["train", *named, *more, "--seed", "1", "--out", str(out)]
    subprocess.run([sys.executable, "-m", "equitrans.cli.main", *command], check=True)
    assert digest(out) == digest(here.path)
    other = create(tmp_path / "other", replace(settings, seed=2))
    list(other.train(other.load_data()))
    assert digest(other.path) != digest(here.path)


# --- limits


def test_sentences_vocabularies_and_classes_above_the_limits_are_rejected(tmp_path):
    quick = TrainingConfig(epochs=1)
    long = ("a",) * (LONGEST_SENTENCE + 1)
    message = r"a sentence of 1001 words \(a a a a a …\); the limit is 1000"
    with pytest.raises(DataError, match=f"pair 2: {message}"):
        fit([(("a",), ("A",)), (("a",), long)], training=quick)
    (tmp_path / "long.tsv").write_text("\n".join(["a\tA", " ".join(long) + "\tA"]))
    with pytest.raises(DataError, match=f"pair 2: {message}"):
        load_data(DataConfig(file=str(tmp_path / "long.tsv"), classes="none"), seed=0)
    trained = Trained.new(SMALL, Symmetry.of([], [(("a",), ("A",))]), max_length=3)
    assert trained.predict([" ".join(long)])[0].reason == "1001 words; the limit is 1000"
    with pytest.raises(DataError, match=message):
        trained.evaluate([Pair(long, ("A",))])
    with pytest.raises(DataError, match=message):
        trained.align(Pair(("a",), long))
    words = tuple(f"w{i}" for i in range(LARGEST_VOCABULARY + 1))
    with pytest.raises(VocabularyError, match="100001 source words; the limit is"):
        Trained.new(SMALL, Symmetry.of([], [(words, ("A",))]), max_length=3)
    some = words[: LARGEST_CLASS + 1]
    with pytest.raises(SymmetryError, match="class 'c' has 10001 words; the limit is 10000"):
        Trained.new(SMALL, Symmetry.of([LexicalClass("c", some, some)], []), max_length=3)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"hidden": 10**7}, "model.hidden is 10000000; the limit is 1000000"),
        ({"hidden": 10**5}, "the model would have more than 250000000 weights"),
        ({"k": 10**5, "d": 10**5}, "the model would have more than 250000000 weights"),
    ],
    ids=str,
)
def test_a_model_that_is_too_large_is_rejected_before_memory_is_allocated(sizes, message):
    symmetry = Symmetry.of([], [(("a",), ("A",))])
    with pytest.raises((ConfigError, RunError), match=message):
        Trained.new(TransducerConfig(**sizes), symmetry, max_length=3)


def test_evaluation_uses_smaller_batches_for_larger_rows(monkeypatch):
    from equitrans.data.batches import Rows
    from worlds import SYMMETRIES, random_pairs, small

    model = small(SYMMETRIES["verbs"])
    rows = Rows.of(random_pairs(0, 40), model.symmetry)
    assert len(list(in_parts(model, rows))) == 1
    whole = mean_loss(model, rows)
    monkeypatch.setattr("equitrans.analysis.evaluation._ENTRIES", 500)
    parts = list(in_parts(model, rows))
    assert len(parts) > 4
    assert sum(len(part.weight) for part in parts) == len(rows.weight)
    assert mean_loss(model, rows) == pytest.approx(whole, rel=1e-5)  # float32


def test_a_sentence_at_the_limit_is_trained_and_decoded():
    source = tuple(f"w{i % 7}" for i in range(LONGEST_SENTENCE))
    pairs = [(source, tuple(w.upper() for w in source)), (("w0",), ("W0",))]
    model = TransducerConfig(k=2, d=2, embedding=2, hidden=4)
    trained = fit(pairs, (), model=model, training=TrainingConfig(epochs=1))
    assert trained.align(Pair(*pairs[0])).prob
    assert trained.n_best([source[:900]], n=1, width=1)[0]


def test_the_records_have_the_promised_number_of_kills_without_differences():
    folder = Path(__file__).parents[2] / "records" / "reliability"
    for work, count in (("train", 200), ("search", 50), ("reproduce", 50)):
        (row,) = json.loads((folder / f"kills-{work}.json").read_text())["rows"]
        assert (row["work"], row["kills"], row["differences"]) == (work, count, 0)
        assert row["in saves"] >= 10
        assert row["at random moments"] >= 10
