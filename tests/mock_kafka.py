"""librdkafka's mock cluster, in this process, speaking the protocol over TCP to any other.

The wheel of confluent-kafka brings the library; what its Python does not offer (topics with a given
number of partitions, brokers that go away) is called through ctypes.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import confluent_kafka

from tests.kafka_cluster import Cluster

_PRODUCER = 0


def _library() -> Any:
    (path,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob(
        "librdkafka-*.so*"
    )
    library = ctypes.CDLL(str(path))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library


class MockCluster(Cluster):
    """One broker on 127.0.0.1."""

    def __init__(self) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(512)
        conf = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        self._library.rd_kafka_conf_set(conf, b"log_level", b"0", error, 512)
        self._handle = ctypes.c_void_p(self._library.rd_kafka_new(_PRODUCER, conf, error, 512))
        assert self._handle, error.value
        self._cluster = ctypes.c_void_p(self._library.rd_kafka_mock_cluster_new(self._handle, 1))
        address = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.address = address.decode()

    def make_topic(self, topic: str, n_partitions: int) -> str:
        """Make a topic and return its address."""
        self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), n_partitions, 1)
        return self.url(topic)

    def down(self) -> None:
        """Let the broker go away."""
        self._library.rd_kafka_mock_broker_set_down(self._cluster, 1)

    def up(self) -> None:
        """Let it come back."""
        self._library.rd_kafka_mock_broker_set_up(self._cluster, 1)

    def close(self) -> None:
        """End the broker."""
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._handle)
