"""Kinds of the columns of JSON objects, inferred from the first rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:?\d\d.*)?$")


def kinds_of_json(first: Mapping[str, Any]) -> dict[str, str]:
    """Return what each key holds, one of `KINDS`, by a first value of it.

    Examples
    --------
    >>> kinds_of_json({"a": 1, "b": "red", "v": [1.0], "t": "2026-01-01T00:00:00Z"})
    {'a': 'number', 'b': 'category', 'v': 'vector', 't': 'time'}
    """
    return {name: _kind_of_value(value) for name, value in first.items()}


def _kind_of_value(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        if _is_number(value):
            return "number"
        return "time" if _MOMENT.match(value) else "category"
    return "vector" if isinstance(value, list) else "number"


def leaves(row: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterable[tuple[Any, Any]]:
    """Yield the path of each value of a JSON object that is no object itself, and the value.

    Examples
    --------
    >>> list(leaves({"a": 1, "m": {"b": 2}}))
    [(('a',), 1), (('m', 'b'), 2)]
    """
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*before, key))
        else:
            yield (*before, key), value


def arrow_type(kind: str) -> pa.DataType:
    """Return as what pyarrow is asked for a column of this kind."""
    import pyarrow as pa

    return {
        "boolean": pa.bool_(),
        "category": pa.string(),
        "time": pa.string(),
        "vector": pa.list_(pa.float64()),
    }.get(kind, pa.float64())


def _is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
