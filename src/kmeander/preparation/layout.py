"""Where each column stands in rows, and where in points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.preparation.plan import ColumnPlan
from kmeander.preparation.rows import Column


class ColumnLayout(NamedTuple):
    """Where numbers and categories stand in rows, and where in points."""

    take: NDArray[np.intp] | None  # the numbers among a row's values; None where all are
    put: NDArray[np.intp]
    booleans: NDArray[np.bool_]  # which of the numbers are 0 or 1
    categories: list[tuple[str, int, int]]  # name, place in a row, first place in a point
    levels: dict[str, dict[str, int]]

    @classmethod
    def of(cls, columns: Sequence[Column], plans: Sequence[ColumnPlan]) -> ColumnLayout:
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
