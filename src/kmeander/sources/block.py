"""The contract of all sources: blocks of rows in order, each of which can be resumed at any row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Points, Weights
from kmeander.preparation import Rows
from kmeander.sources.reasons import Reason

if TYPE_CHECKING:
    import pyarrow as pa

    from kmeander.sources.selection import Selection

# Where a source stands: plain numbers and text, for a checkpoint to keep.
Position = dict[str, Any]


@dataclass(frozen=True)
class RowLocation:
    """Where a row stands in its source, as messages and the file of rejected rows say it."""

    source: str
    unit: str  # "line", "row" or "offset"
    number: int

    def __str__(self) -> str:
        return f"{self.source} {self.unit} {self.number}"


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be clustered, and why."""

    row: int
    place: RowLocation
    reason: Reason
    text: str


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a stream.

    Rows are numbered from 0 in the order of the stream, bad ones included.

    Parameters
    ----------
    table : Rows
        The good rows.
    rows : ndarray of shape (n_rows,)
        Their numbers, ascending.
    keys : pyarrow.RecordBatch
        What names each of them in outputs: the id column, or else `origin`.
    origin : pyarrow.RecordBatch
        Where each of them stood, the same whenever the stream is read again.
    times : ndarray of shape (n_rows,), optional
        Microseconds since 1970.
    bad : tuple of BadRow
        The others, ascending.
    end : int
        The number of the first row after the block.
    position_at : callable
        Given a row's number, the position from which that row comes next.
    weights : ndarray of shape (n_rows,), optional
        How many points each row stands for; by default one.
    said : pyarrow.RecordBatch, optional
        The columns `id` and `text` of each row, those that there are.
    """

    table: Rows
    rows: NDArray[np.int64]
    keys: pa.RecordBatch
    origin: pa.RecordBatch
    times: NDArray[np.int64] | None
    bad: tuple[BadRow, ...]
    end: int
    position_at: Callable[[int], Position]
    weights: Weights | None = None
    said: pa.RecordBatch | None = None

    @property
    def points(self) -> Points:
        """The good rows as numbers."""
        return self.table.values


def nothing() -> None:
    """Do nothing while a source waits."""


class Source(ABC):
    """A stream of rows.

    Parameters
    ----------
    name : str
        As messages show it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def identity(self) -> str:
        """What must be the same when a run is resumed."""
        return self.name

    def start(self, tick: Callable[[], None] = nothing) -> None:  # noqa: B027
        """Begin to read; `tick` is called while there is nothing yet, and may raise."""

    @property
    @abstractmethod
    def selection(self) -> Selection:
        """The columns that are read, known once the source has started."""

    def beginning(self) -> Position | None:
        """Return where a new run begins, where that must not change when it is started again."""
        return None

    def verify(self, position: Position | None) -> None:  # noqa: B027  # most cannot be mixed up
        """Refuse a position in another stream: on resuming, and before it is committed."""

    @abstractmethod
    def blocks(self, position: Position | None = None) -> Iterator[Block | None]:
        """Yield the rows from `position` on; None whenever nothing has come for a moment."""

    def committed(self, position: Position) -> None:  # noqa: B027  # most need not know
        """Hear that all before `position` is safe."""

    def is_at_end(self) -> bool:
        """Whether silence means that there is nothing to read now."""
        return True

    def share_read(self) -> float | None:
        """Return how much of the stream has been read, between 0 and 1, where that is known."""
        return None

    def lag(self) -> int | None:
        """Return how many rows wait to be read, where that is known."""
        return None

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Let go of what is held."""
