"""equitrans explore: trained models on a web page."""

import os
import secrets
import socket
from collections.abc import Sequence
from importlib import import_module
from ipaddress import ip_address
from types import ModuleType

from equitrans.cli.arguments import Parser
from equitrans.errors import ConfigError

ABOUT = """\
Look at trained models on a web page: predictions, alignments, tables, orbits, derivations, errors;
swap words, add words, compare two runs. The page is for this machine alone. To show it to others,
give --host and --expose: whoever opens it needs the token that is then printed, or that
EQUITRANS_TOKEN holds."""
EXAMPLES = """\
  equitrans explore runs/jump
  equitrans explore runs/jump runs/rules --port 8080
  equitrans explore runs/jump --host 0.0.0.0 --expose --name box.example.org"""

SHORTEST_TOKEN = 16


def options() -> Parser:
    """Its command line."""
    parser = Parser("explore", ABOUT, EXAMPLES)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run or model directories")
    parser.add_argument(
        "--port", type=int, default=8017, help="0 is any that is free (default 8017)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default 127.0.0.1)")
    parser.add_argument(
        "--expose", action="store_true", help="allow an address that others can reach"
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which others reach it; more than one may be given",
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    """Serve until interrupted."""
    parser = options()
    asked = parser.parse(arguments)
    if not 0 <= asked.port <= 65535:
        parser.error(f"--port is {asked.port}; it must be from 0 to 65535")
    loopback = is_loopback(asked.host)
    if not loopback and not asked.expose:
        parser.error(f"--host {asked.host} is for others too; if that is meant, add --expose")
    token = os.environ.get("EQUITRANS_TOKEN") or (None if loopback else secrets.token_urlsafe(24))
    if token is not None and (
        len(token) < SHORTEST_TOKEN or not token.replace("-", "").replace("_", "").isalnum()
    ):
        raise ConfigError(
            f"EQUITRANS_TOKEN must have {SHORTEST_TOKEN} letters, figures, - or _ at least"
        )
    serving = _load_serving()
    from equitrans.explorer import Door, Shelf

    shelf = Shelf.load(asked.runs)
    sock: socket.socket = serving.listen(asked.host, asked.port)
    port: int = sock.getsockname()[1]
    names = {"localhost", "127.0.0.1", "::1", asked.host.lower(), *map(str.lower, asked.name)}
    host = f"[{asked.host}]" if ":" in asked.host else asked.host
    link = f"http://{host}:{port}/" + (f"?token={token}" if token else "")
    print(f"{', '.join(shelf.shown)}: {link}", flush=True)
    print("Ctrl-C ends it", flush=True)
    door = Door(frozenset(names), port, public=not loopback, token=token)
    serving.server(shelf, door).run(sockets=[sock])
    return 0


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _load_serving() -> ModuleType:
    """The room with FastAPI and uvicorn, which not every installation has."""
    try:
        return import_module("equitrans.explorer.server")
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"the explorer needs {missing.name}: pip install 'equitrans[explore]'"
        ) from None
