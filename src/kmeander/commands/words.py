"""What several commands write to stderr: lines, counts, short numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from kmeander.exceptions import printable

Written = Callable[[str, str], str]


def _plain(line: str, level: str) -> str:  # noqa: ARG001  # one signature for all
    return line


def _as_text(line: str, level: str) -> str:
    return f"{_now()} {level.upper()} {line}"


def _as_json(line: str, level: str) -> str:
    return json.dumps({"time": _now(), "level": level, "message": line}, ensure_ascii=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# How lines can be written for a log: with the time and a level.
LOGS: dict[str, Written] = {"text": _as_text, "json": _as_json}
_written: Written = _plain


def log_as(name: str | None) -> None:
    """Write all lines of this process for a log from now on, or for people where there is none."""
    global _written
    _written = _plain if name is None else LOGS[name]


def say(line: str, level: str = "info") -> None:
    """Write a line to stderr; names of columns and files may hold anything.

    Where nobody can be told, since a terminal is gone or a disk of logs full, a run goes on.

    Parameters
    ----------
    line : str
    level : {"info", "warning", "error"}
        Only a log says it.
    """
    with suppress(OSError):
        print(_written(printable(line), level), file=sys.stderr, flush=True)


def count(number: int, what: str) -> str:
    """Return a number and what it counts.

    Examples
    --------
    >>> count(1, "batch"), count(1200, "row")
    ('1 batch', '1,200 rows')
    """
    plural = "es" if what.endswith("ch") else "s"
    return f"{number:,} {what}{'' if number == 1 else plural}"


def counted_events(counts: dict[str, int], n_unconfirmed: int) -> str:
    """Return how many events of each kind there were, and how many more are unconfirmed.

    Examples
    --------
    >>> counted_events({"drift": 3, "moved": 1200}, 2), counted_events({}, 0)
    ('3 drift, 1,200 moved; 2 unconfirmed', 'none')
    """
    counted = ", ".join(f"{number:,} {kind}" for kind, number in counts.items()) or "none"
    return f"{counted}; {n_unconfirmed:,} unconfirmed" if n_unconfirmed else counted


ALARM = 3  # exit code where an event was found that was asked for


def end_on_alarm(kinds: list[str], counts: dict[str, int], *, quiet: bool) -> None:
    """End with exit code 3 if there was an event of these kinds, and say so."""
    found = [f"{counts[kind]:,} {kind}" for kind in dict.fromkeys(kinds) if counts.get(kind)]
    if not found:
        return
    if not quiet:
        say(f"Failing, as asked: {', '.join(found)}.", "warning")
    raise SystemExit(ALARM)


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
