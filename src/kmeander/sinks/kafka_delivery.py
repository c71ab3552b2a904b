"""Rows to a topic: each once and in order, or a batch of them whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kmeander.exceptions import StreamError, argument
from kmeander.wire.kafka import SECONDS, Brokers, is_away

if TYPE_CHECKING:
    import confluent_kafka

PATIENCE = 4.0  # seconds after being asked to stop, until what does not arrive is given up
PAUSE = 0.2  # seconds
AGAIN = "Rows that were not delivered are sent again when the run goes on from its checkpoint."


@dataclass(frozen=True)
class Message:
    """One message of a topic."""

    value: bytes
    key: bytes | None
    headers: list[tuple[str, bytes]]


class Delivery:
    """An idempotent producer: what it sends arrives once, and in order within a partition.

    It waits for brokers that are away, and drops nothing; asked to stop, it waits a little longer.

    Parameters
    ----------
    brokers : Brokers
    is_stopped : callable
        Whether the run was asked to stop.
    settings : mapping, optional
        More of librdkafka, for subclasses.
    """

    def __init__(
        self, brokers: Brokers, is_stopped: Callable[[], bool], **settings: str | int
    ) -> None:
        self._brokers = brokers
        self._is_stopped = is_stopped
        self._failure: confluent_kafka.KafkaError | None = None
        self._heard_at = time.monotonic()
        self._is_given_up = False
        self.ends: dict[int, int] = {}  # one after the last message, by partition
        ours = {"enable.idempotence": True, "acks": "all", **settings}
        self._producer: Any = brokers.client("Producer", ours, defaults=self._defaults())

    def _defaults(self) -> dict[str, Any]:
        # Without end: brokers may be away for longer than the five minutes that are usual.
        return {"linger.ms": 20, "message.timeout.ms": 0}

    def send(self, messages: Sequence[Message]) -> None:
        """Begin to send."""
        for message in messages:
            self._produce(message)

    def wait(self) -> None:
        """Wait until all is delivered."""
        while self._producer.flush(PAUSE):
            self._endure()
        self._raise_failure()

    def _produce(self, message: Message) -> None:
        import confluent_kafka

        while True:
            try:
                self._producer.produce(
                    self._brokers.address.topic,
                    message.value,
                    message.key,
                    on_delivery=self._heard,
                    headers=message.headers,
                )
                self._producer.poll(0)
                return
            except BufferError:  # too much is on its way: wait, never drop
                self._producer.poll(PAUSE)
                self._endure()
            except confluent_kafka.KafkaException as error:
                raise self._failed(error.args[0]) from error

    def _heard(self, error: confluent_kafka.KafkaError | None, message: Any) -> None:
        self._heard_at = time.monotonic()
        if error is not None:
            self._failure = error
            return
        self._brokers.answered()
        partition, following = message.partition(), message.offset() + 1
        self.ends[partition] = max(following, self.ends.get(partition, 0))

    def _endure(self) -> None:
        """Go on waiting, unless something failed, or the run was asked to stop a while ago."""
        self._producer.poll(0)  # hear that the brokers are away
        self._raise_failure()
        if not self._is_stopped():
            self._heard_at = time.monotonic()
        elif time.monotonic() - self._heard_at > PATIENCE:
            self._is_given_up = True
            raise StreamError(
                f"stopped while the Kafka brokers at {self._brokers.address.brokers} do not "
                f"answer. {AGAIN}"
            )

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failed(self._failure)

    def _failed(self, error: confluent_kafka.KafkaError) -> StreamError:
        import confluent_kafka

        self._is_given_up = True
        codes = confluent_kafka.KafkaError
        if error.code() in (codes._FENCED, codes.INVALID_PRODUCER_EPOCH):
            return StreamError(
                f"another run has taken the place of this one: it went on from the same "
                f"{argument('checkpoint')}, and sends to topic {self._brokers.address.topic!r}."
            )
        return StreamError(f"{self._brokers.explain(error)} {AGAIN}")

    def close(self) -> None:
        """Wait until all is delivered, unless that was given up."""
        try:
            if not self._is_given_up:
                self.wait()
        finally:
            self._producer.purge()
            self._producer.flush(PAUSE)


class TransactionalDelivery(Delivery):
    """Each batch is a transaction: who reads what is committed sees it whole or not at all.

    A transaction ends with its batch, not with the checkpoint: brokers end those that stay open for
    a minute, and a stream may pause for longer.

    Parameters
    ----------
    brokers, is_stopped
        As for `Delivery`.
    name : str
        The same for all runs from a checkpoint: beginning ends a transaction that one of them has
        left open, and keeps that one from sending more.
    """

    def __init__(self, brokers: Brokers, is_stopped: Callable[[], bool], name: str) -> None:
        import confluent_kafka

        super().__init__(brokers, is_stopped, **{"transactional.id": name})
        try:
            self._producer.init_transactions(SECONDS)
        except confluent_kafka.KafkaException as error:
            raise brokers.error(error.args[0]) from error

    def _defaults(self) -> dict[str, Any]:
        return {}  # a message must not outlive its transaction

    def send(self, messages: Sequence[Message]) -> None:
        """Send, and wait until it can be read."""
        while messages and not self._is_committed(messages):
            pass

    def _is_committed(self, messages: Sequence[Message]) -> bool:
        """Send in one transaction, and say whether the brokers kept it; they may time it out."""
        import confluent_kafka

        self._producer.begin_transaction()
        try:
            super().send(messages)
            self._before_commit()
            self._until_done(self._producer.commit_transaction)
        except confluent_kafka.KafkaException as error:
            what = error.args[0]
            if not what.txn_requires_abort() or self._is_hopeless():
                raise self._failed(self._failure or what) from error
            self._until_done(self._producer.abort_transaction)
            self._failure = None
            return False
        return True

    def _before_commit(self) -> None:
        """Add to the transaction what is not a message."""

    def _is_hopeless(self) -> bool:
        """Whether a message would fail again, because of what it is."""
        import confluent_kafka

        codes = confluent_kafka.KafkaError
        passing = (codes._PURGE_QUEUE, codes._PURGE_INFLIGHT)
        failure = self._failure
        return not (failure is None or is_away(failure) or failure.code() in passing)

    def _until_done(self, call: Callable[[float], None]) -> None:
        import confluent_kafka

        while True:
            try:
                call(PAUSE)
                return
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._endure()


class OnceDelivery(TransactionalDelivery):
    """Numbered batches of messages, each once, whoever sends them and however often they begin.

    With the messages of a batch its number is committed, in the same transaction, as the offset of
    a group of this name: who begins anew knows from it what has arrived.

    Parameters
    ----------
    brokers, is_stopped, name
        As for `TransactionalDelivery`.
    """

    def __init__(self, brokers: Brokers, is_stopped: Callable[[], bool], name: str) -> None:
        # First, since it ends a transaction that was left open.
        super().__init__(brokers, is_stopped, name)
        self._group = brokers.client("Consumer", {"group.id": name, "enable.auto.commit": False})
        self._number = -1

    def newest(self) -> int:
        """Return the number of the newest batch that has arrived; -1 where none has."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._brokers.address.topic, 0)
        (found,) = self._brokers.ask(
            lambda seconds: self._group.committed([place], timeout=seconds), SECONDS
        )
        return int(found.offset) - 1 if found.offset >= 0 else -1

    def send_once(self, number: int, messages: Sequence[Message]) -> bool:
        """Send the messages of a batch, unless they have arrived; say whether they had not."""
        if number <= self.newest():
            return False
        self._number = number
        self.send(messages)
        return True

    def _before_commit(self) -> None:
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._brokers.address.topic, 0, self._number + 1)
        group = self._group.consumer_group_metadata()
        self._until_done(
            lambda seconds: self._producer.send_offsets_to_transaction([place], group, seconds)
        )

    def close(self) -> None:
        """Let go of both clients."""
        self._group.close()
        super().close()
