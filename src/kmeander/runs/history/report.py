"""A report that a notebook shows, and that can be written to a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape

from kmeander.storage import filesystem_of


@dataclass(frozen=True)
class Report:
    """The page of ``kmeander report``.

    Parameters
    ----------
    html : str
        The page, whole: it opens without a network.

    Examples
    --------
    >>> Report("<h1>hello</h1>")
    Report of 14 characters
    """

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file."""
        name = os.fspath(path)
        with filesystem_of(name).written(name) as file:
            file.write(self.html.encode())

    def __repr__(self) -> str:
        return f"Report of {len(self.html):,} characters"

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it: in a frame of its own."""
        return (
            '<iframe title="kmeander report" style="width:100%;height:42em;border:0" '
            f'sandbox="allow-scripts allow-downloads" srcdoc="{escape(self.html)}"></iframe>'
        )
