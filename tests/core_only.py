"""Run a program as if nothing were installed but what equitrans itself needs."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"

BLOCK = """\
import sys
from importlib.machinery import PathFinder


class CoreFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            return None
        return super().find_spec(name, path, target)


sys.meta_path = [CoreFinder if finder is PathFinder else finder for finder in sys.meta_path]
"""


def core() -> list[str]:
    """The requirements of the package without its extras."""
    text = PYPROJECT.read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    return re.findall(r'"(.+?)"', listed[1])


def blocked() -> set[str]:
    """All modules of installed packages that the core does not bring along."""
    needed: set[str] = set()
    waiting = core()
    while waiting:
        text = waiting.pop()
        name, _, marker = text.partition(";")
        extras = re.findall(r"\w+", "".join(re.findall(r"\[(.*?)\]", name)))
        wanted = re.search(r"extra == ['\"](\w+)['\"]", marker)
        name = _normal(re.match(r"[\w.-]+", name)[0])  # type: ignore[index]
        if wanted or name in needed:
            continue
        needed.add(name)
        try:
            theirs = requires(name) or []
        except PackageNotFoundError:  # for another system
            continue
        for extra in extras:
            theirs += [t.partition(";")[0] for t in theirs if f'"{extra}"' in t.replace("'", '"')]
        waiting += theirs
    return {
        module
        for module, packages in packages_distributions().items()
        if not {_normal(p) for p in packages} & (needed | {"equitrans"})
    }


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def run_core_only(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    whole = f"BLOCKED = {blocked()!r}\n{BLOCK}\n{program}"
    return subprocess.run(
        [sys.executable, "-c", whole, *map(str, arguments)], capture_output=True, text=True
    )
