"""What several commands write to stderr: lines, counts, short numbers."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """Write a line to stderr, for people."""
    print(line, file=sys.stderr, flush=True)


def count(number: int, what: str) -> str:
    """Return a number and what it counts.

    Examples
    --------
    >>> count(1, "batch"), count(1200, "row")
    ('1 batch', '1,200 rows')
    """
    plural = "es" if what.endswith("ch") else "s"
    return f"{number:,} {what}{'' if number == 1 else plural}"


def compact(number: float) -> str:
    """Return a number in at most four digits.

    Examples
    --------
    >>> compact(312_456), compact(15.2), compact(2_100_000)
    ('312k', '15', '2.1M')
    """
    if number >= 999_500:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 9_999.5 else f"{number:.0f}"
