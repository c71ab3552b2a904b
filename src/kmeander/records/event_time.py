"""When the rows of a batch happened: as text that sorts and parses, and for people."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import numpy as np

from kmeander.exceptions import InputError, shown


def as_text(microseconds: int) -> str:
    """Return microseconds since 1970 as ISO 8601 in UTC.

    Examples
    --------
    >>> as_text(0), as_text(1_500_000), as_text(-1)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z', '1969-12-31T23:59:59.999999Z')
    """
    unit: Literal["us", "s"] = "us" if microseconds % 1_000_000 else "s"
    # Of any year, which datetime does not know: clocks may begin elsewhere than in 1970.
    return f"{np.datetime_as_string(np.datetime64(microseconds, 'us'), unit)}Z"


def microseconds_of(text: str) -> int:
    """Return what `as_text` wrote as microseconds since 1970.

    Examples
    --------
    >>> microseconds_of("1970-01-01T00:00:01.500000Z")
    1500000
    """
    return int(np.datetime64(text.removesuffix("Z"), "us").astype(np.int64))


def checked_text(text: object) -> str:
    """Return text that `as_text` may have written; anything else is refused.

    Examples
    --------
    >>> checked_text("2026-06-03T00:00:00Z")
    '2026-06-03T00:00:00Z'
    """
    if isinstance(text, str) and not text.startswith("NaT"):
        with suppress(ValueError, OverflowError):
            if as_text(microseconds_of(text)) == text:
                return text
    raise InputError(f"{shown(text)} is no time such as 2026-06-03T00:00:00Z.")


def in_words(first: str | None, last: str | None) -> str:
    """Return the time from `first` to `last` for people, or nothing where there is none.

    Examples
    --------
    >>> in_words("2026-06-03T00:00:00Z", "2026-06-03T23:50:00Z")
    '2026-06-03 00:00 to 23:50 UTC'
    >>> in_words("2026-06-03T00:00:00Z", "2026-06-04T00:00:07Z")
    '2026-06-03 00:00:00 to 2026-06-04 00:00:07 UTC'
    >>> in_words("2026-06-03T00:00:00Z", "2026-06-03T00:00:00Z"), in_words(None, None)
    ('2026-06-03 00:00 UTC', '')
    """
    if first is None or last is None:
        return ""
    both = [text.removesuffix("Z") for text in (first, last)]
    if all(text.endswith(":00") for text in both):
        both = [text[:-3] for text in both]
    (day, begin), (last_day, end) = (text.split("T") for text in both)
    if first == last:
        return f"{day} {begin} UTC"
    return f"{day} {begin} to {end if day == last_day else f'{last_day} {end}'} UTC"
