"""Rows of a table as they came: an array of numbers, and the levels that some stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import LARGEST_VALUE, Points, checked_points

# What a column holds. A category is the number of a level, a vector several numbers; where nothing
# at all is there, nobody knows.
KINDS = ("number", "boolean", "category", "vector", "time", "nothing")
Levels = tuple[str, ...]
_CONTENTS = {
    "number": "numbers", "boolean": "true and false", "category": "text", "time": "times",
    "nothing": "nothing",
}  # fmt: skip


class Column(NamedTuple):
    """One column of a table: its name, what it holds, and how many numbers that is."""

    name: str
    kind: str = "number"
    width: int = 1

    @property
    def names(self) -> list[str]:
        """Names of the numbers."""
        if self.kind != "vector":
            return [self.name]
        return [f"{self.name}[{place}]" for place in range(self.width)]

    @property
    def contents(self) -> str:
        """What it holds, in words.

        Examples
        --------
        >>> Column("v", "vector", 3).contents, Column("t", "time").contents
        ('vectors of 3 numbers', 'times')
        """
        if self.kind == "vector":
            return f"vectors of {self.width} numbers"
        return _CONTENTS[self.kind]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table before they are prepared.

    Parameters
    ----------
    columns : tuple of Column
    values : ndarray of shape (n_rows, total width of the columns)
        NaN where nothing is there; a category as the number of its level, a time as microseconds
        since 1970.
    levels : dict of str to tuple of str
        The levels of each category, by column.
    """

    columns: tuple[Column, ...]
    values: Points
    levels: dict[str, Levels] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of_numbers(cls, values: Points, names: Sequence[str] | None = None) -> Rows:
        """Return rows that are numbers and nothing else.

        Examples
        --------
        >>> Rows.of_numbers(np.zeros((2, 3))).names
        ['x0', 'x1', 'x2']
        """
        names = names or [f"x{place}" for place in range(values.shape[1])]
        return cls(tuple([Column(name) for name in names]), values)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def places(self) -> dict[str, slice]:
        """Where in `values` each column stands."""
        found, begin = {}, 0
        for column in self.columns:
            found[column.name] = slice(begin, begin + column.width)
            begin += column.width
        return found

    @cached_property
    def is_whole(self) -> bool:
        """Whether every value is there, and none too large to be squared and added.

        One that is too large, or infinite, is refused.
        """
        values: Any = np.ascontiguousarray(self.values)
        if not values.size or _kernel.first_beyond(values, LARGEST_VALUE) < 0:
            return True
        missing = np.isnan(values)
        if (np.abs(values) > np.float64(LARGEST_VALUE)).any():  # no float32 can hold that
            names = [name for column in self.columns for name in column.names]
            checked_points(np.where(missing, 0.0, values), columns=names)
        return not missing.any()

    def taken(self, which: slice | NDArray[Any]) -> Rows:
        """Return some of the rows."""
        return Rows(self.columns, self.values[which], self.levels)
