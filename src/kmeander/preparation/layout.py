"""Where each column stands in rows and in points, and whether rows still have those columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError
from kmeander.preparation.plan import ColumnPlan
from kmeander.preparation.rows import Column


class Layout(NamedTuple):
    """Where numbers and categories stand in rows, and where in points."""

    take: NDArray[np.intp] | None  # the numbers among a row's values; None where all are
    put: NDArray[np.intp]
    booleans: NDArray[np.bool_]  # which of the numbers are 0 or 1
    categories: list[tuple[str, int, int]]  # name, place in a row, first place in a point
    levels: dict[str, dict[str, int]]

    @classmethod
    def of(cls, columns: Sequence[Column], plans: Sequence[ColumnPlan]) -> Layout:
        """Return the layout of these columns, planned so."""
        take: list[int] = []
        put: list[int] = []
        booleans: list[bool] = []
        categories, levels, source, target = [], {}, 0, 0
        for column, plan in zip(columns, plans, strict=True):
            if plan.action == "one-hot":
                categories.append((column.name, source, target))
                levels[column.name] = {level: place for place, level in enumerate(plan.levels)}
            elif plan.action != "exclude":
                take += range(source, source + column.width)
                put += range(target, target + column.width)
                booleans += [column.kind == "boolean"] * column.width
            source += column.width
            target += len(plan.outputs)
        whole = len(take) == source
        return cls(
            None if whole else np.array(take, dtype=np.intp),
            np.array(put, dtype=np.intp),
            np.array(booleans, dtype=bool),
            categories,
            levels,
        )

    def numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers of rows."""
        return values if self.take is None else values[:, self.take]


def check_columns(columns: Sequence[Column], known_columns: Sequence[Column]) -> None:
    """Refuse a table whose columns are not those that the preparation was learned from."""
    if tuple(columns) == tuple(known_columns):
        return
    names, known = [column.name for column in columns], [column.name for column in known_columns]
    for name in known:
        if name not in names:
            raise InputError(
                f"column {name!r} is gone, which the preparation was learned with. The rows "
                f"have {', '.join(map(repr, names))}. Add it, with nothing in it where it is "
                "not known, or begin anew."
            )
    for name in names:
        if name not in known:
            raise InputError(
                f"column {name!r} is new: the preparation was learned with "
                f"{', '.join(map(repr, known))}. Leave it out, or begin anew."
            )
    if names != known:
        raise InputError(
            f"columns come as {', '.join(map(repr, names))}, the preparation was learned with "
            f"{', '.join(map(repr, known))}. Pass them in that order."
        )
    for now, before in zip(columns, known_columns, strict=True):
        # Where nothing at all is there a table says nothing of the kind.
        if now != before and {now.kind, before.kind} != {"number", "boolean"}:
            raise InputError(
                f"column {now.name!r} holds {_shown(now)}, the preparation was learned with "
                f"{_shown(before)}. Convert it, or begin anew."
            )


def _shown(column: Column) -> str:
    """Return what a column holds, in words.

    Examples
    --------
    >>> _shown(Column("v", "vector", 3)), _shown(Column("t", "time"))
    ('vectors of 3 numbers', 'times')
    """
    words = {"number": "numbers", "boolean": "true and false", "category": "text", "time": "times"}
    if column.kind == "vector":
        return f"vectors of {column.width} numbers"
    return words[column.kind]
