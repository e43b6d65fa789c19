"""The console that commands print with: text is printed unchanged, never read as markup."""

import os
import sys
from types import ModuleType
from typing import Any

from rich.console import Console as RichConsole
from rich.text import Text

from equitrans.cli.arguments import load_extra
from equitrans.errors import printable


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
            # rich would still print bold text with NO_COLOR
            color_system=None if os.environ.get("NO_COLOR") else "auto",
        )
        if not self.is_terminal:
            self.width = 1000  # piped output is not wrapped

    def render_str(self, text: str, **options: Any) -> Text:
        """The text as it is printed: without terminal escapes and other control characters."""
        return super().render_str(printable(text, sys.maxsize), **options)

    def on_broken_pipe(self) -> None:
        """End the command if nobody reads its output; a training without a reader goes on."""
        if not self.stderr:
            raise BrokenPipeError
        self.file = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def load_plots() -> ModuleType:
    """Import the module that draws with matplotlib."""
    return load_extra("equitrans.analysis.plots", "a picture", "plot")
