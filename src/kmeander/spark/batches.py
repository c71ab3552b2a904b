"""A micro-batch to a Batch, in one Spark job or two: its rows, or weighted means of them."""

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
from kmeander.kmeans.metric import EUCLIDEAN, Metric
from kmeander.records import Batch
from kmeander.spark.columns import Features

# What a task sends: blocks of rows, or one coreset (then with masses), or what is wrong.
_SCHEMA = (
    "partition int, n_rows long, n_features int, points binary, masses binary, within double, "
    "problem string"
)

# Bytes of rows that a task may send before it sends a coreset instead.
_NO_ROWS, _ALL_ROWS = -1.0, float("inf")


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
    metric : Metric
        Rows become points of it before they become means.
    """

    features: Features
    summary: str
    driver_bytes: int
    coreset_size: int
    metric: Metric = EUCLIDEAN

    def batch(self, frame: DataFrame, index: int) -> Batch | None:
        """Return the rows of `frame` as batch `index`; None where there is none."""
        if self.summary == "exact":
            return _exact(self._collect(frame, _ALL_ROWS), index)
        if self.summary == "coreset":
            return self._coreset(self._collect(frame, _NO_ROWS), index)
        # A task cannot know how many rows the others have. Each sends its own while they fit into
        # an equal part of the budget; so all rows arrive, or some partition was too large for that.
        partitions = self._collect(frame, self.driver_bytes / _parallelism(frame))
        if sum(partition.n_bytes for partition in partitions) > self.driver_bytes:
            return self._coreset(partitions, index)
        # Uneven partitions that fit together: a second job fetches the rows.
        if any(partition.coreset is not None for partition in partitions):
            partitions = self._collect(frame, _ALL_ROWS)
        return _exact(partitions, index)

    def _collect(self, frame: DataFrame, max_bytes: float) -> list[_PartitionRows]:
        """Run the job: rows of each partition that has at most `max_bytes`, coresets of others."""
        selected = frame.select(self.features.array().alias("features"))
        task = _task(self.features, self.coreset_size, max_bytes, self.metric)
        table = selected.mapInArrow(task, _SCHEMA)
        partitions: dict[int, _PartitionRows] = {}
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
            number = row["partition"]
            if number not in partitions:
                partitions[number] = _PartitionRows(self.features.all_float32)
            partitions[number].take(row)
        found = list(partitions.values())
        widths = {partition.n_features for partition in found}
        if len(widths) > 1:
            raise self.features.unequal_lengths(widths)
        return found

    def _coreset(self, partitions: Iterable[_PartitionRows], index: int) -> Batch | None:
        size = self.coreset_size
        parts = (partition.compressed(size, self.metric) for partition in partitions)
        whole = merged(parts, size)
        return None if whole is None else whole.batch(index)


class _PartitionRows:
    """What one partition has sent."""

    def __init__(self, all_float32: bool) -> None:
        self.dtype = np.dtype(np.float32 if all_float32 else np.float64)
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

    def compressed(self, size: int, metric: Metric) -> Coreset:
        if self.coreset is not None:
            return self.coreset
        compressor = Compressor(size)
        for block in self.blocks:
            compressor.add(metric.points(block, "the stream"))
        found = compressor.coreset()
        assert found is not None
        return found


def _exact(partitions: Iterable[_PartitionRows], index: int) -> Batch | None:
    """Sort rows lexicographically.

    So a retried micro-batch with other partitions gives the same Batch.
    """
    blocks = [block for partition in partitions for block in partition.blocks]
    if not blocks:
        return None
    points: Any = np.concatenate(blocks)
    # Adding 0 turns -0.0 into 0.0: the two are equal, so their order would be left to chance.
    zero = points.dtype.type(0)
    points = points + zero
    return Batch(index, points[lexicographic(points)])


def _task(
    features: Features, coreset_size: int, max_bytes: float, metric: Metric
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what each task does: send rows while they take at most `max_bytes`."""

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sender = _Sender(features, coreset_size, max_bytes, metric)
        try:
            for batch in batches:
                yield from sender.take(features.points(batch.column(0)))
        except InputError as error:
            yield _record(sender.partition, 0, 0, b"", problem=str(error))
            for _ in batches:  # read to the end: else Spark ends this worker and starts another
                pass
            return
        yield from sender.finish()

    return send


class _Sender:
    """Rows of the task's partition on their way to the driver."""

    def __init__(
        self, features: Features, coreset_size: int, max_bytes: float, metric: Metric
    ) -> None:
        context = TaskContext.get()
        self.partition = 0 if context is None else context.partitionId()
        self.features, self.coreset_size, self.max_bytes = features, coreset_size, max_bytes
        self.metric = metric
        self.kept: list[Points] = []
        self.compressor: Compressor | None = None
        self.n_bytes = self.n_features = 0

    def take(self, points: Points) -> Iterator[pa.RecordBatch]:
        """Keep a block of rows, compress it, or send it at once where all rows are wanted."""
        if not len(points):
            return
        width = points.shape[1]
        if self.n_features and width != self.n_features:
            raise self.features.unequal_lengths({self.n_features, width})
        self.n_features = width
        self.n_bytes += points.nbytes
        if self.compressor is None and self.n_bytes > self.max_bytes:
            self.compressor = Compressor(self.coreset_size)
            for earlier in self.kept:
                self._compress(earlier)
            self.kept = []
        if self.compressor is not None:
            self._compress(points)
        elif self.max_bytes == _ALL_ROWS:
            yield _rows_record(self.partition, points)
        else:
            self.kept.append(points)

    def _compress(self, points: Points) -> None:
        assert self.compressor is not None
        self.compressor.add(self.metric.points(points, "the stream"))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send the rows kept, or the coreset."""
        for points in self.kept:
            yield _rows_record(self.partition, points)
        found = None if self.compressor is None else self.compressor.coreset()
        if found is not None:
            yield _record(
                self.partition,
                found.n_rows,
                self.n_features,
                found.means.tobytes(),
                masses=found.masses.tobytes(),
                within=found.within,
            )


def _rows_record(partition: int, points: Points) -> pa.RecordBatch:
    return _record(partition, len(points), points.shape[1], points.tobytes())


def _record(
    partition: int,
    n_rows: int,
    n_features: int,
    points: bytes,
    masses: bytes | None = None,
    within: float | None = None,
    problem: str | None = None,
) -> pa.RecordBatch:
    columns = {
        "partition": pa.array([partition], pa.int32()),
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
