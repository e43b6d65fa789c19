"""Whatever runs the jobs, each comes back once; a death costs no more than the job it hit."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from equitrans.errors import ConfigError
from equitrans.experiments.executors import Lost, run_here, run_locally, run_on_ray
from equitrans.experiments.workers import Failed
from jobs import (
    announce_and_sleep,
    die_at_three,
    die_once,
    exit_quietly,
    fail_at_odd,
    square,
    square_and_log,
    threads,
)


def begun(folder: Path) -> Counter[int]:
    """How often each job was begun."""
    return Counter(int(path.name.split(".")[0]) for path in folder.iterdir())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()


def wait_for(folder: Path, count: int) -> list[int]:
    """The processes that said they are there."""
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return [int(path.name) for path in folder.iterdir()]


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def test_local_processes_give_what_this_process_gives():
    there = list(run_locally(square, range(7), workers=2))
    assert sorted(there) == list(run_here(square, range(7))) == [(n, n * n) for n in range(7)]


def test_the_work_is_shared_and_each_job_is_begun_once(tmp_path):
    done = list(run_locally(square_and_log, [(n, str(tmp_path)) for n in range(8)], workers=2))
    assert begun(tmp_path) == Counter(range(8))
    processes = {pid for _, (_, pid) in done}
    assert len(processes) <= 2
    assert os.getpid() not in processes


def test_no_jobs_need_no_processes():
    assert list(run_locally(square, [], workers=2)) == []


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_job_is_decided_on_only_when_a_worker_is_free(workers):
    pulled, told = 0, 0

    def jobs() -> Iterator[int]:
        nonlocal pulled
        for number in range(6):
            assert pulled - told < max(workers, 1)  # what was given out is known by now
            pulled += 1
            yield number

    outcomes = run_locally(square, jobs(), workers=workers) if workers else run_here(square, jobs())
    assert pulled == 0
    for _ in outcomes:
        told += 1
    assert told == 6


def test_a_job_whose_process_is_killed_is_begun_anew(tmp_path):
    done = list(run_locally(die_once, [(n, str(tmp_path)) for n in range(6)], workers=2))
    assert sorted((job[0], value) for job, value in done) == [(n, n * n) for n in range(6)]
    assert begun(tmp_path) == Counter([*range(6), 3])


def test_a_job_that_always_dies_is_lost_and_no_other_feels_it(tmp_path):
    jobs = [(n, str(tmp_path)) for n in range(6)]
    done = {job[0]: value for job, value in run_locally(die_at_three, jobs, workers=2, retries=1)}
    lost = done.pop(3)
    assert lost == Lost("its process was killed by SIGKILL, 2 times in all")
    assert done == {n: n * n for n in (0, 1, 2, 4, 5)}
    assert begun(tmp_path) == Counter([*range(6), 3])


def test_a_process_that_ends_of_itself_is_lost_too():
    [(_, lost)] = run_locally(exit_quietly, [0], workers=1, retries=0)
    assert lost == Lost("its process ended with status 3, 1 times in all")


def test_an_exception_comes_back_in_words_and_no_other_job_feels_it():
    done = dict(run_locally(fail_at_odd, range(7), workers=2))
    assert {n: done[n] for n in (0, 2, 4, 6)} == {n: n for n in (0, 2, 4, 6)}
    assert all(isinstance(done[n], Failed) for n in (1, 3, 5))
    assert done[1].message == "tasks.txt:1: no such thing"
    assert done[3].message == "ZeroDivisionError: integer division or modulo by zero"
    assert "return 1 // 0" in done[3].details
    assert "pickle" in done[5].message  # a function made on the way is no plain data
    here = dict(run_here(fail_at_odd, range(4)))
    assert [here[n].message for n in (1, 3)] == [done[n].message for n in (1, 3)]


def test_each_process_has_one_thread_and_this_one_s_environment_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert list(run_locally(threads, [0], workers=1)) == [(0, 1)]
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert "MKL_NUM_THREADS" not in os.environ


def test_closing_ends_every_process_at_once(tmp_path):
    def jobs() -> Iterator[tuple[int, str]]:
        yield from [(0, str(tmp_path)), (1, str(tmp_path))]
        wait_for(tmp_path, 2)
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(run_locally(announce_and_sleep, jobs(), workers=3))
    assert time.monotonic() - started < 60
    assert not any(alive(pid) for pid in wait_for(tmp_path, 2))


PROGRAM = """
import sys
from jobs import announce_and_sleep
from equitrans.experiments.executors import run_locally
if __name__ == "__main__":
    list(run_locally(announce_and_sleep, [(n, sys.argv[1]) for n in (1, 2)], workers=2))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(tmp_path, how):
    program, folder = tmp_path / "program.py", tmp_path / "there"
    program.write_text(PROGRAM)
    folder.mkdir()
    paths = os.pathsep.join(filter(None, sys.path))
    parent = subprocess.Popen(
        [sys.executable, str(program), str(folder)],
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    children = wait_for(folder, 2)
    if how == signal.SIGINT:
        os.killpg(parent.pid, how)  # as a terminal does
    else:
        parent.kill()
    _, errors = parent.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in children)
    assert errors.count(b"Traceback") == (how == signal.SIGINT)  # the parent's own


def test_what_cannot_be_is_said_before_anything_starts():
    with pytest.raises(ConfigError, match="workers is 0; it must be 1 or more"):
        run_locally(square, [1], workers=0)
    with pytest.raises(ConfigError, match="retries is -1; it must be 0 or more"):
        run_locally(square, [1], workers=1, retries=-1)
    with pytest.raises(ConfigError, match=r"cpus is 0.0; it must be above 0"):
        run_on_ray(square, [1], address=None, cpus=0.0)


def test_without_ray_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'equitrans\[ray\]'"):
        run_on_ray(square, [1], address=None)
