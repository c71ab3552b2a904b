"""The clusters as they are now: a small table for people and spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids
from kmeander.exceptions import InputError, StreamError, argument
from kmeander.records import Step
from kmeander.sinks.contract import LearnedBatch, Position, Sink, cannot_write
from kmeander.wire.arrow import to_batch

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".csv", ".parquet", ".pq")
COLUMNS = ("cluster", "share")


class CentroidTable(Sink):
    """Writes one row per cluster, anew at every commit and at the end.

    Parameters
    ----------
    path : str
        Ends in ``.csv`` or ``.parquet``.
    features : sequence of str
        Of the stream.
    named : callable
        Centroids as the model has them to columns in the units of the stream.
    """

    def __init__(
        self,
        path: str,
        features: Sequence[str],
        named: Callable[[Centroids], dict[str, NDArray[np.float64]]],
    ) -> None:
        super().__init__(argument("centroids", path))
        self._path = Path(path)
        self._named = named
        self._step: Step | None = None
        if self._path.suffix.lower() not in ENDINGS:
            raise InputError(f"{self.name} must end in {', '.join(ENDINGS)}.")
        taken = next((name for name in features if name in COLUMNS), None)
        if taken is not None:
            raise InputError(
                f"{argument('centroids')} writes a column {taken!r} of its own, and the stream has "
                f"one, too. Rename it, or leave it out with {argument('exclude', [taken])}."
            )

    def open(self, position: Position | None) -> None:  # noqa: ARG002  # always written whole
        """See whether the file can be written."""
        if not self._path.parent.is_dir():
            raise StreamError(
                f"{self.name} cannot be written: there is no folder {self._path.parent}."
            )
        if self._path.is_dir():
            raise StreamError(f"{self.name} cannot be written: it is a folder.")

    def write(self, learned: LearnedBatch) -> None:
        """Take note of the newest clusters."""
        if learned.step is not None and learned.step.centroids is not None:
            self._step = learned.step

    def commit(self) -> Position:
        """Write them."""
        self._write()
        return {}

    def close(self) -> None:
        """Write them."""
        self._write()

    def _write(self) -> None:
        if self._step is None:
            return
        aside = self._path.with_name(f".{self._path.name}.aside")
        try:
            self._write_table(aside)
            aside.replace(self._path)
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise cannot_write(self.name, error) from error
        self._step = None

    def _write_table(self, path: Path) -> None:
        import pyarrow.parquet as pq
        from pyarrow import csv

        if self._path.suffix.lower() == ".csv":
            csv.write_csv(self._table(), str(path))
        else:
            pq.write_table(self._table(), str(path))

    def _table(self) -> pa.Table:
        import pyarrow as pa

        step = self._step
        assert step is not None
        assert step.centroids is not None
        assert step.masses is not None
        assert step.ids is not None
        columns = {"cluster": step.ids, "share": step.masses / step.mass}
        columns |= self._named(step.centroids)
        return pa.Table.from_batches([to_batch(columns)])
