"""Options, notes and loading that the commands share. Torch is imported when a model is loaded, so
that help and mistakes are answered without it.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from equitrans import training
from equitrans.data import File, Pair, load_split, read_pairs, recorded_split
from equitrans.errors import ConfigError, DataError, nearest, printable

if TYPE_CHECKING:
    import torch


WRITTEN = ("errors", "out", "plot", "standalone", "storage")
"""Options whose FILE is written; commands read every other FILE, DIR and RUN."""

KEPT = {".json", ".jsonl", ".md", ".safetensors", ".toml", ".txt"}
"""Endings of files in a run, in a folder of records or of SCAN, which no option overwrites."""


class Parser(argparse.ArgumentParser):
    """A parser that accepts options before and after sentences and raises ConfigError."""

    def __init__(self, command: str, about: str, examples: str) -> None:
        super().__init__(
            prog=f"equitrans {command}",
            description=about,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--quiet", action="store_true", help="no notes and no progress")

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{self.prog.removeprefix('equitrans ')}: {message}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(action, f"unknown {value!r}{nearest(str(value), known)}")

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse all arguments; raise ConfigError for the first unknown one, and for a file that the
        command would read and overwrite.
        """
        found, unknown = self.parse_known_intermixed_args(arguments)
        if unknown:
            refuse(unknown, self)
        paths = {
            action: value if isinstance(value, list) else [value]
            for action in self._actions
            if action.metavar in ("FILE", "DIR", "RUN")
            and (value := getattr(found, action.dest)) is not None
        }
        for action, values in paths.items():
            if action.metavar == "FILE" and action.dest in WRITTEN:
                others = [p for other in paths if other is not action for p in paths[other]]
                refuse_overwrite(action.option_strings[0], values[0], others)
        return found


def refuse_overwrite(option: str, path: str, inputs: Sequence[str]) -> None:
    """Raise ConfigError if ``path`` is one of the inputs, by any name, or a file that is kept in
    one of them.
    """
    if not os.path.isfile(path):
        return
    for given in filter(os.path.exists, inputs):
        inside = os.path.samefile(os.path.dirname(os.path.realpath(path)), given)
        if os.path.samefile(path, given) or (inside and os.path.splitext(path)[1] in KEPT):
            raise ConfigError(
                f"{option} {path} would overwrite what the command reads ({given}); "
                "choose another file"
            )


def refuse(unknown: Sequence[str], parser: argparse.ArgumentParser) -> NoReturn:
    """Raise ConfigError for the first of some unknown arguments; options come before sentences."""
    names = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
    if not names:
        raise ConfigError(f"unexpected argument {unknown[0]!r}")
    options = [option for action in parser._actions for option in action.option_strings]
    raise ConfigError(f"{names[0]} is not an option{nearest(names[0], options)}")


def add_model(parser: Parser) -> None:
    """Add the argument RUN, for ``load``."""
    parser.add_argument("run", metavar="RUN", help="a run, or a model from equitrans export")


def add_json(parser: Parser, *, what: str = "everything") -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help=f"{what} as one JSON object")


def add_scan_dir(parser: Parser) -> None:
    """Add --scan-dir."""
    parser.add_argument("--scan-dir", metavar="DIR", help="folder of the official SCAN files")


def add_columns(parser: Parser) -> None:
    """Add --columns."""
    parser.add_argument(
        "--columns",
        metavar="N,M",
        help="columns of source and target in a TSV file (default 1,2; others are ignored)",
    )


def add_split_words(parser: Parser) -> None:
    """Add --split-words."""
    parser.add_argument(
        "--split-words",
        metavar="SIGNS",
        help="read target words apart at these signs, such as . in kitchen.lamp, or '().' in "
        "on(kitchen.lamp)",
    )


def add_pairs(parser: Parser) -> None:
    """Add the options of commands that compare a model with pairs, for ``find_pairs``."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--data", metavar="FILE", help="pairs, TSV or SCAN format; - is standard input"
    )
    where.add_argument("--split", help="a SCAN split")
    add_columns(parser)
    add_scan_dir(parser)
    parser.add_argument(
        "--part", choices=["train", "test"], default="test", help="part of the split (default test)"
    )


def add_decoding(parser: Parser) -> None:
    """Add the options of commands that decode with a model."""
    parser.add_argument("--width", type=int, default=3, help="beam width; 1 is greedy (default 3)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or auto (default cpu)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")


def note(asked: argparse.Namespace, message: str) -> None:
    """Print a message to standard error, unless --quiet was given."""
    if not asked.quiet:
        print(f"equitrans: {printable(message)}", file=sys.stderr)


def load(asked: argparse.Namespace) -> "training.Trained":
    """Return the model RUN, on the device and with the threads of ``add_decoding`` if given."""
    device: Any = "cpu"
    if "width" in asked:
        if asked.width < 1:
            raise ConfigError(f"--width is {asked.width}; it must be 1 or more")
        set_threads(asked.threads)
        device = find_device(asked.device)
    with exiting_on_interrupt():
        from equitrans.training import Trained
    return Trained.load(asked.run, device=device)


def set_threads(threads: int) -> None:
    """Set the number of torch threads; on models this small one is the fastest."""
    if not 1 <= threads <= 1024:
        raise ConfigError(f"--threads is {threads}; it must be from 1 to 1024")
    with exiting_on_interrupt():
        import torch
    torch.set_num_threads(threads)


def find_device(name: str) -> "torch.device":
    """Return a device by its name; raise ConfigError if it is unknown or does not work."""
    if name != "auto" and name.partition(":")[0] not in ("cpu", "cuda"):
        raise ConfigError(f"--device is {name!r}; it must be auto, cpu or cuda")
    with exiting_on_interrupt():
        import torch
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.zeros((), device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {name} cannot be used: {str(error).splitlines()[0]}") from None


def find_pairs(asked: argparse.Namespace, trained: "training.Trained") -> tuple[Pair, ...]:
    """Return the pairs of --data or --split, else of the model's own split."""
    if asked.columns is not None and asked.data is None:
        raise ConfigError("--columns chooses columns of --data FILE; a split has none")
    if asked.data is not None:
        return read_pairs(
            open_input(asked.data), characters=trained.characters, columns=asked.columns
        )
    name = asked.split or trained.origin.split
    if name is None:
        raise ConfigError(f"{asked.run} was not trained on a SCAN split; give --data FILE")
    if asked.split is None and asked.scan_dir is None:
        split = recorded_split(name, trained.origin.scan_dir)
    else:
        split = load_split(name, asked.scan_dir)
    pairs: tuple[Pair, ...] = getattr(split, asked.part)
    return pairs


def open_input(name: str) -> File:
    """Return a file of pairs; - is standard input, read to its end."""
    if name != "-":
        return name
    if sys.stdin is None:
        raise DataError("standard input is closed; give the name of a file")
    return sys.stdin.buffer.read().splitlines(keepends=True)


def load_extra(module: str, what: str, extra: str) -> ModuleType:
    """Import a module that needs an optional dependency; raise ConfigError that says how to
    install it.
    """
    try:
        with exiting_on_interrupt():
            return import_module(module)
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"{what} needs {missing.name}: pip install 'equitrans[{extra}]'"
        ) from None


@contextmanager
def exiting_on_interrupt() -> Iterator[None]:
    """Make Ctrl-C end the process at once, for imports of libraries that would swallow it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield
        return

    def leave(*_: object) -> None:
        signal.signal(signal.SIGINT, lambda *_: None)  # one message is enough
        os.write(2, b"equitrans: interrupted\n")  # print cannot be called again within itself
        os._exit(130)

    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
