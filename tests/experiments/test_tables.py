"""Tables and pictures of records, and the commands that make them."""

import re
from itertools import groupby
from pathlib import Path

import pytest

from equitrans.cli.plot import curves_of, lengths_of
from equitrans.data.source import load_data
from equitrans.experiments.jobs import Job
from equitrans.experiments.plans import Experiment, Row, SearchPlan, load
from equitrans.experiments.records import Records, read_records
from equitrans.experiments.search import Space
from equitrans.experiments.tables import make_search, make_seeds, make_table
from equitrans.training.runs import Run
from tiny import tiny_job, tiny_split

ROW = Row("ours: small", ("add_jump", "length"), 3, {}, published={"add_jump": 91.0})
OTHER = Row("theirs", ("add_jump",), 2, {"kind": "wu"}, width=1)
PAPER = Row("Liu", ("add_jump", "length"), 2, published={"length": 100.0, "add_jump": 99.5})
TABLE = Experiment("t", "A table", ("add_jump", "length"), (ROW, OTHER, PAPER))


pytestmark = pytest.mark.usefixtures("float32")


def fails(run, *arguments):
    """The error message of a command, found to be one line."""
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("equitrans: ")
    assert err.count("\n") == 1
    return err


def record_of(job: Job, right: float, *, loss: float | None = 0.5, seconds: float = 10.0, **more):
    """A record with made-up figures."""
    names = ("train_loss", "valid_loss")
    return {
        "format": 1,
        "settings": job.settings,
        "seed": job.config.seed,
        "seconds": {"training": seconds, "test": 1.0},
        "valid": {"loss": loss, "accuracy": 0.5},
        "test": {"exact_match": right},
        "curve": {"number": [1, 2], "updates": [7, 14]}
        | {name: [1.5, 0.5] for name in names}
        | {"valid_accuracy": [0.0, 1.0]},
        **more,
    }


def diverged(job: Job):
    return {"format": 1, "settings": job.settings, "seed": job.config.seed, "test": None} | {
        "failed": "epoch 3: the training loss is nan"
    }


def cells(text: str) -> list[list[list[str]]]:
    """The cells of the tables in a Markdown text; all lines of a table have equal length."""
    found = []
    for is_table, group in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        if is_table:
            table = [[c.strip() for c in line.strip("|").split("|")] for line in group]
            assert len({len(line) for line in table}) == 1
            assert set(table[1]) == {"---"}
            found.append([table[0], *table[2:]])
    return found


def test_a_table_has_mean_deviation_and_every_seed(tmp_path):
    records = Records(tmp_path)
    for job, right, loss in zip(
        ROW.jobs("add_jump", official=True), (1.0, 0.5, 0.9), (0.1, 0.2, 0.3), strict=True
    ):
        records.add(job, record_of(job, right, loss=loss, seconds=100.0 * right))
    (first, *_) = ROW.jobs("length", official=True)
    records.add(first, record_of(first, 0.25, loss=None))
    text = make_table(TABLE, records, official=True)
    assert text.startswith("## A table\n\n| system | Add Jump | Length |\n")
    (summary,) = cells(text)
    (seeds,) = cells(make_seeds(TABLE, records, official=True))
    assert summary[1:] == [
        ["*ours, published*", "*91.0*", ""],
        ["ours: small", "80.00 ± 26.46 (3)", "25.00 (1)"],
        ["*Liu, published*", "*99.5*", "*100.0*"],
    ]
    assert seeds[1:] == [
        [
            *("ours: small", "Add Jump", "100.00 50.00 90.00", "80.00"),
            *("90.00", "50.00", "100.00", "1 of 3"),
            *("0.1000 0.2000 0.3000", "50–100"),
        ],
        ["ours: small", "Length", *["25.00"] * 5, "0 of 1", "", "10"],
    ]
    assert "random draws" not in text
    # records of official files are not in the table of random draws
    drawn = make_table(TABLE, records, official=False)
    assert "80.00" not in drawn
    assert "random draws of our own" in drawn


def test_a_diverged_training_counts_as_zero_and_is_shown(tmp_path):
    records = Records(tmp_path)
    one, two, three = ROW.jobs("add_jump", official=True)
    records.add(one, record_of(one, 1.0))
    records.add(two, diverged(two))
    (summary,) = cells(make_table(TABLE, records, official=True))
    (seeds,) = cells(make_seeds(TABLE, records, official=True))
    assert ["ours: small", "50.00 ± 70.71 (2)", ""] in summary
    assert seeds[1][2:] == [
        "100.00 failed",
        "50.00",
        "50.00",
        "0.00",
        "100.00",
        "1 of 2",
        "0.5000",
        "10",
    ]
    records.add(one, diverged(one))
    records.add(three, diverged(three))
    (summary,) = cells(make_table(TABLE, records, official=True))
    (seeds,) = cells(make_seeds(TABLE, records, official=True))
    assert ["ours: small", "0.00 ± 0.00 (3)", ""] in summary
    assert seeds[1][2:] == ["failed failed failed", *["0.00"] * 4, "0 of 3", "", ""]


def test_a_table_without_records_has_published_figures_only(tmp_path):
    (summary,) = cells(make_table(TABLE, Records(tmp_path / "absent"), official=True))
    assert [line[0] for line in summary[1:]] == ["*ours, published*", "*Liu, published*"]


def test_a_table_of_orbits_has_the_epochs_where_they_change(tmp_path):
    records = Records(tmp_path)
    job = ROW.jobs("add_jump", official=True)[0]
    moments = [(0, [1, 1, 2], 0.1), (5, [2, 2], 0.5), (10, [2, 2], 0.7), (15, [4], 0.9)]
    orbits = [{"epoch": e, "observed": o, "sharpness": s} for e, o, s in moments]
    records.add(job, record_of(job, 1.0, orbits=[*orbits, orbits[-1] | {"epoch": 20}]))
    *_, watched = cells(make_table(TABLE, records, official=True))
    sizes = "0: 1+1+2 (0.10), 5: 2+2 (0.50), 15: 4 (0.90), 20: 4 (0.90)"
    assert watched[1:] == [["ours: small", "0", "100.00", sizes]]


def test_a_table_of_orbits_without_sharpness_has_their_sizes(tmp_path):
    records = Records(tmp_path)
    job = ROW.jobs("add_jump", official=True)[0]
    orbits = [{"epoch": 0, "observed": [1, 1, 2]}, {"epoch": 5, "observed": [4]}]
    records.add(job, record_of(job, 1.0, orbits=orbits))
    *_, watched = cells(make_table(TABLE, records, official=True))
    assert watched[1:] == [["ours: small", "0", "100.00", "0: 1+1+2, 5: 4"]]


# --- searches

PLAN = SearchPlan(
    name="s",
    title="A search",
    split="add_jump",
    trials=3,
    seed=0,
    settings={},
    space=Space.of({"model.hidden": [8, 9, 10], "seed": [0, 1]}),
    published=28.5,
)


def trials(*figures: tuple[float, float]):
    """Trials with these validation losses and shares on the test set."""
    found = []
    for hidden, (loss, right) in zip((8, 9, 10), figures, strict=False):
        settings = {"model.hidden": hidden, "seed": 0}
        found.append(
            (settings, record_of(PLAN.job(settings, official=True), right=right, loss=loss))
        )
    return found


def test_a_search_chooses_by_validation_loss_and_not_by_test_figures():
    text = make_search(PLAN, trials((0.3, 0.99), (0.1, 0.2), (0.2, 0.5)))
    assert "3 trials on Add Jump" in text
    protocols, spread, table = cells(text)
    assert [line[1] for line in protocols[1:]] == ["20.00", "99.00", "*28.5*"]
    assert spread[1][0] == "20.00"
    assert spread[1][2] == "50.00"
    assert spread[1][-1] == "99.00"
    assert table[0] == ["−log p, validation", "test, %", "model.hidden", "seed"]
    assert [line[1] for line in table[1:]] == ["20.00", "50.00", "99.00"]
    # equal losses with other test figures choose the same trial
    other = make_search(PLAN, trials((0.3, 0.1), (0.1, 0.2), (0.2, 1.0)))
    assert [line[2] for line in cells(other)[2]] == [line[2] for line in table]


# --- the commands


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Records of every seed of the experiments with little data and of orbits."""
    folder = tmp_path_factory.mktemp("filled")
    records = Records(folder)
    for name in ("lowdata", "orbits"):
        for place, job in enumerate(load(name).jobs(official=True)):
            more = {}
            if name == "orbits":
                more["orbits"] = [{"epoch": e, "observed": [4] * (4 - e)} for e in range(3)]
            records.add(job, record_of(job, place / 1000, **more))
    return folder


def test_tables_prints_records_and_writes_no_file(run, filled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(filled.rglob("*"))
    status, out, err = run("tables", "lowdata", "orbits", "--records", filled)
    assert (status, err) == (0, "")
    assert re.findall("^## (.*?):", out, re.MULTILINE) == ["Appendix C", "§4.4"]
    summary, converged, orbits, _ = cells(out)
    assert len(summary[0]) == 8
    assert len(converged) == 1 + 7
    assert orbits[0] == ["system", "Add Jump"]
    _, every, _ = run("tables", "lowdata", "--seeds", "--records", filled)
    assert len(cells(every)[0]) == 1 + 12 * 7
    _, some, _ = run("tables", "lowdata", "--seeds", "--only", "gordon", "--records", filled)
    assert len(cells(some)[0]) == 1 + 7
    assert sorted(filled.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []
    _, both, _ = run("tables", "--records", filled)
    assert all(part in both for part in out.split("## ")[1:])
    assert "Table 1" in both
    status, drawn, _ = run("tables", "lowdata", "--drawn", "--records", filled)
    assert status == 0
    assert len(cells(drawn)) == 1
    assert "random draws" in drawn
    line = fails(run, "tables", "lowdta", "--records", filled)
    assert "unknown experiment 'lowdta'; did you mean 'lowdata'?" in line
    assert "--draw is not an option; did you mean '--drawn'" in fails(run, "tables", "--draw")


def test_commands_report_the_line_of_a_damaged_record(run, tmp_path):
    path = tmp_path / "simple_p1.jsonl"
    path.write_text("{")
    for command in (("tables", "lowdata"), ("plot", "lowdata", "--out", tmp_path / "x.png")):
        assert f"{path}:1 is damaged" in fails(run, *command, "--records", tmp_path)


@pytest.mark.parametrize("what", ["lowdata", "orbits"])
def test_plot_draws_experiments_from_records(run, filled, tmp_path, what):
    out = tmp_path / f"{what}.png"
    assert run("plot", what, "--records", filled, "--out", out) == (0, "", "")
    assert out.read_bytes().startswith(b"\x89PNG")
    only = tmp_path / "only.svg"
    name = {"lowdata": "annealed", "orbits": "both classes"}[what]
    status, _, _ = run("plot", what, "--records", filled, "--out", only, "--only", name)
    assert status == 0
    assert "<svg" in only.read_text()
    absent = tmp_path / "absent.png"
    line = fails(run, "plot", what, "--records", filled, "--drawn", "--out", absent)
    assert f"no records of {what}; equitrans reproduce {what} makes them" in line
    bad = tmp_path / "x.pmg"
    line = fails(run, "plot", what, "--records", filled, "--out", bad)
    assert "no picture format 'pmg'; did you mean 'png'?" in line
    assert not absent.exists()
    assert not bad.exists()


def test_plot_reports_that_all_trainings_diverged(run, tmp_path):
    records = Records(tmp_path)
    job = next(iter(load("orbits").jobs(official=True)))
    records.add(job, diverged(job))
    line = fails(run, "plot", "orbits", "--records", tmp_path, "--out", tmp_path / "x.png")
    assert "all trainings of the paper's settings diverged" in line
    assert run("tables", "orbits", "--records", tmp_path)[0] == 0


def test_plot_draws_learning_curves_of_runs_and_records(run, tmp_path):
    with tiny_split():
        job = tiny_job(settings={"training.epochs": 2})
        data = load_data(job.config.data, seed=0)
        started = Run.create(tmp_path / "run", job.config, data)
        waiting = Run.create(tmp_path / "waiting", job.config, data)
        list(started.train(data))
    records = Records(tmp_path / "records")
    records.add(job, record_of(job, 1.0))
    failed = tiny_job(1)
    records.add(failed, diverged(failed))
    rules = record_of(tiny_job(2), 1.0, loss=None)  # as of the recursive aligner
    rules["curve"] = {"number": [1], "updates": [1], "train_loss": [0.0]}
    rules["curve"] |= {"valid_loss": [None], "valid_accuracy": [None]}
    records.add(tiny_job(2), rules)
    folder, out = tmp_path / "records", tmp_path / "curves.png"
    curves = ("plot", "curves", started.path, folder / job.name, folder / tiny_job(2).name)
    assert run(*curves, "--out", out) == (0, "", "")
    assert out.read_bytes().startswith(b"\x89PNG")
    other = tmp_path / "x.png"
    for files, message in (
        ((), "plot: curves need records to draw"),
        ((folder / failed.name,), f"{failed.name} has no learning curve: epoch 3"),
        ((tmp_path / "nowhere",), "nowhere"),
        ((waiting.path,), f"{waiting.path} has no learning curve: it has no epoch yet"),
        ((started.path / "config.json",), "config.json is not a record"),
    ):
        assert message in fails(run, "plot", "curves", *files, "--out", other)
    log, half = started.path / "epochs.jsonl", waiting.path / "epochs.jsonl"
    half.write_text(log.read_text()[:20])
    assert "it has no epoch yet" in fails(run, "plot", "curves", waiting.path, "--out", other)
    half.write_text("nonsense\n" + log.read_text())
    assert f"{half} is damaged" in fails(run, "plot", "curves", waiting.path, "--out", other)
    half.write_text(log.read_text() + log.read_text()[:20])
    assert run("plot", "curves", waiting.path, "--out", out)[0] == 0
    assert "the following arguments are required: --out" in fails(run, "plot", "lowdata")
    assert "unknown 'curve'; did you mean 'curves'?" in fails(run, "plot", "curve", "--out", other)
    assert not other.exists()


def test_names_before_files_are_those_of_the_legend(tmp_path):
    records = Records(tmp_path)
    for job in (jobs := list(load("table1").rows[0].jobs("length", official=True))[:3]):
        counts = {"exact_match": 0.5, "by_length": {"24": [1, 2]}}
        records.add(job, record_of(job, 0.5, test=counts))
    one, *others = (f"{tmp_path}/{job.name}" for job in jobs)
    curves = curves_of([f"stuck={one}", *(f"rest={other}" for other in others)])
    assert {name: len(found) for name, found in curves.items()} == {"stuck": 1, "rest": 2}
    assert list(curves_of([one, others[0]])) == ["seed 0", "seed 1"]
    lengths = lengths_of([*(f"rest={other}" for other in others), one])
    assert list(lengths.values()) == [{24: (2, 4)}, {24: (1, 2)}]
    assert next(iter(lengths)) == "rest"


def test_a_file_with_a_name_is_not_overwritten(tmp_path, run):
    (kept := tmp_path / "one.json").write_text("{}")
    for what in ("curves", "lengths"):
        line = fails(run, "plot", what, f"ours={kept}", "--out", kept)
        assert f"--out {kept} would overwrite what the command reads" in line


def test_a_file_with_an_equals_sign_in_its_path_has_no_name(tmp_path):
    job = next(iter(load("table1").rows[0].jobs("length", official=True)))
    Records(tmp_path / "a=b").add(
        job, record_of(job, 0.5, test={"exact_match": 0, "by_length": {}})
    )
    (single := tmp_path / "a=b" / "one.json").write_text(
        (tmp_path / "a=b" / "length.jsonl").read_text()
    )
    assert list(lengths_of([str(single)])) == [job.description.rpartition(", ")[0]]


def test_lengths_are_drawn_for_records_and_seeds_for_a_table(tmp_path, run):
    records, out = Records(tmp_path / "records"), tmp_path / "picture.png"
    for job in list(load("table1").rows[0].jobs("length", official=True))[:2]:
        counts = {"exact_match": 0.5, "by_length": {"24": [1, 2], "25": [0, 3]}}
        records.add(job, record_of(job, 0.5, test=counts))
    one = f"{tmp_path}/records/length/russin*"
    for asked in (("lengths", one), ("table1", "--records", tmp_path / "records")):
        assert run("plot", *asked, "--out", out) == (0, "", "")
        assert out.read_bytes().startswith(b"\x89PNG")
        out.unlink()
    nothing = fails(run, "plot", "lengths", tmp_path / "records" / "length" / "wu*", "--out", out)
    assert "wu*: no such record" in nothing
    records.add(job, record_of(job, 0.5))
    assert "is damaged: KeyError('by_length')" in fails(run, "plot", "lengths", one, "--out", out)
    assert "files are for curves" in fails(run, "plot", "table1", one, "--out", out)


def test_the_records_of_this_project_have_the_names_of_their_jobs():
    folder = Path(__file__).parents[2] / "records"
    paths = sorted(folder.glob("*.jsonl"))
    assert len(paths) == 15
    for path in paths:
        for name, record in read_records(path).items():
            assert str(folder / Job.of_record(record).name) == name
        # no path of the machine that made it
        assert not re.search(r'"/\w+/', path.read_text(encoding="utf-8"))


def test_a_table_says_how_many_seeds_of_lane_converged(tmp_path):
    row = Row("LANE", ("length",), 2, {"kind": "lane"}, width=1, more_seeds={"length": 4})
    table = Experiment("t", "A table", ("length",), (row, OTHER))
    records = Records(tmp_path)
    jobs = list(table.jobs(official=False))
    assert [job.config.seed for job in jobs] == [0, 1, 2, 3]
    for job, right, accuracy in zip(jobs, (1.0, 0.25, 0.75), (1.0, 0.5, 0.99), strict=False):
        made = record_of(job, right, updates=100 * (job.config.seed + 1))
        records.add(job, made | {"valid": {"loss": 0.5, "accuracy": accuracy}})
    records.add(jobs[3], diverged(jobs[3]))
    (_, (head, line)) = cells(make_table(table, records, official=False))
    assert head[2] == "converged"
    assert line[1:] == ["Length", "2 of 4", "**100.00** 25.00 **75.00** 0.00", "87.50", "100–300"]


def test_fewer_seeds_are_fewer_on_every_split():
    table = load("table1").restricted(only="Liu", seeds=2)
    assert max(job.config.seed for job in table.jobs(official=True)) == 1
