"""The cluster of every row: NDJSON or CSV that is appended to, or Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from kmeander.exceptions import InputError, argument
from kmeander.sinks.contract import LearnedBatch, Position, Sink, explained
from kmeander.sinks.line_sink import LineSink
from kmeander.sinks.spreadsheets import without_formulas
from kmeander.storage import filesystem_of
from kmeander.storage.growing import PartFolder
from kmeander.wire.arrow import to_arrow, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

CSV = ".csv"
LINES = (".ndjson", ".jsonl", ".json")
COLUMNS = ("cluster", "distance")
ROW_GROUP = 1 << 17


def table_of(learned: LearnedBatch) -> pa.Table:
    """Return the keys of a batch with `cluster` and `distance`, null while the model waits."""
    import pyarrow as pa

    n = learned.keys.num_rows
    clusters = (
        pa.nulls(n, pa.int32())
        if learned.labels is None
        else to_arrow(learned.labels.astype(np.int32))
    )
    distances = (
        pa.nulls(n, pa.float64()) if learned.distances is None else to_arrow(learned.distances)
    )
    return learned.keys.append_column(COLUMNS[0], clusters).append_column(COLUMNS[1], distances)


def lines_of(learned: LearnedBatch) -> list[str]:
    """Return one JSON object per row."""
    names = learned.keys.column_names
    heads = [f'"{name}":' if name.isidentifier() else f"{json.dumps(name)}:" for name in names]
    columns = [_texts(column) for column in learned.keys.columns]
    n = learned.keys.num_rows
    clusters = ["null"] * n if learned.labels is None else map(str, learned.labels.tolist())
    distances = ["null"] * n if learned.distances is None else map(repr, learned.distances.tolist())
    return [
        "{"
        + "".join(f"{head}{key}," for head, key in zip(heads, keys, strict=True))
        + f'"cluster":{cluster},"distance":{distance}}}'
        for *keys, cluster, distance in zip(*columns, clusters, distances, strict=True)
    ]


def csv_of(learned: LearnedBatch, *, with_names: bool) -> str:
    """Return the rows of a batch as CSV; nothing stands for a missing cluster."""
    import pyarrow as pa
    from pyarrow import csv

    target = pa.BufferOutputStream()
    options = csv.WriteOptions(
        include_header=with_names, quoting_style="needed", quoting_header="needed"
    )
    try:
        csv.write_csv(without_formulas(table_of(learned)), target, options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        kind = learned.keys.schema.field(0).type
        raise InputError(
            f"the id column is of type {kind}, which CSV cannot hold ({error}). Write .ndjson or "
            ".parquet instead."
        ) from error
    text: str = target.getvalue().to_pybytes().decode()
    return text


def _texts(column: Any) -> list[str]:
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        return [str(n) for chunk in column.chunks for n in to_numpy(chunk).tolist()]
    return [json.dumps(value, default=str) for value in column.to_pylist()]


class AssignmentLines(LineSink):
    """Writes one JSON line per row; ``-`` is standard output."""

    def write(self, learned: LearnedBatch) -> None:
        """Write the rows of a batch."""
        if learned.keys.num_rows:
            self.append("\n".join(lines_of(learned)) + "\n")


class AssignmentCsv(LineSink):
    """Writes one line of CSV per row, after a line of names."""

    def write(self, learned: LearnedBatch) -> None:
        """Write the rows of a batch."""
        if learned.keys.num_rows:
            self.append(csv_of(learned, with_names=self.at_beginning))


class AssignmentParquet(Sink):
    """Writes Parquet: one file, or a folder to which every commit adds a part.

    A Parquet file cannot be appended to, so only parts can go on after a crash. Files are written
    aside and renamed when they are complete.

    Parameters
    ----------
    path : str
    in_parts : bool
    output : str
    """

    def __init__(self, path: str, *, in_parts: bool, output: str = "assignments") -> None:
        super().__init__(argument(output, path))
        self._path = path
        self._files = filesystem_of(path)
        self._parts = PartFolder(path, self.name, ".parquet") if in_parts else None
        self._n_parts = 0
        self._writer: pq.ParquetWriter | None = None
        self._target = ExitStack()  # holds the file that is being written
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._schema: pa.Schema | None = None

    def is_empty(self) -> bool:
        """Whether there are no parts yet."""
        with explained(self.name):
            return self._parts is None or self._parts.is_empty()

    def check(self, position: Position) -> None:
        """Refuse a position that speaks of parts that are not there."""
        if self._parts is not None:
            with explained(self.name):
                self._parts.check(position["parts"])

    def open(self, position: Position | None) -> None:
        """See whether the file can be written, or remove the parts after `position`."""
        self._n_parts = 0 if position is None else position["parts"]
        with explained(self.name):
            if self._parts is not None:
                self._parts.open(self._n_parts)
                return
            self._files.clear(self._path)
            with suppress(_ProbedError), self._files.written(self._path):
                raise _ProbedError

    def write(self, learned: LearnedBatch) -> None:
        """Keep the rows of a batch until there are enough for a row group."""
        if not learned.keys.num_rows:
            return
        table = table_of(learned)
        if self._schema is not None and table.schema != self._schema:
            table = self._cast(table, self._schema)
        self._schema = table.schema
        self._waiting.append(table)
        self._n_waiting += table.num_rows
        if self._n_waiting >= ROW_GROUP:
            self._write_waiting()

    def _cast(self, table: pa.Table, schema: pa.Schema) -> pa.Table:
        import pyarrow as pa

        try:
            return table.cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"the id column changes its type in mid-stream, which {self.name} "
                f"cannot follow: {error}. Write .ndjson instead, or mend the stream."
            ) from error

    def _write_waiting(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._waiting:
            return
        with self._whole_or_nothing():
            if self._writer is None:
                parts = self._parts
                path = self._path if parts is None else parts.part(self._n_parts)
                file = self._target.enter_context(self._files.written(path))
                self._writer = pq.ParquetWriter(file, self._schema, use_dictionary=[COLUMNS[0]])
            self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting, self._n_waiting = [], 0

    def commit(self) -> Position:
        """Complete a part."""
        if self._parts is not None:
            with self._whole_or_nothing():
                self._parts.check_newest(self._n_parts)
            self.close()
        return {"parts": self._n_parts}

    def close(self) -> None:
        """Complete the file."""
        self._write_waiting()
        if self._writer is None:
            return
        with self._whole_or_nothing():
            with self._target:
                self._writer.close()
            self._writer = None
        self._n_parts += 1

    @contextmanager
    def _whole_or_nothing(self) -> Iterator[None]:
        """Leave nothing of a file that cannot be completed."""
        try:
            with explained(self.name):
                yield
        except BaseException as error:
            writer, self._writer, self._waiting = self._writer, None, []
            with suppress(OSError, ValueError):  # what is written now is thrown away
                if writer is not None:
                    writer.close()
            with suppress(OSError):
                self._target.__exit__(type(error), error, error.__traceback__)
            raise


class _ProbedError(Exception):
    """Ends the writing of a file that was begun only to see whether it can be."""


def check_keys(names: list[str], output: str) -> None:
    """Refuse an id column that would hide a column of the output."""
    for name in names:
        if name in COLUMNS:
            raise InputError(
                f"{argument(output)} writes a column {name!r}, and so the id column cannot be "
                "called that. Rename it."
            )
