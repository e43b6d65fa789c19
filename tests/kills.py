"""Kill tests: work that is killed without warning, again and again, and must end as if it had not
been.

    python tests/kills.py train=5 search=1 reproduce=1 --seed 0

One process imports everything and does no work of its own. It forks children that work, kills them
with SIGKILL at random moments, and lets others go on with what they left, until all is done. Then
what they made is compared, bit by bit, with what an uninterrupted child made. Every second kill
falls within a save: the child kills itself at one of its calls to the file system, drawn at random.
Prints a line of JSON for each work; the status is 0 if nothing differed.
"""

import argparse
import ctypes
import fcntl
import hashlib
import json
import math
import multiprocessing
import os
import random
import resource
import signal
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from equitrans import experiments, files, runs, workers
from equitrans.cli.main import main
from equitrans.errors import RunError
from equitrans.experiments import Experiment, Row
from equitrans.pairs import format_tsv
from equitrans.records import read_record
from equitrans.scan import CLASSES, everything
from equitrans.symmetry import format_classes
from equitrans.tensors import read_header, read_tensors
from tiny import SETTINGS, figures_of, tiny_split

Work = Callable[[Path], int]


# --- a child, and how it dies


def start(
    work: Work, folder: Path, *, die_at: int | None = None, largest: int | None = None
) -> int:
    """Fork a child that works in a folder; gives its number."""
    child = os.fork()
    # a group of its own, so that its workers can be killed with it; whoever comes first makes it
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(child, child)
    if child:
        return child
    try:
        if die_at is not None:
            _die_at_call(die_at)
        if largest is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        with (folder / "said").open("w") as said, redirect_stdout(said), redirect_stderr(said):
            status = work(folder)
            said.flush()
        os._exit(status)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(70)


def _die_at_call(number: int) -> None:
    """Kill this process, and its workers, in one of its calls to the file system: before it or
    after it. What is flushed or appended is half there when it is killed before.
    """
    count = 0

    def passed() -> bool:
        nonlocal count
        count += 1
        return count == number

    def die() -> None:
        os.killpg(0, signal.SIGKILL)
        time.sleep(60)

    def replace_(*paths: Any) -> None:
        if passed():
            die()
        os.replace(*paths)
        if passed():
            die()

    def fsync(opened: int) -> None:
        if passed():
            if stat.S_ISREG(os.fstat(opened).st_mode) and _is_writable(opened):
                os.ftruncate(opened, os.fstat(opened).st_size // 2)
            die()
        os.fsync(opened)
        if passed():
            die()

    def append_line(path: Path, line: str) -> None:
        if passed():
            with path.open("a") as log:
                log.write(line[: len(line) // 2])
            die()
        files.append_line(path, line)
        if passed():
            die()

    files.os = _Stand(os, {"replace": replace_, "fsync": fsync})
    runs.append_line = append_line


def _is_writable(opened: int) -> bool:
    return fcntl.fcntl(opened, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


class _Stand:
    """A module some of whose functions are others."""

    def __init__(self, module: Any, others: dict[str, Any]) -> None:
        self._module, self._others = module, others

    def __getattr__(self, name: str) -> Any:
        return self._others.get(name) or getattr(self._module, name)


def wait(child: int, seconds: float | None = None, *, alone: bool = False) -> int | None:
    """The status of a child, or None if it was killed: at its time, with its workers or alone."""
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL) if alone else os.killpg(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.001)
    _await_orphans(child)
    return None if os.WIFSIGNALED(ended[1]) else os.waitstatus_to_exitcode(ended[1])


def _await_orphans(group: int) -> None:
    """Workers whose leader has died must end of their own accord."""
    deadline = time.monotonic() + 20
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            os.waitpid(-group, os.WNOHANG)
            time.sleep(0.001)
        raise DifferenceError("a worker goes on without its leader")


def whole(work: Work, folder: Path) -> float:
    """Work uninterrupted; gives how long it took."""
    folder.mkdir()
    started = time.monotonic()
    if wait(start(work, folder)) != 0:
        raise DifferenceError(f"uninterrupted work failed: {(folder / 'said').read_text()}")
    return time.monotonic() - started


def interrupted(
    work: Work, folder: Path, draw: random.Random, *, seconds: float, most: int
) -> Counter[str]:
    """The same work, killed up to so often, until a child comes to its end."""
    folder.mkdir()
    counts: Counter[str] = Counter()
    while True:
        choice = draw.choice(["at random", "alone", "in saves", "in saves", "full disk"])
        if _kills(counts) >= most:
            choice = "never"
        if choice == "in saves":
            status = wait(start(work, folder, die_at=draw.randint(1, 200)))
        elif choice == "full disk":
            status = wait(start(work, folder, largest=draw.randint(100, 8000)))
        else:
            limit = None if choice == "never" else draw.uniform(0, seconds)
            status = wait(start(work, folder), limit, alone=choice == "alone")
        check_sound(folder)
        said = (folder / "said").read_text() if (folder / "said").is_file() else ""
        if status == 0 and not (choice == "full disk" and "File too large" in said):
            return counts
        if status is not None and choice != "full disk":
            raise DifferenceError(f"what was killed could not go on: {said}")
        counts[choice] += 1


class DifferenceError(Exception):
    """What was interrupted is not as if it had not been."""


def check_sound(folder: Path) -> None:
    """Whatever has its final name is whole, at any time."""
    for path in (p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
        try:
            if path.suffix == ".safetensors":
                read_tensors(path) if read_header(path) else None
            elif path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".jsonl":
                for line in path.read_text().splitlines(keepends=True):
                    if line.endswith("\n"):
                        json.loads(line)
        except (RunError, ValueError) as error:
            raise DifferenceError(f"{path.relative_to(folder)} is not whole: {error}") from None


# --- the work


def training(folder: Path) -> int:
    """Twenty epochs with a checkpoint after each, begun or gone on with."""
    run = folder / "run"
    if (run / "config.json").is_file():
        return main(["train", "--resume", str(run), "--device", "cpu", "--quiet"])
    return main(
        [
            *("train", "--data", str(folder.parent / "pairs.tsv"), "--out", str(run)),
            *("--classes", str(folder.parent / "classes.toml"), "--seed", "1", "--quiet"),
            *("--device", "cpu", "--orbits", "walk twice", "--orbits-every", "3"),
            *("--training.epochs", "20", "--model.hidden", "8", "--model.embedding", "4"),
        ]
    )


def _many(folder: Path) -> list[str]:
    return [
        *("--records", str(folder / "records"), "--runs", str(folder / "runs")),
        *("--workers", "2", "--keep", "--quiet"),
    ]


def search(folder: Path) -> int:
    """Three trials of two seeds, two at once."""
    space = [f'"{name}" = [{json.dumps(value)}]' for name, value in SETTINGS.items()]
    (folder / "space.toml").write_text("\n".join(["[space]", "seed = [0, 1, 2]", *space]))
    named = ("--split", "tiny", "--space", str(folder / "space.toml"), "--trials", "3")
    return main(["search", *named, *_many(folder), "--json"])


def reproduce(folder: Path) -> int:
    """A table of two systems with two seeds each, two at once."""
    return main(["reproduce", "table1", *_many(folder)])


def _table(name: str, *, quick: bool = False) -> Experiment:
    rows = tuple(Row(f"hidden {n}", ("tiny",), 2, SETTINGS | {"model.hidden": n}) for n in (8, 12))
    return Experiment(name, "small ones", ("tiny",), rows)


WORK: dict[str, Work] = {"train": training, "search": search, "reproduce": reproduce}


@contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """What children find: a checkpoint after every epoch, the tiny split, workers that are
    forked.
    """
    torch.set_num_threads(1)
    for name in ("torch._dynamo", "optuna", *(f"equitrans.cli.{name}" for name in WORK)):
        import_module(name)  # now, and not in every child
    runs.CHECKPOINT_SECONDS = 0.0
    experiments.load = _table
    fork = multiprocessing.get_context("fork")
    workers.get_context = lambda _: fork  # type: ignore[assignment]
    pairs = [p for p in everything() if len(p.target) <= 3][:40]
    (folder / "pairs.tsv").write_text(format_tsv(pairs))
    (folder / "classes.toml").write_text(format_classes(CLASSES["both"]))
    with tiny_split():
        yield


# --- what is compared


def made(folder: Path) -> dict[str, Any]:
    """All that some work has made, times left out. What is left of a file that was never finished
    does not count: nobody reads it.
    """
    found: dict[str, Any] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix == ".safetensors":
            counters = json.loads(read_header(path).metadata.get("counters", "{}"))
            counters.pop("seconds", None)
            tensors = read_tensors(path)
            bits = b"".join(tensors[key].numpy().tobytes() for key in sorted(tensors))
            digest = hashlib.sha256(bits).hexdigest()
            found[name] = (counters, sorted(tensors), digest)
        elif path.suffix == ".jsonl":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
        elif path.parent.name == "tiny" and path.suffix == ".json":
            found[name] = figures_of(read_record(path))
        elif path.suffix == ".journal":
            found[name] = _finished(path)
        elif path.name not in ("said", "space.toml") and path.suffix != ".tmp":
            found[name] = path.read_bytes()
    return found


def _finished(journal: Path) -> list[tuple[int, float]]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(journal))
    )
    (study,) = optuna.get_all_study_names(storage)
    trials = optuna.load_study(study_name=study, storage=storage).get_trials(deepcopy=False)
    done = [t for t in trials if t.state == optuna.trial.TrialState.COMPLETE]
    return sorted((t.user_attrs["number"], t.value) for t in done)


def compare(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """DifferenceError, if there is one."""
    for name in expected.keys() | found.keys():
        if expected.get(name) != found.get(name):
            raise DifferenceError(
                f"{name}: {expected.get(name)!r:.300} became {found.get(name)!r:.300}"
            )


def _kills(counts: Counter[str]) -> int:
    return counts.total() - counts["full disk"]


def kill(name: str, *, kills: int, seed: int) -> dict[str, Any]:
    """Kill some work so often in all; gives what was done, or DifferenceError."""
    draw, counts, trials = random.Random(seed), Counter[str](), 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with prepared(folder):
            seconds = whole(WORK[name], folder / "whole")
            expected = made(folder / "whole")
            while _kills(counts) < kills:
                trials += 1
                here = folder / f"killed{trials}"
                left = kills - _kills(counts)
                counts += interrupted(WORK[name], here, draw, seconds=seconds, most=left)
                compare(expected, made(here))
    return {
        "work": name,
        "kills": _kills(counts),
        "at random moments": counts["at random"] + counts["alone"],
        "in saves": counts["in saves"],
        "full disks": counts["full disk"],
        "runs": trials,
        "files compared in each": len(expected),
        "differences": 0,
        "seconds": round(time.monotonic() - started, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("works", nargs="+", metavar="WORK=KILLS")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    # orphans become children of this process, so that their end can be seen
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    try:
        for work, kills in (each.split("=") for each in asked.works):
            print(json.dumps(kill(work, kills=int(kills), seed=asked.seed)), flush=True)
    except DifferenceError as difference:
        sys.exit(str(difference))
