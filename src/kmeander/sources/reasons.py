"""Why a row cannot be clustered, and which column is to blame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kmeander.arrays import flaw_of
from kmeander.exceptions import shown


@dataclass(frozen=True)
class Reason:
    """Why a row is rejected.

    Parameters
    ----------
    text : str
        Half a sentence for people.
    column : str, optional
        The column that is to blame, where it is one.
    is_text : bool
        Whether there is text where a number should be: then the whole column may be text.
    text_columns : tuple of str
        All columns that hold text where numbers should be, where this one does.
    misfits_names : bool
        Whether a line has more or fewer fields than `header` names: then all lines may have.
    is_tolerated : bool
        Whether the rules of preparation leave such rows out.
    advice : str
        What to do, where leaving out the row or the column would not help.
    """

    text: str
    column: str | None = None
    is_text: bool = False
    text_columns: tuple[str, ...] = ()
    misfits_names: bool = False
    is_tolerated: bool = False
    advice: str = ""

    def __str__(self) -> str:
        return self.text


Reasons = dict[int, Reason]  # by position in a table


def reason_for(value: Any, column: str) -> Reason:
    """Return why a value of a column is not a number that can be clustered.

    Examples
    --------
    >>> str(reason_for("n/a", "temp")), str(reason_for(None, "temp"))
    ("'n/a' in column 'temp' is not a number", "nothing in column 'temp'")
    """
    flaw = flaw_of(value)
    return Reason(f"{flaw.shown} in column {column!r} {flaw.fault}".rstrip(), column, flaw.is_text)


def no_time(value: Any, column: str) -> Reason:
    """Return why a value is not the time at which a row happened.

    The column is not named as one to be left out: times are asked for.
    """
    if value is None or value == "":
        return Reason(f"nothing in column {column!r}")
    written = f"{value:g}" if isinstance(value, float) else shown(value)
    return Reason(f"{written} in column {column!r} is not a time")
