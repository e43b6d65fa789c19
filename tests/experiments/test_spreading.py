"""One job by shards in local processes; ``test_ray.py`` has the same on Ray."""

import pytest

from equitrans.errors import ConfigError, RunError
from equitrans.experiments import spread_locally
from equitrans.shards import by_shards
from jobs import fail_in_shard, process_of_each
from sharded import learned, made, said


def test_processes_learn_the_same_rules():
    pairs = made(60)
    with spread_locally(2, least=2):
        found = learned(pairs)
    assert said(found) == said(learned(pairs))


def test_processes_stay_for_the_next_shards_and_end_with_the_block():
    with spread_locally(2, least=2):
        first, second = (set(by_shards(process_of_each, range(4))) for _ in range(2))
    assert len(first) == 2
    assert first == second


def test_an_exception_in_a_shard_is_shown():
    with spread_locally(2, least=2), pytest.raises(RunError, match=r"shard 1 failed: .*odd"):
        by_shards(fail_in_shard, range(4))


def test_the_number_of_processes_is_checked():
    with pytest.raises(ConfigError, match="workers is 0"), spread_locally(0):
        pass


def test_train_learns_rules_with_workers(run, tmp_path):
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{w} twice\t{w} {w}\n{w}\t{w}\n" for w in "abcd"))
    asked = ["train", "--data", data, "--classes", "discover", "--model.aligner", "recursive"]
    assert run(*asked, "--workers", "2", "--out", tmp_path / "two")[0] == 0
    status, _, err = run(*asked, "--workers", "0", "--out", tmp_path / "none")
    assert status == 2
    assert "--workers is 0; it must be an integer, 1 or more" in err
    assert not (tmp_path / "none").exists()
