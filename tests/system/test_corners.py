"""What is off the straight road: refusals and turns that no other test comes by."""

import json
from importlib.metadata import PackageNotFoundError

import pytest
import torch

from equitrans.analysis.plots import draw_trials
from equitrans.cli import doctor, plot
from equitrans.cli.explore import is_loopback
from equitrans.data.batches import Rows
from equitrans.data.pairs import Pair, as_pairs
from equitrans.data.source import load_data
from equitrans.errors import ConfigError, DataError, DivergenceError, RunError
from equitrans.experiments import search
from equitrans.experiments.plans import load_search
from equitrans.experiments.records import read_record
from equitrans.files import check_format
from equitrans.models.configs import MODELS, TransducerConfig
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.training import runs
from equitrans.training.breakdowns import Breakdown
from equitrans.training.config import RunConfig, TrainingConfig
from equitrans.training.exporting import export
from equitrans.training.extending import extend
from equitrans.training.runs import Run
from equitrans.training.trained import Trained
from tiny import SETTINGS, tiny_record
from worlds import SYMMETRIES, random_pairs, small

PAIRS = [
    Pair(("walk",), ("WALK",)),
    Pair(("jump",), ("JUMP",)),
    Pair(("jump", "twice"), ("JUMP",) * 2),
]
VERBS = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))


pytestmark = pytest.mark.usefixtures("float32")


def untrained(kind="transducer", *, characters=False, **settings):
    sizes = {"k": 2, "d": 2, "hidden": 3} if kind == "transducer" else {}
    config = MODELS[kind](**sizes | settings)
    symmetry = Symmetry.of([VERBS], PAIRS, "cyclic")
    return Trained.new(config, symmetry, max_length=3, characters=characters)


# --- values


def test_what_cannot_be_a_setting_is_refused():
    with pytest.raises(ConfigError, match=r"learning_rate is 1001\.0; it must be at most 1000"):
        TrainingConfig(learning_rate=1001.0)
    with pytest.raises(ConfigError, match="orbits_every is 0; it must be 1 or more"):
        RunConfig.from_settings({"split": "length", "orbits_every": 0})


def test_one_sentence_is_not_several_and_one_word_is_no_pair():
    with pytest.raises(DataError, match="'jump twice' is one sentence; give a list"):
        untrained().n_best("jump twice", n=1)
    for use in (as_pairs, untrained().evaluate):
        with pytest.raises(DataError, match=r"pair 2 is .*; expected a source and a target"):
            use([("walk", "WALK"), ("", "WALK")])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_length", 0, "max_length is 0; it must be a number above 0"),
        ("max_length", "3", "max_length is '3'; it must be a number above 0"),
        ("characters", 1, "characters is 1; it must be true or false"),
        ("format", "two", "is damaged: its format is 'two'"),
    ],
)
def test_a_model_s_description_with_a_wrong_field_is_refused(tmp_path, name, value, message):
    untrained().save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(RunError, match=message):
        Trained.load(tmp_path / "model")


def test_a_format_is_the_one_that_is_expected(tmp_path):
    check_format(tmp_path, {"format": 2}, 2)
    with pytest.raises(RunError):
        check_format(tmp_path, {"format": 1}, 2)


def test_a_record_s_share_lies_between_nothing_and_all(tmp_path):
    record = tiny_record()
    record = record | {"test": record["test"] | {"exact_match": 1.5}}
    (tmp_path / "r.json").write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=r"its test\.exact_match is 1\.5"):
        read_record(tmp_path / "r.json")


# --- models


def test_a_batch_that_breaks_nothing_is_not_found():
    torch.set_default_dtype(torch.float64)
    symmetry = SYMMETRIES["verbs"]
    model = small(symmetry)
    data = Rows.of(random_pairs(0, 8), symmetry)
    assert Breakdown.among(model, data) is None
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    assert Breakdown.among(model, data) is not None


def test_a_character_is_added_to_a_model_of_characters():
    letters = LexicalClass("letters", ("a", "b"), ("A", "B"))
    symmetry = Symmetry.of([letters], [Pair(("a",), ("A",))], "cyclic")
    config = TransducerConfig(k=2, d=2, hidden=3)
    trained = Trained.new(config, symmetry, max_length=3, characters=True)
    assert extend(trained, "letters", {"c": "C"}).trained.symmetry.classes[0].source[-1] == "c"


def test_a_symmetric_group_stays_as_it_is_when_words_are_added(run, tmp_path):
    for group in ("cyclic", "symmetric"):
        untrained(group=group).save(tmp_path / group)
        out = ("--out", tmp_path / f"{group}-more")
        _, text, _ = run("extend", tmp_path / group, "--class", "verbs", "blick=BLICK", *out)
        assert ("its group was made symmetric" in text) == (group == "cyclic")


def test_a_model_that_shares_nothing_promises_no_orbits(run, tmp_path):
    untrained("attention").save(tmp_path / "free")
    _, out, _ = run("orbits", tmp_path / "free", "jump twice", "--target", "JUMP JUMP")
    assert "the model promises no orbits; observed" in out


# --- runs


@pytest.fixture
def small_run(tmp_path):
    """A run that has not begun."""
    lines = [f"{' '.join(x)}\t{' '.join(y)}\n" for x, y in PAIRS]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    settings = {name: value for name, value in SETTINGS.items() if name != "training.epochs"}
    data = {
        "file": str(tmp_path / "pairs.tsv"),
        "classes": "none",
        "validation": 0.34,
        "training.epochs": 3,
    }
    config = RunConfig.from_settings(settings | data)
    return Run.create(tmp_path / "run", config, load_data(config.data, seed=0))


def test_a_run_under_way_is_exported_without_figures(small_run, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    epochs = small_run.train(small_run.load_data())
    next(epochs), next(epochs)
    epochs.close()
    for name, known in (("early", None), ("late", 3)):
        export(small_run.path, tmp_path / name)
        assert Trained.load(tmp_path / name).origin.figures.epochs == known
        list(Run.open(small_run.path).train(small_run.load_data()))


def test_a_divergence_without_a_batch_is_told_as_it_is(small_run):
    keeping = small_run._saving_divergence()
    with pytest.raises(DivergenceError, match=r"^the loss is no number$"), keeping:
        raise DivergenceError("the loss is no number")
    assert not (small_run.path / "broken.safetensors").exists()


# --- commands


def test_a_search_in_a_database_has_no_leader(tmp_path):
    with search.leading(f"sqlite:///{tmp_path}/s.db"):
        assert list(tmp_path.iterdir()) == []
    with search.leading(tmp_path / "journal"):
        assert (tmp_path / "journal.leader").exists()


def test_a_quick_search_is_a_small_one():
    quick, whole = (load_search("search", quick=quick) for quick in (True, False))
    assert quick.name == "search-quick"
    assert quick.trials < whole.trials


def test_pictures_that_cannot_be_drawn_are_refused(tmp_path):
    with pytest.raises(
        RunError, match="search has no trials yet; equitrans search search makes them"
    ):
        plot.draw_search(None, load_search("search"), [])
    record = tiny_record()
    (tmp_path / "r.json").write_text(json.dumps(record))
    with pytest.raises(ConfigError, match="11 curves; the limit is 10"):
        plot._curves([tmp_path / "r.json"] * (plot.MANY + 1))
    (tmp_path / "r.json").write_text(json.dumps(record | {"seed": -1}))
    with pytest.raises(RunError, match=r"r\.json is damaged"):
        plot._curves([tmp_path / "r.json"])


@pytest.mark.parametrize(("losses", "scale"), [((0.0, 1.0), "linear"), ((0.1, 1.0), "log")])
def test_losses_of_nothing_have_no_logarithm(losses, scale):
    figure = draw_trials([(loss, 50.0) for loss in losses], (losses[0], 50.0), None)
    assert figure.axes[0].get_xscale() == scale


def test_the_doctor_knows_a_source_tree_and_a_torch_that_cannot_be_loaded(run, monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", absent)
    monkeypatch.setattr(doctor, "_torch", lambda: {"error": "no such library"})
    status, out, _ = run("doctor")
    assert status == 1
    assert "PROBLEM    equitrans is not installed, only its source is there" in out
    assert "PROBLEM    torch cannot be used: no such library" in out
    assert "\ntorch  " not in out


def test_a_name_that_is_no_address_is_not_this_machine():
    assert not is_loopback("example.org")
    assert is_loopback("::1")
