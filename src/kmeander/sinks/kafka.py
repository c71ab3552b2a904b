"""The cluster of every row to a Kafka topic, each row once, also after a crash.

A topic cannot be cut back. Instead, a run that goes on first reads what the topic has been given
since the last commit, and leaves those rows out when they come again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kmeander.exceptions import StreamError
from kmeander.sinks.assignments import lines_of
from kmeander.sinks.contract import LearnedBatch, Position, Sink
from kmeander.wire.kafka import SECONDS, Address, client, explain, partitions_of

if TYPE_CHECKING:
    import confluent_kafka

# Headers of every message: which run sent it, and which row of the stream it is about.
RUN, ROW = "kmeander-run", "kmeander-row"


class AssignmentTopic(Sink):
    """Sends one JSON object per row, keyed by what names the row.

    Parameters
    ----------
    address : str
        ``kafka://host:port/topic``
    options : mapping
        More settings of librdkafka.
    """

    def __init__(self, address: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__(address)
        self._address = Address.parsed(address)
        self._options = dict(options or {})
        self._run = ""
        self._failure: confluent_kafka.KafkaError | None = None
        self._ends: dict[int, int] = {}
        self._there: set[bytes] = set()

    def open(self, position: Position | None) -> None:
        """Reach the brokers; after a restart, read what was sent since the last commit."""
        self._producer = client(
            "Producer",
            self._address,
            {"enable.idempotence": True, "linger.ms": 20, **self._options},
        )
        partitions = partitions_of(self._producer, self._address)
        self._run = secrets.token_hex(8) if position is None else position["run"]
        self._ends = self._watermarks(partitions)
        if position is not None:
            self._there = self._sent_since(position) | {row.encode() for row in position["there"]}

    def _reader(self) -> Any:
        return client(
            "Consumer",
            self._address,
            {
                "group.id": f"kmeander-{self._run or 'new'}",
                "enable.auto.commit": False,
                **self._options,
            },
        )

    def _watermarks(self, partitions: list[int]) -> dict[int, int]:
        """Return where each partition ends now."""
        from confluent_kafka import KafkaException, TopicPartition

        reader = self._reader()
        try:
            return {
                partition: reader.get_watermark_offsets(
                    TopicPartition(self._address.topic, partition), timeout=SECONDS
                )[1]
                for partition in partitions
            }
        except KafkaException as error:
            raise StreamError(explain(self._address, error.args[0])) from error
        finally:
            reader.close()

    def _sent_since(self, position: Position) -> set[bytes]:
        """Return the rows of which this run has sent word since `position`."""
        from confluent_kafka import TopicPartition

        waited = {
            partition: end
            for partition, end in self._ends.items()
            if end > position["ends"].get(str(partition), 0)
        }
        reader = self._reader()
        reader.assign(
            [
                TopicPartition(
                    self._address.topic, partition, position["ends"].get(str(partition), 0)
                )
                for partition in waited
            ]
        )
        rows: set[bytes] = set()
        deadline = time.monotonic() + SECONDS
        while waited:
            if time.monotonic() > deadline:
                raise StreamError(
                    f"{self.name}: what was sent since the last commit could not be read back "
                    f"within {SECONDS:g} s, so rows might come twice. Try again when the brokers "
                    "answer."
                )
            for message in reader.consume(1000, 0.2):
                if message.error() is not None:
                    raise StreamError(explain(self._address, message.error()))
                deadline = time.monotonic() + SECONDS
                headers = dict(message.headers() or [])
                if headers.get(RUN) == self._run.encode():
                    rows.add(headers[ROW])
                if message.offset() + 1 >= waited.get(message.partition(), 0):
                    waited.pop(message.partition(), None)
        reader.close()
        return rows

    def write(self, learned: LearnedBatch) -> None:
        """Send the rows of a batch that the topic does not have yet."""
        rows = zip(_texts(learned.origin), _texts(learned.keys), lines_of(learned), strict=True)
        for origin, key, line in rows:
            if origin.encode() in self._there:
                self._there.discard(origin.encode())
            else:
                self._send(line, key, [(RUN, self._run.encode()), (ROW, origin.encode())])

    def _send(self, line: str, key: str, headers: list[tuple[str, bytes]]) -> None:
        while True:
            try:
                self._producer.produce(
                    self._address.topic,
                    line.encode(),
                    key.encode(),
                    on_delivery=self._heard,
                    headers=headers,
                )
                self._producer.poll(0)
                return
            except BufferError:  # too much is on its way: wait, never drop
                self._producer.poll(0.1)
                self._raise_failure()

    def _heard(self, error: confluent_kafka.KafkaError | None, message: Any) -> None:
        if error is not None:
            self._failure = error
        else:
            partition, following = message.partition(), message.offset() + 1
            self._ends[partition] = max(following, self._ends.get(partition, 0))

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise StreamError(
                f"{explain(self._address, self._failure)} Rows that were not delivered are sent "
                "again when the run goes on from its checkpoint."
            )

    def commit(self) -> Position:
        """Wait until all is delivered."""
        self._producer.flush()
        self._raise_failure()
        ends = {str(partition): end for partition, end in sorted(self._ends.items())}
        # Partitions may be read in another order after a restart: what is there may come later.
        there = sorted(row.decode() for row in self._there)
        return {"run": self._run, "ends": ends, "there": there}

    def close(self) -> None:
        """Wait until all is delivered, or has failed."""
        self._producer.flush()
        self._raise_failure()


def _texts(table: Any) -> list[str]:
    """Return the values of each row as text, with a slash between."""
    columns = [column.to_pylist() for column in table.columns]
    return ["/".join(map(str, values)) for values in zip(*columns, strict=True)]
