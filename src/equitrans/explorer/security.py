"""Access control: every request passes here first, and every response gets security headers.

Starlette's TrustedHostMiddleware is not enough: it ignores the port, does not read IPv6 addresses,
and takes the first of two Host headers.
"""

import hmac
import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from equitrans.errors import ConfigError

COOKIE = "equitrans-token"
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}")
"""A valid token: ASCII only, because it becomes a cookie."""
LONGEST_QUERY = 8192
"""Largest query string, in bytes; longer ones get status 414."""
LONGEST_PATH = 512
"""Largest path, in characters; longer ones get status 414."""
LONGEST_HEADERS = 16_384
"""Largest total of all headers, in bytes; more gets status 431."""

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
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


@dataclass(frozen=True)
class Access:
    """The host names and the port of the page, and the token that a client needs.

    Another host name is refused: it may be a DNS rebinding attack, in which a foreign page points
    its own name to this machine. Numeric addresses cannot be rebound, so a public page accepts
    all of them. It accepts every port too: a container or a proxy may have another one.
    """

    names: frozenset[str]
    port: int
    public: bool = False
    token: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise ConfigError(
                "the token (EQUITRANS_TOKEN) is invalid; it must have at least 16 characters, "
                "each of them A-Z, a-z, 0-9, - or _"
            )

    def allows_host(self, host: str) -> bool:
        """Return whether a Host header names this page."""
        name, port = split_host(host)
        if port not in (None, str(self.port)) and not self.public:
            return False
        return name in self.names or (self.public and is_address(name))

    def fits(self, token: str) -> bool:
        """Return whether a token is the right one, in constant time."""
        expected = str(self.token).encode()
        return hmac.compare_digest(token.encode(errors="replace"), expected)


def split_host(host: str) -> tuple[str, str | None]:
    """Split a Host header into name or address, and port.

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
    """Return whether a name is a numeric address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class SecurityMiddleware:
    """Refuses requests that are not for this page, and adds HEADERS to every response."""

    def __init__(self, app: ASGIApp, access: Access, *, largest_body: int = 0) -> None:
        self._app, self._access, self._largest = app, access, largest_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW_HEADERS]
            await send(message)

        request = Request(scope)
        refusal = self._refuse(request) or self._ask_for_token(request)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """Return an error if a request is malformed, too large or from another site."""
        host = _header(request, "host")
        if not self._access.allows_host(host):
            return _error(421, f"this server is not {host[:100]!r}; open the address it printed")
        if not self._is_same_site(request):
            return _error(403, "requests from other sites are refused")
        length = _header(request, "content-length") or "0"
        if (length != "0" or "transfer-encoding" in request.headers) and not self._largest:
            return _error(413, "a request must not have a body", connection="close")
        if not length.isdecimal() or "transfer-encoding" in request.headers:
            return _error(411, "a request must give the length of its body", connection="close")
        if len(length) > 18 or int(length) > self._largest:
            limit = f"the body is too large; the limit is {self._largest} bytes"
            return _error(413, limit, connection="close")
        if len(request.scope["query_string"]) > LONGEST_QUERY:
            return _error(414, f"the query is too long; the limit is {LONGEST_QUERY} bytes")
        if len(request.scope["path"]) > LONGEST_PATH:
            return _error(414, f"the path is too long; the limit is {LONGEST_PATH} characters")
        if sum(len(name) + len(value) for name, value in request.headers.raw) > LONGEST_HEADERS:
            return _error(431, f"the headers are too long; the limit is {LONGEST_HEADERS} bytes")
        return None

    def _is_same_site(self, request: Request) -> bool:
        """Return whether a request comes from the page itself, or is a link to the page."""
        if "origin" in request.headers:
            scheme, _, host = _header(request, "origin").partition("://")
            if scheme not in ("http", "https") or host != _header(request, "host"):
                return False
        if (_header(request, "sec-fetch-site") or "none") in ("none", "same-origin"):
            return True
        mode, destination = (_header(request, f"sec-fetch-{name}") for name in ("mode", "dest"))
        is_link = (mode, destination) == ("navigate", "document")
        return is_link and request.method == "GET" and request.scope["path"] == "/"

    def _ask_for_token(self, request: Request) -> Response | None:
        """Return None if a request has the token in a header or a cookie. A first visit has it in
        its address, and gets a cookie and a redirect to the address without it.
        """
        access = self._access
        bearer = _header(request, "authorization").removeprefix("Bearer ")
        if access.token is None or access.fits(bearer or request.cookies.get(COOKIE, "")):
            return None
        query = request.query_params.multi_items()
        if request.scope["path"] == "/" and any(n == "token" and access.fits(v) for n, v in query):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            response = RedirectResponse(f"/?{rest}" if rest else "/", 303)
            response.headers["cache-control"] = "no-store"
            response.set_cookie(COOKIE, access.token, httponly=True, samesite="strict")
            return response
        return _error(401, "token missing or wrong: open the link that was printed")


def _header(request: Request, name: str) -> str:
    """Return a header, or an empty string; a repeated header is joined and so matches nothing."""
    return ", ".join(request.headers.getlist(name))


def _error(status: int, message: str, **headers: str) -> Response:
    return JSONResponse({"error": message}, status, {"cache-control": "no-store", **headers})
