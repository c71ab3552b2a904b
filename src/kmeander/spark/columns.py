"""Feature columns of a frame as one array column, and Arrow's blocks of it as points."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls them
from pyspark.sql import types as T  # noqa: N812

from kmeander.arrays import Points
from kmeander.exceptions import InputError, InputTypeError
from kmeander.preparation import Column as TableColumn
from kmeander.preparation import Rows
from kmeander.wire.arrow import to_numpy

_NUMBERS = (T.NumericType, T.BooleanType)


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
            # The name of this was another before Spark 4.
            named = getattr(error, "getCondition", getattr(error, "getErrorClass", None))
            if named is None or named() is None:
                raise
            raise InputError(
                f"features {list(columns)} are not all columns of the frame, which has "
                f"{frame.columns}."
            ) from error
        if len(columns) == 1 and _is_vector(types[0]):
            return cls(columns, "vector", all_float32=False)
        if len(columns) == 1 and isinstance(types[0], T.ArrayType):
            element = types[0].elementType
            need_number(columns[0], element, "array of ")
            return cls(columns, "array", isinstance(element, T.FloatType))
        for name, kind in zip(columns, types, strict=True):
            need_number(name, kind)
        return cls(columns, "numbers", all(isinstance(kind, T.FloatType) for kind in types))

    @property
    def names(self) -> list[str] | None:
        """Names of the features, where each has a column."""
        return list(self.columns) if self.kind == "numbers" else None

    def as_columns(self) -> list[Column]:
        """Return the features of a row as columns of numbers, or as one of arrays."""
        number = "float" if self.all_float32 else "double"
        if self.kind == "numbers":
            return [F.col(name).cast(number) for name in self.columns]
        if self.kind == "array":
            return [F.col(self.columns[0]).cast(f"array<{number}>")]
        from pyspark.ml.functions import vector_to_array

        return [vector_to_array(F.col(self.columns[0]))]

    def array(self) -> Column:
        """Return the features of a row as one array of numbers."""
        columns = self.as_columns()
        return F.array(*columns) if self.kind == "numbers" else columns[0]

    def rows(self, points: Points) -> Rows:
        """Return points as rows to be prepared; an array or Vector keeps one unit."""
        if self.kind == "numbers":
            return Rows.of_numbers(points, self.columns)
        return Rows((TableColumn(self.columns[0], "vector", points.shape[1]),), points)


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


def need_number(name: str, kind: T.DataType, before: str = "") -> None:
    """Refuse a column of another type."""
    if isinstance(kind, _NUMBERS):
        return
    raise InputTypeError(
        f"column {name!r} is {before}{kind.simpleString()}, which is not a number. Cast or encode "
        "it first, or leave it out; several columns of numbers, or one array or Vector, are read."
    )
