"""A Kafka broker to try things with: librdkafka's mock cluster, in this process.

    python examples/mock_kafka.py readings.csv broker.txt

Every row of the CSV file becomes a JSON message of the topic "readings"; a topic "clusters" is
there for results. The address is written to the second file once all is there. It ends with
Ctrl-C, and forgets everything: a broker for tests, which keeps some megabytes per partition.
"""

from __future__ import annotations

import csv
import json
import signal
import sys
from pathlib import Path

from confluent_kafka import Producer


def main(rows: Path, address_file: Path) -> None:
    holder = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    (broker,) = holder.list_topics(timeout=10).brokers.values()
    address = f"{broker.host}:{broker.port}"
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 0})
    with rows.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            message = {name: float(value) for name, value in row.items()}
            # One partition: only within one does a topic keep the order.
            producer.produce("readings", json.dumps(message), partition=0)
            producer.poll(0)
    producer.produce("clusters", b"")  # a topic is made by its first message
    producer.flush()
    address_file.write_text(address, encoding="ascii")
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main(Path(sys.argv[1]), Path(sys.argv[2]))
