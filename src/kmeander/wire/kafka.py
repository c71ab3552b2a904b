"""What source and sink share of Kafka: addresses, connecting, and words for what goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kmeander.exceptions import InputError, KmeanderError, StreamError

if TYPE_CHECKING:
    import confluent_kafka

SCHEME = "kafka://"
SECONDS = 10.0  # until brokers that do not answer are given up at the start


@dataclass(frozen=True)
class Address:
    """Where a topic is.

    Examples
    --------
    >>> Address.parsed("kafka://one:9092,two:9092/readings")
    Address(brokers='one:9092,two:9092', topic='readings')
    """

    brokers: str
    topic: str

    @classmethod
    def parsed(cls, text: str) -> Address:
        """Read ``kafka://host:port/topic``."""
        brokers, _, topic = text.removeprefix(SCHEME).partition("/")
        if not text.startswith(SCHEME) or not brokers or not topic or "/" in topic:
            raise InputError(
                f"{text!r} is no address of a Kafka topic. Write kafka://host:port/topic, with "
                "commas between several brokers."
            )
        return cls(brokers, topic)


def client(kind: str, address: Address, settings: Mapping[str, Any]) -> Any:
    """Return a Consumer or Producer of confluent-kafka."""
    try:
        import confluent_kafka
    except ModuleNotFoundError as error:
        raise KmeanderError("Kafka needs confluent-kafka: pip install 'kmeander[kafka]'") from error
    # librdkafka writes to stderr by itself otherwise; we report what matters.
    quiet = logging.getLogger("kmeander.kafka")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    try:
        return getattr(confluent_kafka, kind)(
            {"bootstrap.servers": address.brokers, "client.id": "kmeander", **settings},
            logger=quiet,
        )
    except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
        what = error.args[0] if error.args else error
        message = what.str() if hasattr(what, "str") else what
        raise InputError(f"the settings of Kafka are refused: {message}.") from error


def partitions_of(connected: Any, address: Address, seconds: float = SECONDS) -> list[int]:
    """Return the partitions of the topic, or say why they cannot be known."""
    import confluent_kafka

    try:
        topic = connected.list_topics(address.topic, timeout=seconds).topics[address.topic]
    except confluent_kafka.KafkaException as error:
        raise StreamError(explain(address, error.args[0])) from error
    if topic.error is not None or not topic.partitions:
        raise StreamError(
            f"the brokers at {address.brokers} have no topic {address.topic!r}. Make it first, or "
            "correct the name."
        )
    return sorted(topic.partitions)


def explain(address: Address, error: confluent_kafka.KafkaError) -> str:
    """Return what an error of librdkafka means for the reader."""
    import confluent_kafka

    away = (
        confluent_kafka.KafkaError._ALL_BROKERS_DOWN,
        confluent_kafka.KafkaError._TRANSPORT,
        confluent_kafka.KafkaError._RESOLVE,
        confluent_kafka.KafkaError._TIMED_OUT,
    )
    if error.code() in away:
        return f"the Kafka brokers at {address.brokers} do not answer ({error.str()})."
    return f"Kafka at {address.brokers}, topic {address.topic!r}: {error.str()}."
