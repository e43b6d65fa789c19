"""A search has one list of trials, however often it is interrupted."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from equitrans.errors import ConfigError
from equitrans.experiments.executors import run_locally
from equitrans.experiments.search import Search, Trial
from equitrans.experiments.spaces import Range, Space

SPACE = Space.of(
    {
        "model.k": [4, 6, 7, 10],
        "model.marginal": ["sum", "max"],
        "training.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
    }
)


def reopen(storage, *, trials=12, seed=1, space=SPACE, **options) -> Search:
    return Search.open(storage, name="s", space=space, trials=trials, seed=seed, **options)


def finish(search: Search, count: int | None = None) -> list:
    """Try some trials, or all that are left; their value is their number."""
    done = []
    for trial in islice(search.pending(), count):
        search.tell(trial, float(trial.number))
        done.append(trial)
    return done


def half_the_k(trial: Trial) -> float:
    return trial.settings["model.k"] / 2


@pytest.fixture(params=["journal", "sqlite"])
def storage(request, tmp_path) -> str:
    return str(tmp_path / "s.log") if request.param == "journal" else f"sqlite:///{tmp_path}/s.db"


def test_an_interrupted_search_goes_on_with_the_same_list(storage, tmp_path):
    whole = finish(reopen(tmp_path / "whole.log"))
    parts = [finish(reopen(storage), 5), finish(reopen(storage), 3), finish(reopen(storage))]
    assert [len(part) for part in parts] == [5, 3, 4]
    assert [trial for part in parts for trial in part] == whole
    assert reopen(storage).finished == [(trial, float(trial.number)) for trial in whole]
    assert finish(reopen(storage)) == []
    assert reopen(storage).best == (whole[0], 0.0)


def test_the_trials_of_a_search_can_be_spread_over_processes(tmp_path):
    search = reopen(tmp_path / "s.log")
    for trial, value in run_locally(half_the_k, search.pending(), workers=2):
        search.tell(trial, value)
    whole = finish(reopen(tmp_path / "whole.log"))
    assert search.finished == [(trial, trial.settings["model.k"] / 2) for trial in whole]


def test_another_seed_draws_another_list(tmp_path):
    one, other = (finish(reopen(tmp_path / f"{seed}.log", seed=seed)) for seed in (1, 2))
    assert one != other


def test_more_trials_extend_the_list(tmp_path):
    first = finish(reopen(tmp_path / "s.log", trials=4))
    more = finish(reopen(tmp_path / "s.log", trials=9))
    assert first + more == finish(reopen(tmp_path / "whole.log", trials=9))
    with pytest.raises(ConfigError, match="trials is 4; the search has a list of 9 already"):
        reopen(tmp_path / "s.log", trials=4)


def test_a_trial_is_drawn_from_the_space_and_all_choices_come_up():
    drawn = SPACE.draw(200, seed=0)
    assert drawn[:20] == SPACE.draw(20, seed=0)
    assert {draw["model.k"] for draw in drawn} == {4, 6, 7, 10}
    assert {draw["model.marginal"] for draw in drawn} == {"sum", "max"}
    rates = [draw["training.learning_rate"] for draw in drawn]
    assert all(1e-4 <= rate <= 1e-2 for rate in rates)
    assert 70 < sum(rate < 1e-3 for rate in rates) < 130  # the middle, by its logarithm


PROGRAM = """
import os, sys, time
from pathlib import Path
from test_search import reopen
search = reopen(sys.argv[1], sampler=sys.argv[2])
for count, trial in enumerate(search.pending()):
    if count == 4:
        next(search.pending())  # two are under way
        Path(sys.argv[3]).touch()
        time.sleep(600)
    search.tell(trial, float(trial.number))
"""


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_trials_under_way_in_a_process_that_is_killed_are_offered_again(tmp_path, sampler):
    storage, mark = tmp_path / "s.log", tmp_path / "mark"
    paths = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(storage), sampler, str(mark)],
        env=os.environ | {"PYTHONPATH": paths},
    )
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    rest = finish(reopen(storage, sampler=sampler))
    assert {4, 5} <= {trial.number for trial in rest}
    assert len(rest) == 8
    finished = reopen(storage, sampler=sampler).finished
    assert Counter(trial.number for trial, _ in finished) == Counter(range(12))
    if sampler == "random":
        assert [trial for trial, _ in finished] == finish(reopen(tmp_path / "whole.log"))


def test_a_trial_that_failed_is_over_and_not_offered_again(tmp_path):
    search = reopen(tmp_path / "s.log", trials=3)
    trials = list(search.pending())
    search.tell(trials[0], None)
    search.tell(trials[1], float("nan"))
    search.tell(trials[2], 2.0)
    again = reopen(tmp_path / "s.log", trials=3)
    assert list(again.pending()) == []
    assert again.finished == [(trials[2], 2.0)]


def test_no_more_trials_are_offered_than_were_asked_for(tmp_path):
    for sampler in ("random", "tpe"):
        search = reopen(tmp_path / f"{sampler}.log", trials=5, sampler=sampler)
        assert search.best is None
        assert [trial.number for trial in search.pending()] == [0, 1, 2, 3, 4]
        assert list(search.pending()) == []


def values(storage: Path, *, sessions: int = 1, **options) -> list[float]:
    """Forty trials of a bowl with its bottom at x = 3, y = b."""
    space = Space.of({"x": {"low": -10.0, "high": 10.0}, "y": ["a", "b", "c"]})
    for session in range(1, sessions + 1):
        search = reopen(storage, space=space, trials=40 * session // sessions, **options)
        for trial in search.pending():
            x, y = trial.settings["x"], trial.settings["y"]
            search.tell(trial, (x - 3) ** 2 + 10 * (y != "b"))
    return [value for _, value in search.finished]


def test_tpe_learns_from_the_values_where_random_draws_do_not(tmp_path):
    late = {"random": 0.0, "tpe": 0.0}
    for sampler in late:
        for seed in range(3):
            found = values(tmp_path / f"{sampler}{seed}.log", sampler=sampler, seed=seed)
            late[sampler] += sum(found[10:])  # TPE too draws its first ten at random
    assert late["tpe"] < late["random"] / 2


def test_tpe_repeats_itself_with_its_seed_but_not_when_it_goes_on(tmp_path):
    one, other = (values(tmp_path / f"{name}.log", sampler="tpe") for name in "ab")
    assert one == other
    assert len(set(values(tmp_path / "c.log", sampler="tpe", sessions=4))) == 40


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 2}, "begun with another seed"),
        ({"sampler": "tpe"}, "begun with another sampler"),
        ({"direction": "maximize"}, "begun with another direction"),
        ({"space": Space.of({"model.k": [4]})}, "begun with another space"),
    ],
)
def test_a_search_is_not_continued_as_another(tmp_path, change, told):
    finish(reopen(tmp_path / "s.log"), 1)
    with pytest.raises(ConfigError, match=told):
        reopen(tmp_path / "s.log", **change)


def test_the_greatest_value_can_be_the_best(tmp_path):
    search = reopen(tmp_path / "s.log", direction="maximize")
    *_, last = finish(search)
    assert search.best == (last, 11.0)


def test_where_nothing_can_be_kept_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"no search can be kept in .*absent"):
        reopen(tmp_path / "absent" / "s.log")
    with pytest.raises(ConfigError, match="no search can be kept in nonsense://"):
        reopen("nonsense://there")
    with pytest.raises(ConfigError, match="trials is 0; it must be 1 or more"):
        reopen(tmp_path / "s.log", trials=0)


def test_without_optuna_one_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'equitrans\[search\]'"):
        reopen(tmp_path / "s.log")


def test_a_space_is_read_from_toml(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(
        '[space]\n"model.k" = [4, 6]\n"training.clip" = {low = 1, high = 2}\n', encoding="utf-8"
    )
    assert Space.read(path).settings == {"model.k": (4, 6), "training.clip": Range(1.0, 2.0)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"has no table \[space\]"),
        ("[space]", "is empty"),
        ("[space", "is not a TOML file"),
        ('[space]\n"k" = []', "k is .*; it must be a list of choices or a range"),
        ('[space]\n"k" = [[1]]', "neither a number nor a string"),
        ('[space]\n"k" = [1, 1]', "each choice must be there once"),
        ("[space]\nmodel.k = [1]", "name of a setting is quoted"),
        ('[space]\n"k" = {low = 1}', "low and high must be numbers"),
        ('[space]\n"k" = {low = 2, high = 1}', "low must be below high"),
        ('[space]\n"k" = {low = 0, high = 1, log = true}', "has no logarithm"),
    ],
)
def test_a_space_that_is_none_is_refused(tmp_path, text, told):
    path = tmp_path / "space.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        Space.read(path)
    with pytest.raises(ConfigError, match=r"absent.toml: No such file"):
        Space.read(tmp_path / "absent.toml")
