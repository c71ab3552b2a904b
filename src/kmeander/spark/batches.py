"""A micro-batch to a Batch, in one job: its rows as they are, or weighted means of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import DataFrame

from kmeander.arrays import Points
from kmeander.exceptions import InputError, StreamError
from kmeander.kmeans.coreset import Compressor, Coreset, lexicographic, merged
from kmeander.records import Batch
from kmeander.spark.columns import Features

# What a task sends: blocks of rows, or one coreset (then with masses), or what is wrong.
_SCHEMA = (
    "part int, n_rows long, n_features int, points binary, masses binary, within double, "
    "problem string"
)


@dataclass(frozen=True)
class Collector:
    """How micro-batches become batches.

    Parameters
    ----------
    features : Features
    summary : {"auto", "exact", "coreset"}
    driver_bytes : int
        With "auto" a batch is exact while its features take no more.
    coreset_size : int
        Means of a batch that is not.
    """

    features: Features
    summary: str
    driver_bytes: int
    coreset_size: int

    def batch(self, frame: DataFrame, index: int) -> Batch | None:
        """Return the rows of `frame` as batch `index`; None where there is none."""
        if self.summary == "exact":
            return _exact(self._sent(frame, np.inf), index)
        if self.summary == "coreset":
            return self._coreset(self._sent(frame, -1), index)
        # A task cannot know how much the others have. Each sends its rows while they are no more
        # than its share; so the whole batch is there, or some task had more than its share.
        parts = self._sent(frame, self.driver_bytes / _parallelism(frame))
        if sum(part.n_bytes for part in parts) > self.driver_bytes:
            return self._coreset(parts, index)
        if any(part.coreset is not None for part in parts):  # shares were uneven: ask again
            parts = self._sent(frame, np.inf)
        return _exact(parts, index)

    def _sent(self, frame: DataFrame, share: float) -> list[_PartitionRows]:
        selected = frame.select(self.features.array().alias("features"))
        table = selected.mapInArrow(_task(self.features, self.coreset_size, share), _SCHEMA)
        parts: dict[int, _PartitionRows] = {}
        try:
            rows = table.toArrow().to_pylist()
        except PythonException as error:
            if "No module named 'kmeander" not in str(error):
                raise
            raise StreamError(
                "the Python of Spark's executors cannot import kmeander. Install it there; on one "
                "machine set PYSPARK_PYTHON to this Python (sys.executable) before the session "
                "starts."
            ) from error
        for row in rows:
            if row["problem"] is not None:
                raise InputError(row["problem"])
            part = parts.setdefault(row["part"], _PartitionRows(self.features.narrow))
            part.take(row)
        found = list(parts.values())
        widths = sorted({part.n_features for part in found})
        if len(widths) > 1:
            raise InputError(
                f"column {self.features.columns[0]!r} holds arrays of {widths[0]} and of "
                f"{widths[-1]} values. All rows need as many."
            )
        return found

    def _coreset(self, parts: Iterable[_PartitionRows], index: int) -> Batch | None:
        whole = merged((part.compressed(self.coreset_size) for part in parts), self.coreset_size)
        return None if whole is None else whole.batch(index)


class _PartitionRows:
    """What one partition has sent."""

    def __init__(self, narrow: bool) -> None:
        self.dtype = np.dtype(np.float32 if narrow else np.float64)
        self.blocks: list[Points] = []
        self.coreset: Coreset | None = None
        self.n_features = self.n_rows = 0

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_features * self.dtype.itemsize

    def take(self, row: dict[str, Any]) -> None:
        self.n_features = row["n_features"]
        self.n_rows += row["n_rows"]
        if row["masses"] is None:
            points = np.frombuffer(row["points"], self.dtype).reshape(-1, self.n_features)
            self.blocks.append(points)
        else:
            means = np.frombuffer(row["points"]).reshape(-1, self.n_features)
            masses = np.frombuffer(row["masses"])
            self.coreset = Coreset(means, masses, row["within"], row["n_rows"])

    def compressed(self, size: int) -> Coreset:
        if self.coreset is not None:
            return self.coreset
        compressor = Compressor(size)
        for block in self.blocks:
            compressor.add(block)
        found = compressor.coreset()
        assert found is not None
        return found


def _exact(parts: Iterable[_PartitionRows], index: int) -> Batch | None:
    """Rows in an order of their own: partitions may be other ones when the batch comes again."""
    blocks = [block for part in parts for block in part.blocks]
    if not blocks:
        return None
    points: Any = np.concatenate(blocks)
    points = points + points.dtype.type(
        0
    )  # no -0.0, which equals 0.0 and so would be anywhere among them
    return Batch(index, points[lexicographic(points)])


def _task(
    features: Features, size: int, share: float
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what each task does: send rows while they take no more bytes than `share`."""

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        kept: list[Points] = []
        n_bytes, compressor, n_features = 0, None, 0
        try:
            for batch in batches:
                points = features.points(batch.column(0))
                if not len(points):
                    continue
                n_bytes += points.nbytes
                if n_features and points.shape[1] != n_features:
                    raise InputError(
                        f"column {features.columns[0]!r} holds arrays of {n_features} and of "
                        f"{points.shape[1]} values. All rows need as many."
                    )
                n_features = points.shape[1]
                if compressor is None and n_bytes > share:
                    compressor = Compressor(size)
                    for earlier in kept:
                        compressor.add(earlier)
                    kept = []
                if compressor is not None:
                    compressor.add(points)
                elif share == np.inf:  # nothing to wait for
                    yield _sent_rows(part, points)
                else:
                    kept.append(points)
        except InputError as error:
            yield _record(part, 0, 0, b"", problem=str(error))
            for _ in batches:  # or the worker would be ended, and another one begun
                pass
            return
        for points in kept:
            yield _sent_rows(part, points)
        found = None if compressor is None else compressor.coreset()
        if found is not None:
            yield _record(
                part,
                found.n_rows,
                n_features,
                found.means.tobytes(),
                masses=found.masses.tobytes(),
                within=found.within,
            )

    return send


def _sent_rows(part: int, points: Points) -> pa.RecordBatch:
    return _record(part, len(points), points.shape[1], points.tobytes())


def _record(
    part: int,
    n_rows: int,
    n_features: int,
    points: bytes,
    masses: bytes | None = None,
    within: float | None = None,
    problem: str | None = None,
) -> pa.RecordBatch:
    columns = {
        "part": pa.array([part], pa.int32()),
        "n_rows": pa.array([n_rows], pa.int64()),
        "n_features": pa.array([n_features], pa.int32()),
        "points": pa.array([points], pa.binary()),
        "masses": pa.array([masses], pa.binary()),
        "within": pa.array([within], pa.float64()),
        "problem": pa.array([problem], pa.string()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _parallelism(frame: DataFrame) -> int:
    """How many tasks share the driver's budget."""
    try:
        return max(1, int(frame.sparkSession.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context, and says so in an exception of its own
        return os.cpu_count() or 1
