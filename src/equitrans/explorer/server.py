"""The HTTP server of the explorer."""

import socket
import sys
from typing import Any

import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from equitrans.errors import ConfigError
from equitrans.explorer.app import create_app
from equitrans.explorer.registry import Registry
from equitrans.explorer.security import LONGEST_HEADERS, Access

IDLE_SECONDS = 10.0
"""Time in seconds for a request to arrive; a connection without one is closed."""
CONNECTIONS = 400
"""Number of open connections; a request on a further one gets status 503."""


class Protocol(H11Protocol):
    """HTTP/1.1 that closes idle connections, also those that send a part of a request.

    uvicorn's own timeout starts after the first response and ends with the first byte.
    """

    def connection_made(self, transport: Any) -> None:
        """Start the timeout."""
        super().connection_made(transport)
        self.loop.call_later(IDLE_SECONDS, self._close_if_idle, None)

    def _close_if_idle(self, last: object) -> None:
        """Close the connection if no request has begun since the last check and none is served."""
        if self.cycle is last and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
        elif not self.transport.is_closing():
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
        sock.listen(128)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise ConfigError(
            f"cannot listen at {host} port {port}: {error.strerror or error}; "
            "choose another port with --port, or 0 for any free port"
        ) from None
    return sock


def server(registry: Registry, access: Access) -> uvicorn.Server:
    """Return a server that is ready to run."""
    torch.set_num_threads(1)
    # the event loop gets the interpreter lock back sooner while the worker computes
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(
        create_app(registry, access),
        http=Protocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=LONGEST_HEADERS,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
