"""A micro-batch to a Batch, in one Spark job or two: its rows, or weighted means of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls them

from kmeander.arrays import Points, Weights
from kmeander.exceptions import InputError
from kmeander.kmeans.coreset import Compressor, Coreset, lexicographic, merged
from kmeander.records import Batch
from kmeander.records.event_time import as_text
from kmeander.spark.columns import unequal_lengths
from kmeander.spark.memory import bytes_to_spare
from kmeander.spark.rows import REJECTED, LearnableRows, RowReader
from kmeander.spark.sessions import parallelism, records_of

_LOG = logging.getLogger("kmeander.spark")
# What a task sends: blocks of rows, or one coreset (then with masses), or what it has set aside.
_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("n_rows", pa.int64()),
        ("n_features", pa.int32()),
        ("points", pa.binary()),
        ("weights", pa.binary()),
        ("masses", pa.binary()),
        ("within", pa.float64()),
        ("first_time", pa.int64()),
        ("last_time", pa.int64()),
        ("n_bad", pa.int64()),
        ("problem", pa.string()),
    ]
)
_SPARK_SCHEMA = (
    "partition int, n_rows long, n_features int, points binary, weights binary, masses binary, "
    "within double, first_time long, last_time long, n_bad long, problem string"
)

# Bytes of rows that a task may send before it sends a coreset instead.
_NO_ROWS, _ALL_ROWS = -1.0, float("inf")


@dataclass(frozen=True, eq=False)
class Collected:
    """What a micro-batch has brought: rows in an order of their own, or a coreset of them."""

    points: Points | None = None
    weights: Weights | None = None
    coreset: Coreset | None = None
    first_time: int | None = None  # microseconds since 1970
    last_time: int | None = None
    n_bad: int = 0
    example: str | None = None

    @property
    def n_rows(self) -> int:
        """Rows that can be learned."""
        if self.coreset is not None:
            return self.coreset.n_rows
        return 0 if self.points is None else len(self.points)

    @property
    def times(self) -> tuple[str, str] | None:
        """When the first and the last row happened, as text."""
        if self.first_time is None or self.last_time is None:
            return None
        return as_text(self.first_time), as_text(self.last_time)

    def batch(self, index: int, elapsed: float = 1.0) -> Batch | None:
        """Return it as batch `index`; None where nothing can be learned."""
        if self.coreset is not None:
            return self.coreset.batch(index, elapsed, self.times)
        if self.points is None or not len(self.points):
            return None
        return Batch(index, self.points, self.weights, elapsed, times=self.times)


@dataclass(frozen=True)
class Collector:
    """How micro-batches become batches.

    Parameters
    ----------
    reader : RowReader
    summary : {"auto", "exact", "coreset"}
    driver_bytes : int
        With "auto" a batch is exact while its features take no more.
    coreset_size : int
        Means of a batch that is not.
    """

    reader: RowReader
    summary: str
    driver_bytes: int
    coreset_size: int

    def collect(self, frame: DataFrame) -> Collected:
        """Bring the rows of `frame`, or means of them, to this process."""
        if self.summary == "coreset":
            return self._coreset(self._sent(frame, _NO_ROWS))
        spare = bytes_to_spare(frame.sparkSession)
        budget = spare if self.summary == "exact" else min(self.driver_bytes, spare)
        # A task cannot know how many rows the others have. Each sends its own while they fit into
        # an equal part of the budget; so all rows arrive, or some partition was too large for that.
        partitions = self._sent(frame, budget / parallelism(frame))
        n_bytes = sum(partition.n_bytes for partition in partitions)
        if n_bytes > budget:
            if budget == spare:
                _LOG.warning(
                    "A micro-batch of %.0f MiB is learned as a coreset: the memory of the driver, "
                    "or what Spark lets it receive, holds %.0f MiB of rows.",
                    n_bytes / 2**20,
                    budget / 2**20,
                )
            return self._coreset(partitions)
        # Uneven partitions that fit together: a second job fetches the rows.
        if any(partition.coreset is not None for partition in partitions):
            partitions = self._sent(frame, _ALL_ROWS)
        return self._exact(partitions)

    def rejected(self, frame: DataFrame) -> DataFrame:
        """Return the rows that cannot be learned, as text, and why."""
        reader = self.reader
        known = frame.withColumn("__kmeander_text__", F.to_json(F.struct("*")))
        selected = reader.selected(known, "__kmeander_text__")

        def why(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from map(reader.rejected, blocks)

        return selected.mapInArrow(why, REJECTED)

    def _sent(self, frame: DataFrame, max_bytes: float) -> list[_PartitionRows]:
        """Run the job: rows of each partition that has at most `max_bytes`, coresets of others."""
        task = _task(self.reader, self.coreset_size, max_bytes)
        partitions: dict[int, _PartitionRows] = {}
        job = self.reader.selected(frame).mapInArrow(task, _SPARK_SCHEMA)
        for row in records_of(job):
            if row["n_bad"] < 0:
                raise InputError(row["problem"])
            number = row["partition"]
            if number not in partitions:
                partitions[number] = _PartitionRows(self.reader.features.all_float32)
            partitions[number].take(row)
        found = [partitions[number] for number in sorted(partitions)]
        widths = {partition.n_features for partition in found if partition.n_rows}
        if len(widths) > 1:
            raise unequal_lengths(f"column {self.reader.features.columns[0]!r}", widths)
        return found

    def _exact(self, partitions: list[_PartitionRows]) -> Collected:
        """Sort rows lexicographically, those that are equal by weight.

        So a retried micro-batch with other partitions gives the same Batch.
        """
        blocks = [block for partition in partitions for block in partition.blocks]
        if not blocks:
            return _collected(partitions)
        points: Any = np.concatenate(blocks)
        given = [one for partition in partitions for one in partition.weights]
        weights = np.concatenate(given) if given else None
        # Adding 0 turns -0.0 into 0.0: the two are equal, so their order would be left to chance.
        points = points + points.dtype.type(0)
        order = order_of(points, weights)
        return _collected(
            partitions, points=points[order], weights=None if weights is None else weights[order]
        )

    def _coreset(self, partitions: list[_PartitionRows]) -> Collected:
        size, metric = self.coreset_size, self.reader.metric
        parts = (one.compressed(size, metric) for one in partitions if one.n_rows)
        return _collected(partitions, coreset=merged(parts, size))


def order_of(points: Points, weights: Weights | None) -> Any:
    """Return the order in which rows are learned: by features, then by weight; NaN comes last."""
    table: Any = points
    if weights is not None:
        table = np.column_stack([points, weights])
    if np.isnan(table).any():  # which is no more equal to itself than to anything else
        table = np.where(np.isnan(table), np.inf, table)
    return lexicographic(table)


def _collected(partitions: Iterable[_PartitionRows], **found: Any) -> Collected:
    known = list(partitions)
    times = [time for one in known for time in (one.first_time, one.last_time) if time is not None]
    return Collected(
        first_time=min(times, default=None),
        last_time=max(times, default=None),
        n_bad=sum(one.n_bad for one in known),
        # The first in an order that does not depend on which task was first.
        example=min((one.example for one in known if one.example is not None), default=None),
        **found,
    )


class _PartitionRows:
    """What one partition has sent."""

    def __init__(self, all_float32: bool) -> None:
        self.dtype = np.dtype(np.float32 if all_float32 else np.float64)
        self.blocks: list[Points] = []
        self.weights: list[Weights] = []
        self.coreset: Coreset | None = None
        self.n_features = self.n_rows = self.n_bad = 0
        self.example: str | None = None
        self.first_time: int | None = None
        self.last_time: int | None = None

    @property
    def n_bytes(self) -> int:
        return self.n_rows * self.n_features * self.dtype.itemsize

    def take(self, row: dict[str, Any]) -> None:
        self.n_bad += row["n_bad"]
        self.example = self.example or row["problem"]
        if not row["n_rows"]:
            return
        self.n_features = row["n_features"]
        self.n_rows += row["n_rows"]
        for time in (row["first_time"], row["last_time"]):
            if time is not None:
                self.first_time = time if self.first_time is None else min(self.first_time, time)
                self.last_time = time if self.last_time is None else max(self.last_time, time)
        if row["masses"] is None:
            points = np.frombuffer(row["points"], self.dtype).reshape(-1, self.n_features)
            self.blocks.append(points)
            if row["weights"] is not None:
                self.weights.append(np.frombuffer(row["weights"]))
        else:
            means = np.frombuffer(row["points"]).reshape(-1, self.n_features)
            masses = np.frombuffer(row["masses"])
            self.coreset = Coreset(means, masses, row["within"], row["n_rows"])

    def compressed(self, size: int, metric: Any) -> Coreset:
        if self.coreset is not None:
            return self.coreset
        compressor = Compressor(size)
        weights: list[Weights | None] = [*self.weights] or [None] * len(self.blocks)
        for block, given in zip(self.blocks, weights, strict=True):
            compressor.add(metric.points(block, "the stream"), given)
        found = compressor.coreset()
        assert found is not None
        return found


def _task(
    reader: RowReader, coreset_size: int, max_bytes: float
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what each task does: send rows while they take at most `max_bytes`."""

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sender = _Sender(reader, coreset_size, max_bytes)
        try:
            for batch in batches:
                yield from sender.take(reader.read(batch))
        except InputError as error:
            yield sender.record(n_bad=-1, problem=str(error))
            for _ in batches:  # read to the end: else Spark ends this worker and starts another
                pass
            return
        yield from sender.finish()

    return send


class _Sender:
    """Rows of the task's partition on their way to the driver."""

    def __init__(self, reader: RowReader, coreset_size: int, max_bytes: float) -> None:
        context = TaskContext.get()
        self.partition = 0 if context is None else context.partitionId()
        self.reader, self.coreset_size, self.max_bytes = reader, coreset_size, max_bytes
        self.kept: list[LearnableRows] = []
        self.compressor: Compressor | None = None
        self.n_bytes = self.n_features = self.n_bad = 0
        self.example: str | None = None
        self.times: list[int] = []

    def take(self, rows: LearnableRows) -> Iterator[pa.RecordBatch]:
        """Keep a block of rows, compress it, or send it at once where all rows are wanted."""
        self.n_bad += rows.n_bad
        self.example = self.example or rows.example
        if not len(rows.points):
            return
        width = rows.points.shape[1]
        if self.n_features and width != self.n_features:
            name = self.reader.features.columns[0]
            raise unequal_lengths(f"column {name!r}", {self.n_features, width})
        self.n_features = width
        self.n_bytes += rows.points.nbytes
        if rows.times is not None:
            self.times += [int(rows.times.min()), int(rows.times.max())]
        if self.compressor is None and self.n_bytes > self.max_bytes:
            self.compressor = Compressor(self.coreset_size)
            for earlier in self.kept:
                self._compress(earlier)
            self.kept = []
        if self.compressor is not None:
            self._compress(rows)
        elif self.max_bytes == _ALL_ROWS:
            yield self._rows(rows)
        else:
            self.kept.append(rows)

    def _compress(self, rows: LearnableRows) -> None:
        assert self.compressor is not None
        points = self.reader.metric.points(rows.points, "the stream")
        self.compressor.add(points, rows.weights)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send the rows kept, or the coreset, and what was set aside."""
        for rows in self.kept:
            yield self._rows(rows)
        found = None if self.compressor is None else self.compressor.coreset()
        if found is not None:
            yield self.record(
                n_rows=found.n_rows,
                points=found.means.tobytes(),
                masses=found.masses.tobytes(),
                within=found.within,
                **self._since_and_until(),
            )
        if self.n_bad:
            yield self.record(n_bad=self.n_bad, problem=self.example)

    def _rows(self, rows: LearnableRows) -> pa.RecordBatch:
        weights = None if rows.weights is None else rows.weights.tobytes()
        return self.record(
            n_rows=len(rows.points),
            points=rows.points.tobytes(),
            weights=weights,
            **self._since_and_until(),
        )

    def _since_and_until(self) -> dict[str, int | None]:
        return {
            "first_time": min(self.times, default=None),
            "last_time": max(self.times, default=None),
        }

    def record(self, **values: Any) -> pa.RecordBatch:
        """Return one row of what is sent."""
        known = {
            "partition": self.partition,
            "n_rows": 0,
            "n_features": self.n_features,
            "n_bad": 0,
            **values,
        }
        columns = [pa.array([known.get(field.name)], field.type) for field in _SCHEMA]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
