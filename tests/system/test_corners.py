"""Tests of experiments and commands that belong to no other file."""

import json
from importlib.metadata import PackageNotFoundError

import pytest

from equitrans.cli import doctor, plot
from equitrans.cli.explore import is_loopback
from equitrans.data.pairs import Pair
from equitrans.errors import ConfigError, RunError
from equitrans.experiments import search
from equitrans.experiments.plans import load_search
from equitrans.experiments.records import read_record
from equitrans.models.configs import MODELS
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.training.trained import Trained
from tiny import tiny_record

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


def test_a_record_s_share_lies_between_nothing_and_all(tmp_path):
    record = tiny_record()
    record = record | {"test": record["test"] | {"exact_match": 1.5}}
    (tmp_path / "r.json").write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=r"its test\.exact_match is 1\.5"):
        read_record(tmp_path / "r.json")


# --- models


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
        plot.curves_of([f"{n}={tmp_path}/r.json" for n in range(plot.MANY + 1)])
    (tmp_path / "r.json").write_text(json.dumps(record | {"seed": -1}))
    with pytest.raises(RunError, match=r"r\.json is damaged"):
        plot.curves_of([f"{tmp_path}/r.json"])


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
