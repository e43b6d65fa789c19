"""The HTTP server of the explorer and of services."""

import asyncio
import socket
import sys
from heapq import nsmallest

import torch
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from equitrans.errors import ConfigError
from equitrans.explorer.app import create_app
from equitrans.explorer.registry import Registry
from equitrans.explorer.security import LONGEST_HEADERS, Access

IDLE_SECONDS = 10.0
"""Time in seconds for a request to arrive; a connection without one is closed."""
READ_SECONDS = 30.0
"""Time in seconds for a client to read a response; then its connection is closed."""
UNREAD_BYTES = 64_000_000
"""Total size of the responses that clients have not read yet, in bytes; beyond it, the connection
that has waited longest is closed."""
CONNECTIONS, MOST_CONNECTIONS, GRACE_SECONDS = 400, 700, 1.0
"""Number of open connections: beyond 400, a new one closes those whose clients have done nothing
for a second, the longest first, and beyond 700 also others. There are such connections, because at
most 256 requests wait for the worker."""
BACKLOG = 200
"""Number of connections that wait to be accepted, and are accepted at once. With MOST_CONNECTIONS
it stays below 1,024, the usual limit of open files."""


class Protocol(H11Protocol):
    """HTTP/1.1 that closes connections which send nothing, a part of a request, or do not read.

    uvicorn's own timeout starts after the first response and ends with the first byte, and its
    limit of connections counts idle ones, so that they keep all others out.
    """

    transport: asyncio.Transport
    connections: set["Protocol"]  # type: ignore[assignment]
    _since = 0.0
    _reading: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether the client has to act: to send a request or to read a response."""
        return self.cycle is None or self.cycle.response_complete or self._reading is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout, and close another connection if there are too many."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self.loop.call_later(IDLE_SECONDS, self._close_if_idle, None)
        if (more := len(self.connections) - CONNECTIONS) > 0:
            waiting = (other for other in self.connections if other.waits and other is not self)
            for other in nsmallest(more, waiting, key=lambda other: other._since):
                is_idle = other._since < self._since - GRACE_SECONDS
                if is_idle or len(self.connections) > MOST_CONNECTIONS:
                    other.drop()

    def on_response_complete(self) -> None:
        """Note the time."""
        self._since = self.loop.time()
        super().on_response_complete()

    def drop(self) -> None:
        """Close the connection now, with all that the client has not read."""
        self.connections.discard(self)
        self.transport.abort()

    def pause_writing(self) -> None:
        """Start the timeout for a client that does not read, and close others if there are too
        many unread bytes.
        """
        super().pause_writing()
        self._since = self.loop.time()
        self._reading = self.loop.call_later(READ_SECONDS, self.drop)
        waiting = sorted((c for c in self.connections if c._reading), key=lambda c: c._since)
        unread = sum(c.transport.get_write_buffer_size() for c in waiting)
        for other in waiting:
            if unread <= UNREAD_BYTES:
                break
            unread -= other.transport.get_write_buffer_size()
            other.drop()

    def resume_writing(self) -> None:
        """Stop the timeout: the client has read the response."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _close_if_idle(self, last: object) -> None:
        """Close the connection if no request has begun since the last check and none is served."""
        if self.cycle is last and self.waits and self._reading is None:
            self.drop()
        elif self in self.connections:
            self.loop.call_later(IDLE_SECONDS, self._close_if_idle, self.cycle)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 means any free port."""
    sock = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # without IPPROTO_TCP asyncio does not set TCP_NODELAY, and responses are delayed
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise ConfigError(
            f"cannot listen at {host} port {port}: {error.strerror or error}; "
            "choose another port with --port, or 0 for any free port"
        ) from None
    return sock


def server(registry: Registry, access: Access) -> uvicorn.Server:
    """Return a server of the explorer that is ready to run."""
    return serve(create_app(registry, access))


def serve(app: ASGIApp) -> uvicorn.Server:
    """Return a server of an application that is ready to run."""
    torch.set_num_threads(1)
    # the event loop gets the interpreter lock back sooner while the worker computes
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=LONGEST_HEADERS,
        backlog=BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
