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
from equitrans.data import Pair, join_words, load_split, read_pairs, recorded_split
from equitrans.errors import ConfigError, VocabularyError, nearest, printable

if TYPE_CHECKING:
    import torch


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
        """Parse all arguments; raise ConfigError for the first unknown one."""
        found, unknown = self.parse_known_intermixed_args(arguments)
        if unknown:
            refuse(unknown, self)
        return found


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


def add_pairs(parser: Parser) -> None:
    """Add the options of commands that compare a model with pairs, for ``find_pairs``."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", metavar="FILE", help="pairs, TSV or SCAN format")
    where.add_argument("--split", help="a SCAN split")
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
    """Return the pairs of --data or --split, else of the model's own split; raise VocabularyError
    with the sentence if the model does not know a source word.
    """
    if asked.data is not None:
        origin, pairs = asked.data, read_pairs(asked.data, characters=trained.characters)
    else:
        origin = asked.split or trained.origin.split
        if origin is None:
            raise ConfigError(f"{asked.run} was not trained on a SCAN split; give --data FILE")
        if asked.split is None and asked.scan_dir is None:
            split = recorded_split(origin, trained.origin.scan_dir)
        else:
            split = load_split(origin, asked.scan_dir)
        pairs = getattr(split, asked.part)
    for pair in pairs:
        try:
            trained.symmetry.source.encode(pair.source)
        except VocabularyError as error:
            raise VocabularyError(f"{origin}: {join_words(pair.source)!r}: {error}") from None
    return pairs


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
