"""The contract of all sinks: write what a batch gave, make it last, go on from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import StreamError
from kmeander.records import Ids, Step

if TYPE_CHECKING:
    import pyarrow as pa

# Where an output ends: plain numbers and text, for a checkpoint to keep.
Position = dict[str, Any]


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Say in one sentence that an output cannot be written, whatever of its disk fails."""
    try:
        yield
    except BrokenPipeError:  # the reader has left: no fault of ours
        raise
    except OSError as error:
        raise StreamError(
            f"{what} cannot be written: {error.strerror or error}. What a checkpoint holds is "
            "safe: make room, and run the same command again."
        ) from error


@dataclass(frozen=True)
class RejectedRow:
    """A row that was set aside: where it stood, why, and what it was."""

    place: dict[str, Any]
    reason: str
    text: str


@dataclass(frozen=True, eq=False)
class LearnedBatch:
    """One batch after it was learned.

    Parameters
    ----------
    step : Step or None
        None where nothing but bad rows came.
    keys : pyarrow.Table
        What names its rows in outputs.
    origin : pyarrow.Table
        Where they stood in the stream, each somewhere else.
    labels : ndarray of shape (n_points,) or None
        Ids of their clusters; None while the model waits for K distinct points.
    distances : ndarray of shape (n_points,) or None
        To the centroid of the cluster.
    rejected_rows : sequence of RejectedRow
        The bad rows that came with it.
    """

    step: Step | None
    keys: pa.Table
    origin: pa.Table
    labels: Ids | None = None
    distances: NDArray[np.float64] | None = None
    rejected_rows: Sequence[RejectedRow] = ()


class Sink(ABC):
    """One output of a run.

    Parameters
    ----------
    name : str
        As messages show it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def is_empty(self) -> bool:
        """Whether there is nothing that beginning anew would remove."""
        return True

    def check(self, position: Position) -> None:  # noqa: B027  # most are written as a whole
        """Refuse a position that the output does not reach."""

    @abstractmethod
    def open(self, position: Position | None) -> None:
        """Begin anew, or go on from `position`; what was written after it is cut off."""

    @abstractmethod
    def write(self, learned: LearnedBatch) -> None:
        """Write one batch."""

    @abstractmethod
    def commit(self) -> Position:
        """Make what was written survive a crash, and return where it ends."""

    @abstractmethod
    def close(self) -> None:
        """Finish what was begun and let go of it."""
