"""CSV for people who open it in a spreadsheet: no text of a stream is run there as a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_FORMULA = r"^[=+\-@\t\r]"


def without_formulas(table: pa.Table) -> pa.Table:
    """Return a table whose names and texts a spreadsheet reads as text.

    What begins like a formula, and is no number, is quoted.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"@id": ["=cmd|calc!A1", "-1.5", "k1"], "b": [-1, 2, 3]})
    >>> without_formulas(table).to_pydict()
    {"'@id": ["'=cmd|calc!A1", '-1.5', 'k1'], 'b': [-1, 2, 3]}
    """
    columns = [_without_formulas(column) for column in table.columns]
    names = _without_formulas(_texts(table.column_names)).to_pylist()
    return type(table).from_arrays(columns, names=names)


def _texts(values: list[str]) -> pa.ChunkedArray:
    import pyarrow as pa

    return pa.chunked_array([pa.array(values, pa.string())])


def _without_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):  # which CSV is not written of
        column = column.cast(pa.large_string())
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text or not pc.any(pc.match_substring_regex(column, _FORMULA)).as_py():
        return column
    texts = [value if _is_harmless(value) else f"'{value}" for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, column.type)])


def _is_harmless(value: Any) -> bool:
    """Whether a value is missing, begins unlike a formula, or is a number."""
    if value is None or value[:1] not in ("=", "+", "-", "@", "\t", "\r"):
        return True
    try:
        float(value)
    except ValueError:
        return False
    return True
