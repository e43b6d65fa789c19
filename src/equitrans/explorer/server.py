"""A server for the explorer: on loopback, or elsewhere with a token; slow senders are let go."""

import asyncio
import socket
import sys
from typing import Any

import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from equitrans.errors import ConfigError
from equitrans.explorer.app import create_app
from equitrans.explorer.registry import Shelf
from equitrans.explorer.security import Door

HEADER_SECONDS = 10.0
"""So long may a request take to arrive."""
HEADER_BYTES = 16_384
"""So large may its line and headers be."""
CONNECTIONS = 400


class Protocol(H11Protocol):
    """HTTP/1.1 from senders that do not take all day."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Some bytes: a whole request stops the clock, a part of one starts it."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._patience is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free."""
    sock = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # named as TCP, or asyncio would leave its answers waiting for acknowledgements
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)  # whoever comes before the server runs waits
    except OSError as error:
        if sock is not None:
            sock.close()
        raise ConfigError(
            f"cannot listen at {host} port {port}: {error.strerror or error}; "
            "choose another with --port, or 0 for any that is free"
        ) from None
    return sock


def server(shelf: Shelf, door: Door) -> uvicorn.Server:
    """A server that is yet to be run."""
    torch.set_num_threads(1)
    # the desk lets go of the interpreter at every tensor operation, and should soon have it again
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(
        create_app(shelf, door),
        http=Protocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEADER_BYTES,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
