"""Record a terminal as an animated SVG: make screencast.

python docs/screencast.py PICTURE

The commands below are run in an empty folder, one after the other, with the files of the page
learn.md. The picture shows what they print. It needs no script: every line appears by an animation
of CSS, and the lines above move out of sight as in a terminal. It starts again at the end.
"""

import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
COMMANDS = (
    "cat commands.tsv",
    "equitrans learn commands.tsv --out model --folds 3 --quiet",
    'equitrans predict model "stop the radio twice and start the fan"',
    'equitrans predict model "stop the stove"',
    'equitrans grammar model --derive "stop the radio twice"',
    "equitrans certify model --data test.tsv --most-wrong 0",
    "equitrans export model --standalone commands.py",
    'python commands.py "start the fan after stop the lamp"',
)
COLUMNS, ROWS = 100, 26
"""Size of the terminal in letters and lines; longer lines are wrapped."""
WORD, LINE, READ, LONGEST_WAIT = 0.25, 0.04, 0.45, 2.0
"""Seconds for a word that is typed, for a line that is printed, to read a line, and the longest
time that a command is shown to take."""
LETTER, HEIGHT, MARGIN = 8.4, 19, 14
"""Width of a letter, height of a line and margin, in pixels."""


@dataclass(frozen=True)
class Piece:
    """A text that appears at a time, in seconds, in a line and a column."""

    text: str
    at: float
    row: int
    column: int = 0
    kind: str = ""


def files_of(page: str) -> dict[str, str]:
    """The files of a page, by name."""
    found = re.findall(r"<!-- test: file (\S+) -->\n```text\n(.*?)```", page, re.DOTALL)
    return dict(found)


def output(command: str, folder: Path) -> tuple[str, float]:
    """What a command prints in a folder, and the seconds it takes."""
    name, *rest = shlex.split(command)
    equitrans = [sys.executable, "-m", "equitrans.cli.main"]
    start = {"equitrans": equitrans, "python": [sys.executable]}.get(name, [name])
    begun = time.monotonic()
    done = subprocess.run([*start, *rest], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr, time.monotonic() - begun


def record(commands: tuple[str, ...], folder: Path) -> tuple[list[Piece], float]:
    """The pieces of a recording, and its length in seconds."""
    pieces: list[Piece] = []
    at, row = 1.0, 0
    for command in commands:
        pieces.append(Piece("$", at, row, kind="p"))
        column = 2
        for word in command.split(" "):
            at += WORD
            pieces.append(Piece(word, at, row, column, "c"))
            column += len(word) + 1
        text, seconds = output(command, folder)
        at, row = at + 0.3 + min(seconds, LONGEST_WAIT), row + 1
        lines = text.expandtabs().rstrip().splitlines()
        wrapped = [
            part
            for line in lines
            for part in textwrap.wrap(
                line, COLUMNS, drop_whitespace=False, replace_whitespace=False
            )
            or [""]
        ]
        for line in wrapped:
            at, row = at + LINE, row + 1
            pieces.append(Piece(line, at, row - 1))
        at, row = at + 1.5 + READ * len(wrapped), row + 1
    return [piece for piece in pieces if piece.text.strip()], at + 2


def svg(pieces: list[Piece], seconds: float) -> str:
    """A recording as an animated picture."""
    width, height = COLUMNS * LETTER + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN
    times = sorted({piece.at for piece in pieces})
    number = {at: n for n, at in enumerate(times)}
    shown = [
        f"@keyframes a{n}{{0%,{100 * at / seconds:.2f}%{{opacity:0}}"
        f"{100 * at / seconds + 0.01:.2f}%,100%{{opacity:1}}}}.a{n}{{animation-name:a{n}}}"
        for at, n in number.items()
    ]
    moves = ["0%{transform:translateY(0)}"]
    for piece in pieces:
        if piece.row >= ROWS:
            up = (piece.row - ROWS + 1) * HEIGHT
            moves.append(f"{100 * piece.at / seconds:.2f}%{{transform:translateY(-{up}px)}}")
    style = (
        "text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d5dde3;white-space:pre;"
        f"animation:{seconds:.1f}s step-end infinite}}"
        ".p{fill:#7fd1b9}.c{fill:#fff;font-weight:600}"
        f"#all{{animation:up {seconds:.1f}s step-end infinite}}"
        f"@keyframes up{{{''.join(moves)}}}{''.join(shown)}"
        "@media(prefers-reduced-motion:reduce){text,#all{animation:none!important}}"
    )
    lines = [
        f'<text x="{MARGIN + piece.column * LETTER:g}" y="{HEIGHT * (piece.row + 1) - 5}" '
        f'textLength="{len(piece.text) * LETTER:.0f}" class="a{number[piece.at]} {piece.kind}">'
        f"{escape(piece.text)}</text>"
        for piece in pieces
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'aria-label="A terminal: from a file of commands to a model and its certificate">'
        f"<style>{style}</style>"
        f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#161b22"/>'
        f'<svg y="{MARGIN}" width="{width:.0f}" height="{ROWS * HEIGHT}"><g id="all">\n'
        + "\n".join(lines)
        + "\n</g></svg></svg>\n"
    )


def main(picture: str) -> None:
    """Run the commands and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files_of((HERE / "learn.md").read_text(encoding="utf-8")).items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        found = svg(*record(COMMANDS, Path(folder)))
    Path(picture).write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
