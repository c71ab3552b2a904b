"""Files to batches: CSV and Parquet, read by pyarrow in bounded memory."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Points
from kmeander.exceptions import InputError
from kmeander.records import Batch

if TYPE_CHECKING:
    import pyarrow as pa

# How pyarrow words a cell that it cannot convert.
_BAD_CELL = re.compile(r"In CSV column #(?P<column>\d+): .*invalid value '(?P<value>.*)'", re.S)


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
        self._reader = self._open()
        names = list(self._names)
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(
                f"{self.name} has more than one column {repeated[0]!r}. Rename one of them."
            )
        for name in columns or ():
            if name not in names:
                raise InputError(
                    f"{self.name} has no column {name!r}. It has {', '.join(map(repr, names))}."
                )
        self.columns: list[str] = list(columns) if columns else names

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
            raise InputError(f"{self.name} has a header but no rows.")

    def _open(self) -> pa.csv.CSVStreamingReader | pa.parquet.ParquetFile:
        import pyarrow as pa

        is_parquet = self.path.endswith((".parquet", ".pq"))
        try:
            if is_parquet:
                import pyarrow.parquet as pq

                parquet = pq.ParquetFile(self.path)
                self.n_rows = parquet.metadata.num_rows
                self._names = parquet.schema_arrow.names
                return parquet
            from pyarrow import csv

            opened = sys.stdin.buffer if self.path == "-" else self.path
            # Only nothing is missing: "n/a" and the like are text where a number should be.
            missing = csv.ConvertOptions(null_values=[""])
            reader = csv.open_csv(opened, convert_options=missing)
            self._names = reader.schema.names
            return reader
        except FileNotFoundError as error:
            raise InputError(
                f"{self.path} does not exist (looked for {Path(self.path).absolute()})."
            ) from error
        except pa.ArrowInvalid as error:
            kind = "Parquet" if is_parquet else "CSV"
            raise InputError(f"{self.name} cannot be read as {kind}: {error}.") from error
        except OSError as error:
            raise InputError(f"{self.name} cannot be opened: {error}.") from error

    def _blocks(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv

        reader = self._reader
        try:
            if isinstance(reader, csv.CSVStreamingReader):
                yield from reader
            else:
                yield from reader.iter_batches(columns=self.columns)
        except pa.ArrowInvalid as error:
            cell = _BAD_CELL.search(str(error))
            if cell is None:
                raise InputError(f"{self.name} cannot be read: {error}.") from error
            column = self._names[int(cell["column"])]
            raise InputError(
                f"{self.name}: {cell['value']!r} in column {column!r} is not a number."
            ) from error

    def _numbers(self, block: pa.RecordBatch, n_before: int) -> Points:
        """Return the chosen columns as one array; `n_before` rows came in earlier blocks."""
        chosen = [self._checked(block.column(name), name, n_before) for name in self.columns]
        points: Points = np.stack(chosen, axis=1)
        return points if points.dtype.kind == "f" else points.astype(np.float64)

    def _checked(self, column: pa.Array, name: str, n_before: int) -> NDArray[Any]:
        """Return a column of finite numbers, or say which row breaks the rule."""
        import pyarrow as pa

        def refuse(position: int, what: str) -> NoReturn:
            raise InputError(
                f"{self.name} row {n_before + position + 1} (below the header): {what} in column "
                f"{name!r}. Every value must be a finite number; choose the columns to cluster "
                "with --columns."
            )

        if pa.types.is_string(column.type):
            for position, value in enumerate(column.to_pylist()):
                if not _is_number(value):
                    refuse(position, f"{value!r} is not a number" if value else "nothing")
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            refuse(0, f"{column.type} {column[0].as_py()!r}")
        if column.null_count:
            refuse(int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))), "nothing")
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        finite = np.isfinite(values)
        if not finite.all():
            position = int(np.argmin(finite))
            refuse(position, str(values[position]))
        return values


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and math.isfinite(float(text))
    except ValueError:
        return False
