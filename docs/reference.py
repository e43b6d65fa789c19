"""Directives that make pages from the code: commands, Python API, modules, the notebook."""

import argparse
import ast
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
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

import equitrans
from equitrans.cli.main import COMMANDS


class _Found(Exception):  # noqa: N818
    """Carries the parser out of the command that made it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def find_parser(command: str) -> argparse.ArgumentParser:
    """Return the argument parser of a command."""

    def found(parser: argparse.ArgumentParser, *_: object) -> None:
        raise _Found(parser)

    with patch.object(argparse.ArgumentParser, "print_help", found):
        try:
            import_module(f"equitrans.cli.{command}").run(["--help"])
        except _Found as carried:
            return carried.parser
    raise AssertionError(f"equitrans {command} has no --help")


def describe_command(command: str) -> str:
    """Return Markdown for a command: description, arguments, options and examples."""
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
    """Return an option with its value, or the name of an argument."""
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
    """Return the names of an option, without spellings that only replace - by _."""
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
    """Escape the characters that have a meaning in Markdown."""
    for letter in "\\`*_<|":
        text = text.replace(letter, "\\" + letter)
    return text


def face_of(package: ModuleType) -> dict[str, str]:
    """The names that a package offers, each with the module that the package imports it from."""
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    return {
        alias.name: str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("equitrans.")
        for alias in node.names
    }


def home_of(name: str, package: ModuleType = equitrans) -> str:
    """The module that defines a name of a package, found through one package after the other."""
    module = package
    while hasattr(module, "__path__"):
        module = import_module(face_of(module)[name])
    return module.__name__


def room_of(module: str) -> str:
    """The package directly below equitrans that a module belongs to, or the module itself."""
    return ".".join(module.split(".")[:2])


def modules() -> Iterator[ModuleType]:
    """All modules of the package in alphabetical order, without those of the command line."""
    for _, name, _ in sorted(pkgutil.walk_packages(equitrans.__path__, "equitrans."), key=str):
        if not name.startswith("equitrans.cli"):
            yield import_module(name)


def describe_public() -> str:
    """The names that ``import equitrans`` offers, one section per package."""
    rooms: dict[str, list[str]] = {}
    for name in equitrans.__all__[1:]:  # the first is __version__
        rooms.setdefault(room_of(home_of(name)), []).append(name)
    lines = []
    for room, names in sorted(rooms.items()):
        about = (import_module(room).__doc__ or "").split("\n\n")[0].replace("\n", " ")
        lines += [f"## {room}", "", _plain(about.replace("``", "").rstrip(":")), ""]
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
    """Everything else, one section per module; a package shows its docstring and its names."""
    lines = []
    for module in modules():
        own = [name for name in equitrans.__all__[1:] if home_of(name) == module.__name__]
        lines += [f"## {module.__name__}", ""]
        lines += ["```{eval-rst}", f".. automodule:: {module.__name__}"]
        if hasattr(module, "__path__"):
            offered = ", ".join(f"``{name}``" for name in sorted(face_of(module)))
            lines += ["", f"Names to import from here: {offered}."]
        else:
            lines += ["   :members:"]
            lines += [f"   :exclude-members: {', '.join(own)}"] if own else []
        lines += ["```", ""]
    return "\n".join(lines)


def describe_notebook(path: Path) -> str:
    """Return Markdown for an executed notebook: text, code cells and their outputs."""
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
        return [f"![output of the cell](data:image/png;base64,{content})", ""]
    text = "".join(output.get("text", data.get("text/plain", "")))
    return ["```text", text.rstrip("\n"), "```", ""]


class Commands(SphinxDirective):
    """Directive: all commands, one section each."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(
            "\n".join(map(describe_command, COMMANDS)), allow_section_headings=True
        )


class Public(SphinxDirective):
    """Directive: all public names, one section per package."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(describe_public(), allow_section_headings=True)


class Inside(SphinxDirective):
    """Directive: all other names, one section per module."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(describe_inside(), allow_section_headings=True)


class Notebook(SphinxDirective):
    """Directive: a notebook, given by its path relative to the page."""

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
    """Undo what Napoleon does to attributes: it reads prose before a colon as a type."""
    if name in _prose:
        lines[:] = _prose.pop(name)


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, child: nodes.Element
) -> nodes.reference | None:
    """Resolve ``equitrans.data.name``, which is documented where it is defined."""
    package, _, name = str(node["reftarget"]).rpartition(".")
    try:
        home = "equitrans" if name in equitrans.__all__ else home_of(name, import_module(package))
    except (ImportError, KeyError, ValueError):
        return None
    python = env.get_domain("py")
    page, target = str(node["refdoc"]), f"{home}.{name}"
    return python.resolve_xref(env, page, app.builder, node["reftype"], target, node, child)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives with Sphinx."""
    for directive in (Commands, Public, Inside, Notebook):
        app.add_directive(directive.__name__.lower(), directive)
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-process-docstring", _keep, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)
    return {"parallel_read_safe": True}
