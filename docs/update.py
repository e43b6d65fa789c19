"""Update the tables in the documentation: python docs/update.py (make results).

The text between ``<!-- $ equitrans … -->`` and ``<!-- end -->`` is the output of that command, and
the text between ``<!-- $ python … -->`` and ``<!-- end -->`` that of a script, run in the root of
the project. The text between ``<!-- rows of FILES -->`` and ``<!-- end -->`` is a table of the rows
of JSON files.
"""

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from equitrans.cli.main import main

HERE = Path(__file__).parent
MARKED = re.compile(r"(<!-- \$ equitrans (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
SCRIPT = re.compile(r"(<!-- \$ python (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
ROWS = re.compile(r"(<!-- rows of (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def updated(page: str) -> str:
    """The page with new outputs of its commands and new rows of its files."""
    page = MARKED.sub(lambda found: f"{found[1]}\n{_output(found[2])}\n{found[3]}", page)
    page = SCRIPT.sub(lambda found: f"{found[1]}\n{_printed(found[2])}\n{found[3]}", page)
    return ROWS.sub(lambda found: f"{found[1]}\n{_table(found[2])}\n{found[3]}", page)


def _table(names: str) -> str:
    files = [(HERE.parent / name).read_text(encoding="utf-8") for name in names.split()]
    rows = [row for text in files for row in json.loads(text)["rows"]]
    lines = [list(rows[0]), ["---"] * len(rows[0])]
    lines += [[str(value) for value in row.values()] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _printed(command: str) -> str:
    asked = [sys.executable, *shlex.split(command)]
    done = subprocess.run(asked, cwd=HERE.parent, text=True, check=True, stdout=subprocess.PIPE)
    return done.stdout


def _output(command: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main([*shlex.split(command), "--records", str(HERE.parent / "records")])
    if status:
        sys.exit(f"equitrans {command} ended with status {status}")
    return printed.getvalue().strip() + "\n"


if __name__ == "__main__":
    for path in (HERE.parent / "README.md", *sorted(HERE.glob("*.md"))):
        page = path.read_text(encoding="utf-8")
        if (new := updated(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(path.name)
