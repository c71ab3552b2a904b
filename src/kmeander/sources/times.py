"""When rows happened: text, timestamps and numbers as microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import argument
from kmeander.sources.reasons import Reason, Reasons, no_time
from kmeander.wire.arrow import to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

# Microseconds of each unit in which times are counted.
UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_LAST = 7_258_118_400.0  # seconds from 1970 to the year 2200
_MOST = 2.0**63  # microseconds that fit


def to_times(column: Any, name: str, unit: str | None = None) -> tuple[NDArray[np.int64], Reasons]:
    """Return a column of times as microseconds since 1970, and why others are none.

    Text is ISO 8601 or a number; without a zone it is taken for UTC. Numbers count seconds, milli-,
    micro- or nanoseconds since 1970: their size tells which, if it is the `unit` that nobody said.

    Examples
    --------
    >>> import pyarrow as pa
    >>> times, reasons = to_times(pa.array([1.5, None]), "at")
    >>> times.tolist(), str(reasons[1])
    ([1500000, 0], "nothing in column 'at'")
    >>> to_times(pa.array(["1970-01-01T00:00:01Z", "1970-01-01 00:00:02"]), "at")[0].tolist()
    [1000000, 2000000]
    >>> to_times(pa.array(["1970-01-01T00:00:01Z"], pa.string_view()), "at")[0].tolist()  # polars
    [1000000]
    >>> to_times(pa.array([1_700_000_000, 1_700_000_000_000]), "at")[0].tolist()
    [1700000000000000, 1700000000000000]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    reasons: Reasons = {}
    column = one_chunk(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return to_times(column.dictionary_decode(), name, unit)
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _of_text(column.to_pylist(), name, unit)
    if column.null_count:
        empty = to_numpy(column.is_null())
        reasons = dict.fromkeys(np.flatnonzero(empty).tolist(), no_time(None, name))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        stamps = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return to_numpy(pc.fill_null(stamps.cast(pa.int64()), 0)), reasons
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        counts = to_numpy(pc.fill_null(column.cast(pa.float64(), safe=False), 0.0))
        micros, fits = _of_numbers(counts, unit)
        for position in np.flatnonzero(~fits).tolist():
            reasons[position] = _no_count(float(counts[position]), name, unit)
        return micros, reasons
    return np.zeros(len(column), dtype=np.int64), {
        position: no_time(value, name) for position, value in enumerate(column.to_pylist())
    }


def _of_numbers(
    counts: NDArray[np.float64], unit: str | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return numbers as microseconds, and which of them can be times."""
    if unit is not None:
        micros = counts * UNITS[unit]
        fits = np.abs(micros) < _MOST  # NaN does not
    else:
        micros = np.zeros(len(counts))
        fits = np.zeros(len(counts), dtype=bool)
        for length in UNITS.values():  # the first that leads to a year before 2200
            new = ~fits & (counts >= 0) & (counts * length < _LAST * 1e6)
            micros[new] = counts[new] * length
            fits |= new
    return np.round(np.where(fits, micros, 0.0)).astype(np.int64), fits


def _of_text(
    values: list[str | None], name: str, unit: str | None
) -> tuple[NDArray[np.int64], Reasons]:
    micros = np.zeros(len(values), dtype=np.int64)
    counts = np.full(len(values), np.nan)
    reasons: Reasons = {}
    for position, text in enumerate(values):
        number = None if text is None else _number(text)
        if number is not None:
            counts[position] = number
            continue
        moment = None if text is None else _moment(text)
        if moment is None:
            reasons[position] = no_time(text, name)
        else:
            micros[position] = moment
    counted = np.flatnonzero(~np.isnan(counts))
    if len(counted):
        found, fits = _of_numbers(counts[counted], unit)
        micros[counted] = found
        for position in counted[~fits].tolist():
            reasons[position] = _no_count(counts[position], name, unit)
    return micros, dict(sorted(reasons.items()))


def _no_count(value: float, name: str, unit: str | None) -> Reason:
    """Return why a number is no time."""
    if unit is not None or np.isnan(value):
        return no_time(value, name)
    return Reason(
        f"{value:.17g} in column {name!r} is no time between 1970 and 2200, in whatever unit; "
        f"{argument('time_unit', ...)} says it, if it is one"
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if np.isnan(number) else number


def _moment(text: str) -> int | None:
    """Return the microseconds of an ISO 8601 time."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def one_chunk(column: Any) -> pa.Array:
    """Return a column of a table as one array."""
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
