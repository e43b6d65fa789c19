"""Pages made from the code when the documentation is built: commands, rooms, the notebook."""

import argparse
import base64
import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import equitrans
from equitrans.cli.main import COMMANDS


class _Found(Exception):  # noqa: N818
    """Carries a parser out of the command that has made it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def find_parser(command: str) -> argparse.ArgumentParser:
    """The parser that a command reads its options with."""

    def found(parser: argparse.ArgumentParser, *_: object) -> None:
        raise _Found(parser)

    with patch.object(argparse.ArgumentParser, "print_help", found):
        try:
            import_module(f"equitrans.cli.{command}").run(["--help"])
        except _Found as carried:
            return carried.parser
    raise AssertionError(f"equitrans {command} has no --help")


def describe_command(command: str) -> str:
    """A command in Markdown: what it is for, its arguments and options, its examples."""
    parser = find_parser(command)
    lines = [f"## equitrans {command}", "", _plain(parser.description or COMMANDS[command]), ""]
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        lines += [_names(action), f": {_meaning(action)}", ""]
    if parser.epilog:
        examples = [line.strip() for line in parser.epilog.splitlines()]
        shown = [f"$ {line}" for line in examples if line.startswith("equitrans")]
        lines += ["```console", *shown, "```", ""]
    return "\n".join(lines)


def _names(action: argparse.Action) -> str:
    """The option with what it takes, or the name of an argument."""
    if isinstance(action.metavar, str):
        value = action.metavar
    elif action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = action.dest.upper().rpartition(".")[2]
    if not action.option_strings:
        many = {"*": f"[{value} …]", "+": f"{value} …", "?": f"[{value}]"}
        return f"`{many.get(str(action.nargs), value)}`"
    takes = "" if action.nargs == 0 else f" {value}"
    return ", ".join(f"`{name}{takes}`" for name in _spellings(action))


def _spellings(action: argparse.Action) -> list[str]:
    """The names of an option, without those that only write - as _."""
    names = list(action.option_strings)
    return [n for n in names if "_" not in n or n.replace("_", "-") not in names]


def _meaning(action: argparse.Action) -> str:
    text = _plain(action.help or "")
    default = action.default
    if default in (None, False, argparse.SUPPRESS) or not action.option_strings:
        return text or "one of these"
    if "default" in text and "%(default)" not in text:
        return text
    return f"{text.partition(' (default')[0]} (default `{default}`)".strip()


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    for letter in "\\`*_<|":
        text = text.replace(letter, "\\" + letter)
    return text


def home_of(name: str) -> str:
    """The module that a public name is defined in; constants have none and stand in their room."""
    constants = {"Permutation": "equitrans.paper.groups"}
    home = getattr(getattr(equitrans, name), "__module__", None) or "equitrans.data.scan"
    return home if home.startswith("equitrans.") else constants.get(name, "equitrans.data.scan")


def rooms(*, public: bool) -> Iterator[tuple[ModuleType, list[str]]]:
    """Modules with the public names that they hold, or those that hold others."""
    for _, name, _ in sorted(pkgutil.walk_packages(equitrans.__path__, "equitrans."), key=str):
        if name.startswith("equitrans.cli"):
            continue
        names = [n for n in equitrans.__all__ if home_of(n) == name]
        if names or not public:
            yield import_module(name), names


def describe_public() -> str:
    """What ``import equitrans`` offers, room by room."""
    lines = []
    for module, names in rooms(public=True):
        about = (module.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        lines += [f"## {module.__name__}", "", _plain(about.replace("``", "").rstrip(":")), ""]
        for name in names:
            lines += ["```{eval-rst}", *_auto(name), "```", ""]
    return "\n".join(lines)


def _auto(name: str) -> list[str]:
    thing = getattr(equitrans, name)
    if isinstance(thing, type):
        bases = [] if thing.__bases__ == (object,) else ["   :show-inheritance:"]
        return [f".. autoclass:: equitrans.{name}", "   :members:", *bases]
    if callable(thing) and hasattr(thing, "__code__"):
        return [f".. autofunction:: equitrans.{name}"]
    return [f".. autodata:: equitrans.{name}", "   :no-value:"]


def describe_inside() -> str:
    """Everything that is not public, room by room."""
    lines = []
    for module, names in rooms(public=False):
        lines += [f"## {module.__name__}", ""]
        lines += ["```{eval-rst}", f".. automodule:: {module.__name__}", "   :members:"]
        if names:
            lines += [f"   :exclude-members: {', '.join(names)}"]
        lines += ["```", ""]
    return "\n".join(lines)


def describe_notebook(path: Path) -> str:
    """An executed notebook in Markdown: its text, its programs and what came out of them."""
    lines: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [text, ""]
            continue
        lines += ["```python", text, "```", ""]
        for output in cell["outputs"]:
            lines += _output(output)
    return "\n".join(lines)


def _output(output: dict[str, Any]) -> list[str]:
    data = output.get("data", {})
    if "image/png" in data:
        content = base64.b64encode(base64.b64decode(data["image/png"])).decode()
        return [f"![what the cell draws](data:image/png;base64,{content})", ""]
    text = "".join(output.get("text", data.get("text/plain", "")))
    return ["```text", text.rstrip("\n"), "```", ""]


class Commands(SphinxDirective):
    """All commands, each a section."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(
            "\n".join(map(describe_command, COMMANDS)), allow_section_headings=True
        )


class Public(SphinxDirective):
    """All public names, a section for each room."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(describe_public(), allow_section_headings=True)


class Inside(SphinxDirective):
    """All other names, a section for each room."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(describe_inside(), allow_section_headings=True)


class Notebook(SphinxDirective):
    """A notebook, given by its path from the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        relative, absolute = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        return self.parse_text_to_nodes(
            describe_notebook(Path(absolute)), allow_section_headings=True
        )


_prose: dict[str, list[str]] = {}


def _keep(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    if what in ("attribute", "data", "property"):
        _prose[name] = list(lines)


def _restore(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Napoleon takes what stands before a colon for a type where it is prose."""
    if name in _prose:
        lines[:] = _prose.pop(name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives known to Sphinx."""
    for directive in (Commands, Public, Inside, Notebook):
        app.add_directive(directive.__name__.lower(), directive)
    app.connect("autodoc-process-docstring", _keep, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)
    return {"parallel_read_safe": True}
