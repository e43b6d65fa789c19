"""Hostile directories and files: every command refuses or answers, within time and memory.

    python bench/hostile.py --seed 0
    python bench/hostile.py --seed 0 --case 123     # one case, with what its commands say

Three runs are trained: a transducer, a recursive aligner and a baseline. A case is a damaged copy
of one of them, or a damaged file. Commands run on it in forked processes. A traceback, a signal, a
terminal escape, a long message, a secret of another file, more than 5 seconds of CPU time or more
than 1 GB of memory is a finding; the exit status is 1 if there are any.
"""

import argparse
import copy
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("fixtures", "oracles")]

import torch
from safetensors.torch import load_file

from equitrans.cli.main import COMMANDS, main
from equitrans.data import load_data
from equitrans.explorer import Registry
from equitrans.training import Run, RunConfig, runs
from equitrans.training.tensors import pack, read_header
from tiny import SETTINGS

Draw = random.Random
Row = dict[str, Any]

DIRECTORIES, FILES = 500, 300
SECONDS, WALL_SECONDS, MEGABYTES = 5, 60, 1000
"""Limits of a command: CPU time, time on a machine that does other work too, memory."""
SECRET = "hunter2"
ODD: list[Any] = [
    *(None, True, 0, 1, -1, 2**31, 2**63, 10**400, 0.5, 1e308, float("nan"), float("inf"), ""),
    *("a", "\ud800", "\u200b", "\0", "\x1b[2J", "x" * 100_000, "\n", "../x", "secret", "/dev/zero"),
    *([], {}, [[]], [None], {"": {}}, ["a", "a"], ["a"] * 1000, [0] * 1000, {"a": 10**400}),
]


# --- damage


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values within a JSON value."""
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(p for key, part in items for p in places(part, (*path, key)))]


def damage_json(draw: Draw, content: Any) -> Any:
    """A JSON value with one to three values replaced, removed or added."""
    content = copy.deepcopy(content)
    for _ in range(draw.randint(1, 3)):
        *path, last = draw.choice(places(content)[1:] or [("a",)])
        parent = content
        for key in path:
            parent = parent[key]
        if isinstance(parent, list | dict) and draw.random() < 0.2:
            del parent[last]
        elif isinstance(parent, dict) and draw.random() < 0.1:
            parent[draw.choice(["a", "x" * 10_000, "\x1b[2J", "__class__"])] = copy.deepcopy(
                draw.choice(ODD)
            )
        else:
            parent[last] = copy.deepcopy(draw.choice(ODD))
        if not isinstance(content, dict | list) or not content:
            break
    return content


def damage_bytes(draw: Draw, raw: bytes) -> bytes:
    """Bytes with some of them changed, removed, repeated or replaced."""
    changed = bytearray(raw)
    for _ in range(draw.choice([1, 1, 3, 20])):
        at = draw.randrange(len(changed) + 1)
        kind = draw.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] = draw.randrange(256)
        elif kind == 1:
            del changed[at : at + draw.choice([1, 10, 1000])]
        elif kind == 2:
            changed[at:at] = changed[at : at + draw.choice([1, 10, 1000])] * draw.choice([1, 50])
        elif kind == 3:
            changed = changed[:at]
        else:
            odd = [b"\0", b"\xff", b"\xef\xbb\xbf", b"\x1b[2J", b"\n", b"\t", b"[" * 100_000]
            odd += [b"9" * 5000, b"a." * 5000, b"x" * 200_000, "\u200b\u202e".encode(), b"\r"]
            changed[at:at] = draw.choice(odd)
    return bytes(changed)


def damage_tensors(draw: Draw, path: Path) -> None:
    """Change tensors, metadata or the header of a safetensors file."""
    tensors, metadata = load_file(path), dict(read_header(path).metadata)
    metadata.pop("sha256", None)
    name = draw.choice(sorted(tensors))
    kind = draw.randrange(8)
    if kind == 0:
        value = draw.choice([0.0, -1.0, 1e5, 1e20, 3e38, float("nan"), float("inf")])
        tensors[name] = torch.full_like(tensors[name], value)
    elif kind == 1:
        shape = draw.choice([(), (0,), (1,), (1, 1), (3, 5), (1,) * 20, (100_000,)])
        tensors[name] = torch.zeros(shape)
    elif kind == 2:
        odd = draw.choice(["a", "\x1b[2J", "x" * 100_000, "optimizer.00.step", "best.x"])
        tensors[odd] = tensors.pop(name)
    elif kind == 3:
        del tensors[name]
    elif kind == 4:
        tensors[name] = tensors[name].to(draw.choice([torch.int64, torch.float16, torch.float64]))
    elif kind == 5:
        text = metadata.get("counters", "{}")
        counters = damage_json(draw, json.loads(text) or {"a": 1})
        metadata["counters"] = json.dumps(counters)
    if kind < 6:
        path.write_bytes(pack(tensors, metadata))
        return
    if kind == 6:
        path.write_bytes(damage_bytes(draw, path.read_bytes()))
        return
    sizes = draw.choice([[0] * 1000, [2**63], [0, 2**63], [-1], [10**400], [1] * 300_000])
    header = {name: {"dtype": "F32", "shape": sizes, "data_offsets": [0, 0]}}
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw)


def damage_log(draw: Draw, path: Path) -> None:
    """Change lines of a log."""
    lines = path.read_text().splitlines()
    at = draw.randrange(len(lines))
    with suppress(ValueError):
        lines[at] = json.dumps(damage_json(draw, json.loads(lines[at])))
    path.write_text("\n".join(lines * draw.choice([1, 1, 1000])) + "\n")


def replace_file(draw: Draw, path: Path) -> None:
    """Put something else in the place of a file."""
    kind = draw.choice(["link", "loop", "pipe", "folder", "empty", "sparse", "gone", "deep"])
    path.unlink()
    if kind == "link":
        path.symlink_to(draw.choice(["/etc/passwd", "/dev/zero", "../secret", "config.json"]))
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "deep":
        path.write_bytes(b"[" * 1_000_000)
    elif kind != "gone":
        path.touch()
        os.truncate(path, 0 if kind == "empty" else draw.choice([10**9, 10**12, 3 * 10**7]))


def damage_directory(draw: Draw, folder: Path) -> str:
    """Damage a copy of a run; return what was damaged."""
    names = sorted(p.name for p in folder.iterdir())
    name = draw.choice(names)
    path = folder / name
    if name == "config.json" and draw.random() < 0.3:
        content = json.loads(path.read_text())
        file = draw.choice(["../secret", "../secret.tsv", "/dev/zero", "../pipe", "..", "a\0b"])
        content["data"] |= {"file": file, "classes": file}
        path.write_text(json.dumps(content))
    elif (how := draw.random()) < 0.15:
        replace_file(draw, path)
    elif how < 0.3:
        path.write_bytes(damage_bytes(draw, path.read_bytes()))
    elif name.endswith(".json"):
        path.write_text(json.dumps(damage_json(draw, json.loads(path.read_text()))))
    elif name.endswith(".jsonl"):
        damage_log(draw, path)
    else:
        damage_tensors(draw, path)
    return name


PAIRS = "".join(f"{v} {a}\t{v.upper()} {a.upper()}\n" for v in ("go", "run", "sit") for a in "ab")
CLASSES = '[[class]]\nname = "v"\nsource = ["go", "run"]\ntarget = ["GO", "RUN"]\n'
TEXTS = {
    "pairs.tsv": PAIRS,
    "scan.txt": "".join(f"IN: {line}\n".replace("\t", " OUT: ") for line in PAIRS.splitlines()),
    "classes.toml": CLASSES,
    "config.yaml": "seed: 3\nmodel:\n  hidden: 8\ntraining:\n  epochs: 1\n",
    "space.toml": '[space]\nseed = [0, 1]\n"model.hidden" = [4, 8]\n',
    "simple.jsonl": "",
}
BOMBS = {
    "pairs.tsv": ["a\tb\n" * 200_000, "a " * 2000 + "\tb\n", "\tb\n", "a\tb\tc\n", '"a","b"\n'],
    "scan.txt": ["IN: a OUT: b OUT: c\n", "IN:\n", "IN: a\n"],
    "classes.toml": [
        "class = " + "[" * 5000,
        "[[class]]\n" + "a.b=1\n" * 20_000,
        CLASSES * 3000,
        "[[class]]\nsource = [" + '"w",' * 50_000 + ']\ntarget = ["a"]\n',
        "a = 1e999999\n",
        "a = " + "9" * 100_000,
    ],
    "config.yaml": [
        "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(50)),
        "a: " + "[" * 10_000,
        "seed: !!python/object/apply:os.system ['echo hunter2']\n",
        "? " * 3000,
        "seed: 2020-13-45\n",
    ],
    "space.toml": ["[space]\n" + "a = [1]\n" * 3, "[space]\nseed = [" + "1," * 90_000 + "]\n"],
    "simple.jsonl": ["{}\n" * 1000, "[" * 100_000 + "\n", "null\n", '{"name": "\x1b[2J"}\n'],
}


# --- commands


def explore(path: str) -> int:
    """What the explorer does with a directory, without its server."""
    entry = Registry.load([path]).find(os.path.basename(os.path.realpath(path)))
    entry.describe()
    print(entry.data if isinstance(entry.data, str) else entry.commands[:3], entry.records)
    return 0


def directory_commands(draw: Draw) -> list[list[str]]:
    """Some commands on the directory ``run``."""
    data = ["--data", "pairs.tsv"]
    every = [
        ["predict", "run", "walk and run", "--alignments", "--n-best", "3"],
        ["predict", "run", "walk and run", "--json"],
        ["evaluate", "run", *data],
        ["evaluate", "run", "--split", "simple_p1", "--part", "train", "--width", "1"],
        ["audit", "run", *data],
        ["grammar", "run", "--derive", "walk and run"],
        ["orbits", "run", "walk and run"],
        ["export", "run", "--out", "out"],
        ["export", "run", *data, "--out", "out", "--json"],
        ["extend", "run", "--class", "verbs", "hop=HOP", "--out", "out"],
        ["train", "--resume", "run"],
        ["train", "--resume", "run"],
        ["plot", "curves", "run", "--out", "curves.png"],
        ["explore", "run"],
    ]
    return draw.sample(every, 3)


def file_commands(name: str, run: Path) -> list[list[str]]:
    """The commands that read a file."""
    small = ["--training.epochs", "1", "--training.seconds", "1", "--model.hidden", "4"]
    out = [*small, "--out", "out", "--quiet"]
    if name in ("pairs.tsv", "scan.txt"):
        found = [["discover", name], ["train", "--data", name, "--classes", "none", *out]]
        found += [["evaluate", str(run), "--data", name], ["audit", str(run), "--data", name]]
        return found + ([["check", name]] if "check" in COMMANDS else [])
    if name == "classes.toml":
        found = [["train", "--data", "ok.tsv", "--classes", name, *out]]
        return [*found, ["audit", str(run), "--data", "pairs.ok", "--classes", name]]
    if name == "config.yaml":
        data = ["--data", "ok.tsv", "--classes", "none"]
        return [["train", "--config", name, *data, *out]]
    if name == "space.toml":
        return [["search", "--split", "simple_p1", "--space", name, "--trials", "0"]]
    return [["tables", "table1", "--records", "."], ["plot", "curves", name, "--out", "c.png"]]


def attempt(folder: Path, command: list[str]) -> tuple[str | None, str, str, int]:
    """Run a command in a forked process: the finding or None, whether it refuses or answers, what
    it says, its memory in kB.
    """
    said = folder / "said"
    child = os.fork()
    if not child:
        _work(folder, command, said)
    deadline = time.monotonic() + WALL_SECONDS
    while not (ended := os.wait4(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            ended = os.wait4(child, 0)
            break
        time.sleep(0.002)
    _, status, used = ended
    code = os.waitstatus_to_exitcode(status)
    text = said.read_bytes().decode(errors="replace")
    finding = None
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        finding = "hang"
    elif code < 0:
        finding = f"killed by {signal.Signals(-code).name}"
    elif code not in (0, 1, 2) or "Traceback" in text:
        finding = "traceback"
    elif used.ru_maxrss > 1000 * MEGABYTES:
        finding = "memory"
    elif any(not (c.isprintable() or c in "\n\t\u200c\u200d\xa0") for c in text):
        finding = "terminal escape"
    elif SECRET in text:
        finding = "secret"
    elif code == 2 and len(text.splitlines()[-1]) > 3000:
        finding = "long message"
    return finding, "refused" if code == 2 else "answered", text, used.ru_maxrss


def _work(folder: Path, command: list[str], said: Path) -> None:
    """Run a command with limits, in a child; never returns."""
    code = 70
    try:
        opened = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, 1)
        os.dup2(opened, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + 1_500_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = _explored(command) if command[0] == "explore" else main(command)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc()[-3000:].encode(errors="replace"))
    os._exit(code)


def _explored(command: list[str]) -> int:
    from equitrans.errors import EquitransError, printable

    try:
        return explore(command[1])
    except (EquitransError, OSError) as error:
        print(printable(str(error)))
        return 2


# --- cases


def prepare(folder: Path) -> None:
    """Train the runs; two of them are stopped before their end."""
    torch.set_num_threads(1)
    runs.CHECKPOINT_SECONDS = 0.0
    from shows import make_runs

    (folder / "made").mkdir()
    make_runs(folder / "made")
    data = {"file": "pairs.tsv", "classes": "classes.toml"}
    os.chdir(folder / "made")
    for name, more in {
        "jump": SETTINGS | {"orbits": "walk and run", "orbits_every": 1},
        "attention": {"kind": "attention", "training.epochs": 4},
    }.items():
        shutil.rmtree(folder / "made" / name)
        config = RunConfig.from_settings(data | more)
        run = Run.create(folder / "made" / name, config, load_data(config.data, seed=0))
        steps = run.train(run.load_data())
        next(steps), next(steps)
        steps.close()
    for name in (*COMMANDS, "arguments"):  # now, and not in every child
        with suppress(ModuleNotFoundError):
            __import__(f"equitrans.cli.{name}")


def make(number: int, seed: int, made: Path, folder: Path) -> tuple[str, list[list[str]]]:
    """Write the files of a case; return what was damaged and its commands."""
    draw = random.Random(f"{seed} {number}")
    (folder / "secret").write_text(f"root:{SECRET}\n")
    (folder / "secret.tsv").write_text(f"root\t{SECRET}\n")
    os.mkfifo(folder / "pipe")
    for name in ("pairs.tsv", "classes.toml"):
        shutil.copy(made / name, folder / name)
    if number < DIRECTORIES:
        kind = draw.choice(["jump", "rules", "attention"])
        shutil.copytree(made / kind, folder / "run")
        damaged = {damage_directory(draw, folder / "run")}
        if draw.random() < 0.3:
            with suppress(Exception):  # a damaged file is not always damaged again
                damaged.add(damage_directory(draw, folder / "run"))
        return f"{kind}: {', '.join(sorted(damaged))}", directory_commands(draw)
    name = draw.choice(sorted(TEXTS))
    (folder / "ok.tsv").write_text(PAIRS)
    shutil.copy(made / "pairs.tsv", folder / "pairs.ok")
    if name == "simple.jsonl":
        lines = (ROOT / "records" / "simple.jsonl").read_text().splitlines()[:3]
        texts = [json.dumps(damage_json(draw, json.loads(line))) for line in lines]
        raw = "\n".join(texts).encode()
    else:
        raw = TEXTS[name].encode()
    if draw.random() < 0.3:
        raw = draw.choice(BOMBS[name]).encode()
    elif name != "simple.jsonl" or draw.random() < 0.3:
        raw = damage_bytes(draw, raw)
    (folder / name).write_bytes(raw)
    return name, file_commands(name, made / draw.choice(["jump", "rules", "attention"]))


def attack(seed: int = 0, only: int | None = None) -> tuple[list[Row], int]:
    """Run all cases; return a row for directories and one for files, and the number of findings."""
    rows, findings = [], 0
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        for what, numbers in (
            ("model and run directories", range(DIRECTORIES)),
            ("files", range(DIRECTORIES, DIRECTORIES + FILES)),
        ):
            counts, most, commands = Counter[str](), 0, 0
            for number in numbers if only is None else {only} & {*numbers}:
                with tempfile.TemporaryDirectory(dir=place) as folder:
                    case, lines = make(number, seed, Path(place) / "made", Path(folder))
                    for command in lines:
                        finding, answer, said, used = attempt(Path(folder), command)
                        commands += 1
                        most = max(most, used)
                        counts[finding.partition(" by ")[0] if finding else answer] += 1
                        if finding is not None or only is not None:
                            last = said[-1500:] if finding else said[-300:]
                            print(
                                f"case {number} ({case}): {command}: {finding}\n{last}\n",
                                flush=True,
                            )
            findings += counts.total() - counts["refused"] - counts["answered"]
            rows.append(
                {
                    "what": what,
                    "seed": seed,
                    "cases": len(numbers),
                    "commands": commands,
                    "refused": counts["refused"],
                    "answered": counts["answered"],
                    "tracebacks": counts["traceback"] + counts["killed"],
                    "above 5 s": counts["hang"],
                    "above 1 GB": counts["memory"],
                    "escapes, secrets, long messages": counts["terminal escape"]
                    + counts["secret"]
                    + counts["long message"],
                    "most memory, MB": round(most / 1000),
                }
            )
        os.chdir(home)
    return rows, findings


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this case")
    asked = parser.parse_args()
    found, wrong = attack(asked.seed, asked.case)
    print(json.dumps(found, indent=1))
    sys.exit(1 if wrong else 0)
