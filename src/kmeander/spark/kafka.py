"""Rows with their clusters to a Kafka topic, each once, whichever driver or executor dies."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls them

from kmeander.sinks.kafka_delivery import Message, OnceDelivery
from kmeander.spark.sessions import records_of
from kmeander.wire.kafka import Address, Brokers

# Rows of a batch go to so many transactions, by their key, whatever Spark's partitions are: so the
# rows of each are the same when the batch comes again.
PIECES = 4


@dataclass(frozen=True)
class KafkaRows:
    """What `learn` may take as its `write`: every row of a batch becomes one message.

    Each is there once for those who read what is committed (``isolation.level=read_committed``,
    which is the default of many clients), after any number of restarts from the same checkpoint.
    Executors need confluent-kafka.

    Parameters
    ----------
    address : str
        ``kafka://host:port[,host:port]/topic``
    key : str, optional
        Column that becomes the key of a message.
    columns : tuple of str, optional
        What a message holds, as JSON; by default all columns of the stream, and ``cluster``, ``id``
        and ``distance``.
    options : mapping, optional
        More settings of librdkafka.
    """

    address: str
    key: str | None = None
    columns: tuple[str, ...] | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Address.parsed(self.address)

    def __call__(self, rows: DataFrame, batch_id: int, stream: str) -> None:
        """Send the rows of a batch of a stream, unless they have arrived."""
        names = rows.columns if self.columns is None else list(self.columns)
        value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in names)))
        key: Column = value if self.key is None else F.col(f"`{self.key}`").cast("string")
        pieces = rows.select(
            key.cast("binary").alias("key"), value.cast("binary").alias("value")
        ).withColumn("piece", F.pmod(F.crc32(F.coalesce("key", "value")), F.lit(PIECES)))
        together = pieces.repartition(PIECES, "piece").sortWithinPartitions("piece")
        send = _task(self.address, self.options, batch_id, stream, has_key=self.key is not None)
        records_of(together.mapInArrow(send, "n_sent long"))


def _task(
    address: str, options: Mapping[str, str], batch_id: int, stream: str, *, has_key: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does: send pieces, which it sees one after the other."""

    def send(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[Message] = []
        piece = -1
        for block in blocks:
            columns = (block.column(name).to_pylist() for name in ("piece", "key", "value"))
            for number, key, value in zip(*columns, strict=True):
                if number != piece:
                    yield deliver(piece, waiting)
                    piece, waiting = number, []
                waiting.append(Message(value, key if has_key else None, []))
        yield deliver(piece, waiting)

    def deliver(piece: int, messages: list[Message]) -> pa.RecordBatch:
        n_sent = 0
        if messages:
            name = f"kmeander-{zlib.crc32(address.encode()):08x}-{stream}-{piece}"
            delivery = OnceDelivery(Brokers(address, options), lambda: False, name)
            try:
                n_sent = len(messages) if delivery.send_once(batch_id, messages) else 0
            finally:
                delivery.close()
        return pa.RecordBatch.from_arrays([pa.array([n_sent], pa.int64())], ["n_sent"])

    return send
