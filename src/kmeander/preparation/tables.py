"""Tables of any library as Rows: NumPy, pandas, polars, whatever speaks Arrow, dicts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Points, checked_points
from kmeander.exceptions import InputError, InputTypeError
from kmeander.preparation.rows import Column, Levels, Rows
from kmeander.wire.arrow import to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_IN_CACHE = 1024  # of a table that is turned from columns to rows
_TIMES = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)


def rows_of(table: Any) -> Rows:
    """Return the rows of a table, whatever library it comes from.

    Parameters
    ----------
    table : array-like of two dimensions, data frame, or object with ``__arrow_c_stream__``

    Examples
    --------
    >>> rows = rows_of([[1.0, "red"], [None, "blue"]])
    >>> [column.kind for column in rows.columns], rows.levels, rows.values.tolist()
    (['number', 'category'], {'x1': ('red', 'blue')}, [[1.0, 0.0], [nan, 1.0]])
    """
    if isinstance(table, Rows):
        return table
    if type(table) is not np.ndarray:
        plain = _numbers_of_pandas(table)
        if plain is not None:
            return plain
        if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
            return rows_of_arrow(arrow_table(table))
    try:
        array = table if type(table) is np.ndarray else np.asarray(table)
    except ValueError as error:
        raise InputError(
            f"X cannot be read as a table ({error}). Every row must have the same number of "
            "columns."
        ) from error
    if array.ndim == 2 and array.dtype.kind in "OUS" and array.size:
        names = [f"x{place}" for place in range(array.shape[1])]
        source = table if isinstance(table, Sequence) else array.tolist()  # NumPy makes text of all
        return rows_of_columns(dict(zip(names, map(list, zip(*source, strict=True)), strict=True)))
    if array.dtype.kind == "f" and array.ndim == 2 and array.size:
        return Rows.of_numbers(_floats(array))
    return Rows.of_numbers(checked_points(array))


def rows_of_columns(columns: Mapping[str, Sequence[Any]]) -> Rows:
    """Return rows whose columns hold Python's own values, None or NaN where nothing is.

    Examples
    --------
    >>> rows_of_columns({"a": [True, None]}).columns[0].kind
    'boolean'
    """
    described, levels = [], {}
    n_rows = max(map(len, columns.values()), default=0)
    values = np.full((n_rows, len(columns)), np.nan)
    for place, (name, given) in enumerate(columns.items()):
        kind, numbers, known = _of_objects(name, given)
        described.append(Column(name, kind))
        values[:, place] = numbers
        if kind == "category":
            levels[name] = known
    return Rows(tuple(described), values, levels)


def rows_of_arrow(
    table: pa.Table | pa.RecordBatch,
    names: Sequence[str] | None = None,
    times: Collection[str] = (),
) -> Rows:
    """Return the columns `names` of an Arrow table, all of them by default.

    Those in `times` are taken for times, whatever they hold. Fields of a struct are columns of
    their own, called ``struct.field``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = rows_of_arrow(pa.table({"v": [[1.0, 2.0]], "m": [{"a": 3}]}))
    >>> [column.name for column in rows.columns], rows.values.tolist()
    (['v', 'm.a'], [[1.0, 2.0, 3.0]])
    """
    flat = flattened(table)
    names = _distinct(flat.column_names) if names is None else names
    found = [
        _unread_times(name, flat.column(name))
        if name in times
        else _of_arrow(name, flat.column(name))
        for name in names
    ]
    parts = [part for _, part, _ in found]
    narrow = all(part.dtype == np.float32 for part in parts)
    width = sum(column.width for column, _, _ in found)
    values: Any = np.empty((flat.num_rows, width), np.float32 if narrow else np.float64)
    for begin in range(0, len(values), ROWS_IN_CACHE):
        rows = slice(begin, begin + ROWS_IN_CACHE)
        target = 0
        for (column, _, _), part in zip(found, parts, strict=True):
            if column.kind == "vector":
                values[rows, target : target + column.width] = part[rows]
            else:
                values[rows, target] = part[rows]
            target += column.width
    levels = {column.name: known for column, _, known in found if column.kind == "category"}
    return Rows(tuple([column for column, _, _ in found]), values, levels)


def flattened(table: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """Return a table whose structs are columns of their own, called ``struct.field``."""
    import pyarrow as pa

    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = (
            pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        ).flatten()
    return table


def kind_of(kind: pa.DataType) -> str | None:
    """Return what a column of an Arrow type holds, one of `KINDS`; None where that is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kind_of(pa.int8()), kind_of(pa.list_(pa.float32())), kind_of(pa.binary())
    ('number', 'vector', None)
    """
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_boolean(kind):
        return "boolean"
    if types.is_null(kind):
        return "nothing"
    if _is_number(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "category"
    if types.is_temporal(kind):
        return "time"
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return "vector" if _is_number(kind.value_type) else None
    return None


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _of_arrow(name: str, column: Any) -> tuple[Column, NDArray[Any], Levels]:
    """Return a column of Arrow's as numbers, NaN where nothing is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    kind = kind_of(column.type)
    if kind is None:
        raise InputTypeError(
            f"column {name!r} holds {column.type}, which is neither a number nor text. Convert it, "
            "or leave it out."
        )
    if kind == "category":
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = _with_gaps(encoded.indices.cast(pa.float64()))
        levels = encoded.dictionary.to_pylist()
        if len(set(levels)) < len(levels) or None in levels:
            encoded = encoded.dictionary_decode().dictionary_encode()
            codes = _with_gaps(encoded.indices.cast(pa.float64()))
            levels = encoded.dictionary.to_pylist()
        return Column(name, kind), codes, tuple(levels)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind == "vector":
        return _of_vectors(name, column)
    if kind == "time":
        if not pa.types.is_duration(column.type) and not pa.types.is_time(column.type):
            stamps = pa.timestamp("us", getattr(column.type, "tz", None))
            column = column.cast(stamps, safe=False).cast(pa.int64())
        elif pa.types.is_time32(column.type):
            column = column.cast(pa.int32())
        else:
            column = column.cast(pa.int64())
    elif column.type != pa.float32() and column.type != pa.float64():
        column = pc.cast(column, pa.float64(), safe=False)
    elif not column.null_count:
        return Column(name, kind), to_numpy(column), ()
    return Column(name, kind), _with_gaps(column), ()


def _unread_times(name: str, column: Any) -> tuple[Column, NDArray[Any], Levels]:
    """Return a column of times that nobody will look at."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return Column(name, "time"), np.where(to_numpy(column.is_null()), np.nan, 0.0), ()


def _with_gaps(column: pa.Array) -> NDArray[Any]:
    """Return numbers of Arrow's, NaN where nothing is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        column = column.cast(pa.float64(), safe=False)
    return to_numpy(pc.fill_null(column, float("nan")) if column.null_count else column)


def _of_vectors(name: str, column: Any) -> tuple[Column, NDArray[Any], Levels]:
    """Return a column of lists as an array of two dimensions."""
    import pyarrow.compute as pc

    lengths = pc.unique(pc.list_value_length(column)).drop_null().to_pylist()
    if len(lengths) > 1:
        raise InputError(
            f"column {name!r} holds vectors of {min(lengths)} and of {max(lengths)} numbers. All "
            "rows need the same number."
        )
    width = lengths[0] if lengths else 0
    if not width:
        raise InputError(f"column {name!r} holds vectors without a number. Leave it out.")
    numbers = _with_gaps(column.drop_null().flatten())
    if not column.null_count:
        return Column(name, "vector", width), numbers.reshape(-1, width), ()
    values = np.full((len(column), width), np.nan, dtype=numbers.dtype)
    values[to_numpy(column.is_valid())] = numbers.reshape(-1, width)
    return Column(name, "vector", width), values, ()


def _of_objects(name: str, given: Sequence[Any]) -> tuple[str, NDArray[np.float64], Levels]:
    """Return what a column of Python's values holds, as numbers, and its levels."""
    kinds: dict[str, Any] = {}  # and an example of each
    codes: dict[str, int] = {}
    numbers = np.full(len(given), np.nan)
    for row, value in enumerate(given):
        if value is None or (isinstance(value, float) and value != value):
            continue
        if isinstance(value, bool | np.bool_):
            kinds.setdefault("boolean", value)
            numbers[row] = value
        elif isinstance(value, str):
            kinds.setdefault("category", value)
            numbers[row] = codes.setdefault(str(value), len(codes))
        elif isinstance(value, Real):
            kinds.setdefault("number", value)
            numbers[row] = float(value)
        elif isinstance(value, _TIMES):
            kinds.setdefault("time", value)
            numbers[row] = row  # times are left out, whatever they are
        else:
            raise InputTypeError(
                f"column {name!r} holds {value!r} in row {row}, which is neither a number nor "
                "text. Convert it, or leave the column out."
            )
    if kinds.keys() == {"boolean", "number"}:
        del kinds["boolean"]
    if len(kinds) > 1:
        raise InputError(
            f"column {name!r} holds {' and '.join(map(repr, kinds.values()))}: numbers and text "
            "do not go together. Convert one to the other, or leave the column out."
        )
    return next(iter(kinds), "nothing"), numbers, tuple(codes)


def _numbers_of_pandas(table: Any) -> Rows | None:
    """Return a pandas frame of nothing but numbers, for which Arrow is not needed."""
    dtypes: Any = getattr(table, "dtypes", None)
    if not hasattr(table, "to_numpy") or not hasattr(dtypes, "map"):
        return None
    if not all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in dtypes):
        return None
    values = np.ascontiguousarray(table.to_numpy())
    if not values.size:
        return Rows.of_numbers(checked_points(values))
    return Rows.of_numbers(_floats(values), _distinct([str(name) for name in table.columns]))


def _distinct(names: list[str]) -> list[str]:
    """Return names of columns; two of one name are refused, since rules go by names."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"X has more than one column {twice!r}. Every column needs a name of its own: rename "
            "one, or leave it out."
        )
    return names


def _floats(values: NDArray[Any]) -> Points:
    """Return numbers as float32 where they are, as float64 otherwise."""
    if values.dtype == np.float32:
        return np.ascontiguousarray(values)
    return np.ascontiguousarray(values, dtype=np.float64)


def arrow_table(table: Any) -> pa.Table:
    """Return a data frame, or whatever speaks Arrow, as Arrow's table."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise ImportError(
            f"a {type(table).__name__} with other columns than numbers needs pyarrow: pip install "
            "'kmeander[cli]'"
        ) from error

    try:
        if type(table).__module__.startswith("pandas."):
            _distinct([str(name) for name in table.columns])
            # Its own way out makes a column of the index.
            return pa.Table.from_pandas(table, preserve_index=False)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table).read_all()
        return pa.Table.from_batches([pa.record_batch(table)])
    except (pa.ArrowException, OverflowError) as error:
        _check_objects(table)
        raise InputError(
            f"X has a column that holds values of several kinds ({error}). Convert it to one, or "
            "leave it out."
        ) from error


def _check_objects(table: Any) -> None:
    """Refuse the first column of a pandas frame that holds values that do not go together."""
    for name, kind in getattr(table, "dtypes", {}).items():
        if kind.kind == "O":
            column = table[name]
            _of_objects(str(name), column.where(column.notna(), None).tolist())
