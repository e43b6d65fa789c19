"""HTML for notebooks: short tables without scripts, in which every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

MOST = 20
"""Largest number of rows of a table in a notebook; one more row counts the others."""

LONGEST = 300
"""Largest number of characters of a cell."""


def cell(value: object) -> str:
    """A value as escaped text, shortened if it is long.

    >>> cell("<b> & more")
    '&lt;b&gt; &amp; more'
    """
    text = str(value)
    return escape(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of escaped cells, with the first rows and the number of the others.

    >>> table(["word"], [["<b>"]])
    '<table><thead><tr><th>word</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    listed = list(rows)
    shown = ["".join(f"<td>{cell(value)}</td>" for value in row) for row in listed[:MOST]]
    if len(listed) > MOST:
        shown.append(f'<td colspan="{len(heads)}">and {len(listed) - MOST} more</td>')
    head = "".join(f"<th>{cell(name)}</th>" for name in heads)
    body = "".join(f"<tr>{row}</tr>" for row in shown)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def part(title: object, *contents: str) -> str:
    """A title, which is escaped, above contents, which are HTML."""
    return f"<div><strong>{cell(title)}</strong>{''.join(contents)}</div>"


def line(text: object) -> str:
    """A paragraph of escaped text."""
    return f"<p>{cell(text)}</p>"
