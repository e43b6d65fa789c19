"""What the commands share: one-line errors that name the nearest option, and how a model is
found. Torch is waited for by those who need it.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from equitrans.errors import ConfigError, nearest

if TYPE_CHECKING:
    import torch

    from equitrans.training import Trained


class Parser(argparse.ArgumentParser):
    """A parser whose options may stand before or after sentences, and whose errors are ours."""

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
        """Parse all of the arguments, or say which is not known."""
        found, unknown = self.parse_known_intermixed_args(arguments)
        options = [option for action in self._actions for option in action.option_strings]
        refuse_unknown(unknown, options)
        return found


def refuse_unknown(unknown: Sequence[str], options: Iterable[str]) -> None:
    """An error for the first of some arguments that no option has taken."""
    for argument in unknown:
        if argument.startswith("-"):
            name = argument.partition("=")[0]
            raise ConfigError(f"{name} is not an option{nearest(name, options)}")
    if unknown:
        raise ConfigError(f"{unknown[0]!r} is one argument too many")


def add_model(parser: Parser) -> None:
    """The model of commands that use one."""
    parser.add_argument("run", metavar="RUN", help="a run, or a model from equitrans export")


def add_json(parser: Parser, *, what: str = "everything") -> None:
    """Output for programs."""
    parser.add_argument("--json", action="store_true", help=f"{what} as one JSON object")


def add_decoding(parser: Parser) -> None:
    """Options of commands that use a trained model."""
    parser.add_argument("--width", type=int, default=3, help="beam width; 1 is greedy (default 3)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or auto (default cpu)")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")


def note(asked: argparse.Namespace, message: str) -> None:
    """Something that is good to know, for people who did not ask for quiet."""
    if not asked.quiet:
        print(f"equitrans: {message}", file=sys.stderr)


def load(asked: argparse.Namespace) -> "Trained":
    """The trained model that a command asks for."""
    from equitrans.training import Trained

    if asked.width < 1:
        raise ConfigError(f"--width is {asked.width}; it must be 1 or more")
    set_threads(asked.threads)
    return Trained.load(asked.run, device=find_device(asked.device))


def set_threads(threads: int) -> None:
    """So many torch threads; on models this small one is the fastest."""
    if not 1 <= threads <= 1024:
        raise ConfigError(f"--threads is {threads}; it must be from 1 to 1024")
    import torch

    torch.set_num_threads(threads)


def find_device(name: str) -> "torch.device":
    """A device by name, found to work."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.partition(":")[0] not in ("cpu", "cuda"):
        raise ConfigError(f"--device is {name!r}; it must be auto, cpu or cuda")
    try:
        return torch.zeros((), device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {name} cannot be used: {str(error).splitlines()[0]}") from None
