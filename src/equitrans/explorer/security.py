"""Who may come in: every request passes here before anything else looks at it."""

import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

COOKIE = "equitrans-token"
LONGEST_QUERY = 8192
LONGEST_PATH = 512
LONGEST_HEADERS = 16_384

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


@dataclass(frozen=True)
class Door:
    """Under which names the page may be asked for, and with which token.

    A name that is not ours is how a stranger's page would reach us through the browser, by pointing
    its own name here. Addresses in figures cannot be so pointed: a public page accepts them all.
    """

    names: frozenset[str]
    port: int
    public: bool = False
    token: str | None = None

    def knows(self, host: str) -> bool:
        """Whether a Host header means us."""
        name, port = split_host(host)
        if port not in (None, str(self.port)):
            return False
        return name in self.names or (self.public and is_address(name))


def split_host(host: str) -> tuple[str, str | None]:
    """A name or an address, and the port if there is one.

    >>> split_host("LocalHost:80"), split_host("[::1]:80"), split_host("[::1]")
    (('localhost', '80'), ('::1', '80'), ('::1', None))
    """
    host = host.strip().lower()
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name, rest[1:] if rest.startswith(":") else None
    name, colon, port = host.partition(":")
    return name, port if colon else None


def is_address(name: str) -> bool:
    """Whether a name is an address in figures."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Turns away what is not for us; what is left goes on, and every answer gets our headers."""

    def __init__(self, app: App, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        headers = _single(scope["headers"])
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(with_headers, *refusal)
        elif self._door.token is not None and not self._admitted(headers):
            await self._ask(scope, with_headers)
        else:
            await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Message, headers: dict[str, str]) -> tuple[int, str] | None:
        """Why a request is turned away, whoever sends it."""
        host = headers.get("host", "")
        if not self._door.knows(host):
            return (
                421,
                f"this is not {host[:100]!r}; use the address that was printed",
            )
        if not self._is_ours(scope, headers):
            return 403, "requests from other sites are refused"
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return 413, "requests have no body here"
        if len(scope["query_string"]) > LONGEST_QUERY or len(scope["path"]) > LONGEST_PATH:
            return 414, f"the address is too long; up to {LONGEST_QUERY} characters are read"
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LONGEST_HEADERS:
            return 431, f"the headers are too long; up to {LONGEST_HEADERS} bytes are read"
        return None

    def _is_ours(self, scope: Message, headers: dict[str, str]) -> bool:
        """Whether no other site is behind a request; a link to the page may stand anywhere."""
        origin = headers.get("origin")
        if origin is not None:
            scheme, _, host = origin.partition("://")
            if scheme not in ("http", "https") or host != headers.get("host"):
                return False
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return True
        is_link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == (
            "navigate",
            "document",
        )
        return is_link and scope["method"] == "GET" and scope["path"] == "/"

    def _admitted(self, headers: dict[str, str]) -> bool:
        """Whether a request brings the token."""
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not given:
            try:
                cookies = SimpleCookie(headers.get("cookie", ""))
            except CookieError:
                return False
            given = cookies[COOKIE].value if COOKIE in cookies else ""
        return self._fits(given)

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), str(self._door.token).encode())

    async def _ask(self, scope: Message, send: Send) -> None:
        """A first visit brings the token in its address, and gets a cookie instead."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["path"] == "/" and any(n == "token" and self._fits(v) for n, v in query):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            cookie = f"{COOKIE}={self._door.token}; HttpOnly; SameSite=Strict; Path=/"
            await _answer(
                send,
                303,
                "welcome",
                [("location", f"/?{rest}" if rest else "/"), ("set-cookie", cookie)],
            )
        else:
            await _answer(send, 401, "open the link that equitrans explore printed; it has a token")


def _single(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name. One that stands twice is joined, so that it fits nothing."""
    found: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


async def _answer(
    send: Send, status: int, message: str, headers: Iterable[tuple[str, str]] = ()
) -> None:
    body = json.dumps({"error": message}).encode()
    fields = [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
        *([("connection", "close")] if status == 413 else []),
        *headers,
    ]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in fields],
        }
    )
    await send({"type": "http.response.body", "body": body})
