"""Rows of a frame as points with weights and times; those that cannot be learned are set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls them
from pyspark.sql import types as T  # noqa: N812

from kmeander import _kernel
from kmeander.arrays import LARGEST_VALUE, Points, Weights, flaw_of
from kmeander.exceptions import InputError, InputTypeError, argument
from kmeander.kmeans.metric import EUCLIDEAN, Metric
from kmeander.spark.columns import Features, need_number, rows_of, unequal_lengths
from kmeander.wire.arrow import to_numpy

Times = NDArray[np.int64]
REJECTED, REJECTED_NAMES = "reason string, text string", ["reason", "text"]
_SHOWN = 8  # values of a bad row that a message shows


@dataclass(frozen=True, eq=False)
class LearnableRows:
    """The rows of a block that can be learned, and how many cannot."""

    points: Points
    weights: Weights | None
    times: Times | None
    n_bad: int = 0
    example: str | None = None  # why one of those cannot


class _Examined(NamedTuple):
    """All rows of a block, and which of them cannot be learned."""

    table: Points
    weights: Weights | None
    times: Times | None
    is_bad: NDArray[np.bool_]
    broken: dict[int, str]  # rows that are none, in words


@dataclass(frozen=True)
class RowReader:
    """What is read of each row, and what makes one that cannot be learned.

    Parameters
    ----------
    features : Features
    weight, time : str, optional
        Columns that say how many points a row stands for, and when it happened.
    fills_gaps : bool
        Whether the model fills missing values.
    metric : Metric
    width : int, optional
        Numbers of a row, where the model knows that.
    """

    features: Features
    weight: str | None = None
    time: str | None = None
    fills_gaps: bool = False
    metric: Metric = EUCLIDEAN
    width: int | None = None

    def check(self, frame: DataFrame) -> None:
        """Refuse columns that hold no weights, or no times."""
        kinds = {field.name: field.dataType for field in frame.schema}
        for name, column in (("weight_column", self.weight), ("time_column", self.time)):
            if column is not None and column not in kinds:
                raise InputError(
                    f"{argument(name)} is {column!r}, which the frame does not have: its columns "
                    f"are {frame.columns}."
                )
        if self.weight is not None:
            need_number(self.weight, kinds[self.weight])
        if self.time is not None and not isinstance(
            kinds[self.time], T.TimestampType | T.TimestampNTZType | T.DateType
        ):
            raise InputTypeError(
                f"column {self.time!r} is {kinds[self.time].simpleString()}, which is no time. "
                "Cast it to timestamp, as with to_timestamp or timestamp_millis."
            )

    def selected(self, frame: DataFrame, text: str | None = None) -> DataFrame:
        """Return the columns that `read` takes, and one more as ``text``."""
        columns = [self.features.array().alias("features")]
        if self.weight is not None:
            columns.append(F.col(self.weight).cast("double").alias("weight"))
        if self.time is not None:
            columns.append(F.expr(f"unix_micros(cast(`{self.time}` as timestamp))").alias("time"))
        if text is not None:
            columns.append(F.col(text).alias("text"))
        return frame.select(*columns)

    def read(self, block: pa.RecordBatch) -> LearnableRows:
        """Return the rows of a block that can be learned."""
        found = self._examined(block)
        if not found.is_bad.any():
            return LearnableRows(found.table, found.weights, found.times)
        good: Any = ~found.is_bad
        return LearnableRows(
            np.ascontiguousarray(found.table[good]),
            None if found.weights is None else found.weights[good],
            None if found.times is None else found.times[good],
            int(found.is_bad.sum()),
            self._reason(block, found, int(np.argmax(found.is_bad))),
        )

    def rejected(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """Return why each row that cannot be learned cannot, and its column ``text``."""
        found = self._examined(block)
        rows = np.flatnonzero(found.is_bad).tolist()
        reasons = [self._reason(block, found, row) for row in rows]
        texts = block.column("text").take(pa.array(rows, pa.int64())).cast(pa.string())
        return pa.RecordBatch.from_arrays([pa.array(reasons, pa.string()), texts], REJECTED_NAMES)

    def _examined(self, block: pa.RecordBatch) -> _Examined:
        table, broken = self._table(block.column("features"))
        names = block.schema.names
        weights = times = None
        is_bad = np.zeros(len(table), dtype=bool)
        is_bad[list(broken)] = True
        if table.size and _kernel.first_beyond(table, LARGEST_VALUE) >= 0:
            beyond: Any = np.abs(table) > LARGEST_VALUE
            missing: Any = np.isnan(table)
            is_bad |= beyond.any(axis=1)
            if not self.fills_gaps:
                is_bad |= missing.any(axis=1)
        is_bad |= self.metric.has_no_place(table)
        if "weight" in names:
            weights = to_numpy(block.column("weight").fill_null(np.nan))
            is_bad |= ~(np.isfinite(weights) & (weights >= 0))
        if "time" in names:
            is_bad |= to_numpy(block.column("time").is_null())
            times = to_numpy(block.column("time").fill_null(0))
        return _Examined(table, weights, times, is_bad, broken)

    def _table(self, block: pa.ListArray) -> tuple[Points, dict[int, str]]:
        """Return rows as a table, NaN where nothing is, and what is wrong with rows as such."""
        table = rows_of(block)
        if table is not None:
            return table, {}
        dtype = np.float32 if pa.types.is_float32(block.type.value_type) else np.float64
        if self.features.kind == "numbers":  # nulls, and nothing else
            values = to_numpy(block.flatten().fill_null(np.nan))
            return values.reshape(len(block), -1), {}
        rows, name = block.to_pylist(), self.features.columns[0]
        bad = {
            place: f"column {name!r} holds null. Every row must be there"
            for place, row in enumerate(rows)
            if row is None
        }
        lengths = {len(row) for row in rows if row is not None}
        width = self.width or max(lengths, default=0)
        if self.width is None and len(lengths) > 1:
            raise unequal_lengths(f"column {name!r}", lengths)
        filled = np.full((len(rows), width), np.nan, dtype)
        for place, row in enumerate(rows):
            if row is not None and len(row) == width:
                filled[place] = row
            elif row is not None:
                bad[place] = (
                    f"column {name!r} holds an array of {len(row)} values, {_in_the_row(row)}. "
                    f"The model has learned {width}"
                )
        return filled, bad

    def _reason(self, block: pa.RecordBatch, found: _Examined, row: int) -> str:
        """Return what is wrong with a row."""
        if row in found.broken:
            return found.broken[row]
        known = {name: block.column(name)[row].as_py() for name in block.schema.names}
        values = known["features"]
        for place, value in enumerate(values):
            is_gap = value is None or np.isnan(value)
            if is_gap and self.fills_gaps:
                continue
            if is_gap or not abs(value) <= LARGEST_VALUE:
                where = self._place(place)
                written = "null" if value is None else flaw_of(value).shown  # SQL's word for it
                return f"{where} {written}, {_in_the_row(values)}. {flaw_of(value).rule}"
        if "weight" in known and not (known["weight"] is not None and known["weight"] >= 0):
            shown = "null" if known["weight"] is None else f"{known['weight']:g}"
            return f"column {self.weight!r} holds {shown}. A weight is a number of at least 0"
        if "weight" in known and not np.isfinite(known["weight"]):
            return f"column {self.weight!r} holds infinity. A weight is a finite number"
        if "time" in known and known["time"] is None:
            return f"column {self.time!r} holds null. Every row must say when it happened"
        return (
            f"the row holds only zeros, {_in_the_row(values)}, and {argument('metric', 'cosine')} "
            "compares directions, which zeros do not have"
        )

    def _place(self, column: int) -> str:
        if self.features.kind == "numbers":
            return f"column {self.features.columns[column]!r} holds"
        return f"column {self.features.columns[0]!r} holds at place {column}"


def _in_the_row(row: Sequence[float | None]) -> str:
    shown = ", ".join("null" if x is None else f"{x:g}" for x in row[:_SHOWN])
    return f"in the row [{shown}{', ...' if len(row) > _SHOWN else ''}]"
