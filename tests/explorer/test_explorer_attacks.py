"""The explorer under attack: other clients are answered, in time, and memory stays bounded."""

import asyncio
import os
import random
import select
import socket
import threading
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace

import pytest

from equitrans.errors import ConfigError
from equitrans.explorer import app, server as serving, views
from equitrans.explorer.entry import Entry
from equitrans.explorer.registry import Registry
from equitrans.explorer.security import Access
from equitrans.models.configs import TransducerConfig
from equitrans.paper import Symmetry, Vocabulary
from equitrans.training.trained import Trained
from servers import TOKEN, load_bench, served

bench, attacks = load_bench("explorer"), load_bench("attacks")
COMMANDS = ["jump twice", "walk and run", "look left", "run thrice", "walk left and look"]


@pytest.fixture(scope="module")
def registry(shown):
    """Return small models, and one whose words look alike."""
    jump, rules = Registry.load([shown / "jump", shown / "rules"]).entries.values()
    rng = random.Random(1)
    words = Vocabulary(tuple(dict.fromkeys(attacks.shuffled(rng) for _ in range(30_000))))
    config = TransducerConfig(k=4, d=4, hidden=4, embedding=4)
    wide = Trained.new(config, Symmetry(words, words), max_length=5)
    return Registry([replace(jump, name="small"), rules, Entry("wide", wide, None)])


@pytest.fixture(scope="module")
def server(registry):
    with served(registry, token=TOKEN) as running:
        yield running


def ordinary(server, attack=None, *, requests=160):
    """Return what eight ordinary clients get, during an attack."""
    results: list = []
    work = bench.paths("small", COMMANDS)
    shared = (next(work) for _ in range(requests))

    async def ask():
        clients = [bench.client(server.port, shared, results, token=TOKEN) for _ in range(8)]
        async with nullcontext() if attack is None else attacks.running(attack, server.port):
            await asyncio.gather(*clients)

    asyncio.run(ask())
    assert len(results) == requests
    return results


@pytest.mark.parametrize("attack", ["silence", "unknown_words", "bad_tokens"])
def test_ordinary_requests_are_answered_during_an_attack(server, attack):
    before = bench.resident_mb(os.getpid())
    found = ordinary(server, getattr(attacks, attack))
    assert {outcome.status for outcome in found} == {200}
    assert bench.percentile([outcome.ms for outcome in found], 0.95) < 2_000
    assert bench.resident_mb(os.getpid()) - before < 300


def test_target_that_doubles_with_each_word_is_refused_and_not_built(server):
    before = bench.resident_mb(os.getpid())
    for twice in (12, 41):
        command = "walk" + "+twice" * twice
        for path in ("answer", "derivation", "alignment", "orbits"):
            found = server.get(
                f"/api/models/rules/{path}?command={command}", authorization=f"Bearer {TOKEN}"
            )
            assert f"the target would have {2**twice} words" in found.body.decode()
            assert len(found.body) < 10_000
    assert bench.resident_mb(os.getpid()) - before < 100


def test_new_connection_closes_the_one_that_was_idle_longest(server, monkeypatch):
    monkeypatch.setattr(serving, "CONNECTIONS", 5)
    monkeypatch.setattr(serving, "GRACE_SECONDS", 0.0)
    with ExitStack() as stack:
        connect = lambda: stack.enter_context(  # noqa: E731
            socket.create_connection(("127.0.0.1", server.port), 5)
        )
        first, *_ = [connect() for _ in range(5)]
        last = connect()
        assert first.recv(1) == b""
        last.sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert last.recv(12) == b"HTTP/1.1 401"  # answered


def test_client_that_does_not_read_is_dropped(server, monkeypatch):
    monkeypatch.setattr(serving, "READ_SECONDS", 0.3)
    request = attacks.large_request(server.port)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.settimeout(60)
        connection.sendall(request * 100)
        dropped = select.poll()
        dropped.register(connection, select.POLLRDHUP)
        assert dropped.poll(60_000)
        answered = b""
        with suppress(ConnectionResetError):
            while more := connection.recv(65536):
                answered += more
        assert answered.startswith(b"HTTP/1.1 200")
        assert len(answered) < 100_000  # not even the first of 100 responses


def test_unread_responses_have_a_limit(server, monkeypatch):
    monkeypatch.setattr(serving, "UNREAD_BYTES", 0)
    test_client_that_does_not_read_is_dropped(server, monkeypatch)


@pytest.mark.parametrize("token", ["é" * 16, "\xff", "ключ", "\udce9"])
def test_token_that_is_not_ascii_is_wrong_and_locks_nobody_out(server, token):
    raw = token.encode(errors="surrogateescape")
    for line in (b"Authorization: Bearer " + raw, b"Cookie: equitrans-token=" + raw):
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n"
        assert server.raw(head.encode() + line + b"\r\n\r\n").status == 401
    quoted = "".join(f"%{byte:02x}" for byte in raw)
    assert server.get(f"/?token={quoted}").status == 401
    assert server.get("/api/models", authorization=f"Bearer {TOKEN}").status == 200


def test_token_that_no_client_can_send_is_refused():
    with pytest.raises(ConfigError, match="EQUITRANS_TOKEN"):
        Access(frozenset(), 1, token="é" * 16)


def test_page_is_served_while_the_worker_computes(server, monkeypatch):
    derive, begun, answered = views.derive, threading.Event(), threading.Event()

    def derive_slowly(*arguments):
        begun.set()
        assert answered.wait(60)
        return derive(*arguments)

    headers = {"authorization": f"Bearer {TOKEN}"}
    cached = "/api/models/small/answer?command=jump"
    assert server.get(cached, **headers).status == 200
    monkeypatch.setattr(views, "derive", derive_slowly)

    async def ask():
        slow = asyncio.create_task(
            asyncio.to_thread(server.get, "/api/models/small/derivation?command=jump", **headers)
        )
        assert await asyncio.to_thread(begun.wait, 60)
        for path in ("/", "/api/models", cached, "/openapi.json"):
            assert (await asyncio.to_thread(server.get, path, **headers)).status == 200
        assert not slow.done()
        answered.set()
        assert (await slow).status == 200

    asyncio.run(ask())


def test_large_response_is_refused(server, monkeypatch):
    monkeypatch.setattr(app, "LARGEST_RESPONSE", 100)
    found = server.get(
        "/api/models/small/table?add=dax+I_DAX+verbs", authorization=f"Bearer {TOKEN}"
    )
    assert found.status == 400
    assert "the response (Table) would have" in found.json["error"]
