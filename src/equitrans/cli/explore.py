"""equitrans explore: trained models on a web page."""

import argparse
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from ipaddress import ip_address
from types import ModuleType

from equitrans import explorer
from equitrans.cli.arguments import Parser
from equitrans.errors import ConfigError

ABOUT = """\
Show trained models on a web page: predictions, alignments, tables, orbits, derivations and errors.
You can swap words, add words and compare two runs. Only this machine can open the page. To let
other machines open it, give --host and --expose: a visitor then needs a token, which is printed as
part of the link. EQUITRANS_TOKEN sets the token."""
EXAMPLES = """\
  equitrans explore runs/jump
  equitrans explore runs/jump runs/rules --port 8080
  equitrans explore runs/jump --host 0.0.0.0 --expose --name box.example.org"""


def options() -> Parser:
    """Return the parser of the command line."""
    parser = Parser("explore", ABOUT, EXAMPLES)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run or model directories")
    add_address(parser, 8017)
    return parser


def add_address(parser: Parser, port: int) -> None:
    """Add the options of commands that listen, for ``listen``."""
    parser.add_argument(
        "--port", type=int, default=port, help=f"port; 0 means any free port (default {port})"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1)"
    )
    parser.add_argument(
        "--expose", action="store_true", help="allow an address that other machines can reach"
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name of this machine that visitors may use; can be given several times",
    )


def run(arguments: Sequence[str]) -> int:
    """Serve until interrupted."""
    parser = options()
    asked = parser.parse(arguments)
    check_address(parser, asked)
    server = load_server()
    registry = explorer.Registry.load(asked.runs)
    sock, access, link = listen(server, asked)
    print(f"{', '.join(registry.entries)}: {link}", flush=True)
    print("Press Ctrl-C to stop.", flush=True)
    server.server(registry, access).run(sockets=[sock])
    return 0


def check_address(parser: Parser, asked: argparse.Namespace) -> None:
    """Raise ConfigError for a wrong port, and for a public address without --expose."""
    if not 0 <= asked.port <= 65535:
        parser.error(f"--port is {asked.port}; it must be from 0 to 65535")
    if not is_loopback(asked.host) and not asked.expose:
        parser.error(f"other machines can reach --host {asked.host}; add --expose to allow that")


def listen(
    server: ModuleType, asked: argparse.Namespace
) -> tuple[socket.socket, "explorer.Access", str]:
    """Return a listening socket, who may use it, and a link to it."""
    loopback = is_loopback(asked.host)
    token = os.environ.get("EQUITRANS_TOKEN") or (None if loopback else secrets.token_urlsafe(24))
    names = {"localhost", "127.0.0.1", "::1", asked.host.lower(), *map(str.lower, asked.name)}
    access = explorer.Access(frozenset(names), asked.port, public=not loopback, token=token)
    sock: socket.socket = server.listen(asked.host, asked.port)
    port: int = sock.getsockname()[1]
    host = f"[{asked.host}]" if ":" in asked.host else asked.host
    link = f"http://{host}:{port}/" + (f"?token={token}" if token else "")
    return sock, replace(access, port=port), link


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def load_server(what: str = "the explorer") -> ModuleType:
    """Import the server; raise ConfigError if FastAPI or uvicorn is not installed."""
    try:
        return import_module("equitrans.explorer.server")
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"{what} needs {missing.name}: pip install 'equitrans[explore]'"
        ) from None
