"""equitrans completion: what a shell needs to complete command lines."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from equitrans.cli.arguments import Parser
from equitrans.cli.main import COMMANDS
from equitrans.data import RULES
from equitrans.errors import ConfigError
from equitrans.training import recipe_names

SHELLS = ("bash", "zsh", "fish")
ABOUT = """\
Print a script with which a shell completes commands, options and their values. Write it once to
where the shell looks for it."""
EXAMPLES = """\
  equitrans completion bash > ~/.local/share/bash-completion/completions/equitrans
  equitrans completion zsh > ~/.zfunc/_equitrans        # with fpath+=~/.zfunc before compinit
  equitrans completion fish > ~/.config/fish/completions/equitrans.fish"""

FOLDERS = ("DIR", "RUN")
FILES = ("FILE",)


def options() -> Parser:
    """Its command line."""
    parser = Parser("completion", ABOUT, EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Gather the command lines of all commands, and print the script."""
    asked = options().parse(arguments)
    shtab = load_shtab()
    print(shtab.complete(_everything(shtab), asked.shell).rstrip())
    return 0


def load_shtab() -> ModuleType:
    """The library that writes such scripts, which not every installation has."""
    try:
        return import_module("shtab")
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"completion needs {missing.name}: pip install 'equitrans[completion]'"
        ) from None


def _everything(shtab: ModuleType) -> argparse.ArgumentParser:
    """One parser with all commands under it, used for nothing but its description."""
    whole = argparse.ArgumentParser(prog="equitrans")
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers()
    values = {"--split": [*RULES], "--recipe": recipe_names(), "--device": ["auto", "cpu", "cuda"]}
    for name, about in COMMANDS.items():
        parser = import_module(f"equitrans.cli.{name}").options()
        for action in parser._actions:
            if action.metavar in FOLDERS:
                action.complete = shtab.DIRECTORY
            elif action.metavar in FILES:
                action.complete = shtab.FILE
            elif action.option_strings and action.option_strings[0] in values:
                action.choices = values[action.option_strings[0]]
        commands.add_parser(name, help=about, parents=[parser], add_help=False)
    return whole
