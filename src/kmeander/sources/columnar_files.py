"""One Parquet or Arrow IPC file."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from kmeander.exceptions import InputError, argument
from kmeander.sources.already_read import KEPT_ROWS, ReadRows, check_same
from kmeander.sources.block import Position, RowLocation
from kmeander.sources.byte_streams import explained
from kmeander.sources.conversion import RawBlock
from kmeander.sources.selection import Selection
from kmeander.storage import filesystem_of

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 65536


def table_block(
    table: pa.Table | pa.RecordBatch,
    name: str,
    start: int,
    first: int,
    before: ReadRows | None = None,
) -> RawBlock:
    """Return rows that are a table already; row `first` of the source is the table's first.

    Positions in it tell what stands `before`, where that is given.
    """
    base = start + first

    def position_at(row: int) -> Position:
        if before is None:
            return {"row": row - start}
        checksum = before.and_then(table.slice(0, row - base)).checksum()
        return {"row": row - start, "checksum": checksum}

    def place(row: int) -> RowLocation:
        return RowLocation(name, "row", row - start + 1)

    def text(row: int) -> str:
        index = row - base
        return str({name: _plain(table.column(name)[index]) for name in table.schema.names})

    return RawBlock(
        table=table,
        rows=np.arange(base, base + table.num_rows),
        bad=(),
        end=base + table.num_rows,
        position_at=position_at,
        place=place,
        text=text,
    )


def _plain(cell: pa.Scalar) -> Any:
    """Return a cell as Python has it; a date that Python does not have stays the number it is."""
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return cell.value


class ColumnarFile(ABC):
    """The rows of one file that holds columns."""

    names: list[str]
    form: str

    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name
        self._n_read = 0
        self._n_rows: int | None = None
        self._raw: IO[Any] | None = None
        try:
            self._explained(self._open)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _open(self) -> None:
        """Open the file and take note of the names."""

    @abstractmethod
    def _batches(self, columns: list[str], first: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `first` on."""

    def _explained(self, attempt: Any) -> Any:
        import pyarrow as pa

        try:
            return explained(self.name, attempt)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            reason = str(error).rstrip(".")
            raise InputError(f"{self.name} cannot be read as {self.form}: {reason}.") from error
        except MemoryError as error:
            raise InputError(
                f"{self.name} cannot be read as {self.form}: it asks for more memory than there is."
            ) from error

    def raw_blocks(
        self, selection: Selection, start: int, place: Position | None
    ) -> Iterator[RawBlock | None]:
        """Yield the rows from `place` on; `start` is the number of the file's row 0."""
        first = 0 if place is None else place["row"]
        if self._n_rows is not None and first > self._n_rows:
            self._refuse(first, self._n_rows)
        at = max(0, first - KEPT_ROWS)  # what stands before is read once more
        batches, read = self._batches(selection.needed, at), ReadRows()
        while (batch := self._explained(lambda: next(batches, None))) is not None:
            # A file may lie about lengths and offsets: to follow it would end the process.
            self._explained(partial(batch.validate, full=True))
            known = batch.slice(0, max(0, first - at))
            at += batch.num_rows
            read = read.and_then(known)
            if place is not None and known.num_rows and at >= first:
                check_same(self.name, read, place, f"row {first + 1}")
            fresh = batch.slice(known.num_rows)
            if fresh.num_rows:
                yield table_block(fresh, self.name, start, at - fresh.num_rows, read)
                read = read.and_then(fresh)
                self._n_read = at
        if at < first:
            self._refuse(first, at)
        if self._n_rows is not None and at != self._n_rows:
            raise InputError(
                f"{self.name} says that it has {self._n_rows} rows, but {at} are in it: it is "
                "damaged."
            )

    def _refuse(self, first: int, n_rows: int) -> None:
        raise InputError(
            f"{self.name} has {n_rows} rows, but the checkpoint has read {first} of it. It is not "
            "the file of the checkpoint: give that one, or begin anew with another "
            f"{argument('checkpoint')}."
        )

    def share_read(self) -> float | None:
        """Return how much of the file has been read."""
        return self._n_read / self._n_rows if self._n_rows else None

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


class ParquetFile(ColumnarFile):
    """A Parquet file, read by row groups."""

    form = "Parquet"

    def _open(self) -> None:
        import pyarrow.parquet as pq

        self._raw = filesystem_of(self.path).open(self.path)
        # Read as it goes: whole row groups in memory cost several times as much.
        self._file = pq.ParquetFile(self._raw, pre_buffer=False, buffer_size=1 << 16)
        self.names = list(self._file.schema_arrow.names)
        self._n_rows = self._file.metadata.num_rows

    def _batches(self, columns: list[str], first: int) -> Iterator[pa.RecordBatch]:
        metadata = self._file.metadata
        group, skip = 0, first
        while group < metadata.num_row_groups and skip >= metadata.row_group(group).num_rows:
            skip -= metadata.row_group(group).num_rows
            group += 1
        groups = list(range(group, metadata.num_row_groups))
        if not groups:
            return
        for batch in self._file.iter_batches(
            BLOCK_ROWS, row_groups=groups, columns=columns, use_threads=False
        ):
            if skip < batch.num_rows:
                yield batch.slice(skip)
            skip = max(0, skip - batch.num_rows)

    def close(self) -> None:
        """Close the file."""
        if self._raw is not None:
            self._raw.close()


class ArrowFile(ColumnarFile):
    """Arrow IPC, as a file or as a stream (also on standard input)."""

    form = "Arrow IPC"

    def _open(self) -> None:
        import pyarrow as pa

        self._raw = sys.stdin.buffer
        is_file = False
        if self.path != "-":
            self._raw = filesystem_of(self.path).open(self.path)
            is_file = self._raw.read(6) == b"ARROW1"
            self._raw.seek(0)
        self._reader = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(self._raw)
        self.names = list(self._reader.schema.names)

    def _batches(self, columns: list[str], first: int) -> Iterator[pa.RecordBatch]:
        n_seen = 0
        for batch in self._all_batches():
            skip = max(0, first - n_seen)
            n_seen += batch.num_rows
            if skip < batch.num_rows:
                yield batch.slice(skip).select(columns)

    def _all_batches(self) -> Iterator[pa.RecordBatch]:
        if hasattr(self._reader, "num_record_batches"):
            yield from map(self._reader.get_batch, range(self._reader.num_record_batches))
        else:
            yield from self._reader

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self.path != "-" and self._raw is not None:
            self._raw.close()
