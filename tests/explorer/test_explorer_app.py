"""The explorer as a server: routes, errors, access control, limits, load, command line."""

import asyncio
import http.client
import os
import socket
import time
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    response_schema_conformance,
    status_code_conformance,
)

from equitrans.explorer import queue, server as serving, views
from equitrans.explorer.registry import Registry
from equitrans.explorer.security import HEADERS, Access, SecurityMiddleware
from servers import TOKEN, load_bench, served

bench = load_bench("explorer")


@pytest.fixture(scope="module")
def registry(shown):
    return Registry.load([shown / name for name in ("jump", "rules", "attention", "bare")])


@pytest.fixture(scope="module")
def server(registry):
    with served(registry) as running:
        yield running


@pytest.fixture(scope="module")
def protected(registry):
    """A public server with a token."""
    with served(registry, public=True, token=TOKEN) as running:
        yield running


def test_page_and_its_files_have_strict_headers(server):
    page = server.get("/")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name, value in HEADERS.items():
        assert page.headers[name] == value.lower()
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "server" not in page.headers
    text = page.body.decode()
    assert "<style" not in text
    assert "onclick" not in text
    for name in ("main.js", "style.css", "icon.svg"):
        assert f"/static/{name}" in text
        assert server.get(f"/static/{name}").status == 200


def test_page_has_no_foreign_addresses():
    static = Path(views.__file__).parent / "static"
    for path in static.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path
        assert "https://" not in text, path
        assert "innerHTML" not in text, path


def test_answers_are_the_predictions_of_the_model(server, registry):
    found = server.get("/api/models/jump/answer?command=jump+twice")
    best = registry.find("jump").trained.n_best(["jump twice"], n=5, width=5)[0]
    assert found.headers["cache-control"] == "no-store"
    assert [guess["words"] for guess in found.json["best"]] == [list(p.words) for p in best]
    assert found.json["best"][0]["log_prob"] == pytest.approx(best[0].log_prob, abs=1e-4)
    added = "add=blick+I_BLICK+verbs"
    new = server.get(f"/api/models/jump/answer?command=blick+twice&{added}").json["best"][0]
    old = [word.replace("JUMP", "BLICK") for word in best[0].words]
    assert new["words"] == old
    unknown = server.get("/api/models/jump/answer?command=blick+twice").json
    assert unknown["best"] == []
    assert unknown["reason"] == "unknown word 'blick'"
    assert {m["name"] for m in server.get("/api/models").json["models"]} == set(registry.entries)


def test_mistakes_are_found_in_the_background(server):
    states = []
    for _ in range(2000):
        found = server.get("/api/models/attention/errors").json
        states.append(found["state"])
        if states[-1] == "done":
            break
        time.sleep(0.05)
    assert states[-1] == "done"
    assert found["which"] == "validation"
    assert found["done"] == found["of"] > found["right"]
    template = found["templates"][0]["template"].replace("<", "%3C").replace(">", "%3E")
    some = server.get(f"/api/models/attention/errors?template={template.replace(' ', '+')}").json
    assert 0 < some["matching"] <= found["matching"]
    assert server.get("/api/models/bare/errors").json["state"] == "missing"


@pytest.mark.parametrize("command", ["junp", "%00", "jump+%ff"])
def test_unknown_word_is_answered_with_a_reason(server, command):
    found = server.get(f"/api/models/jump/answer?command={command}")
    assert found.status == 200
    assert found.json["best"] == []
    assert found.json["reason"].startswith("unknown word ")
    orbits = server.get(f"/api/models/jump/orbits?command={command}")
    assert orbits.json == {"error": found.json["reason"]}


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/api/models/nope/table", 404, "there is no run 'nope' here"),
        ("/api/models/jump/alignment?command=junp", 400, "did you mean 'jump'"),
        ("/api/models/jump/orbits?command=junp", 400, "did you mean 'jump'"),
        ("/api/models/jump/answer?command=+", 400, "no words"),
        ("/api/models/jump/answer", 422, "command"),
        ("/api/models/jump/answer?command=" + "jump+" * 70, 400, "70 words; at most 64"),
        ("/api/models/jump/answer?command=" + "x" * 2001, 422, "2000"),
        ("/api/models/jump/swap?before=jump&after=jump+twice", 400, "different forms"),
        ("/api/models/jump/alignment?command=jump&target=NOPE", 400, "unknown word 'NOPE'"),
        ("/api/models/jump/added?add=a+b", 400, "word translation class"),
        ("/api/models/jump/added?" + "&add=a+b+verbs" * 9, 422, "add"),
        ("/api/models/jump/errors?page=0", 422, "page"),
        ("/nothing", 404, "Not Found"),
        ("/" + "x" * 600, 414, "too long"),
        ("/?" + "x" * 9000, 414, "too long"),
    ],
)
def test_every_error_is_one_line_of_json(server, path, status, message):
    found = server.get(path)
    assert found.status == status
    assert message in found.json["error"]
    assert "Traceback" not in found.body.decode()
    assert found.headers["x-content-type-options"] == "nosniff"


def test_internal_error_shows_no_traceback(server, monkeypatch, caplog):
    def fail(*_: object) -> None:
        raise RuntimeError("secret details")

    monkeypatch.setattr(views, "derive", fail)
    found = server.get("/api/models/jump/derivation?command=jump+and+jump")
    assert found.status == 500
    assert found.json == {"error": "internal error; the terminal of the server shows the details"}
    assert b"secret" not in found.body
    for _ in range(2000):  # the log follows the answer
        if "secret details" in caplog.text:
            break
        time.sleep(0.01)
    assert "secret details" in caplog.text


def test_busy_server_answers_503_with_retry_after(server, monkeypatch):
    monkeypatch.setattr(queue, "WAITING", 0)
    found = server.get("/api/models/jump/derivation?command=walk+and+jump")
    assert found.status == 503
    assert found.headers["retry-after"] == "1"
    assert "too many" in found.json["error"]


TRAVERSALS = [
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/app.py",
    "/static/%2e%2e%2fapp.py",
    "/static/..%5capp.py",
    "/static/..\\app.py",
    "/static/....//app.py",
    "/static/..;/app.py",
    "/static/%252e%252e%252fapp.py",
    "/static/%c0%ae%c0%ae/app.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/./../../../../../../etc/passwd",
    "/static/index.html%00.css",
    "/static/main.js/../../app.py",
    "/static/file:///etc/passwd",
    "/static/",
    "/static",
    "/../app.py",
    "//etc/passwd",
    "/api/models/../../../etc/passwd/table",
    "/api/models/%2e%2e%2f%2e%2e%2fetc/table",
    "/api/models/..%2fjump/table",
    "/api/models/%2Ftmp/answer?command=jump",
    "/api/models/~root/table",
    "/api/models/jump%00/table",
    "/api/models/jump/../rules/answer",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_path_traversal_is_refused(server, path):
    found = server.get(path)
    assert found.status in (400, 404, 405, 422), found
    assert b"root:" not in found.body
    assert b"import" not in found.body
    assert "error" in found.json


def test_traversal_check_would_notice_a_served_file(server):
    found = server.get("/static/main.js")
    assert found.status == 200
    assert b"import" in found.body


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1:1", "", "x y"]
)
def test_foreign_host_header_is_refused(server, host):
    assert server.get("/api/models", host=host).status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1"])
def test_own_host_names_are_accepted(server, host):
    assert server.get("/api/models", host=f"{host}:{server.port}").status == 200


def test_two_host_headers_are_refused(server):
    twice = f"Host: 127.0.0.1:{server.port}\r\n" * 2
    request = f"GET / HTTP/1.1\r\n{twice}Connection: close\r\n\r\n"
    assert server.raw(request.encode()).status in (400, 421)


def test_requests_from_other_sites_are_refused_and_links_accepted(server):
    api, own = "/api/models", f"http://127.0.0.1:{server.port}"
    assert server.get(api, sec_fetch_site="cross-site").status == 403
    assert server.get(api, sec_fetch_site="same-site").status == 403
    assert server.get(api, origin="https://evil.example").status == 403
    assert server.get(api, origin="null").status == 403
    assert server.get(api, origin=own, sec_fetch_site="same-origin").status == 200
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert server.get("/?command=jump", sec_fetch_dest="document", **link).status == 200
    assert server.get("/?command=jump", sec_fetch_dest="iframe", **link).status == 403
    assert server.get(api, sec_fetch_dest="document", **link).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_than_get_are_refused(server, method):
    assert server.get("/api/models", method).status == 405


def test_request_bodies_are_refused(server):
    host = f"Host: 127.0.0.1:{server.port}\r\nConnection: close\r\n"
    long = f"GET / HTTP/1.1\r\n{host}Content-Length: 1000000\r\n\r\nabc"
    assert server.raw(long.encode()).status == 413
    chunked = f"GET / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    assert server.raw(chunked.encode()).status == 413


def test_large_headers_are_refused(server):
    assert server.get("/", x_filler="x" * 70_000).status in (400, 431)
    assert server.get("/", x_filler="x" * 17_000).status in (400, 431)
    assert server.get("/", x_filler="x" * 700).status == 200


@pytest.mark.parametrize("complete", [0, 1])
@pytest.mark.parametrize("part", [b"", b"GET / HTTP/1.1\r\n"])
def test_connection_without_a_complete_request_is_closed(server, monkeypatch, complete, part):
    monkeypatch.setattr(serving, "IDLE_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        begun = time.monotonic()
        for _ in range(complete):
            request = f"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
            connection.sendall(request.encode())
            assert b"200 OK" in connection.recv(65536)
        connection.sendall(part)
        while connection.recv(65536):
            pass
        assert time.monotonic() - begun > 0.2


def test_slow_request_is_not_cut_off_by_the_idle_timeout(server, monkeypatch):
    monkeypatch.setattr(serving, "IDLE_SECONDS", 0.1)
    derive = views.derive

    def derive_slowly(*arguments):
        time.sleep(0.5)
        return derive(*arguments)

    monkeypatch.setattr(views, "derive", derive_slowly)
    assert server.get("/api/models/jump/derivation?command=look+and+look").status == 200


def test_connection_is_kept_alive(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.connect()
    port = connection.sock.getsockname()[1]
    for _ in range(3):
        connection.request("GET", "/static/icon.svg")
        with connection.getresponse() as response:
            assert response.status == 200
            assert b"<svg" in response.read()
        assert connection.sock.getsockname()[1] == port
    connection.close()


def test_request_without_token_is_refused(protected):
    for path in ("/", "/api/models", "/static/main.js", "/openapi.json", "/?token=wrong"):
        found = protected.get(path)
        assert found.status == 401
        assert b"jump" not in found.body
    assert protected.get("/api/models", cookie="equitrans-token=wrong").status == 401
    assert protected.get("/api/models", authorization="Bearer wrong").status == 401
    assert protected.get("/api/models", cookie="equitrans-token=").status == 401
    assert (
        protected.get(f"/api/models?token={TOKEN}").status == 401
    )  # only the page takes it from the address


def test_token_is_accepted_as_link_cookie_and_header(protected):
    first = protected.get(f"/?command=jump&token={TOKEN}")
    assert first.status == 303
    assert first.headers["location"] == "/?command=jump"
    cookie = first.headers["set-cookie"]
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert protected.get("/", cookie=cookie.split(";")[0]).status == 200
    assert protected.get("/api/models", authorization=f"Bearer {TOKEN}").status == 200
    # a public page accepts every numeric address and port, and no foreign name
    cookie = f"equitrans-token={TOKEN}"
    for host in (f"192.0.2.1:{protected.port}", "192.0.2.1:9000", "localhost:9000"):
        assert protected.get("/", host=host, cookie=cookie).status == 200
    for host in ("evil.example", f"evil.example:{protected.port}"):
        assert protected.get("/", host=host, cookie=cookie).status == 421


def test_websocket_is_closed():
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {}

    async def app(scope, receive, send):
        raise AssertionError("the websocket went through")

    middleware = SecurityMiddleware(app, Access(frozenset(), 1))
    asyncio.run(middleware({"type": "websocket"}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


# schemathesis uses a deprecated function of hypothesis
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
def test_responses_conform_to_the_openapi_document(server):
    """Valid and invalid parameters of every operation give declared responses only."""
    url = f"http://127.0.0.1:{server.port}/openapi.json"
    schema = schemathesis.openapi.from_url(url)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 14
    checks = [not_a_server_error, response_schema_conformance, status_code_conformance]
    statuses = set()
    for operation in operations:

        @settings(max_examples=8, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def ask(case):
            response = case.call(timeout=60)
            statuses.add(response.status_code)
            case.validate_response(response, checks=checks)

        ask()
    for run in ("jump", "rules", "attention", "bare"):
        base = f"/api/models/{run}"
        for path in ("answer", "alignment", "orbits", "derivation"):
            assert server.get(f"{base}/{path}?command=jump+twice").status == 200
        for path in ("table", "recorded", "errors", "commands", "swap?before=jump&after=walk"):
            assert server.get(f"{base}/{path}").status == 200
    assert statuses & {400, 404, 422}


def test_fifty_clients_get_no_error_and_memory_is_bounded(server):
    commands = ["jump twice", "walk and run", "look left", "run thrice", "walk left and look"]
    ask = bench.hammer(server.port, bench.paths("jump", commands), clients=50, requests=200)
    asyncio.run(ask)
    before = bench.resident_mb(os.getpid())
    ask = bench.hammer(server.port, bench.paths("jump", commands, 1), clients=50, requests=600)
    results = asyncio.run(ask)
    assert len(results) == 600
    assert {outcome.status for outcome in results} == {200}
    assert bench.resident_mb(os.getpid()) - before < 100


def test_benchmark_notices_an_error(server):
    work = bench.paths("no such run", ["jump"])
    results = asyncio.run(bench.hammer(server.port, work, clients=2, requests=6))
    assert 404 in {outcome.status for outcome in results}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing"),
        ([], "RUN"),
        (["RUN", "--host", "0.0.0.0"], "add --expose"),
        (["RUN", "--host", "example.org"], "add --expose"),
        (["RUN", "--port", "70000"], "from 0 to 65535"),
        (["RUN", "--port", "many"], "invalid int value"),
    ],
)
def test_command_refuses_invalid_arguments(run, shown, arguments, message):
    given = [str(shown / "jump") if part == "RUN" else part for part in arguments]
    status, _, err = run("explore", *given)
    assert status == 2
    assert message in err
    assert "Traceback" not in err


def test_port_in_use_is_refused(run, shown, server):
    status, _, err = run("explore", shown / "jump", "--port", server.port)
    assert status == 2
    assert "cannot listen" in err


@pytest.mark.parametrize("token", ["short", "with space in the middle", "é" * 16, "a" * 16 + "\n"])
def test_invalid_token_is_refused(run, shown, monkeypatch, token):
    monkeypatch.setenv("EQUITRANS_TOKEN", token)
    status, _, err = run("explore", shown / "jump")
    assert status == 2
    assert "EQUITRANS_TOKEN" in err
