"""A record is the figures of one training and all that decided them; nothing else names it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from equitrans.data.scan import DIRECTIONS, VERBS
from equitrans.data.source import load_data
from equitrans.errors import EquitransError, RunError
from equitrans.experiments.records import POINTS, Job, Order, Records, learning_curve, perform
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


def test_the_same_settings_have_the_same_name_however_they_are_given():
    job = Job.of("length", {"model.hidden": 9, "training.epochs": 2}, seed=1)
    assert job == Job.of("length", {"training.epochs": 2, "model.hidden": 9}, seed=1)
    assert job.name == Job.of("length", {"training.epochs": 2, "model.hidden": 9}, seed=1).name
    explicit = {"recipe": "default", "kind": "transducer"}
    assert Job.of("length", explicit, seed=1).name == Job.of("length", {}, seed=1).name
    # a whole number is a number
    assert (
        Job.of("length", {"training.weight_decay": 0}, seed=1).name
        == Job.of("length", {"training.weight_decay": 0.0}, seed=1).name
    )


def test_every_change_gives_another_name():
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


def test_where_the_official_files_lie_does_not_change_the_name():
    job = tiny_job()
    for scan_dir in ("/here", "/there"):
        data = replace(job.config.data, scan_dir=scan_dir)
        moved = replace(job, config=replace(job.config, data=data))
        assert moved.name == job.name
        assert moved.settings == job.settings


def test_what_is_unusual_is_what_was_chosen():
    assert Job.of("add_jump", {}, seed=3).unusual == {}
    chosen = {"classes": "verbs", "model.hidden": 9, "training.clip": None, "orbits": "walk"}
    assert Job.of("add_jump", chosen, seed=3).unusual == chosen
    job = Job.of("add_jump", {"kind": "gordon"}, seed=3, width=1, official=True)
    assert job.unusual["classes"] == "verbs"  # by its recipe
    assert job.unusual["width"] == 1
    assert job.unusual["official"] is True
    assert "kind" not in job.unusual
    assert job.name.startswith("add_jump/gordon-")
    assert job.name.endswith("-3.json")


def test_a_setting_that_is_none_is_answered_with_the_nearest():
    with pytest.raises(EquitransError, match="did you mean 'hidden'"):
        Job.of("length", {"model.hiden": 3}, seed=0)
    with pytest.raises(EquitransError, match="did you mean 'classes'"):
        Job.of("length", {"clases": "verbs"}, seed=0)
    with pytest.raises(EquitransError, match="did you mean 'paper'"):
        Job.of("length", {"recipe": "papr"}, seed=0)


# --- the folder


def made_up(job: Job, **more: object) -> dict:
    return {"format": 1, "settings": job.settings, "seed": job.config.seed, "test": None, **more}


def test_what_is_added_is_found_and_nothing_else(tmp_path):
    records, job = Records(tmp_path / "records"), tiny_job()
    assert records.find(job) is None
    record = made_up(job, failed="ünlucky", valid={"loss": 0.1 + 0.2})
    records.add(job, record)
    assert records.find(job) == record
    assert "ünlucky" in (tmp_path / "records" / job.name).read_text(encoding="utf-8")
    assert records.find(tiny_job(1)) is None
    assert records.find(tiny_job(official=True)) is None
    again = made_up(job, failed="again")
    records.add(job, again)
    assert records.find(job) == again
    assert [p.name for p in (tmp_path / "records" / "tiny").iterdir()] == [Path(job.name).name]


def test_a_record_made_when_a_default_was_another_is_not_found(tmp_path):
    records, job = Records(tmp_path), tiny_job()
    then = job.settings | {"model.dropout": 0.77}
    records.add(job, made_up(job, settings=then))
    assert records.find(job) is None
    assert records.missing([job]) == [job]
    # a setting that did not exist then has its default now
    del then["model.dropout"]
    records.add(job, made_up(job, settings=then))
    assert records.find(job) is not None


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"seed": 0}', b'{"settings": [], "seed": 0}',
     b'{"settings": [], "seed": 0, "test": null}', b'{"settings": {}, "seed": 0, "test": 3}',
     b'{"format": 99}'],
)  # fmt: skip
def test_a_damaged_record_is_named(tmp_path, damage):
    records, job = Records(tmp_path), tiny_job()
    records.add(job, made_up(job))
    path = tmp_path / job.name
    path.write_bytes(damage)
    with pytest.raises(EquitransError) as error:
        records.find(job)
    assert str(path.parent if b"99" in damage else path) in str(error.value)


def test_each_missing_job_comes_once_in_order(tmp_path):
    records, (a, b, c) = Records(tmp_path), (tiny_job(seed) for seed in range(3))
    records.add(b, made_up(b))
    assert records.missing(iter([c, b, a, c, a, b])) == [c, a]
    assert records.missing([]) == []


def test_a_learning_curve_keeps_some_epochs_and_the_last():
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


def test_a_record_has_the_figures_of_a_plain_run(tmp_path):
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
    # the negative control: another seed has other figures
    assert tiny_record(1)["test"]["loss"] != record["test"]["loss"]


def test_a_record_says_what_made_it():
    job, record = tiny_job(), tiny_record()
    assert record.keys() == {
        *("format", "settings", "seed", "made", "version", "machine", "parameters", "pairs"),
        *("seconds", "epochs", "updates", "best_epoch", "valid", "test", "curve"),
    }
    assert record["settings"] == job.settings
    assert record["seed"] == 0
    assert record["version"].keys() == {"equitrans", "torch", "python"}
    assert record["machine"].keys() == {"device", "cores", "threads"}
    assert record["seconds"].keys() == {"training", "test"}
    assert record["made"].endswith("+00:00")


@pytest.fixture
def halfway(tmp_path, monkeypatch):
    """The run of a tiny job, stopped after its first epoch; the official folder has nothing that
    is needed.
    """
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


def test_a_training_that_was_interrupted_comes_to_the_same_figures(halfway, tmp_path):
    run = Run.open(halfway.directory)
    assert run.learning(run.load_data()).step == 1
    record = perform(halfway)
    assert figures_of(record) == figures_of(tiny_record())
    log = (tmp_path / "run" / "epochs.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["number"] for line in log] == list(range(1, 8))
    # a record says nothing of this machine's folders
    Records(tmp_path / "records").add(halfway.job, record)
    text = (tmp_path / "records" / halfway.job.name).read_text(encoding="utf-8")
    assert json.loads(text) == record
    for place in (halfway.directory, halfway.scan_dir, tmp_path, Path.home(), Path.cwd()):
        assert str(place) not in text
    # once finished, it is judged again without training
    before = (tmp_path / "run" / "state.safetensors").stat().st_mtime_ns
    assert figures_of(perform(halfway)) == figures_of(record)
    assert (tmp_path / "run" / "state.safetensors").stat().st_mtime_ns == before


def test_orbits_are_kept_as_they_were_recorded(tmp_path):
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
    assert record["orbits"] == [{"epoch": r["epoch"], "observed": r["observed"]} for r in logged]
    assert len({sum(r["observed"]) for r in logged}) == 1  # the family stays the same


def test_what_an_interrupted_creation_has_left_is_no_hindrance_and_another_run_is(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "vocabulary.json").write_text("{")
    order = Order(tiny_job(settings={"training.epochs": 1}), str(tmp_path / "run"))
    assert perform(order)["epochs"] == 1
    with pytest.raises(RunError, match="has other settings than its record"):
        perform(replace(order, job=tiny_job()))


def test_a_loss_that_is_no_number_is_a_figure_too(tmp_path):
    job = tiny_job(settings=DIVERGING)
    record = perform(Order(job, str(tmp_path / "run")))
    assert "loss is nan" in record["failed"]
    assert record["test"] is None
    assert str(tmp_path) not in json.dumps(record)
    records = Records(tmp_path / "records")
    records.add(job, record)
    assert records.find(job) == record


def test_a_damaged_checkpoint_is_no_figure(halfway):
    (Path(halfway.directory) / "state.safetensors").write_bytes(b"nonsense")
    with pytest.raises(RunError, match=r"state.safetensors is damaged"):
        perform(halfway)
