"""Run directories: created, continued bit for bit, rejected if incomplete."""

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from equitrans.data.classes import format_classes
from equitrans.data.pairs import format_tsv
from equitrans.data.scan import CLASSES, load_split
from equitrans.data.source import DataConfig, load_data
from equitrans.errors import ConfigError, DataError, DivergenceError, RunError
from equitrans.models.configs import TransducerConfig
from equitrans.paper import Batch, Moment
from equitrans.training import runs
from equitrans.training.config import RunConfig, TrainingConfig
from equitrans.training.runs import Run
from equitrans.training.tensors import part
from equitrans.training.trained import Trained

SMALL = TransducerConfig(k=4, d=3, embedding=5, hidden=6, dropout=0.2)


pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture
def files(tmp_path):
    """Fifty pairs and their classes, on disk."""
    pairs = load_split("simple_p1").train[:50]
    (tmp_path / "pairs.tsv").write_text(format_tsv(pairs))
    (tmp_path / "classes.toml").write_text(format_classes(CLASSES["both"]))
    return tmp_path


def config(files, **training):
    return RunConfig(
        data=DataConfig(file=str(files / "pairs.tsv"), classes=str(files / "classes.toml")),
        model=SMALL,
        training=TrainingConfig(**({"epochs": 6} | training)),
        seed=3,
    )


def create(path, settings):
    return Run.create(path, settings, load_data(settings.data, seed=settings.seed))


def weights(path):
    return (path / "model.safetensors").read_bytes()


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_run_resumed_after_any_epoch_ends_with_the_same_bits(files, monkeypatch, stop, schedule):
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    settings = config(files, schedule=schedule)
    whole = create(files / "whole", settings)
    expected = [e.train_loss for e in whole.train(whole.load_data())]

    broken = create(files / "broken", settings)
    epochs = broken.train(broken.load_data())
    losses = [next(epochs).train_loss for _ in range(stop)]
    epochs.close()
    # lines behind the checkpoint, as after a power failure; the last is partial
    with (files / "broken" / "epochs.jsonl").open("a") as log:
        log.write('{"number": 99}\n{"numb')

    again = Run.open(files / "broken")
    losses += [e.train_loss for e in again.train(again.load_data())]
    assert losses == expected
    assert weights(files / "broken") == weights(files / "whole")
    lines = (files / "broken" / "epochs.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3, 4, 5, 6]
    one, other = (
        run.learning(run.load_data()).model.state_dict() for run in (whole, Run.open(again.path))
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_without_a_checkpoint_starts_again_from_the_same_weights(files):
    settings = config(files, epochs=2)
    whole = create(files / "whole", settings)
    expected = [e.train_loss for e in whole.train(whole.load_data())]
    create(files / "broken", settings)
    again = Run.open(files / "broken")
    assert [e.train_loss for e in again.train(again.load_data())] == expected
    assert weights(files / "broken") == weights(files / "whole")


def test_a_run_stopped_in_its_warm_start_continues(files, monkeypatch):
    """The aligner has no gradient in a warm start, so the optimiser has no state for it."""
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    settings = replace(config(files), model=replace(SMALL, warm_start=0.5))
    whole = create(files / "whole", settings)
    list(whole.train(whole.load_data()))
    broken = create(files / "broken", settings)
    epochs = broken.train(broken.load_data())
    next(epochs)
    epochs.close()
    again = Run.open(files / "broken")
    assert len(list(again.train(again.load_data()))) == 5
    assert weights(files / "broken") == weights(files / "whole")


def test_a_killed_run_is_resumed_and_ends_with_the_same_weights(files):
    """A real process, killed without warning, then continued from the command line."""
    program = (
        "import sys, time; from equitrans.training import runs\n"
        "from equitrans.cli.main import main\n"
        "runs.CHECKPOINT_SECONDS = 0.0\n{}sys.exit(main(sys.argv[1:]))"
    )
    slowly = (  # it must not end before it is killed
        "append, lines = runs.append_line, []\n"
        "def append_line(*what):\n"
        "    lines.append(what)\n"
        "    time.sleep(600 if len(lines) > 10 else 0)\n"
        "    append(*what)\n"
        "runs.append_line = append_line\n"
    )
    arguments = [
        *("train", "--data", str(files / "pairs.tsv"), "--classes", str(files / "classes.toml")),
        *("--training.epochs", "20", "--model.hidden", "8", "--seed", "1", "--quiet"),
    ]

    def start(*more, first=""):
        return subprocess.Popen([sys.executable, "-c", program.format(first), *more])

    assert start(*arguments, "--out", str(files / "whole")).wait(600) == 0
    process = start(*arguments, "--out", str(files / "killed"), first=slowly)
    log = files / "killed" / "epochs.jsonl"
    while not log.is_file() or log.read_text().count("\n") < 5:
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert not Run.open(files / "killed").is_finished
    assert start("train", "--resume", str(files / "killed"), "--quiet").wait(600) == 0
    assert weights(files / "killed") == weights(files / "whole")


def replayed(path, model):
    """The loss of the batch that a run has saved, computed again."""
    saved = load_file(path)
    model.load_state_dict(part(saved, "weights."))
    updates, done = saved["moment"].tolist()
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(saved["random"])
        batch = Batch(**part(saved, "batch."))
        losses = model.train().loss(batch, moment=Moment(int(updates), done))
    loss = (losses * batch.weight).sum() / batch.weight.sum()
    return float(loss.detach()), float(saved["loss"])


def test_a_run_that_diverges_saves_the_batch_and_names_the_file(files):
    settings = config(files, learning_rate=1000.0, weight_decay=1e30, clip=None)
    run = create(files / "run", settings)
    with pytest.raises(DivergenceError, match=r"epoch \d+, update \d+: the training") as error:
        list(run.train(run.load_data()))
    path = run.path / "broken.safetensors"
    assert str(error.value).endswith(f"; the batch is saved in {path}")
    again, saved = replayed(path, Run.open(run.path).trained.model)
    assert not math.isfinite(saved)
    assert not math.isfinite(again)


def test_the_saved_batch_has_the_same_loss_again_dropout_included(files, monkeypatch):
    """Every loss counts as NaN here, so that it can be compared to its last bit."""
    finite = SimpleNamespace(**vars(math) | {"isfinite": lambda value: False})
    monkeypatch.setattr("equitrans.training.loop.math", finite)
    run = create(files / "run", config(files))
    with pytest.raises(DivergenceError, match="the training loss is"):
        list(run.train(run.load_data()))
    again, saved = replayed(run.path / "broken.safetensors", Run.open(run.path).trained.model)
    assert again == saved > 0


def test_a_divergence_without_a_batch_saves_none(files, monkeypatch):
    def train(*_):
        raise DivergenceError("the loss is nan")

    monkeypatch.setattr("equitrans.training.learning.train", train)
    run = create(files / "run", config(files))
    with pytest.raises(DivergenceError, match=r"^the loss is nan$"):
        list(run.train(run.load_data()))
    assert not (run.path / "broken.safetensors").exists()


def test_training_a_finished_run_again_changes_nothing(files):
    run = create(files / "run", config(files, epochs=2))
    assert not run.is_finished
    list(run.train(run.load_data()))
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in run.path.iterdir()}
    again = Run.open(run.path)
    assert again.is_finished
    assert list(again.train(again.load_data())) == []
    after = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in run.path.iterdir()}
    assert {k: v[0] for k, v in before.items()} == {k: v[0] for k, v in after.items()}


def test_a_run_ended_by_patience_is_finished_too(files):
    run = create(files / "run", config(files, epochs=200, patience=1, learning_rate=0.5))
    assert len(list(run.train(run.load_data()))) < 200
    assert Run.open(run.path).is_finished


def test_the_best_weights_are_those_of_the_best_epoch(files):
    run = create(files / "run", config(files, epochs=8, learning_rate=0.2, schedule="constant"))
    epochs = list(run.train(run.load_data()))
    best = min(epochs, key=lambda e: e.valid_loss)
    trained = Trained.load(run.path)
    from equitrans.analysis.evaluation import mean_loss
    from equitrans.data.batches import Rows

    valid = Rows.of(run.load_data().valid, trained.symmetry)
    assert mean_loss(trained.model, valid) == pytest.approx(best.valid_loss, rel=1e-6)


def test_a_run_directory_has_all_settings_and_the_format_number(files):
    settings = config(files)
    create(files / "run", settings)
    again = Run.open(files / "run")
    assert again.config == settings
    content = json.loads((files / "run" / "config.json").read_text())
    assert content["format"] == 2
    assert content["seed"] == 3


def test_an_existing_directory_is_not_overwritten(files):
    create(files / "run", config(files))
    with pytest.raises(RunError, match="already exists"):
        create(files / "run", config(files))
    (files / "file").write_text("")
    with pytest.raises(RunError, match="already exists"):
        create(files / "file", config(files))


def test_changed_data_are_reported(files):
    run = create(files / "run", config(files))
    (files / "pairs.tsv").write_text("walk\tI_WALK\n")
    with pytest.raises(RunError, match="has changed since"):
        run.load_data()


def break_config(path, **changes):
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(content | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda p: (p / "config.json").unlink(),
            "not a complete run directory: config.json is missing",
        ),
        (lambda p: (p / "vocabulary.json").unlink(), "vocabulary.json is missing"),
        (lambda p: (p / "config.json").write_text("{"), "config.json is damaged"),
        (lambda p: (p / "config.json").write_text("[]"), "config.json is damaged"),
        (
            lambda p: break_config(p, format=3, version="9.9"),
            "written by equitrans 9.9 in format 3",
        ),
        (lambda p: break_config(p, format="two"), "is damaged: its format is 'two'"),
        (lambda p: break_config(p, max_length=0), "max_length is 0; it must be from 1 to"),
        (lambda p: break_config(p, max_length="3"), "max_length is '3'; it must be from 1 to"),
        (lambda p: break_config(p, characters=1), "characters is 1; it must be true or false"),
        (lambda p: break_config(p, model={"hiden": 3}), "did you mean 'hidden'"),
        (lambda p: break_config(p, model={"hidden": 0}), "model.hidden is 0"),
        (lambda p: (p / "model.safetensors").unlink(), "--resume .*run continues it"),
        (lambda p: (p / "model.safetensors").write_bytes(b"x"), "is damaged: .*header too small"),
        (
            lambda p: break_config(p, model={"hidden": 7}),
            "does not fit the model that",
        ),
    ],
)
def test_an_incomplete_damaged_or_newer_directory_is_rejected(files, damage, message):
    run = create(files / "run", config(files, epochs=1))
    list(run.train(run.load_data()))
    Trained.load(run.path)
    damage(run.path)
    with pytest.raises(RunError, match=message):
        Trained.load(run.path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: Expecting property name"),
        ("[]", "line 2: .* is not a table of settings"),
        ('{"number": "one"}', "line 2: .*number"),
        ("[" * 100_000, "line 2: nested too deeply"),
    ],
)
def test_a_damaged_log_line_is_rejected_and_a_partial_last_line_is_skipped(files, line, message):
    run = create(files / "run", config(files, epochs=1))
    list(run.train(run.load_data()))
    log = run.path / "epochs.jsonl"
    with log.open("a") as file:
        file.write(line)
    assert len(run.epochs()) == 1
    with log.open("a") as file:
        file.write("\n")
    with pytest.raises(RunError, match=f"epochs.jsonl is damaged: {message}"):
        run.epochs()


def test_a_damaged_checkpoint_is_rejected(files):
    run = create(files / "run", config(files, epochs=1))
    (run.path / "state.safetensors").write_bytes(b"nonsense")
    with pytest.raises(RunError, match=r"state.safetensors is damaged"):
        list(run.train(run.load_data()))


def test_a_saved_model_is_not_a_training_run(files, tmp_path):
    run = create(files / "run", config(files, epochs=1))
    run.trained.save(tmp_path / "model")
    with pytest.raises(RunError, match="is a model, not a training run"):
        Run.open(tmp_path / "model")


def test_an_absent_directory_is_reported(tmp_path):
    with pytest.raises(RunError, match="no such run directory"):
        Run.open(tmp_path / "nothing")


def test_impossible_data_settings_are_rejected(files):
    with pytest.raises(ConfigError, match="either --split NAME or --data FILE"):
        DataConfig()
    with pytest.raises(ConfigError, match="either --split NAME or --data FILE"):
        DataConfig(split="length", file="x")
    with pytest.raises(ConfigError, match="own data need --classes"):
        load_data(DataConfig(file=str(files / "pairs.tsv")), seed=0)
    with pytest.raises(
        ConfigError,
        match="'verb' is neither a name of classes nor a TOML file; did you mean 'verbs'",
    ):
        load_data(DataConfig(split="simple_p1", classes="verb"), seed=0)
    with pytest.raises(FileNotFoundError):
        load_data(DataConfig(split="simple_p1", classes="verb.toml"), seed=0)


def test_classes_of_a_split_can_come_from_a_file(files):
    data = load_data(DataConfig(split="simple_p1", classes=str(files / "classes.toml")), seed=0)
    assert data.classes == CLASSES["both"]
    assert data.unseen == []
    with pytest.raises(DataError):
        load_data(DataConfig(split="simple_p1", scan_dir=str(files)), seed=0)


def test_a_full_disk_is_reported_and_leaves_no_partial_file(files):
    """A limit on the size of files stands for a full disk: writing the weights fails half way."""
    program = (
        "import resource, signal, sys; from equitrans.cli.main import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))\n"
        "status = main(sys.argv[1:])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "sys.exit(status)"
    )
    run = files / "run"
    options = f"--data {files}/pairs.tsv --classes {files}/classes.toml --out {run} --quiet"
    done = subprocess.run(
        [*(sys.executable, "-c", program, "train", *options.split()), "--training.epochs", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"equitrans: {run}/model.safetensors: File too large\n"
    names = {p.name for p in run.iterdir()}
    assert names == {"config.json", "vocabulary.json", "epochs.jsonl"}
