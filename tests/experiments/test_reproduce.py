"""The commands reproduce and search: every job is trained once, also after kills."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from test_tables import cells, fails, record_of

from equitrans.experiments.executors import attempt
from equitrans.experiments.jobs import perform
from equitrans.experiments.plans import load
from equitrans.experiments.records import Records
from tiny import DIVERGING, SETTINGS, figures_of, tiny_job, tiny_record, tiny_split

pytestmark = pytest.mark.usefixtures("float32")


def files(folder: Path) -> dict[Path, int]:
    """The time of the last change of every file."""
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


def test_reproduce_trains_missing_jobs_once_and_prints_the_same_table_again(run, tmp_path):
    arguments = [
        *("reproduce", "table1", "--quick", "--only", "recursive", "--workers", "2"),
        *("--records", str(tmp_path / "records"), "--runs", str(tmp_path / "runs")),
    ]
    # one of the two jobs has a record
    (known,) = (
        j
        for j in load("table1", quick=True).restricted(only="recursive").jobs(official=False)
        if j.config.data.split == "around_right"
    )
    Records(tmp_path / "records").add(known, record_of(known, 0.5, loss=None))
    program = [sys.executable, "-m", "equitrans.cli.main", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary, seeds = cells(done.stdout)
    assert summary == [
        ["system", "Add Jump", "Around Right"],
        ["recursive aligner, both classes", "100.00 (1)", "50.00 (1)"],
    ]
    assert len(seeds) == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("1 of 1: add_jump, transducer, classes both, model.aligner recursive")
    assert ": 100.00 % right in " in line
    left = files(tmp_path)
    assert sorted(p.name for p in left) == ["add_jump.jsonl", "around_right.jsonl"]
    assert files(tmp_path / "runs") == {}
    assert run(*arguments) == (0, done.stdout, "")
    assert files(tmp_path) == left
    (trained,) = Records(tmp_path / "records").directory.glob("add_jump.jsonl")
    record = json.loads(trained.read_text())
    assert record["pairs"] == {"train": 14670, "valid": 0, "test": 7706}
    # the full table has the same job
    status, out, _ = run("tables", "table1", "--drawn", "--records", tmp_path / "records")
    assert status == 0
    assert ["recursive aligner, both classes", "", "100.00 (1)", "50.00 (1)", ""] in cells(out)[0]


def test_a_training_without_its_files_is_reported_with_status_1(run, tmp_path):
    (tmp_path / "official").mkdir()
    places = ("--records", tmp_path / "records", "--runs", tmp_path / "runs")
    quick = ("reproduce", "lowdata", "--quick", "--only", "discovered", "--workers", 1, *places)
    status, out, err = run(*quick, "--scan-dir", tmp_path / "official")
    assert status == 1
    assert err.count("is a random draw, so its files must be there") == 2
    assert "Traceback" not in err
    assert [len(table) for table in cells(out)] == [1, 1]  # headers only
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "tabel1"], "reproduce: argument table: unknown 'tabel1'"),
        (["reproduce", "table1", "--only", "nobody"], "no system with 'nobody' in its name"),
        (["reproduce", "table1", "--seeds", "0"], "seeds is 0; it must be 1 or more"),
        (["reproduce", "table1", "--workers", "0"], "workers is 0; it must be 1 or more"),
        (["reproduce", "table1", "--scan-dir", "nowhere"], "nowhere: no such folder"),
        (["reproduce", "table1", "--device", "abacus"], "must be auto, cpu or cuda"),
        (["reproduce", "table1", "--quik"], "--quik is not an option; did you mean '--quick'?"),
        (
            ["search"],
            "give the name of a search (search, search-length), or --split",
        ),
        (["search", "serach"], "unknown search 'serach'; did you mean 'search'?"),
        (["search", "search-length", "--split", "simple"], "or --split and --space, not both"),
        (["search", "--split", "add_jmp", "--space", "SPACE"], "did you mean 'add_jump'?"),
        (["search", "--split", "simple", "--space", "none.toml"], "none.toml: No such file"),
        (["search", "--split", "simple", "--space", "BAD"], "did you mean 'hidden'?"),
        (["search", "search-length", "--trials", "0"], "trials is 0; it must be 1 or more"),
        (["search", "search-length", "--scan-dir", "nowhere"], "nowhere: no such folder"),
        (["search", "search-length", "--sampler", "grid"], "unknown 'grid'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_argument_is_reported_in_one_line(run, tmp_path, arguments, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "SPACE").write_text('[space]\n"model.hidden" = [8]\n')
    (tmp_path / "BAD").write_text('[space]\n"model.hiden" = [8]\n')
    assert message in fails(run, *arguments)
    assert not (tmp_path / "records").exists()
    assert list(tmp_path.rglob("*.journal")) == []


# --- searches


def space(folder: Path, **choices: list) -> Path:
    """A TOML file with the tiny settings and some choices."""
    table = {name: [value] for name, value in SETTINGS.items()} | choices
    lines = [f'"{name}" = {json.dumps(values)}' for name, values in table.items()]
    (folder / "space.toml").write_text("[space]\n" + "\n".join(lines))
    return folder / "space.toml"


@pytest.fixture
def search(run, tmp_path, monkeypatch):
    """The command search on the tiny split, run in this process for speed."""

    def run_all_here(work, jobs, *, workers):
        jobs = iter(jobs)
        while pulled := list(islice(jobs, workers)):
            yield from [(job, attempt(work, job)) for job in pulled]

    monkeypatch.setattr("equitrans.cli.work.run_locally", run_all_here)

    def call(*more, **choices):
        places = ("--records", tmp_path / "records", "--runs", tmp_path / "runs", "--workers", 2)
        where = ("--split", "tiny", "--space", space(tmp_path, **choices))
        with tiny_split():
            return run("search", *where, *places, *more)

    return call


def test_a_random_search_trains_equal_draws_once_and_chooses_by_validation_loss(search, tmp_path):
    picture = tmp_path / "search.png"
    status, out, err = search("--trials", 4, "--plot", picture, seed=[0, 1])
    assert status == 0, err
    assert err.count(": validation ") == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
    records = Records(tmp_path / "records")
    found = [records.find(tiny_job(seed)) for seed in (0, 1)]
    for seed in (0, 1):
        assert figures_of(found[seed]) == figures_of(tiny_record(seed))
    best = min(found, key=lambda record: record["valid"]["loss"])
    assert "4 trials on tiny." in out
    protocols, _, table = cells(out)
    assert protocols[1][1] == f"{100 * best['test']['exact_match']:.2f}"
    assert table[0][2:] == sorted([*SETTINGS, "seed"])
    assert len(table) == 5
    # more trials with the same jobs train nothing
    left = files(tmp_path / "records")
    status, out, err = search("--trials", 6, "--json", seed=[0, 1])
    assert (status, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 6
    assert lines[0].keys() == {"settings", "valid", "test"}
    assert all(
        line["test"] == found[line["settings"]["seed"]]["test"]
        and line["valid"] == found[line["settings"]["seed"]]["valid"]
        for line in lines
    )
    assert files(tmp_path / "records") == left
    assert not list((tmp_path / "runs").rglob("*.journal"))
    status, _, err = search("--trials", 2, "--storage", tmp_path / "s.journal", seed=[0, 1])
    assert status == 0
    assert "--storage is for --sampler tpe" in err


def test_a_search_with_tpe_continues_and_uses_records(search, tmp_path):
    status, out, err = search("--sampler", "tpe", "--trials", 3, seed=[0, 1])
    assert status == 0, err
    assert err.count(": validation ") == 2
    assert len(cells(out)[2]) == 4
    assert (tmp_path / "runs" / "space-tpe.journal").is_file()
    status, out, err = search("--sampler", "tpe", "--trials", 5, "--json", seed=[0, 1])
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 5
    status, _, err = search("--sampler", "tpe", "--trials", 5, seed=[0, 1, 2])
    assert status == 2
    assert "search 'space-tiny-drawn' has another space" in err


def fail_at_one(order):
    if order.job.config.seed == 1:
        raise OSError(28, "No space left on device")
    return perform(order)


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_trial_that_failed_is_repeated_and_a_diverged_one_is_not(
    search, tmp_path, monkeypatch, sampler
):
    search = partial(search, "--sampler", sampler)
    rates = {"training.learning_rate": [DIVERGING["training.learning_rate"]]} | {
        name: [DIVERGING[name]] for name in ("training.weight_decay", "training.schedule")
    }
    status, _, err = search("--trials", 1, "--storage", tmp_path / "broken", **rates)
    assert status == 2
    assert "1 of 1" in err
    assert "loss is nan" in err
    assert "no trial ended with a validation loss" in err
    status, _, err = search("--trials", 1, "--storage", tmp_path / "broken", **rates)
    assert "1 of 1" not in err
    with monkeypatch.context() as patch:
        patch.setattr("equitrans.cli.work.perform", fail_at_one)
        status, out, err = search("--trials", 4, seed=[0, 1])
    assert status == 1
    assert "No space left on device" in err
    assert "1 of" in err
    fewer = len(cells(out)[2])
    assert 1 < fewer < 5
    status, out, err = search("--trials", 4, seed=[0, 1])
    assert status == 0
    assert err.count(": validation ") == 1
    assert len(cells(out)[2]) == 5


def test_trials_with_and_without_official_files_are_separate(search, tmp_path):
    drawn = tiny_job(settings={"training.epochs": 1})
    Records(tmp_path / "records").add(drawn, record_of(drawn, 0.5, loss=0.25))
    choices = {"training.epochs": [1], "seed": [0]}
    for _ in range(2):
        status, out, err = search("--trials", 1, "--json", **choices)
        assert (status, err) == (0, "")
        assert json.loads(out)["valid"]["loss"] == 0.25
        status, out, err = search("--trials", 1, "--json", "--scan-dir", tmp_path, **choices)
        assert status == 0
        assert json.loads(out)["valid"]["loss"] != 0.25


# --- kills

PROGRAM = """
import os, signal, sys
from pathlib import Path
from equitrans.training import runs
from equitrans.cli.main import main
from tiny import tiny_split

mark, how, *arguments = sys.argv[1:]
runs.CHECKPOINT_SECONDS = 0.0
split = tiny_split()
split.__enter__()
whole = runs.Run.train

def train(self, data, *, device="cpu"):
    for epoch in whole(self, data, device=device):
        with (Path(mark) / f"{self.config.seed}").open("a") as log:
            log.write(f"{epoch.number}\\n")
        if epoch.number == 5 and (Path(mark) / how).exists():
            (Path(mark) / how).unlink()
            os.killpg(0, signal.SIGKILL) if how == "all" else os.kill(os.getpid(), signal.SIGKILL)
        yield epoch

runs.Run.train = train
if __name__ == "__main__":
    sys.exit(main(arguments))
"""


def test_a_killed_search_continues_and_ends_with_the_same_figures(tmp_path):
    """First all processes are killed during a training, then one worker of the next command."""
    program, mark = tmp_path / "program.py", tmp_path / "mark"
    program.write_text(PROGRAM)
    mark.mkdir()
    places = ["--records", str(tmp_path / "records"), "--runs", str(tmp_path / "runs")]
    command = ["search", "--split", "tiny", "--space", str(space(tmp_path, seed=[0, 1]))]
    command += ["--trials", "4", "--workers", "1"]
    paths = os.pathsep.join(filter(None, sys.path))

    def start(how: str) -> subprocess.CompletedProcess[str]:
        (mark / how).touch()
        return subprocess.run(
            [sys.executable, str(program), str(mark), how, *command, *places],
            env=os.environ | {"PYTHONPATH": paths},
            start_new_session=True,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    killed = start("all")
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout == ""
    records = Records(tmp_path / "records")
    assert [records.find(tiny_job(seed)) for seed in (0, 1)] == [None, None]
    assert len(list((tmp_path / "runs").rglob("state.safetensors"))) == 1
    done = start("one")
    assert done.returncode == 0, done.stderr
    assert not (mark / "one").exists()
    assert done.stderr.count(": validation ") == 2
    assert len(cells(done.stdout)[2]) == 5
    for seed in (0, 1):
        record = records.find(tiny_job(seed))
        assert figures_of(record) == figures_of(tiny_record(seed))
        # each kill repeats one epoch at most
        epochs = [int(line) for line in (mark / f"{seed}").read_text().split()]
        assert sorted(set(epochs)) == list(range(1, 8))
        assert len(epochs) <= 8
    assert [p.name for p in files(tmp_path / "records")] == ["tiny.jsonl"]
    assert list((tmp_path / "runs").rglob("*.safetensors")) == []
