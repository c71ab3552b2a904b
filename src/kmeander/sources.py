"""Files to batches: CSV and Parquet, read by pyarrow in bounded memory."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import LARGEST_VALUE, Points
from kmeander.exceptions import InputError
from kmeander.records import Batch

if TYPE_CHECKING:
    import pyarrow as pa

# How pyarrow words a cell that it cannot convert, and a row of another length.
_BAD_CELL = re.compile(r"In CSV column #(?P<column>\d+): .*invalid value '(?P<value>.*)'", re.S)
_BAD_ROW = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+): (?P<text>.*)", re.S)


class FileSource:
    """The rows of one file, in order, as batches of a fixed size; the last may be smaller.

    Parameters
    ----------
    path : str
        A CSV file with a header or a Parquet file (by its ending); ``-`` is CSV on standard input.
    batch_size : int
    columns : sequence of str, optional
        Those to cluster; by default all, which must then all be numbers.
    """

    def __init__(self, path: str, batch_size: int, columns: Sequence[str] | None = None) -> None:
        self.path = path
        self.batch_size = batch_size
        self.n_rows: int | None = None  # where the file tells
        self._is_parquet = path.lower().endswith((".parquet", ".pq"))
        try:
            names = self._open_parquet() if self._is_parquet else self._open_csv()
        except FileNotFoundError as error:
            raise InputError(
                f"{path} does not exist (looked for {Path(path).absolute()})."
            ) from error
        except OSError as error:
            raise InputError(f"{self.name} cannot be opened: {error}.") from error
        self.columns = self._checked_columns(names, columns)

    @property
    def name(self) -> str:
        """The path, as messages show it."""
        return "standard input" if self.path == "-" else self.path

    def __iter__(self) -> Iterator[Batch]:
        pieces: list[Points] = []
        n_waiting = n_read = index = 0
        for block in self._blocks():
            points = self._numbers(block, n_read)
            n_read += len(points)
            while len(points):
                piece = points[: self.batch_size - n_waiting]
                pieces.append(piece)
                n_waiting += len(piece)
                points = points[len(piece) :]
                if n_waiting == self.batch_size:
                    yield Batch(index, np.concatenate(pieces))
                    index, pieces, n_waiting = index + 1, [], 0
        if pieces:
            yield Batch(index, np.concatenate(pieces))
        if n_read == 0:
            raise InputError(f"{self.name} has no rows.")

    def _open_parquet(self) -> list[str]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self._parquet = pq.ParquetFile(self.path)
        except pa.ArrowInvalid as error:
            raise InputError(f"{self.name} cannot be read as Parquet: {error}.") from error
        self.n_rows = self._parquet.metadata.num_rows
        return list(self._parquet.schema_arrow.names)

    def _open_csv(self) -> list[str]:
        """Read the header ourselves: the columns can then be asked for as numbers from the start.

        Left to itself pyarrow takes the types of the first block for those of the whole file.
        """
        import pyarrow as pa

        file = sys.stdin.buffer if self.path == "-" else pa.input_stream(self.path)
        self._csv = _AfterHeader(file)
        if self.path != "-":
            file.close()
        try:
            text = self._csv.header.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.name} is not UTF-8 text: {error.reason} at byte {error.start} of the "
                "header. Convert it first, with iconv for instance."
            ) from error
        if not text.strip():
            raise InputError(f"{self.name} is empty: not even a header.")
        names = next(csv.reader([text]))
        if all(_is_number(name) for name in names):
            raise InputError(
                f"{self.name} begins with a row of numbers. The first line must hold the names of "
                "the columns."
            )
        return names

    def _checked_columns(self, names: list[str], columns: Sequence[str] | None) -> list[str]:
        for given in (names, columns or ()):
            repeated = sorted({name for name in given if given.count(name) > 1})
            if repeated:
                raise InputError(
                    f"column {repeated[0]!r} is there more than once in {', '.join(given)!r} of "
                    f"{self.name}. Every column needs a name of its own."
                )
        for name in columns or ():
            if name not in names:
                raise InputError(
                    f"{self.name} has no column {name!r}. It has {', '.join(map(repr, names))}."
                )
        self._names = names
        return list(columns) if columns else names

    def _blocks(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        if self._is_parquet:
            yield from self._parquet.iter_batches(columns=self.columns)
            return
        n_read = 0
        # A file is opened again, by pyarrow alone: a thread of its that was reading through Python
        # when an error ends the program would take the interpreter down with it.
        is_pipe = self.path == "-"
        try:
            reader = arrow_csv.open_csv(
                self._csv if is_pipe else pa.input_stream(self.path),
                arrow_csv.ReadOptions(
                    column_names=self._names, skip_rows=0 if is_pipe else 1, use_threads=False
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=self.columns,
                    column_types=dict.fromkeys(self.columns, pa.float64()),
                    null_values=[""],  # "n/a" and the like are text where a number should be
                ),
            )
            for block in reader:
                n_read += len(block)
                yield block
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return
            raise InputError(self._explained(str(error), n_read)) from error

    def _explained(self, message: str, n_read: int) -> str:
        where = f"{self.name}, after row {n_read}" if n_read else self.name
        if cell := _BAD_CELL.search(message):
            column = self.columns[int(cell["column"])]
            return (
                f"{where}: {cell['value']!r} in column {column!r} is not a number. Leave such "
                "columns out with --columns."
            )
        if row := _BAD_ROW.search(message):
            return (
                f"{where}: {row['found']} fields where the header has {row['expected']}: "
                f"{row['text']!r}."
            )
        return f"{where}: cannot be read as CSV: {message}."

    def _numbers(self, block: pa.RecordBatch, n_before: int) -> Points:
        """Return the chosen columns as one array; `n_before` rows came in earlier blocks."""
        chosen = [self._checked(block.column(name), name, n_before) for name in self.columns]
        points: Points = np.stack(chosen, axis=1)
        return points if points.dtype.kind == "f" else points.astype(np.float64)

    def _checked(self, column: pa.Array, name: str, n_before: int) -> NDArray[Any]:
        """Return a column of numbers that can be clustered, or say which row breaks the rule."""
        import pyarrow as pa

        def refuse(position: int, what: str) -> NoReturn:
            raise InputError(
                f"{self.name} row {n_before + position + 1}: {what} in column {name!r}. Every "
                f"value must be a number within ±{LARGEST_VALUE:g}; leave other columns out with "
                "--columns."
            )

        is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        if not any(test(column.type) for test in is_number):
            refuse(0, repr(column[0].as_py()))
        if column.null_count:
            refuse(int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))), "nothing")
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        fits = np.abs(values.astype(np.float64, copy=False)) <= LARGEST_VALUE
        if not fits.all():
            position = int(np.argmin(fits))
            refuse(position, str(values[position]))
        return values


class _AfterHeader:
    """What follows the first line of a binary stream, as it arrives."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        # What has come is handed on at once, where the stream tells it: a pipe may pause.
        self._take = getattr(file, "read1", file.read)
        self.closed = False
        first = b""
        while b"\n" not in first:
            piece = self._take(65536)
            if not piece:
                break
            first += piece
        self.header, _, self._rest = first.partition(b"\n")

    def read(self, size: int = -1) -> bytes:
        if self._rest:
            piece, self._rest = self._rest, b""
            return piece
        data: bytes = self._take(size)
        return data

    def close(self) -> None:
        self.closed = True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
