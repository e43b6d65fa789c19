"""equitrans completion: a script with which a shell completes command lines."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from equitrans.cli.arguments import Parser, load_extra
from equitrans.cli.main import COMMANDS
from equitrans.data import RULES
from equitrans.training import recipe_names

SHELLS = ("bash", "zsh", "fish")
ABOUT = """\
Print a script with which a shell completes commands, options and their values. Save it in the
folder where the shell looks for such scripts."""
EXAMPLES = """\
  equitrans completion bash > ~/.local/share/bash-completion/completions/equitrans
  equitrans completion zsh > ~/.zfunc/_equitrans        # with fpath+=~/.zfunc before compinit
  equitrans completion fish > ~/.config/fish/completions/equitrans.fish"""

FOLDERS = ("DIR", "RUN")
"""Metavars that are completed with folders; FILE is completed with files."""


def options() -> Parser:
    """The options of equitrans completion."""
    parser = Parser("completion", ABOUT, EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print the script of a shell."""
    asked = options().parse(arguments)
    shtab = load_extra("shtab", "completion", "completion")
    print(shtab.complete(_everything(shtab), asked.shell).rstrip())
    return 0


def _everything(shtab: ModuleType) -> argparse.ArgumentParser:
    """A parser with all commands as subcommands; it only describes them to shtab."""
    whole = argparse.ArgumentParser(prog="equitrans")
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers()
    values = {"--split": [*RULES], "--recipe": recipe_names(), "--device": ["auto", "cpu", "cuda"]}
    for name, about in COMMANDS.items():
        parser = import_module(f"equitrans.cli.{name}").options()
        for action in parser._actions:
            if action.metavar in FOLDERS:
                action.complete = shtab.DIRECTORY
            elif action.metavar == "FILE":
                action.complete = shtab.FILE
            elif action.option_strings and action.option_strings[0] in values:
                action.choices = values[action.option_strings[0]]
        commands.add_parser(name, help=about, parents=[parser], add_help=False)
    return whole
