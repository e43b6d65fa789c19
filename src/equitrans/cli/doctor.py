"""equitrans doctor: what is installed here, what is missing, and how to get it. Needs nothing but
Python itself, so that it can speak where the rest cannot.
"""

import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from equitrans import __version__
from equitrans.cli.arguments import Parser
from equitrans.data import RULES, everything, official_rows
from equitrans.errors import DataError

ABOUT = """\
Say what is installed, what is missing and how to get it: versions, device, threads, data, terminal.
Exit status 1 if something is missing that every command needs."""
EXAMPLES = """\
  equitrans doctor
  equitrans doctor --scan-dir SCAN
  equitrans doctor --json"""

CONTRIBUTORS = ("dev", "docs", "fuzz", "mutation", "release", "test")
"""Extras for those who work on the project itself."""


def options() -> Parser:
    """Its command line."""
    parser = Parser("doctor", ABOUT, EXAMPLES)
    parser.add_argument("--scan-dir", metavar="DIR", help="look for the official SCAN files here")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Look around and report."""
    asked = options().parse(arguments)
    content: dict[str, Any] = {
        "equitrans": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": [*_packages()],
        "torch": _torch(),
        "scan": _scan(asked.scan_dir),
        "terminal": {
            "is_terminal": sys.stdout.isatty(),
            "no_color": bool(os.environ.get("NO_COLOR")),
            "encoding": sys.stdout.encoding,
        },
    }
    content["problems"] = [*_problems(content)]
    if asked.json:
        print(json.dumps(content, ensure_ascii=False))
    else:
        print("\n".join(_lines(content)))
    return 1 if content["problems"] else 0


def _packages() -> Iterator[dict[str, Any]]:
    """What the installed package asks for, and what is there."""
    try:
        required = requires("equitrans") or []
    except PackageNotFoundError:
        return
    for requirement in required:
        name, least, extra = read_requirement(requirement)
        if extra in CONTRIBUTORS:
            continue
        try:
            found = version(name)
        except PackageNotFoundError:
            found = None
        yield {
            "name": name,
            "extra": extra,
            "least": least,
            "found": found,
            "enough": found is not None and _numbers(found) >= _numbers(least),
        }


def read_requirement(text: str) -> tuple[str, str, str | None]:
    """The name, the least version and the extra of a requirement.

    >>> read_requirement('jsonargparse[signatures]>=4.49')
    ('jsonargparse', '4.49', None)
    >>> read_requirement('matplotlib>=3.8; extra == "plot"')
    ('matplotlib', '3.8', 'plot')
    """
    what, _, marker = text.partition(";")
    name = re.match(r"[\w.-]+", what)
    least = re.search(r">=\s*([\w.]+)", what)
    extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
    assert name is not None
    return name[0], least[1] if least else "0", extra[1] if extra else None


def _numbers(text: str) -> tuple[int, ...]:
    """A version as numbers.

    >>> _numbers("2.13.0+cpu") >= _numbers("2.10")
    True
    """
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0]))


def _torch() -> dict[str, Any]:
    try:
        import torch
    except Exception as error:  # a broken installation may raise anything
        return {"version": None, "error": f"{type(error).__name__}: {error}"}
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "devices": devices,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
    }


def _scan(folder: str | None) -> dict[str, Any]:
    """Whether the official files are there, and are what they should be."""
    content: dict[str, Any] = {"commands": len(everything()), "folder": folder}
    if folder is not None:
        content["official"] = {name: _is_official(folder, name) for name in RULES}
    return content


def _is_official(folder: str, name: str) -> bool:
    rule = RULES[name]
    try:
        for part, sha in zip(("train", "test"), rule.shas, strict=True):
            official_rows(name, Path(folder) / rule.files.format(part), sha)
    except (DataError, OSError):
        return False
    return True


def _problems(content: dict[str, Any]) -> Iterator[str]:
    if not content["packages"]:
        yield "equitrans is not installed, only its source is there: pip install ."
    for package in content["packages"]:
        if package["extra"] is None and not package["enough"]:
            yield (
                f"{package['name']} is {package['found'] or 'missing'}: "
                f"pip install '{package['name']}>={package['least']}'"
            )
    if "error" in content["torch"]:
        yield f"torch cannot be used: {content['torch']['error']}"


def _lines(content: dict[str, Any]) -> Iterator[str]:
    yield f"equitrans  {content['equitrans']}"
    yield f"Python     {content['python']}, {content['platform']}"
    torch = content["torch"]
    if "error" not in torch:
        device = ", ".join(torch["devices"]) or "no GPU"
        build = f"CUDA {torch['cuda']}" if torch["cuda"] else "without CUDA"
        yield f"torch      {torch['version']}, {build}, {device}"
        yield f"threads    {torch['threads']} of torch, {torch['cores']} cores; --threads 1 is best"
    scan = content["scan"]
    if scan["folder"] is None:
        yield f"SCAN       {scan['commands']} commands from its grammar; for the official files:"
        yield "           equitrans scan download --out SCAN, then --scan-dir SCAN"
    else:
        found = [name for name, is_there in scan["official"].items() if is_there]
        missing = [name for name in scan["official"] if name not in found]
        yield f"SCAN       official files of {len(found)} splits in {scan['folder']}"
        if missing:
            yield f"           missing or changed: {', '.join(missing)}"
            yield f"           equitrans scan download --out {scan['folder']}"
    terminal = content["terminal"]
    color = terminal["is_terminal"] and not terminal["no_color"]
    yield f"output     {'with' if color else 'without'} colors, {terminal['encoding']}"
    extras: dict[str, list[dict[str, Any]]] = {}
    for package in content["packages"]:
        extras.setdefault(package["extra"] or "core", []).append(package)
    for extra, packages in extras.items():
        text = ", ".join(f"{p['name']} {p['found'] or '—'}" for p in packages)
        least = all(package["enough"] for package in packages)
        hint = "" if least or extra == "core" else f": pip install 'equitrans[{extra}]'"
        yield f"{extra:10} {text}{hint}"
    for problem in content["problems"]:
        yield f"PROBLEM    {problem}"
