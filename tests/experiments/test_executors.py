"""Local processes return the outcome of every job once; a dead process affects its own job only."""

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
from equitrans.experiments.executors import Failed, Lost, run_locally, run_on_ray
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
    """The number of attempts of each job."""
    return Counter(int(path.name.split(".")[0]) for path in folder.iterdir())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()


def wait_for(folder: Path, count: int) -> list[int]:
    """Wait until ``count`` processes have left a file with their number; return the numbers."""
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return [int(path.name) for path in folder.iterdir()]


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def test_each_job_is_run_once_by_one_of_two_processes(tmp_path):
    done = list(run_locally(square_and_log, [(n, str(tmp_path)) for n in range(8)], workers=2))
    assert sorted((job[0], value) for job, (value, _) in done) == [(n, n * n) for n in range(8)]
    assert begun(tmp_path) == Counter(range(8))
    processes = {pid for _, (_, pid) in done}
    assert len(processes) <= 2
    assert os.getpid() not in processes


def test_an_empty_list_of_jobs_has_no_outcomes():
    assert list(run_locally(square, [], workers=2)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_the_next_job_is_taken_only_when_a_worker_is_free(workers):
    pulled, told = 0, 0

    def jobs() -> Iterator[int]:
        nonlocal pulled
        for number in range(6):
            assert pulled - told < workers
            pulled += 1
            yield number

    outcomes = run_locally(square, jobs(), workers=workers)
    assert pulled == 0
    for _ in outcomes:
        told += 1
    assert told == 6


def test_a_job_whose_process_is_killed_is_repeated(tmp_path):
    done = list(run_locally(die_once, [(n, str(tmp_path)) for n in range(6)], workers=2))
    assert sorted((job[0], value) for job, value in done) == [(n, n * n) for n in range(6)]
    assert begun(tmp_path) == Counter([*range(6), 3])


def test_a_job_that_dies_at_every_attempt_is_lost_and_others_continue(tmp_path):
    jobs = [(n, str(tmp_path)) for n in range(6)]
    done = {job[0]: value for job, value in run_locally(die_at_three, jobs, workers=2, retries=1)}
    lost = done.pop(3)
    assert lost == Lost("its process was killed by SIGKILL; attempts: 2")
    assert done == {n: n * n for n in (0, 1, 2, 4, 5)}
    assert begun(tmp_path) == Counter([*range(6), 3])


def test_a_job_that_exits_its_process_is_lost():
    [(_, lost)] = run_locally(exit_quietly, [0], workers=1, retries=0)
    assert lost == Lost("its process ended with status 3; attempts: 1")


def test_an_exception_is_reported_with_its_traceback_and_other_jobs_continue():
    done = dict(run_locally(fail_at_odd, range(7), workers=2))
    assert {n: done[n] for n in (0, 2, 4, 6)} == {n: n for n in (0, 2, 4, 6)}
    assert all(isinstance(done[n], Failed) for n in (1, 3, 5))
    assert done[1].message == "tasks.txt:1: no such thing"
    assert done[3].message == "ZeroDivisionError: integer division or modulo by zero"
    assert "return 1 // 0" in done[3].details
    assert "pickle" in done[5].message  # its result is a local function


def test_a_local_process_has_one_torch_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(run_locally(threads, [0], workers=1)) == [(0, 1)]


def test_an_interrupt_ends_every_process(tmp_path):
    def jobs() -> Iterator[tuple[int, str]]:
        yield from [(0, str(tmp_path)), (1, str(tmp_path))]
        wait_for(tmp_path, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_locally(announce_and_sleep, jobs(), workers=3))
    assert not any(alive(pid) for pid in wait_for(tmp_path, 2))


PROGRAM = """
import sys
from jobs import announce_and_sleep
from equitrans.experiments.executors import run_locally
if __name__ == "__main__":
    list(run_locally(announce_and_sleep, [(n, sys.argv[1]) for n in (1, 2)], workers=2))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_when_their_parent_is_interrupted_or_killed(tmp_path, how):
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
        os.killpg(parent.pid, how)  # as Ctrl-C in a terminal does
    else:
        parent.kill()
    _, errors = parent.communicate(timeout=120)
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in children)
    assert errors.count(b"Traceback") == (how == signal.SIGINT)  # of the parent only


def test_invalid_numbers_are_refused():
    with pytest.raises(ConfigError, match="workers is 0; it must be 1 or more"):
        next(run_locally(square, [1], workers=0))
    with pytest.raises(ConfigError, match="retries is -1; it must be 0 or more"):
        next(run_locally(square, [1], workers=1, retries=-1))
    with pytest.raises(ConfigError, match=r"cpus is 0.0; it must be above 0"):
        next(run_on_ray(square, [1], address=None, cpus=0.0))


def test_a_missing_ray_is_reported_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'equitrans\[ray\]'"):
        next(run_on_ray(square, [1], address=None))
