"""What a notebook shows of a record: a small card, in whatever colours the notebook has."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

# Rows of a table; what is beyond them is summed up in words.
MOST_ROWS = 8

# Colours are those around it, thinned: so it fits a light notebook and a dark one alike.
_FRAME = (
    "display:inline-block;max-width:46em;padding:.5em .8em;border:1px solid "
    "color-mix(in srgb,currentColor 35%,transparent);border-radius:.4em;"
    "overflow-wrap:anywhere;line-height:1.35"
)
_CELL = "text-align:left;padding:.1em .9em .1em 0;vertical-align:top"
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def plural(number: int, what: str) -> str:
    """Return a count in words.

    Examples
    --------
    >>> plural(1, "row"), plural(2400, "row"), plural(2, "batch")
    ('1 row', '2,400 rows', '2 batches')
    """
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {what}{'es' if what.endswith(('ch', 's')) else 's'}"


def card(
    title: str,
    lines: Sequence[str] = (),
    *,
    table: Table | None = None,
    after: Sequence[str] = (),
) -> str:
    """Return a card as HTML; nothing in it is taken for HTML.

    Parameters
    ----------
    title : str
    lines : sequence of str
        Sentences under the title.
    table : tuple of headings and rows, optional
    after : sequence of str
        Sentences under the table.

    Examples
    --------
    >>> "a &lt;b&gt;" in card("a <b>")
    True
    """
    return (
        f'<div style="{_FRAME}"><strong>{escape(title)}</strong>'
        f"{_sentences(lines)}{'' if table is None else _table(*table)}{_sentences(after)}</div>"
    )


def _sentences(lines: Sequence[str]) -> str:
    return "".join(f"<div>{escape(line)}</div>" for line in lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in heads)
    body = "".join(
        "<tr style='background:none'>"
        + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return (
        '<table style="border:none;border-collapse:collapse;margin:.3em 0;font-size:inherit">'
        f"<thead><tr style='background:none'>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
