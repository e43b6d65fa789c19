"""A Ray cluster returns the outcome of every job once, as local processes do."""

import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_executors import alive, begun, wait_for

from equitrans.cli import reproduce
from equitrans.cli.work import Work
from equitrans.errors import ConfigError
from equitrans.experiments.executors import Failed, Lost, run_on_ray
from equitrans.experiments.records import Records
from equitrans.experiments.spreading import spread_on_ray
from jobs import announce_and_sleep, die_at_three, die_once, fail_at_odd, square, threads
from sharded import learned, made, said
from tiny import figures_of, perform_tiny, tiny_job, tiny_record


@contextmanager
def empty_ray_folder() -> Iterator[None]:
    """Let Ray keep everything, its address file included, in a new folder that is then removed."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets need a short path
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_TMPDIR", str(folder))
        yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two nodes with one CPU each, protected by a token."""
    paths = os.pathsep.join(filter(None, sys.path))
    with pytest.MonkeyPatch.context() as environment, empty_ray_folder():
        environment.setenv("RAY_AUTH_MODE", "token")
        environment.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        environment.setenv("PYTHONPATH", paths)
        environment.delenv("OMP_NUM_THREADS", raising=False)
        from ray._common.utils import get_default_ray_temp_dir
        from ray.cluster_utils import Cluster

        # unlike `ray start`, a Cluster does not create this folder
        Path(get_default_ray_temp_dir()).mkdir()

        node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20}
        cluster = Cluster(initialize_head=True, head_node_args=node)
        cluster.add_node(**node)
        yield cluster.address
        cluster.shutdown()


def test_ray_runs_each_job_once_and_takes_the_next_when_a_cpu_is_free(address):
    pulled = told = 0

    def jobs() -> Iterator[int]:
        nonlocal pulled
        for number in range(8):
            assert pulled - told < 2
            pulled += 1
            yield number

    done = {}
    for job, value in run_on_ray(square, jobs(), address=address):
        told += 1
        done[job] = value
    assert done == {n: n * n for n in range(8)}
    assert told == 8


def test_ray_learns_the_same_rules_by_shards(address):
    pairs = made(60)
    with spread_on_ray(address, least=2):
        found = learned(pairs)
    assert said(found) == said(learned(pairs))


def test_a_job_whose_worker_is_killed_is_repeated(address, tmp_path):
    done = list(run_on_ray(die_once, [(n, str(tmp_path)) for n in range(6)], address=address))
    assert sorted((job[0], value) for job, value in done) == [(n, n * n) for n in range(6)]
    assert begun(tmp_path) == Counter([*range(6), 3])


def test_a_job_that_dies_at_every_attempt_is_lost_and_others_continue(address, tmp_path):
    jobs = [(n, str(tmp_path)) for n in range(6)]
    done = {j[0]: v for j, v in run_on_ray(die_at_three, jobs, address=address, retries=1)}
    lost = done.pop(3)
    assert isinstance(lost, Lost)
    assert "WorkerCrashedError" in lost.reason
    assert done == {n: n * n for n in (0, 1, 2, 4, 5)}
    assert begun(tmp_path) == Counter([*range(6), 3])


def test_an_exception_is_reported_with_its_traceback(address):
    done = dict(run_on_ray(fail_at_odd, [1, 2, 3], address=address))
    assert done[2] == 2
    assert isinstance(done[1], Failed)
    assert done[1].message == "tasks.txt:1: no such thing"
    assert "return 1 // 0" in done[3].details


def test_a_job_on_ray_has_one_torch_thread(address):
    assert dict(run_on_ray(threads, [0, 1], address=address)) == {0: 1, 1: 1}


def test_an_interrupt_ends_the_jobs_on_ray(address, tmp_path):
    def jobs() -> Iterator[tuple[int, str]]:
        yield 1, str(tmp_path)
        wait_for(tmp_path, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_on_ray(announce_and_sleep, jobs(), address=address))
    [pid] = wait_for(tmp_path, 1)
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def test_trainings_on_ray_and_in_this_process_have_equal_records(address, tmp_path, monkeypatch):
    monkeypatch.setattr("equitrans.cli.work.perform", perform_tiny)
    options = ["table1", "--quiet", "--runs", str(tmp_path / "runs"), "--ray", address]
    work = Work(reproduce.options().parse(options))
    records, jobs = Records(tmp_path / "records"), [tiny_job(seed) for seed in (0, 1)]
    done = dict(work.do(jobs, records, total=2))
    assert work.failed == 0
    for seed, job in enumerate(jobs):
        assert figures_of(done[job]) == figures_of(tiny_record(seed))
        assert records.find(job) == done[job]
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".safetensors"] == []


def test_an_unreachable_cluster_is_reported_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nothing listens there
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            ConfigError, match=f"cannot connect to a Ray cluster at {address}.*RAY_AUTH"
        ):
            list(run_on_ray(square, [1], address=address))


def test_without_an_address_ray_is_started_and_stopped():
    import ray

    with empty_ray_folder():
        done = dict(run_on_ray(square, [1, 2, 3], address=None))
    assert done == {1: 1, 2: 4, 3: 9}
    assert not ray.is_initialized()
