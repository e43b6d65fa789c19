"""Jobs, their names and trainings, and folders of records."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from equitrans.data.scan import DIRECTIONS, VERBS
from equitrans.data.source import load_data
from equitrans.errors import ConfigError, EquitransError, RunError
from equitrans.experiments.jobs import CURVE, POINTS, Job, Order, learning_curve, perform
from equitrans.experiments.records import Records, read_records
from equitrans.training import runs
from equitrans.training.runs import Run
from equitrans.training.trained import Trained
from tiny import DIVERGING, figures_of, tiny_job, tiny_record, tiny_split


@pytest.fixture(autouse=True)
def _world():
    torch.set_default_dtype(torch.float32)
    with tiny_split():
        yield


# --- jobs and their names


def test_equal_settings_give_equal_names():
    job = Job.of("length", {"model.hidden": 9, "training.epochs": 2}, seed=1)
    assert job == Job.of("length", {"training.epochs": 2, "model.hidden": 9}, seed=1)
    assert job.name == Job.of("length", {"training.epochs": 2, "model.hidden": 9}, seed=1).name
    explicit = {"recipe": "default", "kind": "transducer"}
    assert Job.of("length", explicit, seed=1).name == Job.of("length", {}, seed=1).name
    assert (
        Job.of("length", {"training.weight_decay": 0}, seed=1).name
        == Job.of("length", {"training.weight_decay": 0.0}, seed=1).name
    )


def test_every_changed_setting_gives_another_name():
    base = {"classes": "verbs"}
    names = {
        Job.of("length", base, seed=0).name,
        Job.of("add_jump", base, seed=0).name,
        Job.of("length", base, seed=1).name,
        Job.of("length", base, seed=0, width=1).name,
        Job.of("length", base, seed=0, official=True).name,
        *(
            Job.of("length", base | {name: value}, seed=0).name
            for name, value in {
                "classes": "both",
                "hold_out": "random",
                "validation": 0.2,
                "characters": True,
                "orbits": "walk",
                "orbits_every": 2,
                "kind": "attention",
                "model.hidden": 9,
                "model.aligner": "recursive",
                "training.epochs": 3,
                "training.passes": 2,
                "training.learning_rate": 0.1,
                "training.clip": None,
            }.items()
        ),
    }
    assert len(names) == 18


def test_a_setting_at_its_default_does_not_change_the_name():
    plain = Job.of("length", {}, seed=0)
    usual = {name: value for name, value in plain.settings.items() if name not in ("kind", "split")}
    del usual["width"], usual["official"]
    assert len(usual) > 20
    for name, value in usual.items():
        assert Job.of("length", {name: value}, seed=0).name == plain.name, name


def test_the_folder_of_the_official_files_does_not_change_the_name():
    job = tiny_job()
    for scan_dir in ("/here", "/there"):
        data = replace(job.config.data, scan_dir=scan_dir)
        moved = replace(job, config=replace(job.config, data=data))
        assert moved.name == job.name
        assert moved.settings == job.settings


def test_unusual_settings_are_those_that_differ_from_defaults():
    assert Job.of("add_jump", {}, seed=3).unusual == {}
    chosen = {"classes": "verbs", "model.hidden": 9, "training.clip": None, "orbits": "walk"}
    assert Job.of("add_jump", chosen, seed=3).unusual == chosen
    job = Job.of("add_jump", {"kind": "gordon"}, seed=3, width=1, official=True)
    assert job.unusual["classes"] == "verbs"  # by its recipe
    assert job.unusual["width"] == 1
    assert job.unusual["official"] is True
    assert "kind" not in job.unusual
    assert job.name.startswith("add_jump/gordon-")
    assert job.name.endswith("-3")


def test_an_unknown_setting_is_refused_with_the_nearest_one():
    with pytest.raises(EquitransError, match="did you mean 'hidden'"):
        Job.of("length", {"model.hiden": 3}, seed=0)
    with pytest.raises(EquitransError, match="did you mean 'classes'"):
        Job.of("length", {"clases": "verbs"}, seed=0)
    with pytest.raises(EquitransError, match="did you mean 'paper'"):
        Job.of("length", {"recipe": "papr"}, seed=0)


# --- folders of records


def made_up(job: Job, **more: object) -> dict:
    return {"format": 1, "settings": job.settings, "seed": job.config.seed, "test": None, **more}


def test_an_added_record_is_found_by_its_job_only(tmp_path):
    records, job = Records(tmp_path / "records"), tiny_job()
    assert records.find(job) is None
    record = made_up(job, failed="ünlucky\u2028", valid={"loss": 0.1 + 0.2})
    records.add(job, record)
    assert records.find(job) == record
    assert "ünlucky" in (tmp_path / "records" / "tiny.jsonl").read_text(encoding="utf-8")
    assert records.find(tiny_job(1)) is None
    assert records.find(tiny_job(official=True)) is None
    again = made_up(job, failed="again")
    records.add(job, again)
    assert records.find(job) == again
    assert [p.name for p in (tmp_path / "records").iterdir()] == ["tiny.jsonl"]


def test_a_file_has_one_record_per_line_sorted_by_name(tmp_path):
    records, jobs = Records(tmp_path), [tiny_job(seed) for seed in (2, 0, 1)]
    for job in jobs:
        records.add(job, made_up(job))
    length = Job.of("length", {}, seed=0)
    records.add(length, made_up(length))
    lines = (tmp_path / "tiny.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1, 2]
    assert [json.loads(line)["name"] for line in lines] == sorted(
        job.name.partition("/")[2] for job in jobs
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["length.jsonl", "tiny.jsonl"]


ADDING = """
import sys
from pathlib import Path
from equitrans.experiments import Job, Records
records = Records(Path(sys.argv[1]))
for seed in map(int, sys.argv[2:]):
    job = Job.of("length", {}, seed=seed)
    records.add(job, {"settings": job.settings, "seed": seed, "test": None})
"""


def test_records_that_two_processes_add_at_once_are_all_kept(tmp_path):
    parts = [list(range(0, 40, 2)), list(range(1, 40, 2))]
    processes = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(tmp_path), *map(str, seeds)])
        for seeds in parts
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    records = Records(tmp_path)
    assert records.missing(Job.of("length", {}, seed=seed) for seed in range(40)) == []
    assert [path.name for path in tmp_path.iterdir()] == ["length.jsonl"]


def test_single_json_files_of_earlier_versions_are_found(tmp_path):
    records, job = Records(tmp_path), tiny_job()
    path = tmp_path / f"{job.name}.json"
    path.parent.mkdir()
    path.write_text(json.dumps(made_up(job, failed="old")))
    assert records.find(job) == made_up(job, failed="old")
    assert list(read_records(path).values()) == [made_up(job, failed="old")]
    records.add(job, made_up(job, failed="new"))
    assert records.find(job) == made_up(job, failed="new")


def test_records_are_read_by_file_by_name_and_by_pattern(tmp_path):
    records, jobs = Records(tmp_path), [tiny_job(seed) for seed in range(3)]
    for job in jobs:
        records.add(job, made_up(job))
    whole = read_records(tmp_path / "tiny.jsonl")
    assert [record["seed"] for record in whole.values()] == [0, 1, 2]
    assert list(whole) == [str(tmp_path / job.name) for job in jobs]
    for name in (jobs[1].name, f"{jobs[1].name}.json"):
        (record,) = read_records(tmp_path / name).values()
        assert record["seed"] == 1
    assert read_records(tmp_path / "tiny" / "transducer*") == whole
    assert read_records(tmp_path / "tiny" / "gordon*") == {}
    assert read_records(tmp_path / "absent.jsonl") == {}


def test_a_record_made_with_another_default_is_not_found(tmp_path):
    records, job = Records(tmp_path), tiny_job()
    then = job.settings | {"model.dropout": 0.77}
    records.add(job, made_up(job, settings=then))
    assert records.find(job) is None
    assert records.missing([job]) == [job]
    # a setting that is absent from a record has its default
    del then["model.dropout"]
    records.add(job, made_up(job, settings=then))
    assert records.find(job) is not None


@pytest.mark.parametrize(
    "damage",
    [b"{", b"[]", b"null", b"\xff\xfe", b'{"seed": 0}', b'{"settings": [], "seed": 0}',
     b'{"settings": [], "seed": 0, "test": null}', b'{"settings": {}, "seed": 0, "test": 3}',
     b'{"format": 99, "settings": {}, "seed": 0, "test": null}', b"[" * 100_000,
     b'{"settings": {}, "seed": 0, "test": null}',
     b'{"name": 5, "settings": {}, "seed": 0, "test": null}'],
)  # fmt: skip
def test_a_damaged_line_is_reported_with_its_number(tmp_path, damage):
    records, job = Records(tmp_path), tiny_job()
    records.add(job, made_up(job))
    path = tmp_path / "tiny.jsonl"
    path.write_bytes(path.read_bytes() + damage + b"\n")
    for use in (lambda: records.find(job), lambda: records.add(job, made_up(job))):
        with pytest.raises(ConfigError, match=f"{path}:2"):
            use()


def test_a_repeated_name_is_reported(tmp_path):
    records, job = Records(tmp_path), tiny_job()
    records.add(job, made_up(job))
    path = tmp_path / "tiny.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(ConfigError, match=f"{path}:2 is damaged: name is 'transducer-"):
        records.find(job)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": True}, "its seed is True"),
        ({"seed": 2**63}, "its seed is 9223372036854775808"),
        ({"valid": {}}, "its valid.loss is missing"),
        ({"seconds": None}, "its seconds is None"),
        ({"test": {"exact_match": 1.5}}, "its test.exact_match is 1.5"),
        ({"orbits": [{"epoch": 0, "observed": ["2"]}]}, "its orbits.observed is '2'"),
        ({"curve": {"number": [1]}}, "its curve.updates is missing"),
        ({"curve": {name: [] for name in CURVE} | {"number": [1]}}, "its curve differ in length"),
    ],
)
def test_a_wrong_value_is_reported_with_its_name(tmp_path, change, message):
    records, job = Records(tmp_path), tiny_job()
    records.add(job, tiny_record())
    assert records.find(job) == tiny_record()
    records.add(job, tiny_record() | change)
    with pytest.raises(ConfigError, match=message):
        records.find(job)


def test_missing_jobs_are_listed_once_and_in_order(tmp_path):
    records, (a, b, c) = Records(tmp_path), (tiny_job(seed) for seed in range(3))
    records.add(b, made_up(b))
    assert records.missing(iter([c, b, a, c, a, b])) == [c, a]
    assert records.missing([]) == []


def test_records_of_another_version_are_missing_if_a_version_is_asked_for(tmp_path):
    records, (a, b, c, d) = Records(tmp_path), (tiny_job(seed) for seed in range(4))
    for job, version in ((a, "1.0.0"), (b, "0.9.0")):
        records.add(job, made_up(job) | {"version": {"equitrans": version}})
    without = {k: v for k, v in made_up(c).items() if k != "version"}
    records.add(c, without)
    assert records.missing([a, b, c, d], version="1.0.0") == [b, c, d]
    assert records.missing([a, b, c, d], version="0.9.0") == [a, c, d]
    assert records.missing([a, b, c, d]) == [d]


def test_a_learning_curve_has_evenly_spaced_epochs_and_the_last():
    def epochs(count):
        names = ("train_loss", "valid_loss", "valid_accuracy")
        return [
            {"number": n, "updates": 7 * n} | dict.fromkeys(names, 1 / 3) | {"is_best": True}
            for n in range(1, count + 1)
        ]

    for count in (1, 2, POINTS, POINTS + 1, 999, 1000):
        curve = learning_curve(epochs(count))
        numbers = curve["number"]
        assert numbers[-1] == count
        assert len(numbers) <= POINTS + 1
        assert numbers == sorted(set(numbers))
        assert len({len(column) for column in curve.values()}) == 1
    assert learning_curve(epochs(3))["number"] == [1, 2, 3]
    assert learning_curve(epochs(1))["train_loss"] == [0.33333]


# --- trainings


def test_a_record_has_the_figures_of_its_run(tmp_path):
    job, record = tiny_job(), tiny_record()
    data = load_data(job.config.data, seed=0)
    run = Run.create(tmp_path / "run", job.config, data)
    epochs = list(run.train(data))
    trained = Trained.load(tmp_path / "run")
    report = trained.evaluate(data.test)
    best = min(epochs, key=lambda epoch: epoch.valid_loss)
    assert record["test"] == {
        "exact_match": report.exact_match,
        "right": sum(report.right),
        "pairs": 40,
        "refused": 0,
        "tied": report.tied,
        "loss": report.loss,
        "by_length": {str(k): [t.right, t.pairs] for k, t in report.by_length().items()},
    }
    assert sum(pairs for _, pairs in record["test"]["by_length"].values()) == 40
    assert record["valid"] == {"loss": best.valid_loss, "accuracy": best.valid_accuracy}
    assert (record["best_epoch"], record["epochs"]) == (best.number, 7)
    assert record["updates"] == epochs[-1].updates
    assert record["pairs"] == {"train": len(data.train), "valid": len(data.valid), "test": 40}
    assert record["parameters"] == sum(p.numel() for p in trained.model.parameters())
    assert record["curve"]["train_loss"] == [float(f"{e.train_loss:.5g}") for e in epochs]
    # negative control: another seed has other figures
    assert tiny_record(1)["test"]["loss"] != record["test"]["loss"]


def test_a_record_has_settings_versions_and_machine():
    job, record = tiny_job(), tiny_record()
    assert record.keys() == {
        *("format", "settings", "seed", "made", "version", "machine", "parameters", "pairs"),
        *("seconds", "epochs", "updates", "best_epoch", "valid", "test", "curve"),
    }
    assert record["settings"] == job.settings
    assert record["seed"] == 0
    assert record["version"].keys() == {"equitrans", "commit", "torch", "python"}
    assert record["machine"].keys() == {"device", "cores", "threads", "instructions"}
    assert record["seconds"].keys() == {"training", "test"}
    assert record["made"].endswith("+00:00")


@pytest.fixture
def halfway(tmp_path, monkeypatch):
    """The run of a tiny job, stopped after its first epoch, with an empty official folder."""
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    (tmp_path / "official").mkdir()
    order = Order(tiny_job(), str(tmp_path / "run"), scan_dir=str(tmp_path / "official"))
    config = order.job.config
    config = replace(config, data=replace(config.data, scan_dir=order.scan_dir))
    data = load_data(config.data, seed=0)
    epochs = Run.create(order.directory, config, data).train(data)
    next(epochs)
    epochs.close()
    return order


def test_an_interrupted_training_ends_with_the_same_figures(halfway, tmp_path):
    run = Run.open(halfway.directory)
    assert run.learning(run.load_data()).step == 1
    record = perform(halfway)
    assert figures_of(record) == figures_of(tiny_record())
    log = (tmp_path / "run" / "epochs.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["number"] for line in log] == list(range(1, 8))
    # a record has no paths of this machine
    text = json.dumps(record)
    for place in (halfway.directory, halfway.scan_dir, tmp_path, Path.home(), Path.cwd()):
        assert str(place) not in text
    # a finished run is evaluated again without training
    before = (tmp_path / "run" / "state.safetensors").stat().st_mtime_ns
    assert figures_of(perform(halfway)) == figures_of(record)
    assert (tmp_path / "run" / "state.safetensors").stat().st_mtime_ns == before


def test_a_record_has_the_orbits_of_its_run(tmp_path):
    words = {*VERBS.source, *DIRECTIONS.source}
    sentence = next(
        " ".join(pair.source)
        for pair in load_data(tiny_job().config.data, seed=0).train
        if len(words & set(pair.source)) == sum(word in words for word in pair.source)
    )
    job = tiny_job(settings={"orbits": sentence, "orbits_every": 2, "training.epochs": 3})
    record = perform(Order(job, str(tmp_path / "run")))
    logged = Run.open(tmp_path / "run").orbit_records()
    assert [r["epoch"] for r in logged] == [0, 2, 3]
    assert record["orbits"] == [
        {"epoch": r["epoch"], "observed": r["observed"], "sharpness": r["sharpness"]}
        for r in logged
    ]
    assert len({sum(r["observed"]) for r in logged}) == 1


def test_an_incomplete_run_directory_is_replaced_and_another_run_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "vocabulary.json").write_text("{")
    order = Order(tiny_job(settings={"training.epochs": 1}), str(tmp_path / "run"))
    assert perform(order)["epochs"] == 1
    with pytest.raises(RunError, match="has other settings than its job"):
        perform(replace(order, job=tiny_job()))


def test_a_nan_loss_gives_a_record_without_test_figures(tmp_path):
    job = tiny_job(settings=DIVERGING)
    record = perform(Order(job, str(tmp_path / "run")))
    assert "loss is nan" in record["failed"]
    assert record["test"] is None
    assert str(tmp_path) not in json.dumps(record)
    records = Records(tmp_path / "records")
    records.add(job, record)
    assert records.find(job) == record


def test_a_damaged_checkpoint_raises_an_error(halfway):
    (Path(halfway.directory) / "state.safetensors").write_bytes(b"nonsense")
    with pytest.raises(RunError, match=r"state.safetensors is damaged"):
        perform(halfway)
