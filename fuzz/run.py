"""Coverage-guided fuzzing of every parser (make fuzz), with the targets of the tests.

    python fuzz/run.py --workers 2 --out records/reliability/fuzz-1.json
    python fuzz/run.py --only classes --executions 100000 --out classes.json

The executions of a target are divided among processes, each with its own seed; --workers is the
number of processes at a time. A process ends early on SIGUSR1 and at its first finding. The result
keeps the bytes of every finding, so that a test can be made of them.
"""

import argparse
import base64
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / folder) for folder in ("fixtures", "oracles")]

SHARES = {
    "pairs": 24,
    "characters": 20,
    "scan": 20,
    "classes": 12,
    "space": 12,
    "settings": 3,
    "recipe": 3,
    "record": 2,
    "grammar": 3,
    "model": 1,
}
"""Shares of the executions; files that people write by hand get most."""

PART = 250_000
"""Most executions of one process; a finding or an interrupt loses at most this many."""


def fuzz(name: str, folder: Path, options: list[str]) -> None:
    """Run one target until libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["equitrans", "tomllib"]):
        from parsers import TARGETS

        target = TARGETS[name]
        target(b"", folder)  # the imports of the target are instrumented too
    atheris.Setup([sys.argv[0], *options], lambda data: target(data, folder))
    atheris.Fuzz()


def run(name: str, executions: int, seed: int) -> dict[str, object]:
    """Run one target in its own process and return executions, seconds and findings."""
    from parsers import SEEDS

    with tempfile.TemporaryDirectory(dir=_memory()) as place:
        folder, corpus = Path(place, "files"), Path(place, "corpus")
        folder.mkdir()
        corpus.mkdir()
        for number, data in enumerate(SEEDS.get(name, [b"\0" * 16])):
            (corpus / str(number)).write_bytes(data)
        started = time.monotonic()
        done = subprocess.run(
            [
                *(sys.executable, __file__, "--child", name, str(folder)),
                *(f"-runs={executions}", f"-seed={seed}", "-max_len=1024", "-timeout=20"),
                *("-rss_limit_mb=4096", f"-artifact_prefix={place}/finding-", str(corpus)),
            ],
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        seconds = time.monotonic() - started
        counted = [int(n) for n in re.findall(r"^#(\d+)", done.stdout, re.MULTILINE)]
        finished = re.search(r"Done (\d+) runs", done.stdout)
        findings = [
            {"bytes": base64.b64encode(path.read_bytes()).decode(), "said": said(done.stdout)}
            for path in sorted(Path(place).glob("finding-*"))
        ]
        if done.returncode and not findings:
            findings = [{"bytes": "", "said": said(done.stdout)}]
        return {
            "executions": int(finished[1]) if finished else max(counted, default=0),
            "seconds": round(seconds, 1),
            "corpus": len(list(corpus.iterdir())),
            "findings": findings,
        }


def said(output: str) -> str:
    """The error that ended a target, or the end of its output."""
    error = re.search(r"Uncaught Python exception: ===\n(.*)", output)
    return error[1] if error else output[-500:]


def _memory() -> str | None:
    """A folder in memory if there is one, because every execution writes files."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    """Fuzz and write the result; return 1 if there is a finding."""
    if sys.argv[1:2] == ["--child"]:
        fuzz(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    parser = argparse.ArgumentParser(description="fuzz every parser")
    parser.add_argument(
        "--executions", type=int, default=10_000_000, help="executions of all targets together"
    )
    parser.add_argument("--only", choices=SHARES, help="fuzz this target alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="number of processes at a time")
    parser.add_argument("--out", type=Path, required=True, help="JSON file of the result")
    asked = parser.parse_args()
    shares = {asked.only: 1} if asked.only else SHARES
    parts = list(divided(shares, asked.executions, asked.seed))
    results: dict[str, list[dict[str, object]]] = {name: [] for name in shares}
    started = time.monotonic()
    with ThreadPoolExecutor(asked.workers) as pool:
        running = {pool.submit(run, *part): part for part in parts}
        for done in as_completed(running):
            name, _, seed = running[done]
            result = done.result()
            print(name, seed, {k: v for k, v in result.items() if k != "findings"}, flush=True)
            for finding in result["findings"]:
                print(finding["said"], flush=True)
            results[name].append(result)
            write(asked.out, results, asked, time.monotonic() - started)  # the result so far
    return 1 if any(result["findings"] for each in results.values() for result in each) else 0


def divided(shares: dict[str, int], executions: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """Yield target, executions and seed of every process."""
    for name, share in shares.items():
        left = -(-executions * share // sum(shares.values()))
        for number in range(-(-left // PART)):
            yield name, min(PART, left - number * PART), seed + number


def write(
    path: Path,
    results: dict[str, list[dict[str, object]]],
    asked: argparse.Namespace,
    seconds: float,
) -> None:
    """Write the sums and the result of every target as JSON."""
    targets = {
        name: {
            "executions": sum(part["executions"] for part in parts),
            "processes": len(parts),
            "seconds": round(sum(part["seconds"] for part in parts), 1),
            "findings": [finding for part in parts for finding in part["findings"]],
        }
        for name, parts in results.items()
    }
    row = {
        "seed": asked.seed,
        "parsers": asked.only or "all",
        "executions": sum(target["executions"] for target in targets.values()),
        "found": sum(len(target["findings"]) for target in targets.values()),
        "processes": asked.workers,
        "seconds": round(seconds),
    }
    result = {
        "rows": [row],
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": {
            "equitrans": version("equitrans"),
            "atheris": version("atheris"),
            "python": platform.python_version(),
        },
        "targets": targets,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
