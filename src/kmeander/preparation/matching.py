"""Columns of rows beside the known ones: the same, or refused; and rows of several parts as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmeander.exceptions import InputError
from kmeander.preparation.rows import Column, Rows


def matched(rows: Rows, known: Sequence[Column]) -> Rows:
    """Return rows as rows with the `known` columns, or say what has changed.

    Where nothing at all is in a column a table says nothing of its kind, which is then as before.
    """
    if rows.columns == known:
        return rows
    check_columns(rows.columns, known)
    parts: list[Any] = []
    levels = dict(rows.levels)
    for (name, place), column in zip(rows.places.items(), known, strict=True):
        values = rows.values[:, place]
        if column.kind == "nothing" or values.shape[1] != column.width:
            values = np.full((len(rows), column.width), np.nan, dtype=rows.values.dtype)
        parts.append(values)
        if column.kind == "category":
            levels.setdefault(name, ())
    return Rows(tuple(known), np.concatenate(parts, axis=1), levels)


def check_columns(columns: Sequence[Column], known_columns: Sequence[Column]) -> None:
    """Refuse columns that are not those that the preparation was learned with."""
    names, known = [column.name for column in columns], [column.name for column in known_columns]
    for name in known:
        if name not in names:
            raise InputError(
                f"column {name!r} is gone, which the preparation was learned with. The rows have "
                f"{', '.join(map(repr, names))}. Add it, with nothing in it where it is not known, "
                "or begin anew."
            )
    for name in names:
        if name not in known:
            raise InputError(
                f"column {name!r} is new: the preparation was learned with "
                f"{', '.join(map(repr, known))}. Leave it out, or begin anew."
            )
    if names != known:
        raise InputError(
            f"columns come as {', '.join(map(repr, names))}, the preparation was learned with "
            f"{', '.join(map(repr, known))}. Pass them in that order."
        )
    for now, before in zip(columns, known_columns, strict=True):
        if now == before or "nothing" in (now.kind, before.kind):
            continue
        if {now.kind, before.kind} != {"number", "boolean"}:
            raise InputError(
                f"column {now.name!r} holds {now.contents}, the preparation was learned with "
                f"{before.contents}. Convert it, or begin anew."
            )


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, in order.

    Examples
    --------
    >>> color = (Column("color", "category"),)
    >>> one = Rows(color, np.array([[0.0]]), {"color": ("red",)})
    >>> other = Rows(color, np.array([[0.0], [1.0]]), {"color": ("blue", "red")})
    >>> both = joined([one, other])
    >>> both.levels, both.values.ravel().tolist()
    ({'color': ('red', 'blue')}, [0.0, 1.0, 0.0])
    """
    if len(parts) == 1:
        return parts[0]
    columns = parts[0].columns
    if any(part.columns != columns for part in parts):
        columns = tuple(
            next((one for one in same if one.kind != "nothing"), same[0])
            for same in zip(*(part.columns for part in parts), strict=False)
        )
        parts = [matched(part, columns) for part in parts]
    values: Any = np.concatenate([part.values for part in parts])  # mypy loses the type
    levels = dict(parts[0].levels)
    for name, place in parts[0].places.items():
        if name not in levels or all(part.levels[name] == levels[name] for part in parts):
            continue
        every = dict.fromkeys(level for part in parts for level in part.levels[name])
        numbers = {level: number for number, level in enumerate(every)}
        begin = 0
        for part in parts:
            new = np.array([numbers[level] for level in part.levels[name]], dtype=np.float64)
            cells = values[begin : begin + len(part), place]
            there = ~np.isnan(cells)
            cells[there] = new[cells[there].astype(np.intp)]
            begin += len(part)
        levels[name] = tuple(every)
    return Rows(columns, values, levels)
