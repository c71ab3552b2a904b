"""Tables of Steps as frames of pandas or polars: plain columns, no arrays in cells."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from kmeander.exceptions import ArgumentError, InputError
from kmeander.records import Columns, Step
from kmeander.records.event_time import microseconds_of

Kind = Literal["pandas", "polars"]
KINDS: tuple[Kind, ...] = ("pandas", "polars")
Table = dict[str, list[Any]]

# The numbers of a Step that stand in a cell as they are.
_NUMBERS = (
    "prequential_error", "expected_error", "batch_error", "initial_error", "surrogate_error",
    "mass", "rho", "history_kept", "drift_epsilon", "drift_se", "drift_z",
)  # fmt: skip
_COUNTS = ("n_batches", "n_iter", "n_distances", "n_distances_plain", "n_far")
# What may be missing, in columns of whole numbers.
_WHOLE = ("cluster", "other", "over")


def kind_of(source: Any) -> Kind | None:
    """Return which library made a frame; None where it is none.

    Examples
    --------
    >>> kind_of([1.0]) is None
    True
    """
    room = type(source).__module__.partition(".")[0]
    return room if room in KINDS else None


def chosen_kind(wanted: str | None, known: Kind | None) -> Kind:
    """Return the library to make frames with: as asked for, as the input was, or what is there."""
    if wanted is not None:
        if wanted not in KINDS:
            raise ArgumentError(f"frames must be pandas or polars, got {wanted!r}.")
        return wanted
    if known is not None:
        return known
    for name in KINDS:
        if find_spec(name) is not None:
            return name
    raise InputError("a frame needs pandas or polars: pip install pandas")


def steps_table(steps: Iterable[Step]) -> Table:
    """Return one row for each Step."""
    table: Table = {name: [] for name in ("time", "end", "batch", "n_points", "waiting")}
    table |= {name: [] for name in (*_NUMBERS, "converged", *_COUNTS)}
    table |= {name: [] for name in ("n_clusters", "n_events", "drift", "seconds")}
    for step in steps:
        _add_times(table, step)
        table["batch"].append(step.index)
        for name in ("n_points", "waiting", "converged", *_COUNTS):
            table[name].append(getattr(step, name))
        for name in (*_NUMBERS, "seconds"):
            value = getattr(step, name)
            table[name].append(np.nan if value is None else float(value))
        table["n_clusters"].append(0 if step.centroids is None else len(step.centroids))
        table["n_events"].append(sum(not event.unconfirmed for event in step.events))
        table["drift"].append(
            any(event.kind == "drift" and not event.unconfirmed for event in step.events)
        )
    return table


def events_table(steps: Iterable[Step]) -> Table:
    """Return one row for each event."""
    names = ("time", "end", "batch", "kind", "cluster", "other", "value", "was", "z", "over",
             "unconfirmed", "column", "words")  # fmt: skip
    table: Table = {name: [] for name in names}
    for step in steps:
        for event in step.events:
            _add_times(table, step)
            table["batch"].append(step.index)
            for name in ("kind", "cluster", "other", "over", "unconfirmed", "column"):
                table[name].append(getattr(event, name))
            for name in ("value", "was", "z"):
                value = getattr(event, name)
                table[name].append(np.nan if value is None else float(value))
            table["words"].append("; ".join(step.words_of(event)))
    return table


def clusters_table(steps: Iterable[Step]) -> Table:
    """Return one row for each cluster at each Step: share, mass and centroid, in their units."""
    table: Table = {name: [] for name in ("time", "end", "batch", "cluster", "share", "mass")}
    for step in steps:
        if step.centroids is None or step.masses is None or step.ids is None:
            continue
        columns = step.columns or Columns.unnamed(step.centroids.shape[1])
        centroids = columns.restored(step.centroids)
        for row, number in enumerate(step.ids.tolist()):
            _add_times(table, step)
            table["batch"].append(step.index)
            table["cluster"].append(number)
            table["share"].append(float(step.masses[row] / step.mass) if step.mass > 0 else np.nan)
            table["mass"].append(float(step.masses[row]))
        for place, name in enumerate(columns.names):
            taken = f"{name} (column)" if name in _OWN else name
            table.setdefault(taken, []).extend(centroids[:, place].tolist())
    return table


# Names that the table of clusters uses itself.
_OWN = ("time", "end", "batch", "cluster", "share", "mass")


def _add_times(table: Table, step: Step) -> None:
    for name, text in (("time", step.first_time), ("end", step.last_time)):
        table[name].append(None if text is None else microseconds_of(text))


def as_frame(table: Table, kind: Kind) -> Any:
    """Return a table as a frame; event time is its index in pandas, its first column in polars."""
    has_times = any(value is not None for value in table["time"])
    if not has_times:
        table = {name: cells for name, cells in table.items() if name not in ("time", "end")}
    return _in_pandas(table, has_times) if kind == "pandas" else _in_polars(table)


def _in_pandas(table: Table, has_times: bool) -> Any:
    import pandas as pd

    made: dict[str, Any] = {}
    for name, cells in table.items():
        if name in ("time", "end"):
            made[name] = pd.to_datetime(pd.Series(cells, dtype="Int64"), unit="us", utc=True)
        elif name in _WHOLE:
            made[name] = pd.Series(cells, dtype="Int64")
        else:
            made[name] = cells
    frame = pd.DataFrame(made)
    return frame.set_index("time") if has_times else frame


def _in_polars(table: Table) -> Any:
    import polars as pl

    made = []
    for name, cells in table.items():
        if name in ("time", "end"):
            made.append(pl.Series(name, cells, dtype=pl.Datetime("us", "UTC")))
        elif name in _WHOLE:
            made.append(pl.Series(name, cells, dtype=pl.Int64))
        elif name in ("kind", "column", "words"):
            made.append(pl.Series(name, cells, dtype=pl.String))
        else:
            made.append(pl.Series(name, cells))
    return pl.DataFrame(made)
