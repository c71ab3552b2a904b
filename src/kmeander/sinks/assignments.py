"""The cluster of every row: NDJSON or CSV that is appended to, or Parquet."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kmeander.exceptions import InputError, StreamError, argument
from kmeander.sinks.contract import LearnedBatch, Position, Sink, cannot_write
from kmeander.sinks.line_sink import LineSink
from kmeander.wire.arrow import to_arrow, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

CSV = ".csv"
LINES = (".ndjson", ".jsonl", ".json")
COLUMNS = ("cluster", "distance")
ROW_GROUP = 1 << 17
_PART = re.compile(r"part-\d{6,}\.parquet|\.part-\d{6,}\.parquet\.aside")


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
    csv.write_csv(
        table_of(learned),
        target,
        csv.WriteOptions(
            include_header=with_names, quoting_style="needed", quoting_header="needed"
        ),
    )
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

    def open(self, position: Position | None) -> None:
        """Empty the file, or cut it back to `position`."""
        super().open(position)
        self._is_empty = position is None or not position["byte"]

    def write(self, learned: LearnedBatch) -> None:
        """Write the rows of a batch."""
        if learned.keys.num_rows:
            self.append(csv_of(learned, with_names=self._is_empty))
            self._is_empty = False


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
        self._path = Path(path)
        self._in_parts = in_parts
        self._n_parts = 0
        self._writer: Any = None
        self._aside: Path | None = None
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._schema: pa.Schema | None = None

    def open(self, position: Position | None) -> None:
        """Make room for the first file, or remove the parts after `position`."""
        self._n_parts = 0 if position is None else position["parts"]
        try:
            if self._in_parts:
                self._open_folder()
            else:
                with self._aside_of(self._path).open("wb"):
                    pass
                self._aside_of(self._path).unlink()
        except OSError as error:
            raise cannot_write(self.name, error) from error

    def _open_folder(self) -> None:
        if self._path.exists() and not self._path.is_dir():
            raise StreamError(
                f"{self.name} is a file; with a checkpoint it must be a folder, to "
                "which parts are added. Name another, or remove it."
            )
        self._path.mkdir(parents=False, exist_ok=True)
        for file in sorted(self._path.iterdir()):
            if not _PART.fullmatch(file.name):
                raise StreamError(
                    f"{self.name} holds {file.name}, which is not a part of an "
                    "earlier run. Name a folder for the parts alone."
                )
            if file.name.startswith(".") or int(file.stem[5:]) >= self._n_parts:
                file.unlink()
        missing = [n for n in range(self._n_parts) if not self._part(n).exists()]
        if missing:
            raise StreamError(
                f"{self.name} lacks {self._part(missing[0]).name}, which the "
                "checkpoint has written. Put it back, or begin anew with "
                f"another {argument('checkpoint')}."
            )

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
        try:
            if self._writer is None:
                target = self._part(self._n_parts) if self._in_parts else self._path
                self._aside = self._aside_of(target)
                self._writer = pq.ParquetWriter(
                    str(self._aside), self._schema, use_dictionary=[COLUMNS[0]]
                )
            self._writer.write_table(pa.concat_tables(self._waiting))
        except OSError as error:
            raise cannot_write(self.name, error) from error
        self._waiting, self._n_waiting = [], 0

    def commit(self) -> Position:
        """Complete a part."""
        if self._in_parts:
            self._complete()
        return {"parts": self._n_parts}

    def _complete(self) -> None:
        self._write_waiting()
        if self._writer is None or self._aside is None:
            return
        writer, aside = self._writer, self._aside
        self._writer = self._aside = None
        try:
            writer.close()
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.replace(self._part(self._n_parts) if self._in_parts else self._path)
        except OSError as error:
            raise cannot_write(self.name, error) from error
        self._n_parts += 1

    def close(self) -> None:
        """Complete the file; where that fails nothing of it is left."""
        try:
            self._complete()
        except StreamError:
            self._waiting = []
            raise
        finally:
            if self._aside is not None:
                self._aside.unlink(missing_ok=True)

    def _part(self, number: int) -> Path:
        return self._path / f"part-{number:06}.parquet"

    def _aside_of(self, path: Path) -> Path:
        return path.with_name(f".{path.name}.aside")


def check_keys(names: list[str], output: str) -> None:
    """Refuse an id column that would hide a column of the output."""
    for name in names:
        if name in COLUMNS:
            raise InputError(
                f"{argument(output)} writes a column {name!r}, and so the id column cannot be "
                "called that. Rename it."
            )
