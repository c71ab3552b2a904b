"""Convert tables to Blocks (points, keys, times); rows that do not fit are rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import LARGEST_VALUE, LARGEST_WEIGHT, SMALLEST_WEIGHT, Points, Weights
from kmeander.preparation import Rows, rows_of_arrow
from kmeander.preparation.tables import kind_of
from kmeander.sources.block import BadRow, Block, Position, RowLocation
from kmeander.sources.reasons import Reason, Reasons, reason_for
from kmeander.sources.selection import Selection
from kmeander.sources.times import one_chunk, to_times
from kmeander.wire.arrow import to_arrow, to_batch, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_IN_CACHE = 1024  # of a table that is turned from columns to rows


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
    words: tuple[str, ...] = ()
    if selection.rules is None:
        points, reasons = to_points(raw.table, selection.features)
        table = Rows.of_numbers(points, selection.features)
        words = text_columns(raw.table, selection) if reasons or raw.bad else ()
    else:
        table, reasons = to_rows(raw.table, selection)
    if selection.metric.on_sphere:
        reasons = {**without_direction(table, selection), **reasons}
    times: NDArray[np.int64] | None = None
    if selection.time_column is not None:
        times, no_times = to_times(
            raw.table.column(selection.time_column), selection.time_column, selection.time_unit
        )
        reasons = {**no_times, **reasons}
    weights: Weights | None = None
    if selection.weight_column is not None:
        weights, no_weights = to_weights(
            raw.table.column(selection.weight_column), selection.weight_column
        )
        reasons = {**no_weights, **reasons}
    origin = to_batch(raw.origin or {"row": raw.rows})
    keys = origin
    if selection.id_column is not None:
        keys = _one_batch(raw.table.select([selection.id_column]))
    said = _said(raw.table, selection)
    rows = raw.rows
    bad = raw.bad
    if words or selection.weight_column is not None:
        reasons = {row: _blaming(reason, words, selection) for row, reason in reasons.items()}
        bad = tuple(replace(one, reason=_blaming(one.reason, words, selection)) for one in bad)
    if reasons:
        good = np.ones(len(rows), dtype=bool)
        good[list(reasons)] = False
        found = [_bad_row(raw, int(rows[i]), reason) for i, reason in reasons.items()]
        bad = tuple(sorted((*bad, *found), key=lambda row: row.row))
        kept = to_arrow(np.flatnonzero(good))
        table, rows, keys, origin = (
            table.taken(good),
            rows[good],
            keys.take(kept),
            origin.take(kept),
        )
        times = None if times is None else times[good]
        weights = None if weights is None else weights[good]
        said = None if said is None else said.take(kept)
    return Block(table, rows, keys, origin, times, bad, raw.end, raw.position_at, weights, said)


def _said(table: pa.Table | pa.RecordBatch, selection: Selection) -> pa.RecordBatch | None:
    """Return what names each row and what it says, where there are columns for that."""
    import pyarrow as pa

    given = {"id": selection.id_column, "text": selection.text_column}
    columns = {name: table.column(column) for name, column in given.items() if column is not None}
    if not columns:
        return None
    return pa.RecordBatch.from_arrays(list(map(one_chunk, columns.values())), names=list(columns))


def text_columns(table: pa.Table | pa.RecordBatch, selection: Selection) -> tuple[str, ...]:
    """Return the features that hold text or times, as their types or the first rows tell."""
    others = ("category", "time")
    return tuple(
        [
            name
            for name in selection.features
            if selection.kinds.get(name) in others or kind_of(table.column(name).type) in others
        ]
    )


def _blaming(reason: Reason, words: tuple[str, ...], selection: Selection) -> Reason:
    """Return a reason with the columns to leave out: those of text, and none that is asked for."""
    if reason.column is not None and reason.column == selection.weight_column:
        return replace(reason, column=None)
    return replace(reason, text_columns=words) if reason.column in words else reason


def _bad_row(raw: RawBlock, row: int, reason: Reason) -> BadRow:
    return BadRow(row, raw.place(row), reason, raw.text(row))


def _one_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        return table
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, names=table.column_names)


def to_rows(table: pa.Table | pa.RecordBatch, selection: Selection) -> tuple[Rows, Reasons]:
    """Return the features as rows to be prepared, and the reasons of those that cannot be.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kmeander.preparation import Preparation
    >>> table = pa.table({"a": [1.0, float("inf"), None], "c": ["x", "y", None]})
    >>> rows, reasons = to_rows(table, Selection(("a", "c"), rules=Preparation()))
    >>> rows.levels["c"], {row: str(reason) for row, reason in reasons.items()}
    (('x', 'y'), {1: "infinity in column 'a' is not finite"})
    """
    assert selection.rules is not None
    times = [name for name, kind in selection.kinds.items() if kind == "time"]
    rows = rows_of_arrow(table, selection.features, times)
    values = rows.values
    reasons: Reasons = {}
    if _kernel.first_beyond(values, LARGEST_VALUE) < 0:
        return rows, reasons
    names = [column.name for column in rows.columns for _ in column.names]
    timeless = np.array([column.kind != "time" for column in rows.columns for _ in column.names])
    outside = (np.abs(values) > LARGEST_VALUE) & timeless
    for row in np.flatnonzero(outside.any(axis=1)).tolist():
        index = int(np.argmax(outside[row]))
        reasons[row] = reason_for(float(values[row, index]), names[index])
    if selection.rules.missing != "median":
        missing = np.isnan(values) & timeless
        for row in np.flatnonzero(missing.any(axis=1)).tolist():
            reason = reason_for(None, names[int(np.argmax(missing[row]))])
            tolerated = selection.rules.missing == "skip"
            reasons.setdefault(row, replace(reason, is_tolerated=tolerated))
    return rows, dict(sorted(reasons.items()))


def without_direction(rows: Rows, selection: Selection) -> Reasons:
    """Return the reasons of rows that hold only zeros, and are to be compared by direction.

    Where rows are scaled or encoded, zeros are another place, and the model sees to it.
    """
    is_changed = selection.rules is not None and selection.rules.scale != "none"
    if is_changed or any(column.kind not in ("number", "vector") for column in rows.columns):
        return {}
    lost = np.flatnonzero(selection.metric.has_no_place(rows.values)).tolist()
    return dict.fromkeys(lost, Reason("every value is 0, which has no direction"))


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

    column = one_chunk(column)
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


def to_weights(column: Any, name: str) -> tuple[Weights, Reasons]:
    """Return a column of weights, and the reasons of the rows whose weight cannot be one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> weights, reasons = to_weights(pa.array([2, 0]), "n")
    >>> weights.tolist(), str(reasons[1])
    ([2.0, 0.0], "0 in column 'n' is not a weight above 0")
    """
    reasons: Reasons = {}
    weights: Weights = _numbers(column, name, reasons).astype(np.float64)
    fits = (weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT)
    for row in np.flatnonzero(~fits).tolist():
        rule = (
            "a weight above 0" if weights[row] <= 0 else f"a weight of at most {LARGEST_WEIGHT:g}"
        )
        said = Reason(f"{weights[row]:g} in column {name!r} is not {rule}")
        reasons.setdefault(row, said)
    return weights, dict(sorted(reasons.items()))
