"""Checksums of the part of a stream that was read, to know the stream again when a run goes on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kmeander.exceptions import InputError, argument

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes at the beginning of a stream, with its header, and as many before a position.
KEPT = 4096
# Rows before a position, where rows are all there is.
KEPT_ROWS = 32


@dataclass(frozen=True)
class ReadBytes:
    r"""The first and the last bytes of what has been read.

    Examples
    --------
    >>> read = ReadBytes().and_then(b"a,b\n").and_then(b"1,2\n")
    >>> read.n_bytes, read.head, read.tail
    (8, b'a,b\n1,2\n', b'a,b\n1,2\n')
    """

    n_bytes: int = 0
    head: bytes = b""
    tail: bytes = b""

    def and_then(self, data: bytes) -> ReadBytes:
        """Return what is remembered after more has been read."""
        head = self.head + data[: KEPT - len(self.head)]
        tail = data[-KEPT:] if len(data) >= KEPT else (self.tail + data)[-KEPT:]
        return ReadBytes(self.n_bytes + len(data), head, tail)

    def checksum(self) -> str:
        """Return what tells it from another stream."""
        return hashlib.sha256(self.head + self.tail).hexdigest()


@dataclass(frozen=True, eq=False)
class ReadRows:
    """The last rows of what has been read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read = ReadRows().and_then(pa.table({"a": range(40)}))
    >>> read.checksum() == ReadRows().and_then(pa.table({"a": range(8, 40)})).checksum()
    True
    """

    tables: tuple[Any, ...] = field(default=())

    def and_then(self, table: pa.Table | pa.RecordBatch) -> ReadRows:
        """Return what is remembered after more rows have been read."""
        kept, missing = [table.slice(max(0, table.num_rows - KEPT_ROWS))], KEPT_ROWS
        for before in reversed(self.tables):
            missing = KEPT_ROWS - sum(part.num_rows for part in kept)
            if missing > 0:
                kept.append(before.slice(max(0, before.num_rows - missing)))
        return ReadRows(tuple(reversed(kept)))

    def checksum(self) -> str:
        """Return what tells them from other rows."""
        rows = [list(row.values()) for part in self.tables for row in part.to_pylist()]
        return hashlib.sha256(repr(rows).encode()).hexdigest()


def check_same(name: str, read: ReadBytes | ReadRows, place: dict[str, Any], where: str) -> None:
    """Refuse a stream other than the one of a checkpoint.

    Parameters
    ----------
    name : str
        The stream's, for messages.
    read : ReadBytes or ReadRows
        What stands before the position.
    place : dict
        The position; those of earlier versions have no checksum.
    where : str
        The position in words.
    """
    if "checksum" in place and place["checksum"] != read.checksum():
        raise InputError(
            f"{name} is not the stream of the checkpoint: what stands before {where}, where that "
            "stopped reading, is different. Give the same stream, or begin anew with another "
            f"{argument('checkpoint')}."
        )
