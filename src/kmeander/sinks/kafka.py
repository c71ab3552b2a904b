"""The cluster of every row to a Kafka topic, each row once, also after a crash.

A topic cannot be cut back. Instead, a run that goes on first reads what the topic has been given
since the last commit, and leaves those rows out when they come again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kmeander.exceptions import StreamError
from kmeander.sinks.assignments import lines_of
from kmeander.sinks.contract import LearnedBatch, Position, Sink
from kmeander.sinks.kafka_delivery import Delivery, Message, TransactionalDelivery
from kmeander.wire.kafka import SECONDS, AwayError, Brokers, is_away

# Headers of every message: which run sent it, and which row of the stream it is about.
RUN, ROW = "kmeander-run", "kmeander-row"


@dataclass(frozen=True)
class Sending:
    """How rows are sent to a topic.

    Parameters
    ----------
    options : mapping
        More settings of librdkafka, as `kafka_settings` returns them.
    transactions : bool
        Whether a batch can be read as a whole or not at all.
    notify : callable
        Called with a sentence when the brokers do not answer, once each time.
    is_stopped : callable
        Whether the run was asked to stop: then brokers that are away are not waited for.
    """

    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets among them
    transactions: bool = False
    notify: Callable[[str], None] = lambda _: None
    is_stopped: Callable[[], bool] = lambda: False


class AssignmentTopic(Sink):
    """Sends one JSON object per row, keyed by what names the row.

    Parameters
    ----------
    address : str
        ``kafka://host:port/topic``
    sending : Sending
    """

    def __init__(self, address: str, sending: Sending) -> None:
        super().__init__(address)
        self._brokers = Brokers(address, sending.options, sending.notify)
        self._sending = sending
        self._run = ""
        self._there: set[bytes] = set()

    def open(self, position: Position | None) -> None:
        """Reach the brokers; after a restart, read what was sent since the last commit."""
        self._run = secrets.token_hex(8) if position is None else position["run"]
        self._reader = self._consumer("read_committed")
        self._topic = self._brokers.topic(self._reader)
        if position is not None:
            self._topic.require(position, self.name, "written")
        is_stopped = self._sending.is_stopped
        if self._sending.transactions:
            self._delivery: Delivery = TransactionalDelivery(
                self._brokers, is_stopped, f"kmeander-{self._run}"
            )
        else:
            self._delivery = Delivery(self._brokers, is_stopped)
        ends = self._ends_now()
        if position is not None:
            self._there = self._sent_since(position, ends)
            self._there |= {row.encode() for row in position["there"]}
        self._delivery.ends = ends

    def _consumer(self, isolation: str) -> Any:
        return self._brokers.client(
            "Consumer",
            {
                "group.id": f"kmeander-{self._run}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "isolation.level": isolation,
            },
        )

    def _ends_now(self) -> dict[int, int]:
        """Return where each partition ends now, with transactions that are open."""
        reader = self._consumer("read_uncommitted")
        try:
            return {
                partition: self._brokers.watermarks(reader, partition, SECONDS)[1]
                for partition in self._topic.partitions
            }
        finally:
            reader.close()

    def _sent_since(self, position: Position, ends: Mapping[int, int]) -> set[bytes]:
        """Return the rows that this run has sent since `position`, but for aborted transactions."""
        from confluent_kafka import KafkaError, TopicPartition

        name = self._brokers.address.topic
        since = {partition: position["ends"].get(str(partition), 0) for partition in ends}
        waited = {partition for partition, end in ends.items() if end > since[partition]}
        places = [TopicPartition(name, number, since[number]) for number in sorted(waited)]
        self._reader.assign(places)
        rows: set[bytes] = set()
        deadline = time.monotonic() + SECONDS
        while waited:
            if time.monotonic() > deadline:
                raise StreamError(
                    f"{self.name}: what was sent since the last commit could not be read back "
                    f"within {SECONDS:g} s, so rows might come twice. Try again when the brokers "
                    "answer and no transaction in the topic is open."
                )
            for message in self._reader.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    deadline = time.monotonic() + SECONDS
                    headers = dict(message.headers() or [])
                    if headers.get(RUN) == self._run.encode():
                        rows.add(headers[ROW])
                elif error.code() == KafkaError._PARTITION_EOF:
                    if message.offset() >= ends[message.partition()]:
                        waited.discard(message.partition())
                elif not is_away(error):
                    raise self._brokers.error(error)
        self._reader.unassign()
        return rows

    def write(self, learned: LearnedBatch) -> None:
        """Send the rows of a batch that the topic does not have yet."""
        rows = zip(_texts(learned.origin), _texts(learned.keys), lines_of(learned), strict=True)
        messages = []
        for origin, key, line in rows:
            row = origin.encode()
            if row in self._there:
                self._there.discard(row)
            else:
                headers = [(RUN, self._run.encode()), (ROW, row)]
                messages.append(Message(line.encode(), key.encode(), headers))
        self._delivery.send(messages)

    def commit(self) -> Position:
        """Wait until all is delivered, and see that it is in the topic that was begun."""
        self._delivery.wait()
        with suppress(AwayError):  # all is delivered; the next commit, or the next run, will tell
            now = self._brokers.topic(self._reader, seconds=1.0)
            now.require(self._topic.ids, self.name, "written")
        ends = {str(partition): end for partition, end in sorted(self._delivery.ends.items())}
        # Partitions may be read in another order after a restart: what is there may come later.
        there = sorted(row.decode() for row in self._there)
        return {"run": self._run, "ends": ends, "there": there, **self._topic.ids}

    def close(self) -> None:
        """Let go of the brokers."""
        try:
            self._delivery.close()
        finally:
            self._reader.close()


def _texts(table: Any) -> list[str]:
    """Return the values of each row as text, with a slash between."""
    columns = [column.to_pylist() for column in table.columns]
    return ["/".join(map(str, values)) for values in zip(*columns, strict=True)]
