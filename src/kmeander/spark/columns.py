"""Feature columns of a frame as one array column, and Arrow's blocks of it as points."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls them
from pyspark.sql import types as T  # noqa: N812

from kmeander import _kernel
from kmeander.arrays import LARGEST_VALUE, Points, flaw_of
from kmeander.exceptions import InputError, InputTypeError
from kmeander.preparation import Column as TableColumn
from kmeander.preparation import Rows
from kmeander.wire.arrow import to_numpy

_NUMBERS = (T.NumericType, T.BooleanType)
_SHOWN = 8  # values of a bad row that a message shows


@dataclass(frozen=True)
class Features:
    """Which columns hold the points.

    Parameters
    ----------
    columns : tuple of str
        Columns of numbers, or one that holds whole rows.
    kind : {"numbers", "array", "vector"}
    all_float32 : bool
        Whether all are 32-bit floats, which they then stay.
    """

    columns: tuple[str, ...]
    kind: str
    all_float32: bool

    @classmethod
    def of(cls, frame: DataFrame, features: str | Sequence[str]) -> Features:
        """Look the columns up in the frame's schema."""
        columns = (features,) if isinstance(features, str) else tuple(features)
        if not columns or not all(isinstance(name, str) for name in columns):
            raise InputError(
                f"features must name one column or more, got {features!r}. Pass the columns of "
                "numbers, or the one that holds an array or a Vector."
            )
        try:
            types = [field.dataType for field in frame.select(*columns).schema]
        except Exception as error:
            if getattr(error, "getCondition", lambda: None)() is None:
                raise
            raise InputError(
                f"features {list(columns)} are not all columns of the frame, which has "
                f"{frame.columns}."
            ) from error
        if len(columns) == 1 and _is_vector(types[0]):
            return cls(columns, "vector", all_float32=False)
        if len(columns) == 1 and isinstance(types[0], T.ArrayType):
            element = types[0].elementType
            _need_number(columns[0], element, "array of ")
            return cls(columns, "array", isinstance(element, T.FloatType))
        for name, kind in zip(columns, types, strict=True):
            _need_number(name, kind)
        return cls(columns, "numbers", all(isinstance(kind, T.FloatType) for kind in types))

    @property
    def names(self) -> list[str] | None:
        """Names of the features, where each has a column."""
        return list(self.columns) if self.kind == "numbers" else None

    def array(self) -> Column:
        """Return the features of a row as one array of numbers."""
        number = "float" if self.all_float32 else "double"
        if self.kind == "numbers":
            return F.array(*(F.col(name).cast(number) for name in self.columns))
        if self.kind == "array":
            return F.col(self.columns[0]).cast(f"array<{number}>")
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(F.col(self.columns[0]))

    def rows(self, points: Points) -> Rows:
        """Return points as rows to be prepared; an array or Vector keeps one unit."""
        if self.kind == "numbers":
            return Rows.of_numbers(points, self.columns)
        return Rows((TableColumn(self.columns[0], "vector", points.shape[1]),), points)

    def points(self, block: pa.ListArray) -> Points:
        """Return a block as points, or say which value is none."""
        rows = rows_of(block)
        if rows is None:
            raise self._why_no_table(block)
        position = _kernel.first_beyond(rows, LARGEST_VALUE) if rows.size else -1
        if position >= 0:
            row, column = divmod(position, rows.shape[1])
            value = float(rows[row, column])
            place = self._place(column, value, rows[row].tolist())
            raise InputError(f"{place} {flaw_of(value).rule}; {_WAY_OUT}")
        return rows

    def _why_no_table(self, block: pa.ListArray) -> InputError:
        rows = block.to_pylist()
        for row in rows:
            if row is None:
                return InputError(
                    f"column {self.columns[0]!r} holds null. Every row must be there; {_WAY_OUT}"
                )
            if None in row:
                place = self._place(row.index(None), None, row)
                return InputError(f"{place} {flaw_of(None).rule}; {_WAY_OUT}")
        return self.unequal_lengths({len(row) for row in rows})

    def unequal_lengths(self, lengths: Collection[int]) -> InputError:
        """Return the error for rows of these lengths, two or more."""
        return unequal_lengths(f"column {self.columns[0]!r}", lengths)

    def _place(self, column: int, value: float | None, row: Sequence[float | None]) -> str:
        where = (
            f"column {self.columns[column]!r} holds"
            if self.kind == "numbers"
            else f"column {self.columns[0]!r} holds at place {column}"
        )
        shown = ", ".join("null" if x is None else f"{x:g}" for x in row[:_SHOWN])
        more = ", ..." if len(row) > _SHOWN else ""
        written = "null" if value is None else flaw_of(value).shown  # SQL's word for nothing
        return f"{where} {written}, in the row [{shown}{more}]."


_WAY_OUT = "drop or fill such rows before, as with frame.dropna(subset=[...])."


def unequal_lengths(where: str, lengths: Collection[int]) -> InputError:
    """Return the error for rows of these lengths, two or more, in a column.

    Examples
    --------
    >>> unequal_lengths("column 'v'", {2, 1})
    InputError("column 'v' holds arrays of 1 and of 2 values. All rows need the same number.")
    """
    return InputError(
        f"{where} holds arrays of {min(lengths)} and of {max(lengths)} values. All rows need the "
        "same number."
    )


def rows_of(block: pa.ListArray) -> Points | None:
    """Return a block's rows as one table; None where a value is missing or lengths differ."""
    if not len(block):
        return np.empty((0, 0))
    values = block.flatten()
    width, rest = divmod(len(values), len(block))
    if block.null_count or values.null_count or rest:
        return None
    offsets = to_numpy(block.offsets)
    if (np.diff(offsets) != width).any():
        return None
    return to_numpy(values).reshape(len(block), width)


def _is_vector(kind: T.DataType) -> bool:
    return isinstance(kind, T.UserDefinedType) and kind.simpleString() == "vector"


def _need_number(name: str, kind: T.DataType, before: str = "") -> None:
    if isinstance(kind, _NUMBERS):
        return
    raise InputTypeError(
        f"column {name!r} is {before}{kind.simpleString()}, which is not a number. Cast or encode "
        "it first, or leave it out; several columns of numbers, or one array or Vector, are read."
    )
