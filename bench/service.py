"""equitrans serve under load: python bench/service.py [RUN --data FILE].

The server runs on one core and the clients on another. 8 clients send requests without pause, each
with one sentence: first sentences that all differ, then the same again, which are cached. Then they
send batches of 100 sentences. The promise is 1,000 requests a second on one core and 95 % within
20 ms; the exit status is 1 if it is broken. Other programs on the cores make the times longer, so
the CPU time per request is printed too: below 1 ms, one core answers 1,000 requests a second. The
sentences are those of FILE, and with --more all pairs of them joined by a word. Without a RUN, the
rules of SCAN are learned first.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import explorer
from explorer import answer, percentile, resident_mb, used_seconds

CLIENTS, REQUESTS = 8, 4000
LIMIT_MS, LEAST_PER_SECOND = 20.0, 1000


async def client(port: int, work: Iterator[bytes], times: list[float], statuses: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in work:
        start = time.perf_counter()
        writer.write(request)
        head = await answer(reader)
        times.append(1000 * (time.perf_counter() - start))
        statuses.append(int(head.split()[1]))
    writer.close()


def single(port: int, sentence: str) -> bytes:
    path = f"/predict?sentence={quote(sentence)}"
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()


def batch(port: int, sentences: list[str]) -> bytes:
    body = json.dumps({"sentences": sentences}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\ncontent-length: {len(body)}"
    return f"{head}\r\ncontent-type: application/json\r\n\r\n".encode() + body


async def ask(port: int, requests: list[bytes]) -> tuple[float, list[float], list[int]]:
    times: list[float] = []
    statuses: list[int] = []
    work = iter(requests)
    started = time.perf_counter()
    await asyncio.gather(*(client(port, work, times, statuses) for _ in range(CLIENTS)))
    return time.perf_counter() - started, times, statuses


def measure(run: Path, sentences: list[str]) -> bool:
    good = True
    with explorer.served([run], command="serve") as (pid, port):
        one = [single(port, sentence) for sentence in sentences]
        many = [batch(port, sentences[at : at + 100]) for at in range(0, len(sentences), 100)]
        for what, requests in (("distinct", one), ("cached", one), ("batches of 100", many)):
            used = used_seconds(pid)
            seconds, times, statuses = asyncio.run(ask(port, requests))
            cpu = 1000 * (used_seconds(pid) - used) / len(requests)
            rate, p95 = len(requests) / seconds, percentile(times, 0.95)
            print(
                f"{what:15} {len(requests):6} requests, {rate:6.0f} a second, CPU {cpu:.2f} ms, "
                f"median {percentile(times, 0.5):.1f} ms, 95 % within {p95:.1f} ms, "
                f"memory {resident_mb(pid):.0f} MB"
            )
            assert set(statuses) == {200}, set(statuses)
            if what != "batches of 100":
                good &= p95 <= LIMIT_MS and rate >= LEAST_PER_SECOND
    print("promise kept" if good else "promise broken: look at the CPU time if the machine is busy")
    return good


def scan_rules(folder: Path) -> tuple[Path, list[str]]:
    """Learn the rules of SCAN; return the run and commands."""
    from equitrans.data import everything

    options = ["--split", "length", "--model.aligner", "recursive", "--out", str(folder / "rules")]
    command = [sys.executable, "-m", "equitrans.cli.main", "train", *options, "--quiet"]
    subprocess.run(command, check=True)
    return folder / "rules", [" ".join(pair.source) for pair in everything()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--data", type=Path, help="a TSV file; its first column is asked")
    parser.add_argument("--more", metavar="WORD", help="join two sentences by this word")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.run is None:
            run, sentences = scan_rules(Path(folder))
        else:
            run = asked.run
            lines = asked.data.read_text(encoding="utf-8").splitlines()
            sentences = [line.partition("\t")[0] for line in lines]
        if asked.more:
            sentences = [f"{a} {asked.more} {b}" for a in sentences for b in sentences]
        random.Random(0).shuffle(sentences)
        return 0 if measure(run, sentences[:REQUESTS]) else 1


if __name__ == "__main__":
    sys.exit(main())
