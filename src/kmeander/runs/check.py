"""What the beginning of a stream holds, what will be done with it, and how to run it."""

from __future__ import annotations

import html
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arguments import whole_number
from kmeander.exceptions import InputError, argument
from kmeander.kmeans.metric import metric_of
from kmeander.models.settings import Settings, rules_for
from kmeander.preparation import Preparation, Rows, joined
from kmeander.preparation.plan import NAMES_TIMES, plans_for
from kmeander.runs.api import DEFAULT_BATCH_SIZE
from kmeander.runs.profile import ENOUGH, ColumnProfile, Warned, profiled, warnings_of
from kmeander.sources import Reading, Source, Wanted, open_source
from kmeander.sources.block import BadRow, Block
from kmeander.wire.kafka_settings import kafka_settings

ROWS = 5000
# Lengths of a period that people name, in microseconds.
_PERIODS = {
    "1s": 1, "10s": 10, "1m": 60, "10m": 600, "1h": 3600, "6h": 21600, "1d": 86400, "7d": 604800,
}  # fmt: skip
_NEARLY = 1e-2  # off a length of 1
_HEADINGS = ("column", "kind", "missing", "distinct", "values", "share", "prepared", "what is done")


@dataclass(frozen=True)
class Check:
    """What `check` found.

    Parameters
    ----------
    source : str
        As messages show it.
    n_rows : int
        The rows that were looked at.
    columns : tuple of ColumnProfile
    notes : tuple of str
        What was recognised that is not as usual.
    warnings : tuple of Warned
    n_bad : int
        Rows among them that cannot be read.
    first_bad : str
        The first of those, and why.
    options : dict
        What to give `run`, by the names of its arguments.
    """

    source: str
    n_rows: int
    columns: tuple[ColumnProfile, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[Warned, ...] = ()
    n_bad: int = 0
    first_bad: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None

    @property
    def call(self) -> str:
        """The run that is recommended, as whoever reads it writes it."""
        options = [argument(name, value, of="run") for name, value in self.options.items()]
        shell = "kmeander run "
        if argument("steps", "x", of="run").startswith(shell):
            words = [option.removeprefix(shell) for option in options]
            return " ".join([shell.strip(), shlex.quote(self.path or "-"), *words])
        words = [option.removeprefix("kmeander.run(").removesuffix(")") for option in options]
        source = "frame" if self.path is None else repr(self.path)
        return f"kmeander.run({', '.join([source, *words])})"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for programs."""
        return {
            "source": self.source,
            "n_rows": self.n_rows,
            "n_bad": self.n_bad,
            "first_bad": self.first_bad or None,
            "notes": list(self.notes),
            "columns": [column.to_dict() for column in self.columns],
            "warnings": [
                {**vars(warned), "columns": list(warned.columns)} for warned in self.warnings
            ],
            "options": dict(self.options),
            "call": self.call,
        }

    def table(self) -> list[tuple[str, ...]]:
        """Return a row of words for each column, after one of headings."""
        return [_HEADINGS, *(_words(column) for column in self.columns)]

    def lines(self) -> list[str]:
        """Return what is said below the table."""
        found = [*self.notes, *(str(warned) for warned in self.warnings)]
        if self.n_bad:
            found.append(f"{self.n_bad:,} rows cannot be read; the first: {self.first_bad}.")
        return found

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        said = [f"- {line}" for line in self.lines()]
        head = f"{self.source}, the first {self.n_rows:,} rows:"
        return "\n".join([head, "", *text, "", *said, *([""] if said else []), self.call])

    def _repr_html_(self) -> str:
        head, *rows = self.table()
        cells = "".join(f"<th>{html.escape(word)}</th>" for word in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>"
            for row in rows
        )
        said = "".join(f"<li>{html.escape(line)}</li>" for line in self.lines())
        return (
            f"<p>{html.escape(self.source)}, the first {self.n_rows:,} rows</p>"
            f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
            f"<ul>{said}</ul><pre>{html.escape(self.call)}</pre>"
        )


def check(
    source: Any,
    *,
    rows: int = ROWS,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    prepare: Preparation | str | os.PathLike[str] | None = "auto",
    metric: str = Settings.metric,
    format: str | None = None,  # noqa: A002  # the option's name
    header: Sequence[str] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    comment: str | None = None,
    na_values: Sequence[str] = (),
    order: str = "name",
    kafka_options: Mapping[str, str] | None = None,
    kafka_config: str | os.PathLike[str] | None = None,
) -> Check:
    """Look at the beginning of a stream: what its columns hold, and what becomes of them.

    Nothing is learned and nothing written.

    Parameters
    ----------
    source : path-like, data frame, iterable or object with ``__arrow_c_stream__``
        As for `kmeander.run`.
    rows : int, default=5000
        How many to look at.
    columns, exclude, prepare, metric
        As for `kmeander.run`; `prepare` is "auto" by default.
    format, header, delimiter, decimal, encoding, comment, na_values, order
        As for `kmeander.run`.
    kafka_options, kafka_config
        As for `kmeander.run`.

    Returns
    -------
    Check
        Prints as a table; a notebook shows it as one.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"id": range(100), "temp": rng.normal(20, 2, 100).round(2)})
    >>> found = check(frame)
    >>> [column.done for column in found.columns]
    ['left out: it grows with every row, as a number of rows or a time does', 'scaled']
    >>> found.call
    'kmeander.run(frame, prepare="auto")'
    """
    whole_number("rows", rows, at_least=1, meaning="how many rows are looked at")
    space = metric_of(metric)
    rules = rules_for(prepare, space)
    given = {
        "format": format,
        "header": header,
        "delimiter": delimiter,
        "decimal": decimal,
        "encoding": encoding,
        "comment": comment,
        "na_values": list(na_values) or None,
        "order": None if order == "name" else order,
        "columns": columns,
        "exclude": list(exclude) or None,
        "metric": None if metric == Settings.metric else metric,
    }
    notes: list[str] = []
    wanted = Wanted(columns, exclude, rules=rules or Preparation(), metric=space)
    reading = Reading(
        format, header, order, False, delimiter, decimal, encoding, comment, na_values
    )
    opened = open_source(
        source,
        wanted,
        reading,
        kafka_options=kafka_settings(kafka_options, kafka_config),
        notify=notes.append,
    )
    try:
        opened.start()
        beginning = _beginning(opened, rows)
    finally:
        opened.close()
    table, n_bad, first_bad = beginning
    if not space.on_sphere and _are_directions(table):
        notes.append(
            "its vectors have length 1, as embeddings do; "
            f"{argument('metric', 'cosine')} compares them by angle."
        )
    is_named = isinstance(source, str | os.PathLike)
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if rules is not None:
        options["prepare"] = prepare if isinstance(prepare, str) else "auto"
    n_distinct = len(np.unique(np.nan_to_num(table.values), axis=0))
    if n_distinct < Settings().clusters.low:
        options["n_clusters"] = n_distinct
    if n_bad:
        options["bad_rows"] = "skip"
    warnings = tuple(warnings_of(table, rules, may_exclude=columns is None))
    useless = _useless(warnings, is_prepared=rules is not None)
    if columns is None and len(set(table.names) - set(useless)) > 0 and useless:
        options["exclude"] = [*exclude, *useless]
    if is_named and Path(source).exists():
        options |= _by_time(os.fspath(source), table, wanted, reading, rows)
        if "time_column" in options and "exclude" in options:
            left = [name for name in options["exclude"] if name != options["time_column"]]
            options["exclude"] = left
    return Check(
        source=opened.name,
        n_rows=len(table),
        columns=tuple(profiled(table, rules)),
        notes=tuple(note.removeprefix(f"{opened.name}: ") for note in notes),
        warnings=warnings,
        n_bad=n_bad,
        first_bad=first_bad,
        options=options,
        path=os.fspath(source) if is_named else None,
    )


def _are_directions(rows: Rows) -> bool:
    """Whether a stream is vectors of length 1, but for the rounding of small floats."""
    vectors = [column for column in rows.columns if column.kind == "vector"]
    numbers = [column for column in rows.columns if column.kind == "number"]
    if len(vectors) != 1 or numbers or not rows.is_whole or len(rows) < ENOUGH:
        return False
    lengths = np.linalg.norm(rows.values[:, rows.places[vectors[0].name]], axis=1)
    return bool((np.abs(lengths - 1) < _NEARLY).all())


def _beginning(source: Source, n_rows: int) -> tuple[Rows, int, str]:
    """Return the first rows, how many among them are bad, and the first of those."""
    parts: list[Rows] = []
    bad: list[BadRow] = []
    n_found = 0
    blocks: Any = source.blocks(source.beginning())
    for block in blocks:
        if not isinstance(block, Block):
            if n_found:  # nothing more for a moment
                break
            continue
        parts.append(block.table.taken(slice(0, n_rows - n_found)))
        bad += block.bad
        n_found += len(parts[-1])
        if n_found >= n_rows:
            break
    if not n_found:
        said = f" The first that cannot be read: {bad[0].place}: {bad[0].reason}." if bad else ""
        raise InputError(f"{source.name} has no rows.{said}")
    return joined(parts), len(bad), f"{bad[0].place}: {bad[0].reason}" if bad else ""


def _by_time(
    path: str, table: Rows, wanted: Wanted, reading: Reading, n_rows: int
) -> dict[str, Any]:
    """Return the options that cut a file by its time, where a column has times in order."""
    plans = plans_for(table, Preparation())
    name = next(
        (
            plan.name
            for plan in plans
            if plan.action == "exclude"
            and (plan.kind == "time" or (plan.kind == "number" and NAMES_TIMES.search(plan.name)))
        ),
        None,
    )
    if name is None or (wanted.columns is not None and name in wanted.columns):
        return {}
    opened = open_source(path, replace(wanted, time_column=name), reading)
    try:
        opened.start()
        block = next((block for block in opened.blocks() if block is not None), None)
    except InputError:  # there is no other column
        return {}
    finally:
        opened.close()
    if block is None or block.times is None:
        return {}
    period = _period(block.times[:n_rows])
    return {} if period is None else {"time_column": name, "every": period}


def _useless(warnings: Sequence[Warned], *, is_prepared: bool) -> list[str]:
    """Return the columns that the recommended run leaves out."""
    names: list[str] = []
    for warned in warnings:
        if warned.kind == "constant" or (warned.kind == "identifier" and not is_prepared):
            names += warned.columns
        elif warned.kind == "twin":
            names += warned.columns[1:]
    return names


def _period(moments: NDArray[np.int64]) -> str | None:
    """Return the period, of those that have names, that holds about as many rows as a batch.

    Examples
    --------
    >>> _period(np.arange(100) * 60_000_000), _period(np.array([2, 1]))
    ('6h', None)
    """
    if len(moments) < ENOUGH or (np.diff(moments) < 0).any() or moments[-1] <= moments[0]:
        return None
    wanted = float(moments[-1] - moments[0]) / (len(moments) - 1) * DEFAULT_BATCH_SIZE / 1e6
    return min(_PERIODS, key=lambda name: abs(np.log(_PERIODS[name] / wanted)))


def _words(column: ColumnProfile) -> tuple[str, ...]:
    values = ""
    if column.levels:
        values = ", ".join(f"{level} ({number:,})" for level, number in column.levels.items())
    elif column.low is not None and column.median is not None and column.high is not None:
        values = f"{column.low:g} to {column.high:g}, median {column.median:g}"
    return (
        column.name,
        column.kind,
        f"{column.n_missing:,}" if column.n_missing else "",
        f"{column.n_distinct:,}",
        values if len(values) <= 60 else values[:57] + "...",
        _percent(column.share),
        _percent(column.prepared_share),
        column.done,
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}".replace("%", " %")
