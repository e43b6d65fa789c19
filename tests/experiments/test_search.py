"""Search spaces, and searches with TPE that continue after an interruption."""

import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from equitrans.errors import ConfigError
from equitrans.experiments.executors import run_locally
from equitrans.experiments.search import Range, Search, Space, Trial

SPACE = Space.of(
    {
        "model.k": [4, 6, 7, 10],
        "model.marginal": ["sum", "max"],
        "training.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
    }
)


# --- spaces


def test_draws_lie_in_the_space_and_more_trials_extend_the_list():
    drawn = SPACE.draw(200, seed=0)
    assert drawn[:20] == SPACE.draw(20, seed=0)
    assert drawn[:20] != SPACE.draw(20, seed=1)
    assert {draw["model.k"] for draw in drawn} == {4, 6, 7, 10}
    assert {draw["model.marginal"] for draw in drawn} == {"sum", "max"}
    rates = [draw["training.learning_rate"] for draw in drawn]
    assert all(1e-4 <= rate <= 1e-2 for rate in rates)
    assert 70 < sum(rate < 1e-3 for rate in rates) < 130  # uniform logarithms
    with pytest.raises(ConfigError, match="trials is 0; it must be 1 or more"):
        SPACE.draw(0, seed=0)


def test_a_space_is_read_from_toml(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(
        '[space]\n"model.k" = [4, 6]\n"training.clip" = {low = 1, high = 2}\n', encoding="utf-8"
    )
    assert Space.read(path).settings == {"model.k": (4, 6), "training.clip": Range(1.0, 2.0)}


def test_settings_that_all_trials_share_are_read_from_toml(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text('[settings]\n"training.updates" = 9\n[space]\n"model.k" = [4, 6]\n')
    drawn = Space.read(path).draw(20, seed=0)
    assert {trial["training.updates"] for trial in drawn} == {9}
    assert {trial["model.k"] for trial in drawn} == {4, 6}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[space]\nk = [1, 2]\n[setings]\nj = 1", "'setings' is unknown; expected the tables"),
        ("trials = 3\n[space]\nk = [1, 2]", "'trials' is unknown; expected the tables"),
        ("settings = 3\n[space]\nk = [1, 2]", "settings is 3; expected a table"),
        ("[space]\nk = [1, 2]\n[settings]\nk = 1", r"k is in \[space\] and in \[settings\]"),
        ("[space]\nk = [1, 2]\n[settings]\nj = [1]", r"j: \[1\] is neither a number nor"),
        ("[space]\n[settings]\nj = 1", "the space is empty"),
        ("", r"has no table \[space\]"),
        ("[space]", "the space is empty"),
        ("[space", "is not a TOML file"),
        ('[space]\n"k" = []', "k is .*; expected a list of choices or a range"),
        ('[space]\n"k" = [[1]]', "neither a number nor a string"),
        ('[space]\n"k" = [1, 1]', "a choice is repeated"),
        ("[space]\nmodel.k = [1]", "name of a setting is quoted"),
        ('[space]\n"k" = {low = 1}', "k: high is None; expected float"),
        ('[space]\n"k" = {low = true, high = 2}', "k: low is True; expected float"),
        ('[space]\n"k" = {low = 0, high = inf}', "k: high is inf; expected float"),
        ('[space]\n"k" = {low = -1.7e308, high = 1.7e308}', "low must be below high"),
        ('[space]\n"k" = {low = 2, high = 1}', "low must be below high"),
        ('[space]\n"k" = {low = 0, high = 1, log = true}', "with log it must be above 0"),
    ],
)
def test_an_invalid_space_is_refused(tmp_path, text, told):
    path = tmp_path / "space.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        Space.read(path)
    with pytest.raises(ConfigError, match=r"absent.toml: No such file"):
        Space.read(tmp_path / "absent.toml")


# --- TPE


def reopen(storage, *, trials=12, seed=1, space=SPACE, **options) -> Search:
    return Search.open(storage, name="s", space=space, trials=trials, seed=seed, **options)


def finish(search: Search, count: int | None = None) -> list[Trial]:
    """Finish some trials, or all that are left; the value of a trial is its number."""
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


def test_an_interrupted_search_continues_until_it_has_all_trials(storage):
    parts = [finish(reopen(storage), 5), finish(reopen(storage), 3), finish(reopen(storage))]
    assert [len(part) for part in parts] == [5, 3, 4]
    done = [trial for part in parts for trial in part]
    assert [trial.number for trial in done] == list(range(12))
    search = reopen(storage)
    assert finish(search) == []
    assert search.finished == [(trial, float(trial.number)) for trial in done]
    assert search.best == (done[0], 0.0)
    assert len(finish(reopen(storage, trials=14))) == 2


def test_trials_of_a_search_can_run_in_several_processes(tmp_path):
    search = reopen(tmp_path / "s.log")
    for trial, value in run_locally(half_the_k, search.pending(), workers=2):
        search.tell(trial, value)
    assert [trial.number for trial, _ in search.finished] == list(range(12))
    assert all(value == trial.settings["model.k"] / 2 for trial, value in search.finished)


PROGRAM = """
import sys, time
from pathlib import Path
from test_search import reopen
search = reopen(sys.argv[1])
for count, trial in enumerate(search.pending()):
    if count == 4:
        next(search.pending())  # two trials are running
        Path(sys.argv[2]).touch()
        time.sleep(600)
    search.tell(trial, float(trial.number))
"""


def test_running_trials_of_a_killed_process_are_offered_again(tmp_path):
    storage, mark = tmp_path / "s.log", tmp_path / "mark"
    paths = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(storage), str(mark)],
        env=os.environ | {"PYTHONPATH": paths},
    )
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    rest = finish(reopen(storage))
    assert [trial.number for trial in rest] == list(range(4, 12))
    assert [trial.number for trial, _ in reopen(storage).finished] == list(range(12))


def test_a_trial_killed_while_its_settings_are_chosen_is_replaced(tmp_path):
    search = reopen(tmp_path / "s.log", trials=2)
    half = search._study.ask()
    half.suggest_categorical("model.k", (4, 6, 7, 10))
    again = reopen(tmp_path / "s.log", trials=2)
    assert [trial.settings.keys() for trial in finish(again)] == [SPACE.settings.keys()] * 2
    assert half.number not in [trial.number for trial, _ in again.finished]


def test_a_failed_trial_is_not_offered_again(tmp_path):
    search = reopen(tmp_path / "s.log", trials=3)
    trials = list(search.pending())
    search.tell(trials[0], None)
    search.tell(trials[1], float("nan"))
    search.tell(trials[2], 2.0)
    again = reopen(tmp_path / "s.log", trials=3)
    assert list(again.pending()) == []
    assert again.finished == [(trials[2], 2.0)]


def test_a_search_offers_its_number_of_trials(tmp_path):
    search = reopen(tmp_path / "s.log", trials=5)
    assert search.best is None
    assert [trial.number for trial in search.pending()] == [0, 1, 2, 3, 4]
    assert list(search.pending()) == []


BOWL = Space.of({"x": {"low": -10.0, "high": 10.0}, "y": ["a", "b", "c"]})


def height(settings: dict) -> float:
    """A bowl with its bottom at x = 3, y = b."""
    return (settings["x"] - 3) ** 2 + 10 * (settings["y"] != "b")


def values(storage: Path, *, sessions: int = 1, seed: int = 1) -> list[float]:
    """The values of forty trials, in some sessions."""
    for session in range(1, sessions + 1):
        search = reopen(storage, space=BOWL, trials=40 * session // sessions, seed=seed)
        for trial in search.pending():
            search.tell(trial, height(trial.settings))
    return [value for _, value in search.finished]


def test_tpe_learns_from_values_and_random_draws_do_not(tmp_path):
    tpe = rand = 0.0
    for seed in range(3):
        # the first ten trials of TPE are random
        tpe += sum(values(tmp_path / f"{seed}.log", seed=seed)[10:])
        rand += sum(height(draw) for draw in BOWL.draw(40, seed=seed)[10:])
    assert tpe < rand / 2


def test_tpe_repeats_its_trials_with_one_seed_but_not_after_an_interruption(tmp_path):
    one, other = (values(tmp_path / f"{name}.log") for name in "ab")
    assert one == other
    assert len(set(values(tmp_path / "c.log", sessions=4))) == 40


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 2}, "has another seed"),
        ({"direction": "maximize"}, "has another direction"),
        ({"space": Space.of({"model.k": [4]})}, "has another space"),
    ],
)
def test_a_search_does_not_continue_with_other_settings(tmp_path, change, told):
    finish(reopen(tmp_path / "s.log"), 1)
    with pytest.raises(ConfigError, match=told):
        reopen(tmp_path / "s.log", **change)


def test_the_best_value_can_be_the_largest(tmp_path):
    search = reopen(tmp_path / "s.log", direction="maximize")
    *_, last = finish(search)
    assert search.best == (last, 11.0)


def test_a_storage_that_cannot_be_opened_is_reported(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot open a search in .*absent"):
        reopen(tmp_path / "absent" / "s.log")
    with pytest.raises(ConfigError, match="cannot open a search in nonsense://"):
        reopen("nonsense://there")
    with pytest.raises(ConfigError, match="trials is 0; it must be 1 or more"):
        reopen(tmp_path / "s.log", trials=0)


def test_a_missing_optuna_is_reported_with_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'equitrans\[search\]'"):
        reopen(tmp_path / "s.log")
