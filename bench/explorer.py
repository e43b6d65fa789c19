"""The explorer under load: python bench/explorer.py [RUN].

The server runs on one core and the clients on another. First 8 clients ask about commands of the
run's data, in the way a person does: 95 % of the answers must arrive within 50 ms. Then 8 clients
ask about commands outside the data, which the server has not predicted in advance. Then 50 clients
send 10,000 requests: no answer may be an error, and memory must stay bounded. The exit status is 1
if one of these promises is broken. Without a RUN, the benchmark trains a small one first. Clients
never pause, so the server's core is never idle; other programs on it make the times longer.
"""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

LIMIT_MS = 50.0
GROWTH_MB = 200
"""Largest growth of memory in MB: the cache of 64 MB, and overhead of the allocator."""


@dataclass(frozen=True)
class Asked:
    kind: str
    path: str


@dataclass(frozen=True)
class Outcome:
    kind: str
    status: int
    ms: float


def paths(run: str, commands: list[str], seed: int = 0) -> Iterator[Asked]:
    """Yield the requests of a person who types commands and swaps words."""
    rng = random.Random(seed)
    base = f"/api/models/{quote(run)}"
    while True:
        command = rng.choice(commands)
        words = command.split()
        asked = {
            "answer": {"command": command},
            "alignment": {"command": command},
            "commands": {"like": " ".join(words[:2])},
        }
        more = rng.choice(["orbits", "swap", "table", "derivation", "page"])
        if more == "swap":
            after = command.replace("walk", "run").replace("left", "right")
            asked["swap"] = {"before": command, "after": after}
        elif more in ("orbits", "derivation"):
            asked[more] = {"command": command}
        elif more == "table":
            asked["table"] = {}
        for kind, query in asked.items():
            yield Asked(kind, f"{base}/{kind}?{urlencode(query)}")
        if more == "page":
            yield Asked("page", "/static/main.js")


async def answer(reader: asyncio.StreamReader) -> str:
    """Read a response to its end; return its head in small letters."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
    return head


async def client(
    port: int, work: Iterator[Asked], results: list[Outcome], *, token: str = ""
) -> None:
    """Send requests on one connection, each as soon as the last one is answered. If the server
    closes the connection, the outcome has status 0 and another connection is opened.
    """
    writer = None
    for asked in work:
        start, status = time.perf_counter(), 0
        with suppress(OSError, asyncio.IncompleteReadError):
            if writer is None or writer.is_closing():
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"GET {asked.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
            head = await answer(reader)
            status = int(head.split()[1])
        if writer is not None and (status == 0 or "connection: close" in head):
            writer.close()
        results.append(Outcome(asked.kind, status, 1000 * (time.perf_counter() - start)))
    if writer is not None:
        writer.close()


async def hammer(port: int, work: Iterator[Asked], *, clients: int, requests: int) -> list[Outcome]:
    """Send requests from several clients at once; return all outcomes."""
    results: list[Outcome] = []
    shared = (next(work) for _ in range(requests))
    await asyncio.gather(*(client(port, shared, results) for _ in range(clients)))
    return results


def percentile(numbers: list[float], share: float) -> float:
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(results: list[Outcome]) -> tuple[float, float]:
    """Print times by kind of request; return the median and the 95th percentile of all."""
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    for outcome in results:
        kinds[outcome.kind].append(outcome.ms)
        kinds["all"].append(outcome.ms)
    for kind, times in sorted(kinds.items(), key=lambda item: (item[0] == "all", item[0])):
        median, p95 = percentile(times, 0.5), percentile(times, 0.95)
        print(f"  {kind:10} {len(times):6} requests  median {median:6.1f} ms  95 % {p95:6.1f} ms")
    return percentile(kinds["all"], 0.5), percentile(kinds["all"], 0.95)


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def used_seconds(pid: int) -> float:
    """Return the CPU time of a process in seconds (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(pid: int) -> None:
    """Wait until a process is idle, after its warm-up."""
    used = -1.0
    while (now := used_seconds(pid)) - used > 0.02:
        used = now
        time.sleep(1)


def train(folder: Path) -> Path:
    """Train a small run; return its directory."""
    out = folder / "small"
    options = ["--split", "add_jump", "--training.epochs", "4", "--out", str(out), "--quiet"]
    subprocess.run([sys.executable, "-m", "equitrans.cli.main", "train", *options], check=True)
    return out


@contextmanager
def served(
    runs: list[Path], *, command: str = "explore", **environment: str
) -> Iterator[tuple[int, int]]:
    """Start a server on the first core, and leave the last one to this process; yield its process
    number and its port when it is idle.
    """
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-1:])
    server = subprocess.Popen(
        [sys.executable, "-m", "equitrans.cli.main", command, *map(str, runs), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
        preexec_fn=lambda: os.sched_setaffinity(0, cores[:1]),
    )
    try:
        assert server.stdout is not None
        link = server.stdout.readline().partition("/?token")[0]
        settle(server.pid)
        yield server.pid, int(link.rstrip("/\n").rpartition(":")[2])
    finally:
        server.terminate()
        server.wait()
        os.sched_setaffinity(0, cores)


def measure(run: Path) -> list[dict[str, Any]]:
    """Start a server, measure it, and return one row per phase."""
    from equitrans.data.scan import everything

    commands = [" ".join(pair.source) for pair in everything()]
    strange = [f"{a} and {b}" for a, b in zip(commands[::40], commands[7::40], strict=False)]
    rows = []
    with served([run]) as (pid, port):
        for number, (what, asked, clients, requests) in enumerate(
            [
                ("commands of the data", commands, 8, 3_000),
                ("other commands", strange, 8, 1_000),
                ("both", [*commands, *strange], 50, 10_000),
            ],
            start=1,
        ):
            print(f"{clients} clients, {requests:,} requests, {what}")
            before, used = resident_mb(pid), used_seconds(pid)
            work = paths(run.resolve().name, asked, number)
            found = asyncio.run(hammer(port, work, clients=clients, requests=requests))
            used = 1000 * (used_seconds(pid) - used) / requests
            print(f"  {used:.1f} ms of CPU time per request")
            median, p95 = report(found)
            rows.append(
                {
                    "asked about": what,
                    "clients": clients,
                    "requests": requests,
                    "errors": sum(outcome.status != 200 for outcome in found),
                    "median, ms": round(median, 1),
                    "95 % within, ms": round(p95, 1),
                    "memory before, MB": round(before),
                    "after": round(resident_mb(pid)),
                }
            )
    return rows


def main() -> int:
    """Measure, and print which promises are kept."""
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(sys.argv[1]) if len(sys.argv) > 1 else train(Path(folder)))
    growth = rows[-1]["after"] - rows[-1]["memory before, MB"]
    print(f"errors: {sum(row['errors'] for row in rows)}; memory grew by {growth} MB")
    kept = {
        f"95 % of answers to 8 clients within {LIMIT_MS:g} ms": rows[0]["95 % within, ms"]
        <= LIMIT_MS,
        "no error": not any(row["errors"] for row in rows),
        f"memory grows by {GROWTH_MB} MB at most": growth <= GROWTH_MB,
    }
    for promise, holds in kept.items():
        print(f"{'kept' if holds else 'BROKEN'}: {promise}")
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
