"""HTML for notebooks: short tables without scripts, in which every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeGuard

MOST = 20
"""Largest number of rows of a table in a notebook; one more row counts the others."""

LONGEST = 300
"""Largest number of characters of a cell."""


def cell(value: object) -> str:
    """A value as escaped text, shortened if it is long; a number has four digits, or all of an
    integer.

    >>> cell("<b> & more"), cell(16990), cell(1.31410387), cell(None)
    ('&lt;b&gt; &amp; more', '16,990', '1.314', '–')
    """
    if value is None:
        text = "–"
    elif _is_number(value):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    else:
        text = str(value)
    return escape(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of escaped cells, with the first rows and the number of the others. Columns of
    numbers stand right and others left, whatever the style of the notebook.

    >>> table(["", ""], [["<b>", 2]]).count("text-align:left")
    1
    """
    listed = list(rows)
    sides = [
        "right" if all(value is None or _is_number(value) for value in column) else "left"
        for column in zip(*listed, strict=True)
    ] or ["left"] * len(heads)
    shown = [_row("td", row, sides) for row in listed[:MOST]]
    if len(listed) > MOST:
        text = f"and {len(listed) - MOST:,} more"
        shown.append(f'<td colspan="{len(heads)}" style="text-align:left">{text}</td>')
    body = "".join(f"<tr>{row}</tr>" for row in shown)
    above = f"<thead><tr>{_row('th', heads, sides)}</tr></thead>" if any(heads) else ""
    return f"<table>{above}<tbody>{body}</tbody></table>"


def _row(tag: str, values: Sequence[object], sides: Sequence[str]) -> str:
    return "".join(
        f'<{tag} style="text-align:{side}">{cell(value)}</{tag}>'
        for value, side in zip(values, sides, strict=True)
    )


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def part(title: object, *contents: str) -> str:
    """A title, which is escaped, above contents, which are HTML."""
    return f"<div><strong>{cell(title)}</strong>{''.join(contents)}</div>"


def line(text: object) -> str:
    """A paragraph of escaped text."""
    return f"<p>{cell(text)}</p>"
