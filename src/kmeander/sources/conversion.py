"""Convert tables to Blocks (points, keys, times); rows that do not fit are rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import LARGEST_VALUE, Points
from kmeander.sources.block import BadRow, Block, Position, RowLocation
from kmeander.sources.reasons import Reason, no_time, reason_for
from kmeander.sources.selection import Selection
from kmeander.wire.arrow import to_arrow, to_batch, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_IN_CACHE = 1024  # of a table that is turned from columns to rows
Reasons = dict[int, Reason]  # by position in a table


@dataclass(frozen=True, eq=False)
class RawBlock:
    """Rows as a source read them; see `Block` for what is the same."""

    table: pa.Table | pa.RecordBatch
    rows: NDArray[np.int64]
    bad: tuple[BadRow, ...]
    end: int
    position_at: Callable[[int], Position]
    place: Callable[[int], RowLocation]
    text: Callable[[int], str]
    origin: dict[str, NDArray[Any]] | None = None  # where its number does not identify a row


def to_block(raw: RawBlock, selection: Selection) -> Block:
    """Return the rows of `raw` that can be clustered, and say why the others cannot."""
    points, reasons = to_points(raw.table, selection.features)
    times: NDArray[np.int64] | None = None
    if selection.time_column is not None:
        times, no_times = to_times(raw.table.column(selection.time_column), selection.time_column)
        reasons = {**no_times, **reasons}
    origin = to_batch(raw.origin or {"row": raw.rows})
    keys = origin
    if selection.id_column is not None:
        keys = _one_batch(raw.table.select([selection.id_column]))
    rows = raw.rows
    bad = raw.bad
    if reasons:
        good = np.ones(len(rows), dtype=bool)
        good[list(reasons)] = False
        found = [_bad_row(raw, int(rows[i]), reason) for i, reason in reasons.items()]
        bad = tuple(sorted((*bad, *found), key=lambda row: row.row))
        kept = to_arrow(np.flatnonzero(good))
        points, rows, keys, origin = points[good], rows[good], keys.take(kept), origin.take(kept)
        times = None if times is None else times[good]
    return Block(points, rows, keys, origin, times, bad, raw.end, raw.position_at)


def _bad_row(raw: RawBlock, row: int, reason: Reason) -> BadRow:
    return BadRow(row, raw.place(row), reason, raw.text(row))


def _one_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        return table
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, names=table.column_names)


def to_points(table: pa.Table | pa.RecordBatch, names: tuple[str, ...]) -> tuple[Points, Reasons]:
    """Return the columns `names` as one array, and the reasons of the rows that do not fit.

    float32 stays float32 where all are, everything else becomes float64.

    Examples
    --------
    >>> import pyarrow as pa
    >>> points, reasons = to_points(pa.table({"a": [1, None], "b": [2.5, 3.0]}), ("a", "b"))
    >>> points[0].tolist(), str(reasons[1])
    ([1.0, 2.5], "nothing in column 'a'")
    """
    reasons: Reasons = {}
    columns = [_numbers(table.column(name), name, reasons) for name in names]
    narrow = all(column.dtype == np.float32 for column in columns)
    shape = (table.num_rows, len(names))
    points: Points = np.empty(shape, np.float32) if narrow else np.empty(shape, np.float64)
    for begin in range(0, len(points), ROWS_IN_CACHE):
        part = points[begin : begin + ROWS_IN_CACHE]
        for index, column in enumerate(columns):
            part[:, index] = column[begin : begin + ROWS_IN_CACHE]
    if len(points) and _kernel.first_beyond(points, LARGEST_VALUE) >= 0:
        outside = ~(np.abs(points) <= LARGEST_VALUE)
        for row in np.flatnonzero(outside.any(axis=1)).tolist():
            if row not in reasons:
                index = int(np.argmax(outside[row]))
                reasons[row] = reason_for(float(points[row, index]), names[index])
    return points, dict(sorted(reasons.items()))


def _numbers(column: Any, name: str, reasons: Reasons) -> NDArray[Any]:
    """Return a column as numbers, 0 where there is none; the reasons say where."""
    import pyarrow as pa

    column = _one_chunk(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _numbers(column.cast(kind.value_type), name, reasons)
    if pa.types.is_decimal(kind) or kind == pa.float16():
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        for position, value in enumerate(column.to_pylist()):
            reasons.setdefault(position, reason_for(value, name))
        return np.zeros(len(column))
    if column.null_count:
        for position in np.flatnonzero(to_numpy(column.is_null())).tolist():
            reasons.setdefault(position, reason_for(None, name))
        column = column.fill_null(False if pa.types.is_boolean(kind) else 0)
    return to_numpy(column)


def _one_chunk(column: Any) -> Any:
    if _is_array(column):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _is_array(column: Any) -> bool:
    import pyarrow as pa

    return isinstance(column, pa.Array)


def to_times(column: Any, name: str) -> tuple[NDArray[np.int64], Reasons]:
    """Return a column of times as microseconds since 1970.

    Timestamps without a zone are taken for UTC, numbers for seconds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> times, reasons = to_times(pa.array([1.5, None]), "at")
    >>> times.tolist(), str(reasons[1])
    ([1500000, 0], "nothing in column 'at'")
    >>> to_times(pa.array(["1970-01-01T00:00:01Z", "1970-01-01 00:00:02"]), "at")[0].tolist()
    [1000000, 2000000]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    reasons: Reasons = {}
    column = _one_chunk(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        micros = np.zeros(len(column), dtype=np.int64)
        for position, text in enumerate(column.to_pylist()):
            found = None if text is None else _moment(text)
            if found is not None:
                micros[position] = found
            else:
                reasons[position] = no_time(text, name)
        return micros, reasons
    if column.null_count:
        empty = to_numpy(column.is_null())
        reasons = dict.fromkeys(np.flatnonzero(empty).tolist(), no_time(None, name))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        stamps = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return to_numpy(pc.fill_null(stamps.cast(pa.int64()), 0)), reasons
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        seconds = to_numpy(pc.fill_null(column.cast(pa.float64(), safe=False), 0.0))
        fits = np.abs(seconds) < 2.0**63 / 1e6  # NaN does not
        for position in np.flatnonzero(~fits).tolist():
            reasons[position] = no_time(float(seconds[position]), name)
        return np.round(np.where(fits, seconds, 0.0) * 1e6).astype(np.int64), reasons
    return np.zeros(len(column), dtype=np.int64), {
        position: no_time(value, name) for position, value in enumerate(column.to_pylist())
    }


def _moment(text: str) -> int | None:
    """Return the microseconds of an ISO 8601 time or of a number of seconds."""
    from datetime import UTC, datetime, timedelta

    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return round(seconds * 1e6) if abs(seconds) < 2.0**63 / 1e6 else None
