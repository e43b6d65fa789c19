"""equitrans doctor: what is installed, what is missing, and how to install it. Torch and rich may
be missing or broken.
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
from equitrans.cli.arguments import Parser, add_json
from equitrans.data import RULES, everything, official_rows
from equitrans.errors import DataError

ABOUT = """\
Print what is installed, what is missing and how to install it: versions, device, threads, data,
terminal. The exit status is 1 if something is missing that every command needs."""
EXAMPLES = """\
  equitrans doctor
  equitrans doctor --scan-dir SCAN
  equitrans doctor --json"""

CONTRIBUTORS = ("dev", "docs", "fuzz", "mutation", "release", "test")
"""Extras for people who work on equitrans itself; they are not reported."""


def options() -> Parser:
    """The options of equitrans doctor."""
    parser = Parser("doctor", ABOUT, EXAMPLES)
    parser.add_argument("--scan-dir", metavar="DIR", help="check the official SCAN files there")
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print a report."""
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
    """Every package that equitrans requires, with the least version and the version found."""
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
        enough = found is not None and _numbers(found) >= _numbers(least)
        yield {"name": name, "extra": extra, "least": least, "found": found, "enough": enough}


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
    """The numbers of a version.

    >>> _numbers("2.13.0+cpu") >= _numbers("2.10")
    True
    """
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0]))


def _torch() -> dict[str, Any]:
    try:
        import torch
    except Exception as error:  # a broken installation may raise anything
        return {"version": None, "error": f"{type(error).__name__}: {error}"}
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
    }


def _scan(folder: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {"commands": len(everything()), "folder": folder}
    if folder is not None:
        content["official"] = {name: _is_official(folder, name) for name in RULES}
    return content


def _is_official(folder: str, name: str) -> bool:
    """Whether the official files of a split are there, with the right checksums."""
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
            name, found = package["name"], package["found"] or "missing"
            yield f"{name} is {found}: pip install '{name}>={package['least']}'"
    if "error" in content["torch"]:
        yield f"torch cannot be used: {content['torch']['error']}"


def _lines(content: dict[str, Any]) -> Iterator[str]:
    yield f"equitrans  {content['equitrans']}"
    yield f"Python     {content['python']}, {content['platform']}"
    torch, scan, terminal = content["torch"], content["scan"], content["terminal"]
    if "error" not in torch:
        device = ", ".join(torch["devices"]) or "no GPU"
        build = f"CUDA {torch['cuda']}" if torch["cuda"] else "without CUDA"
        yield f"torch      {torch['version']}, {build}, {device}"
        yield f"threads    {torch['threads']} of torch, {torch['cores']} cores; --threads 1 is best"
    if scan["folder"] is None:
        yield f"SCAN       {scan['commands']} commands from its grammar; for the official files:"
        yield "           equitrans scan download --out SCAN, then --scan-dir SCAN"
    else:
        missing = [name for name, is_official in scan["official"].items() if not is_official]
        found = len(scan["official"]) - len(missing)
        yield f"SCAN       official files of {found} splits in {scan['folder']}"
        if missing:
            yield f"           missing or changed: {', '.join(missing)}"
            yield f"           equitrans scan download --out {scan['folder']}"
    color = terminal["is_terminal"] and not terminal["no_color"]
    yield f"output     {'with' if color else 'without'} colors, {terminal['encoding']}"
    extras: dict[str, list[dict[str, Any]]] = {}
    for package in content["packages"]:
        extras.setdefault(package["extra"] or "core", []).append(package)
    for extra, packages in extras.items():
        text = ", ".join(f"{p['name']} {p['found'] or '—'}" for p in packages)
        complete = extra == "core" or all(package["enough"] for package in packages)
        yield f"{extra:10} {text}" + ("" if complete else f": pip install 'equitrans[{extra}]'")
    for problem in content["problems"]:
        yield f"PROBLEM    {problem}"
