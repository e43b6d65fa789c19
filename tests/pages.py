"""What a page of the documentation shows, done as a reader would do it.

    python tests/pages.py [--full] [PAGE …]

Every page has a folder of its own, like a fresh clone. Its ``console`` and ``python`` blocks are
run in order; output that is shown is compared, … standing for anything. Comments on lines of their
own speak of the block below them:

    <!-- test: file NAME -->              the block is that file
    <!-- test: with OPTIONS -->           its commands get these options too, and take seconds
    <!-- test: train with OPTIONS -->     the same for equitrans train alone
    <!-- test: any figures because … -->  numbers need not be those of the page
    <!-- test: status 1 -->               how its last command ends
    <!-- test: skip because … -->         it is not run
    <!-- test: skip 2 because … -->       its first two commands are not

and ``<!-- test: after PAGE -->`` begins where another page has ended. With --full trainings take
their time, and figures must be those of the page: that takes minutes, and holds on one machine.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
LIMIT = 200
"""Seconds for one command; ten times as many with --full."""

_FENCE = re.compile(r"^(\s*)(`{3,})(.*)$")
_NOTE = re.compile(r"^\s*<!-- test: (.*?) -->\s*$")
_PROMPT = re.compile(r"\w*\$ (.*)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Wrong(Exception):  # noqa: N818
    """Something that a page says does not hold."""


@dataclass
class Notes:
    """What the comments above a block ask for."""

    file: str | None = None
    options: dict[str | None, list[str]] = field(default_factory=dict)
    any_figures: bool = False
    status: int = 0
    skip: str | None = None
    first: int | None = None
    """So many commands are skipped, where not all are."""

    def add(self, text: str) -> None:
        """Take one comment in."""
        if match := re.fullmatch(r"file (\S+)", text):
            self.file = match[1]
        elif match := re.fullmatch(r"(?:(\w+) )?with (.+)", text):
            self.options[match[1]] = shlex.split(match[2])
        elif re.fullmatch(r"any figures because .+", text):
            self.any_figures = True
        elif match := re.fullmatch(r"status (\d+)", text):
            self.status = int(match[1])
        elif match := re.fullmatch(r"skip (?:(\d+) )?because (.+)", text):
            self.skip, self.first = match[2], None if match[1] is None else int(match[1])
        else:
            raise Wrong(f"<!-- test: {text} --> is not understood")


@dataclass(frozen=True)
class Block:
    """The content of a fence, what it is in, and where it stands."""

    kind: str
    lines: tuple[str, ...]
    notes: Notes
    line: int

    def commands(self) -> list[tuple[str, list[str]]]:
        """Of a console: commands, each with the output that is shown, if any."""
        found: list[tuple[str, list[str]]] = []
        for line in self.lines:
            if match := _PROMPT.match(line):
                found.append((match[1], []))
            elif found and found[-1][0].endswith("\\"):
                found[-1] = (found[-1][0][:-1] + line.removeprefix("> "), [])
            elif found:
                found[-1][1].append(line)
            elif line.strip():
                raise Wrong(f"line {self.line}: a console begins with '$ '")
        return found


def read_page(text: str) -> tuple[str | None, list[Block]]:
    """The page that another comes after, and its blocks."""
    after: str | None = None
    blocks: list[Block] = []
    notes, fence, kind, content, began = Notes(), "", "", [], 0
    for number, line in enumerate(text.splitlines(), start=1):
        match = _FENCE.match(line)
        if fence:
            if match and match[2] == fence and not match[3]:
                blocks.append(Block(kind, tuple(content), notes, began))
                notes, fence = Notes(), ""
            else:
                content.append(line)
        elif match:
            fence, kind, content, began = match[2], match[3].strip(), [], number
        elif note := _NOTE.match(line):
            if follows := re.fullmatch(r"after (\S+)", note[1]):
                after = follows[1]
            else:
                notes.add(note[1])
        elif line.strip() and notes != Notes():
            raise Wrong(f"line {number}: a comment for a test stands right above its block")
    return after, blocks


def matches(shown: Sequence[str], output: str, *, any_figures: bool = False) -> bool:
    """Whether output is as shown: … is anything in a line, and on a line of its own any lines."""
    pattern = ""
    for line in "\n".join(shown).rstrip().splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += (
                ".*?".join(_literal(p, any_figures) for p in line.rstrip().split("…")) + r"\n"
            )
    lines = [line.rstrip() + "\n" for line in output.rstrip().splitlines()]
    return re.fullmatch(pattern, "".join(lines)) is not None


def _literal(text: str, any_figures: bool) -> str:
    if not any_figures:
        return re.escape(text)
    pattern = _NUMBER.pattern.join(re.escape(part) for part in _NUMBER.split(text))
    # a figure of another width moves what stands in columns
    return re.sub(r"(\\ ){2,}", " +", pattern)


@dataclass
class Outcome:
    """What came of a page."""

    page: str
    ran: list[str] = field(default_factory=list)
    compared: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    wrong: str | None = None
    pictures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    seconds: float = 0.0
    """Of this process, on the processor."""


class Reader:
    """Reads pages and does what they show, in folders under one folder."""

    def __init__(self, folder: Path, *, full: bool = False) -> None:
        self.folder = folder
        self.full = full
        self.made: dict[tuple[str, ...], tuple[Path, str]] = {}
        self.outcomes: dict[str, Outcome] = {}

    def read(self, path: Path) -> Outcome:
        """Do a page, once, and what it comes after."""
        if path.name in self.outcomes:
            return self.outcomes[path.name]
        began = time.process_time()
        outcome = self.outcomes[path.name] = Outcome(path.name)
        try:
            after, blocks = read_page(path.read_text(encoding="utf-8"))
            place = self._place(path, after)
            names: dict[str, Any] = {"__name__": "page"}
            with contextlib.chdir(place), patch.object(sys, "path", [str(place), *sys.path]):
                for block in blocks:
                    self._do(block, names, outcome)
            outcome.pictures = sorted(p.name for p in place.glob("*.png"))
        except Wrong as wrong:
            outcome.wrong = f"{path.name}, {wrong}"
        outcome.seconds = round(time.process_time() - began, 1)
        return outcome

    def _place(self, path: Path, after: str | None) -> Path:
        """A folder with what a clone of the repository has, or with what another page has left."""
        place = self.folder / path.stem
        if after is not None:
            if (before := self.read(path.parent / after)).wrong:
                raise Wrong(f"it comes after {before.wrong}")
            shutil.copytree(self.folder / Path(after).stem, place, symlinks=True)
            return place
        shutil.copytree(ROOT / "records", place / "records")
        for name in ("bench", "docs", "examples", "tests"):
            (place / name).symlink_to(ROOT / name)
        return place

    def _do(self, block: Block, names: dict[str, Any], outcome: Outcome) -> None:
        notes = block.notes
        where = f"line {block.line}"
        if notes.file is not None:
            Path(notes.file).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        elif block.kind == "console":
            commands = block.commands()
            for i, (line, shown) in enumerate(commands):
                if notes.skip is not None and (notes.first is None or i < notes.first):
                    outcome.skipped.append((line, notes.skip))
                    continue
                began = time.process_time()
                status, output = self._command(line, notes.options)
                outcome.slowest = max(outcome.slowest, (time.process_time() - began, line))
                expected = notes.status if i == len(commands) - 1 else 0
                if status != expected:
                    raise Wrong(f"{where}: {line}\nends with status {status}:\n{output}")
                any_figures = notes.any_figures and not self.full
                if shown and not matches(shown, output, any_figures=any_figures):
                    told = "\n".join(shown)
                    raise Wrong(f"{where}: {line}\nshould print\n{told}\nand prints\n{output}")
                outcome.ran.append(line)
                outcome.compared += bool(shown)
        elif block.kind == "python":
            if notes.skip is not None:
                outcome.skipped.append((block.lines[0], notes.skip))
            else:
                outcome.compared += _program(block, names)
                outcome.ran.append(f"python at {where}")

    def _command(self, line: str, options: dict[str | None, list[str]]) -> tuple[int, str]:
        """Status and output of a command; those of ours run in this process."""
        words = shlex.split(line, comments=True)
        if words[:1] != ["equitrans"] or {"|", "&&"} & set(words):
            return _shell(line, limit=self._limit)
        arguments, files = _redirections(words[1:])
        if not self.full or arguments[0] == "reproduce":  # whole tables take hours
            arguments += [*options.get(None, []), *options.get(arguments[0], [])]
        key = tuple(arguments)
        if arguments[0] not in ("train", "discover") or "--split" not in arguments or files:
            return _main(arguments, files, limit=self._limit)
        # one command, one seed, one set of weights (test_runs.py): what one page has made of a
        # built-in split is there for the next
        out = Path(arguments[arguments.index("--out") + 1]) if "--out" in arguments else None
        if key in self.made:
            kept, output = self.made[key]
            if out is not None:
                shutil.copytree(kept, out)
            return 0, output
        status, output = _main(arguments, files, limit=self._limit)
        if status == 0:
            kept = self.folder / f"made-{len(self.made)}"
            if out is not None:
                shutil.copytree(out, kept)
            self.made[key] = (kept, output)
        return status, output

    @property
    def _limit(self) -> int:
        return 10 * LIMIT if self.full else LIMIT


def _redirections(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The arguments of a command, and the files that < and > name."""
    arguments, files = list(words), {}
    for mark in ("<", ">"):
        if mark in arguments:
            at = arguments.index(mark)
            files[mark] = arguments[at + 1]
            del arguments[at : at + 2]
    return arguments, files


def _main(arguments: Sequence[str], files: dict[str, str], *, limit: int) -> tuple[int, str]:
    from equitrans.cli.main import main

    errors = io.StringIO()
    output = io.StringIO() if ">" in files else errors
    given = io.TextIOWrapper(io.BytesIO(Path(files["<"]).read_bytes() if "<" in files else b""))
    with (
        _at_most(limit),
        patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            status = main(arguments)
        except SystemExit as end:  # --help
            status = int(end.code or 0)
    if ">" in files:
        Path(files[">"]).write_text(output.getvalue(), encoding="utf-8")
    return status, errors.getvalue()


def _shell(line: str, *, limit: int) -> tuple[int, str]:
    """A command line with pipes and redirections, or of another program."""
    tools = Path(sys.executable).parent
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            env=os.environ | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise Wrong(f"{line}: still at work after {limit} seconds") from None
    return done.returncode, done.stdout


def _program(block: Block, names: dict[str, Any]) -> int:
    """Run Python; an expression with a value behind it in a comment must have that value."""
    source = "\n".join(block.lines)
    compared = 0
    for node in ast.parse(source).body:
        end = block.lines[(node.end_lineno or 1) - 1]
        where = f"line {block.line + (node.end_lineno or 1)}: {end}"
        try:
            with _at_most(LIMIT):
                if not isinstance(node, ast.Expr):
                    exec(compile(ast.Module([node], []), "page", "exec"), names)  # noqa: S102
                    continue
                value = eval(compile(ast.Expression(node.value), "page", "eval"), names)  # noqa: S307
        except Exception:
            raise Wrong(f"{where}\n{traceback.format_exc(limit=-3)}") from None
        comment = end[node.end_col_offset :].partition("#")[2].strip()
        try:
            shown = ast.literal_eval(comment)
        except (SyntaxError, ValueError):
            continue  # a remark
        if value != shown:
            raise Wrong(f"{where}\nis {value!r}")
        compared += 1
    return compared


@contextlib.contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Nothing that a page shows goes on for ever."""

    def stop(*_: object) -> None:
        raise Wrong(f"still at work after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pages() -> list[Path]:
    """The README and the pages of the documentation."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> int:
    """Do some pages, or all, and say what came of them."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--full", action="store_true", help="nothing shortened: minutes")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(Path(folder), full=asked.full)
        outcomes = [reader.read(path.absolute()) for path in asked.pages or pages()]
    if asked.json:
        print(json.dumps([vars(outcome) for outcome in outcomes]))
    else:
        for outcome in outcomes:
            print(
                f"{outcome.page}: {len(outcome.ran)} run, {outcome.compared} compared, "
                f"{len(outcome.skipped)} skipped, {outcome.seconds} s"
                f" ({outcome.slowest[0]:.1f} s for {outcome.slowest[1]})"
            )
            for command, reason in outcome.skipped:
                print(f"  not run: {command} ({reason})")
            if outcome.wrong:
                print(f"WRONG: {outcome.wrong}")
    return int(any(outcome.wrong for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
