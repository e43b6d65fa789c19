"""How commands print: what users have written is printed as it is, and never read as markup."""

import os
from importlib import import_module
from types import ModuleType

from rich.console import Console as RichConsole

from equitrans.errors import ConfigError


class Console(RichConsole):
    """A console for tables and messages."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(
            stderr=stderr,
            quiet=quiet,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=True,
            # without colors there is no bold either: plain text is what is asked for
            color_system=None if os.environ.get("NO_COLOR") else "auto",
        )
        if not self.is_terminal:
            self.width = 1000  # what is piped is not broken into lines

    def on_broken_pipe(self) -> None:
        """Nobody reads any more: this ends a command, but not the training that it reports."""
        if not self.stderr:
            raise BrokenPipeError
        self.file = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def load_plots() -> ModuleType:
    """The room with matplotlib, which not every installation has."""
    try:
        return import_module("equitrans.analysis.plots")
    except ModuleNotFoundError as missing:
        raise ConfigError(f"pictures need {missing.name}: pip install 'equitrans[plot]'") from None
