"""What tests do with a Kafka cluster, whichever it is: send messages, and read all there are."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

SILENT = logging.getLogger("tests.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


class Cluster:
    """One broker on 127.0.0.1."""

    address: str

    def url(self, topic: str) -> str:
        """Return what the command line calls a topic."""
        return f"kafka://{self.address}/{topic}"

    def producer(self, **settings: Any) -> Producer:
        ours = {"bootstrap.servers": self.address, "linger.ms": 0, "enable.idempotence": True}
        return Producer({**ours, **settings}, logger=SILENT)

    def consumer(self, **settings: Any) -> Consumer:
        ours = {
            "bootstrap.servers": self.address,
            "group.id": "tests",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
        return Consumer({**ours, **settings}, logger=SILENT)

    def send(self, topic: str, payloads: Iterable[bytes | None], n_partitions: int = 1) -> None:
        """Send messages, to the partitions in turn."""
        producer = self.producer()
        for index, payload in enumerate(payloads):
            producer.produce(topic, payload, partition=index % n_partitions)
            producer.poll(0)
        assert producer.flush(120) == 0

    def messages(
        self, topic: str, partitions: Sequence[int], isolation: str = "read_committed"
    ) -> list[confluent_kafka.Message]:
        """Return all messages of a topic."""
        consumer = self.consumer(**{"isolation.level": isolation})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: list[confluent_kafka.Message] = []
        ended: set[int | None] = set()
        while len(ended) < len(partitions):
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    found.append(message)
                else:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    ended.add(message.partition())
        consumer.close()
        return found

    def committed(self, topic: str, group: str) -> int:
        """Return the offset that a group shows for partition 0."""
        consumer = self.consumer(**{"group.id": group})
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
        consumer.close()
        return found.offset
