"""The explorer under attack: python bench/attacks.py.

Eight clients ask about commands of the data, in the way a person does, while an attack runs. The
exit status is 1 if one of their requests fails, if fewer than 95 % of them are answered within
LIMIT_MS, or if memory grows by more than GROWTH_MB. The server runs on one core, the clients and
the attack on another.
"""

import asyncio
import itertools
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import explorer

LIMIT_MS = 500.0
"""Largest 95th percentile of the ordinary requests during an attack."""
GROWTH_MB = 300
"""Largest growth of memory during an attack: the caches, unsent responses, and the allocator."""
SECONDS, REQUESTS = 30, 600
"""An attack ends when the ordinary clients have sent REQUESTS requests, or after SECONDS."""
TOKEN = "a-token-of-the-right-length"

Attack = Callable[[int], Coroutine[Any, Any, None]]


async def silence(port: int) -> None:
    """Keep 400 connections open and send nothing."""

    async def keep() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                with closing(writer):
                    await reader.read()
            await asyncio.sleep(0.05)

    await asyncio.gather(*(keep() for _ in range(400)))


async def deafness(port: int) -> None:
    """Ask for large responses on 400 connections, and do not read them."""
    request = large_request(port)
    loop = asyncio.get_running_loop()

    async def keep() -> None:
        while True:
            with socket.socket() as connection, suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.setblocking(False)
                await loop.sock_connect(connection, ("127.0.0.1", port))
                await loop.sock_sendall(connection, request * 3)
                while True:  # until the server closes the connection
                    await asyncio.sleep(5)
                    await loop.sock_sendall(connection, request)

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with closing(writer):
        writer.write(request)  # so that the response is in the cache
        await explorer.answer(reader)
    await asyncio.gather(*(keep() for _ in range(400)))


def large_request(port: int) -> bytes:
    """Return a request whose response has a quarter of a megabyte."""
    query = f"command=walk{'+twice' * 60}&target={'+'.join(['I_WALK'] * 150)}"
    return _request(port, f"/api/models/small/alignment?{query}")


async def unknown_words(port: int) -> None:
    """Ask about words that a model with 99,000 words does not know."""
    rng = random.Random(0)
    await _flood(port, ("/api/models/wide/answer?command=" + shuffled(rng) for _ in iter(int, 1)))


async def long_derivations(port: int) -> None:
    """Ask a recursive aligner for targets whose length doubles with each word."""
    kinds = itertools.cycle(["answer", "derivation", "alignment", "orbits"])
    lengths = itertools.cycle(range(18, 42))
    await _flood(
        port,
        (
            f"/api/models/rules/{kind}?command=walk{'+twice' * n}"
            for kind, n in zip(kinds, lengths, strict=True)
        ),
    )


async def bad_tokens(port: int) -> None:
    """Send wrong tokens, ASCII and others."""
    await _flood(
        port,
        ("/api/models" for _ in iter(int, 1)),
        tokens=itertools.cycle(["wrong", "é" * 16, "\xff", "x" * 4000]),
    )


async def _flood(
    port: int, paths: Iterator[str], *, tokens: Iterator[str] | None = None, clients: int = 8
) -> None:
    """Send requests from some clients, each as soon as the last one is answered."""
    right = itertools.repeat(TOKEN)

    async def client() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                with closing(writer):
                    for path, token in zip(paths, tokens or right, strict=False):
                        writer.write(_request(port, path, token))
                        await explorer.answer(reader)

    await asyncio.gather(*(client() for _ in range(clients)))


def _request(port: int, path: str, token: str = TOKEN) -> bytes:
    lines = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    return f"{lines}\r\n".encode()


ATTACKS: dict[str, tuple[Attack, ...]] = {
    "no attack": (),
    "400 silent connections": (silence,),
    "400 connections that never read": (deafness,),
    "unknown words, of 99,000": (unknown_words,),
    "targets of up to 2⁴¹ words": (long_derivations,),
    "wrong tokens": (bad_tokens,),
}


def shuffled(rng: random.Random) -> str:
    """Return a word that looks like all other words of the model ``wide``."""
    return "".join(rng.sample("abcdefghijkl" * 2, 24))


def make_models(folder: Path) -> list[Path]:
    """Train and save the models that are attacked; return their directories."""
    from equitrans.models import TransducerConfig
    from equitrans.paper import Symmetry, Vocabulary
    from equitrans.training import Trained

    small, rules, wide = explorer.train(folder), folder / "rules", folder / "wide"
    options = ["--split", "length", "--model.aligner", "recursive", "--out", str(rules), "--quiet"]
    subprocess.run([sys.executable, "-m", "equitrans.cli.main", "train", *options], check=True)
    rng = random.Random(1)
    words = Vocabulary(tuple(dict.fromkeys(shuffled(rng) for _ in range(99_000))))
    config = TransducerConfig(k=8, d=8, hidden=8, embedding=8)
    Trained.new(config, Symmetry(words, words), max_length=20).save(wide)
    return [small, rules, wide]


@asynccontextmanager
async def running(attack: Attack, port: int) -> AsyncIterator[None]:
    """Run an attack in the background."""
    task = asyncio.create_task(attack(port))
    await asyncio.sleep(4)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)  # for transports that are closing


async def _measure(port: int, attack: tuple[Attack, ...]) -> list[explorer.Outcome]:
    from equitrans.data.scan import everything

    commands = [" ".join(pair.source) for pair in everything()]
    end = time.monotonic() + SECONDS
    work = explorer.paths("small", commands)
    work = itertools.takewhile(lambda _: time.monotonic() < end, itertools.islice(work, REQUESTS))
    results: list[explorer.Outcome] = []
    clients = [explorer.client(port, work, results, token=TOKEN) for _ in range(8)]
    if attack:
        async with running(attack[0], port):
            await asyncio.gather(*clients)
    else:
        await asyncio.gather(*clients)
    return results


def measure(models: list[Path]) -> list[dict[str, Any]]:
    """Attack a server in several ways, a new server each time; return one row per attack."""
    rows = []
    for name, attack in ATTACKS.items():
        print(name)
        with explorer.served(models, EQUITRANS_TOKEN=TOKEN) as (pid, port):
            before = explorer.resident_mb(pid)
            found = asyncio.run(_measure(port, attack))
            after = explorer.resident_mb(pid)
        median, p95 = explorer.report(found)
        rows.append(
            {
                "attack": name,
                "clients": 8,
                "requests": len(found),
                "errors": sum(outcome.status != 200 for outcome in found),
                "median, ms": round(median, 1),
                "95 % within, ms": round(p95, 1),
                "memory before, MB": round(before),
                "after": round(after),
            }
        )
        print(rows[-1], flush=True)
    return rows


def broken(rows: list[dict[str, Any]]) -> list[str]:
    """Return the promises that do not hold."""
    found = []
    for row in rows:
        if row["errors"]:
            found.append(f"{row['attack']}: {row['errors']} of {row['requests']} requests failed")
        if row["95 % within, ms"] > LIMIT_MS:
            found.append(f"{row['attack']}: 95 % within {row['95 % within, ms']} ms")
        if row["after"] - row["memory before, MB"] > GROWTH_MB:
            found.append(f"{row['attack']}: memory grew to {row['after']} MB")
    return found


def main() -> int:
    """Measure, and print which promises are broken."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = broken(measure(make_models(Path(folder))))
    for promise in wrong:
        print(f"BROKEN: {promise}")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
