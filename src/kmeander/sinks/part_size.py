"""When a part of a folder of Steps is full: by size, or by day of event time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kmeander.exceptions import ArgumentError, argument, shown

_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE = re.compile(r"(\d+) ?(kB|MB|GB)")


@dataclass(frozen=True)
class PartSize:
    """When a part is full.

    Parameters
    ----------
    n_bytes : int or None
        A part with so many is; None where each has one day of event time.
    """

    n_bytes: int | None = 64 * 10**6

    @classmethod
    def of(cls, text: str) -> PartSize:
        """Return what a size such as ``64MB``, or ``day``, means.

        Examples
        --------
        >>> PartSize.of("500kB").n_bytes, PartSize.of("day").n_bytes
        (500000, None)
        """
        if text == "day":
            return cls(None)
        found = _SIZE.fullmatch(text) if isinstance(text, str) else None
        if found is None or not int(found[1]):
            raise ArgumentError(
                f"{argument('steps_part')} must be day, or a size such as 64MB (kB, MB, GB), got "
                f"{shown(text)}."
            )
        return cls(int(found[1]) * _UNITS[found[2]])

    def is_full(self, n_bytes: int, head: dict[str, Any], line: dict[str, Any]) -> bool:
        """Whether a part with so many bytes and this first line has no place for another line."""
        if self.n_bytes is not None:
            return n_bytes >= self.n_bytes
        days = [_day(step) for step in (head, line)]
        return None not in days and days[0] != days[1]


def _day(line: dict[str, Any]) -> str | None:
    """Return the day on which a batch began, in UTC."""
    time = line.get("first_time")
    return None if time is None else str(time).partition("T")[0]
