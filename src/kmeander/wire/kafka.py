"""What source and sink share of Kafka: addresses, clients, and what brokers say of a topic."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kmeander.exceptions import InputError, KmeanderError, StreamError, argument

if TYPE_CHECKING:
    import confluent_kafka

SCHEME = "kafka://"
SECONDS = 10.0  # until brokers that do not answer are given up at the start
PAUSE = 0.2  # seconds
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # of a topic of brokers before Kafka 2.8: sixteen zero bytes

Answer = TypeVar("Answer")


class AwayError(StreamError):
    """The brokers do not answer."""


class MissingError(StreamError):
    """The brokers have no such topic."""


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


@dataclass(frozen=True)
class Topic:
    """What brokers say of a topic.

    Parameters
    ----------
    partitions : tuple of int
    cluster_id, topic_id : str or None
        No other cluster, and no other topic, has the same: not even one that is made anew under
        the name of one that was deleted. None where brokers do not tell.
    """

    partitions: tuple[int, ...]
    cluster_id: str | None
    topic_id: str | None

    @property
    def ids(self) -> dict[str, str | None]:
        """What a checkpoint keeps of it."""
        return {"cluster_id": self.cluster_id, "topic_id": self.topic_id}

    def require(self, ids: Mapping[str, Any], name: str, done: str) -> None:
        """Refuse to go on where `ids` are those of another topic.

        Parameters
        ----------
        ids : mapping
            As in a checkpoint; those that are missing, or None, are not known.
        name : str
            The topic, as messages show it.
        done : {"read", "written"}
            What was done with the topic that had these ids.
        """
        before, now = ids.get("cluster_id"), self.cluster_id
        if before is not None and now is not None and before != now:
            raise StreamError(
                f"{name} is on the Kafka cluster {now}, the topic that the checkpoint has {done} "
                f"on {before}. Correct the address, or begin anew with another "
                f"{argument('checkpoint')}."
            )
        before, now = ids.get("topic_id"), self.topic_id
        if before is not None and now is not None and before != now:
            raise StreamError(
                f"{name} was deleted and made anew since it was {done}, so places in it mean "
                f"nothing any more. Begin anew with another {argument('checkpoint')}."
            )


class Brokers:
    """The brokers of one topic: makes clients for it, and asks what it is.

    Parameters
    ----------
    address : str
        ``kafka://host:port[,host:port]/topic``
    options : mapping, optional
        More settings of librdkafka, as `kafka_settings` returns them.
    notify : callable
        Called with a sentence when the brokers do not answer, once each time.
    """

    def __init__(
        self,
        address: str,
        options: Mapping[str, str] | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.address = Address.parsed(address)
        self._options = dict(options or {})
        self._notify = notify
        self._is_away = False
        self._refusal: confluent_kafka.KafkaError | None = None
        self._admin: Any = None

    def client(
        self, kind: str, settings: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> Any:
        """Return a Consumer or Producer: `settings` over those of the user over `defaults`."""
        own = {"bootstrap.servers": self.address.brokers, **settings, "error_cb": self.hear}
        return self._made(kind, {**(defaults or {}), **self._options, **own})

    def _made(self, kind: str, settings: Mapping[str, Any]) -> Any:
        try:
            import confluent_kafka
            from confluent_kafka.admin import AdminClient
        except ModuleNotFoundError as error:
            raise KmeanderError(
                "Kafka needs confluent-kafka: pip install 'kmeander[kafka]'"
            ) from error
        make = AdminClient if kind == "AdminClient" else getattr(confluent_kafka, kind)
        # librdkafka writes to stderr by itself otherwise; we report what matters.
        quiet = logging.getLogger("kmeander.kafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        try:
            return make({"client.id": "kmeander", **settings}, logger=quiet)
        except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
            what = error.args[0] if error.args else error
            message = what.str() if hasattr(what, "str") else what
            raise InputError(f"the settings of Kafka are refused: {message}.") from error

    def hear(self, error: confluent_kafka.KafkaError) -> None:
        """Say once that the brokers are away; librdkafka goes on trying."""
        import confluent_kafka

        codes = confluent_kafka.KafkaError
        if error.code() in (codes._AUTHENTICATION, codes._SSL):
            self._refusal = error
        if not self._is_away:
            self._is_away = True
            self._notify(f"{self.explain(error)} Waiting for them.")

    def answered(self) -> None:
        """Hear that they are there, so that it is said again when they go away."""
        self._is_away = False

    def explain(self, error: confluent_kafka.KafkaError) -> str:
        """Return what an error of librdkafka means for the reader."""
        if self._refusal is not None:
            return f"the Kafka brokers at {self.address.brokers} refuse: {self._refusal.str()}."
        if is_away(error):
            return f"the Kafka brokers at {self.address.brokers} do not answer ({error.str()})."
        return f"Kafka at {self.address.brokers}, topic {self.address.topic!r}: {error.str()}."

    def error(self, error: confluent_kafka.KafkaError) -> StreamError:
        """Return what to raise for an error of librdkafka."""
        import confluent_kafka

        if error.code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
            return MissingError(
                f"the brokers at {self.address.brokers} have no topic {self.address.topic!r}. Make "
                "it first, or correct the name."
            )
        kind = AwayError if is_away(error) else StreamError
        return kind(self.explain(error))

    def ask(self, call: Callable[[float], Answer], seconds: float) -> Answer:
        """Return what brokers answer to a call with a time-out; until it is over, ask again."""
        import confluent_kafka

        deadline = time.monotonic() + seconds
        while True:
            try:
                return call(max(deadline - time.monotonic(), PAUSE))
            except confluent_kafka.KafkaException as error:
                what = error.args[0]
                is_over = time.monotonic() + PAUSE > deadline
                if is_over or self._refusal is not None or not is_away(what):
                    raise self.error(what) from error
                time.sleep(PAUSE)

    def topic(self, consumer: Any, seconds: float = SECONDS) -> Topic:
        """Ask for the topic as it is now.

        A consumer asks: where a producer names a topic that is not there, brokers make it. It then
        knows partitions that were added, too.
        """

        def asked(seconds: float) -> Topic:
            try:
                cluster = consumer.list_topics(name, timeout=seconds)
            finally:
                if not consumer.assignment():  # else it would take a message, and drop it
                    consumer.poll(0)  # hear what librdkafka has to say of a failure
            found = cluster.topics[name]
            if found.error is not None:
                raise confluent_kafka.KafkaException(found.error)
            # librdkafka's mock cluster has no controller, and no ids of topics.
            has_ids = cluster.controller_id in cluster.brokers
            topic_id = self._topic_id(seconds) if has_ids else None
            return Topic(tuple(sorted(found.partitions)), cluster.cluster_id, topic_id)

        import confluent_kafka

        name = self.address.topic
        return self.ask(asked, seconds)

    def watermarks(self, consumer: Any, partition: int, seconds: float) -> tuple[int, int]:
        """Return the first offset of a partition and the one after its last."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self.address.topic, partition)
        found: tuple[int, int] = self.ask(
            lambda seconds: consumer.get_watermark_offsets(place, timeout=seconds), seconds
        )
        return found

    def _topic_id(self, seconds: float) -> str | None:
        import confluent_kafka

        if self._admin is None:
            own = {"bootstrap.servers": self.address.brokers}
            self._admin = self._made("AdminClient", {**self._options, **own})
        name = self.address.topic
        asked = confluent_kafka.TopicCollection([name])
        answers = self._admin.describe_topics(asked, request_timeout=seconds)
        topic_id = str(answers[name].result().topic_id)
        return None if topic_id == _NO_ID else topic_id


def is_away(error: confluent_kafka.KafkaError) -> bool:
    """Whether an error means that the brokers do not answer, and may do so later."""
    import confluent_kafka

    codes = confluent_kafka.KafkaError
    return error.code() in (
        codes._ALL_BROKERS_DOWN,
        codes._TRANSPORT,
        codes._RESOLVE,
        codes._TIMED_OUT,
        codes._MSG_TIMED_OUT,
        # While the leader of a partition changes, or a broker starts.
        codes.LEADER_NOT_AVAILABLE,
        codes.NOT_LEADER_FOR_PARTITION,
        codes.BROKER_NOT_AVAILABLE,
        codes.REQUEST_TIMED_OUT,
        codes.NETWORK_EXCEPTION,
    )
