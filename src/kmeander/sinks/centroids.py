"""The clusters as they are now: a small table for people and spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids
from kmeander.exceptions import InputError, StreamError, argument
from kmeander.records import Step
from kmeander.sinks.contract import LearnedBatch, Position, Sink, explained
from kmeander.sinks.spreadsheets import without_formulas
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import split
from kmeander.wire.arrow import to_batch

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".csv", ".parquet", ".pq")
COLUMNS = ("cluster", "share", "cluster_name", "set_apart_by")


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
        self._path = path
        self._files = filesystem_of(path)
        self._named = named
        self._step: Step | None = None
        self._apart: dict[int, str] = {}
        if not path.lower().endswith(ENDINGS):
            raise InputError(f"{self.name} must end in {', '.join(ENDINGS)}.")
        taken = next((name for name in features if name in COLUMNS), None)
        if taken is not None:
            raise InputError(
                f"{argument('centroids')} writes a column {taken!r} of its own, and the stream has "
                f"one, too. Rename it, or leave it out with {argument('exclude', [taken])}."
            )

    def open(self, position: Position | None) -> None:
        """See whether the file can be written, and recall what sets clusters apart.

        The file is always written whole, but only some Steps say that.
        """
        self._apart = {} if position is None else dict(position.get("apart", ()))
        folder, _ = split(self._path)
        with explained(self.name):
            found = self._files.info(folder)
            if self._files.can_append and (found is None or found.kind != "folder"):
                raise StreamError(f"{self.name} cannot be written: there is no folder {folder}.")
            found = self._files.info(self._path)
            if found is not None and found.kind == "folder":
                raise StreamError(f"{self.name} cannot be written: it is a folder.")
            self._files.clear(self._path)

    def write(self, learned: LearnedBatch) -> None:
        """Take note of the newest clusters."""
        if learned.step is not None and learned.step.centroids is not None:
            self._step = learned.step
        if learned.step is not None and learned.step.profiles is not None:
            self._apart = {one.id: one.apart() for one in learned.step.profiles}

    def commit(self) -> Position:
        """Write them, and return what sets each apart."""
        self._write()
        return {"apart": [[number, words] for number, words in self._apart.items()]}

    def close(self) -> None:
        """Write them."""
        self._write()

    def _write(self) -> None:
        if self._step is None:
            return
        with explained(self.name), self._files.written(self._path) as file:
            self._write_table(file)
        self._step = None

    def _write_table(self, file: IO[Any]) -> None:
        import pyarrow.parquet as pq
        from pyarrow import csv

        if self._path.lower().endswith(".csv"):
            csv.write_csv(without_formulas(self._table()), file)
        else:
            pq.write_table(self._table(), file)

    def _table(self) -> pa.Table:
        import pyarrow as pa

        step = self._step
        assert step is not None
        assert step.centroids is not None
        assert step.masses is not None
        assert step.ids is not None
        names, numbers = step.names or {}, step.ids.tolist()
        words = [[names.get(number) for number in numbers], [*map(self._apart.get, numbers)]]
        known = to_batch({"cluster": step.ids, "share": step.masses / step.mass})
        table = pa.Table.from_batches([known])
        for name, values in zip(COLUMNS[2:], words, strict=True):
            table = table.append_column(name, pa.array(values, pa.string()))
        centroids = to_batch(self._named(step.centroids))
        for name, column in zip(centroids.schema.names, centroids.columns, strict=True):
            table = table.append_column(name, column)
        return table
