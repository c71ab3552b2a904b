"""A Kafka topic as a source. Offsets come from kmeander's own checkpoint.

All partitions are read by one consumer, which takes no part in rebalancing: one model, one reader.
Offsets are also committed to the group, for monitoring alone; they are never read back. A topic is
known by its ids, so that another one under its name is not taken for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from kmeander.arguments import one_of
from kmeander.exceptions import InputError, StreamError, argument
from kmeander.sources.block import BadRow, Block, Position, RowLocation, Source, nothing
from kmeander.sources.conversion import RawBlock, to_block
from kmeander.sources.csv_format import CsvFormat
from kmeander.sources.reading import AS_USUAL, Reading
from kmeander.sources.reasons import Reason
from kmeander.sources.selection import Selection, Wanted
from kmeander.sources.text_formats import FIRST_OBJECTS, JsonFormat
from kmeander.wire.kafka import SECONDS, AwayError, Brokers, MissingError, is_away

if TYPE_CHECKING:
    from collections.abc import Callable

    import confluent_kafka

MOST_MESSAGES = 5000  # handed over at once
PAUSE = 0.1  # seconds
LEAVE_WITHIN = 3000  # milliseconds
LOOK_EVERY = 5.0  # seconds between two looks for partitions that were added
FORMATS = ("json", "csv")
STARTS = ("earliest", "latest")


class KafkaSource(Source):
    """The messages of a topic, one row each: JSON objects, or CSV without a header.

    Parameters
    ----------
    address : str
        ``kafka://host:port[,host:port]/topic``
    wanted : Wanted
    reading : Reading
        The form of the messages, "json" or "csv", and how CSV is written.
    group : str
        Where offsets are shown to those who watch.
    start : {"earliest", "latest"}
        Where to begin without a checkpoint.
    options : mapping
        More settings of librdkafka, such as ``security.protocol``, as `kafka_settings` returns
        them. Messages of transactions that are open, or were aborted, are not read unless
        ``isolation.level`` says so.
    notify : callable
        Called with a sentence when the brokers do not answer, once each time.
    """

    def __init__(
        self,
        address: str,
        wanted: Wanted,
        *,
        reading: Reading = AS_USUAL,
        group: str = "kmeander",
        start: str = "earliest",
        options: Mapping[str, str] | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._brokers = Brokers(address, options, notify)
        super().__init__(address)
        form = {"ndjson": "json", None: "json"}.get(reading.form, reading.form)
        if form not in FORMATS:
            raise InputError(
                f"{argument('format')} of a Kafka topic must be json or csv, got {form!r}."
            )
        if form == "csv" and reading.header is None:
            raise InputError(
                f"CSV messages have no header: {argument('header', ...)} names their fields."
            )
        one_of("start", start, STARTS)
        self._form = JsonFormat() if form == "json" else CsvFormat(reading)
        self._is_json = form == "json"
        self._wanted = wanted
        self._start = start
        self._selection: Selection | None = None
        self._consumer = self._brokers.client(
            "Consumer",
            {
                "group.id": group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                # So long does closing wait to show offsets to brokers that are away.
                "session.timeout.ms": LEAVE_WITHIN,
            },
            defaults={"isolation.level": "read_committed"},
        )
        self._next: dict[int, int] = {}
        self._ends: dict[int, int] = {}  # where partitions ended, when last seen
        self._n_rows = 0
        self.n_repeated = 0  # messages that came again, and were left out

    @property
    def identity(self) -> str:
        """The topic: brokers may move."""
        return f"kafka topic {self._brokers.address.topic}"

    @property
    def selection(self) -> Selection:
        """The columns that are read."""
        assert self._selection is not None, "the source has not started"
        return self._selection

    def start(self, tick: Callable[[], None] = nothing) -> None:
        """Reach the brokers; where nobody named the columns, wait for the first message."""
        self._topic = self._brokers.topic(self._consumer)
        if self._is_json:
            self._learn_names(tick)
        else:
            self._form.begin(b"", self.name)
        self._selection = self._wanted.among(self._form.names, self.name, self._form.kinds)
        self._form.select(self._selection)

    def _learn_names(self, tick: Callable[[], None]) -> None:
        """Take the columns from the first messages that are JSON objects, wherever they stand."""
        self._assign(dict.fromkeys(self._topic.partitions, _beginning()))
        while True:
            messages = self._consume(FIRST_OBJECTS)
            lines = [line for line in map(self._line, messages) if line is not None]
            try:
                if lines:
                    self._form.begin(b"\n".join(lines), self.name)
                    return
            except InputError:  # no object among them: bad rows, when their turn comes
                continue
            tick()

    def _places(self, offsets: Mapping[int, int]) -> list[confluent_kafka.TopicPartition]:
        from confluent_kafka import TopicPartition

        topic = self._brokers.address.topic
        return [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]

    def _assign(self, offsets: Mapping[int, int]) -> None:
        self._consumer.assign(self._places(offsets))

    def beginning(self) -> Position:
        """Return the offsets at which the topic begins, or ends, now."""
        end = int(self._start == "latest")
        offsets = {
            partition: self._brokers.watermarks(self._consumer, partition, SECONDS)[end]
            for partition in self._topic.partitions
        }
        return self._position(0, offsets)

    def _position(self, row: int, offsets: Mapping[int, int]) -> Position:
        shown = {str(partition): offsets[partition] for partition in sorted(offsets)}
        return {"row": row, "offsets": shown, **self._topic.ids}

    def verify(self, position: Position | None) -> None:
        """Refuse a position in another topic, even if it has the same name."""
        assert position is not None, "a topic has a beginning"
        if self._next:  # it is being read, so it may have been replaced since it was reached
            self._look()
        self._topic.require(position, self.name, "read")
        gone = sorted(set(map(int, position["offsets"])) - set(self._topic.partitions))
        if gone:
            raise StreamError(
                f"{self.name} has no partition {gone[0]} any more, which the checkpoint has "
                f"read. Begin anew with another {argument('checkpoint')}."
            )

    def blocks(self, position: Position | None = None) -> Iterator[Block | None]:
        """Yield messages as they come, for ever."""
        if position is None:
            position = self.beginning()
        self._n_rows = position["row"]
        known = {int(partition): offset for partition, offset in position["offsets"].items()}
        self._next = self._with_added(known, SECONDS)
        self._assign(self._next)
        self._looked_at = time.monotonic()
        while True:
            if time.monotonic() - self._looked_at > LOOK_EVERY:
                self._look()
            fresh = [message for message in self._consume(MOST_MESSAGES) if self._is_fresh(message)]
            if not fresh:
                yield None
                continue
            self._brokers.answered()
            yield to_block(self._raw_block(fresh), self.selection)

    def _look(self) -> None:
        """See whether the topic is still the same one, and read partitions that were added."""
        self._looked_at = time.monotonic()
        with suppress(AwayError):  # the next look will tell
            try:
                now = self._brokers.topic(self._consumer, seconds=1.0)
            except MissingError:
                raise StreamError(
                    f"{self.name} was deleted while it was read. Begin anew with another topic and "
                    f"another {argument('checkpoint')}."
                ) from None
            now.require(self._topic.ids, self.name, "read")
            self._topic = now
            following = self._with_added(self._next, seconds=1.0)
            added = {number: following[number] for number in set(following) - set(self._next)}
            self._consumer.incremental_assign(self._places(added))
            self._next = following

    def _with_added(self, offsets: Mapping[int, int], seconds: float) -> dict[int, int]:
        """Return `offsets` with the partitions that are new since, which are read as a whole."""
        return {
            partition: offsets[partition]
            if partition in offsets
            else self._brokers.watermarks(self._consumer, partition, seconds)[0]
            for partition in self._topic.partitions
        }

    def _is_fresh(self, message: confluent_kafka.Message) -> bool:
        """Whether a message has not come before: brokers promise each at least once."""
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if offset < self._next.get(partition, 0):
            self.n_repeated += 1
            return False
        self._next[partition] = offset + 1
        return True

    def _consume(self, most: int) -> list[confluent_kafka.Message]:
        """Return the messages that have come; take note of ends, raise what is wrong."""
        from confluent_kafka import KafkaError

        messages = []
        for message in self._consumer.consume(most, PAUSE):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends[message.partition()] = message.offset()
            elif is_away(error) or error.retriable():
                self._brokers.hear(error)
            else:
                self._refuse(message, error)
        return messages

    def _refuse(
        self, message: confluent_kafka.Message, error: confluent_kafka.KafkaError
    ) -> NoReturn:
        import confluent_kafka

        if error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET:
            raise StreamError(
                f"{self.name} no longer holds the messages that come next in partition "
                f"{message.partition()} ({error.str()}). They were deleted before they were read: "
                f"begin anew with another {argument('checkpoint')}."
            )
        self._look()  # a topic that is gone, or another one, says more
        raise self._brokers.error(error)

    def _line(self, message: confluent_kafka.Message) -> bytes | None:
        """Return a payload as one line, or None if it is not one."""
        payload = message.value()
        if payload is None or not payload.strip():
            return None
        if self._is_json:  # where a line ends in JSON there may as well be a space
            return payload.replace(b"\n", b" ")
        line = payload.rstrip(b"\r\n")
        return None if b"\n" in line else line

    def _raw_block(self, messages: list[confluent_kafka.Message]) -> RawBlock:
        first = self._n_rows
        self._n_rows += len(messages)
        lines = [self._line(message) for message in messages]
        whole = [index for index, line in enumerate(lines) if line is not None]
        parsed = self._form.parse(b"\n".join(line for line in lines if line is not None))
        topic = self._brokers.address.topic
        partitions = np.array([message.partition() for message in messages], dtype=np.int32)
        offsets = np.array([message.offset() for message in messages], dtype=np.int64)
        before = {
            partition: int(offsets[partitions == partition][0])
            for partition in np.unique(partitions).tolist()
        }
        started = {**self._next, **before}

        def place(row: int) -> RowLocation:
            index = row - first
            return RowLocation(
                f"{topic} partition {partitions[index]}", "offset", int(offsets[index])
            )

        def text(row: int) -> str:
            return (messages[row - first].value() or b"").decode("utf-8", "replace")

        def position_at(row: int) -> Position:
            read = dict(started)
            for index in range(row - first):
                read[int(partitions[index])] = int(offsets[index]) + 1
            return self._position(row, read)

        reasons = {whole[line]: reason for line, reason in parsed.bad.items()}
        reasons |= {
            index: Reason(
                "more than one line"
                if (messages[index].value() or b"").strip()
                else "an empty message"
            )
            for index, line in enumerate(lines)
            if line is None
        }
        bad = tuple(
            BadRow(first + index, place(first + index), reasons[index], text(first + index))
            for index in sorted(reasons)
        )
        good = np.array(whole, dtype=np.int64)[parsed.lines]
        return RawBlock(
            table=parsed.table,
            rows=first + good,
            bad=bad,
            end=self._n_rows,
            position_at=position_at,
            place=place,
            text=text,
            origin={"partition": partitions[good], "offset": offsets[good]},
        )

    def committed(self, position: Position) -> None:
        """Show the offsets to those who watch the group; nobody reads them back."""
        from confluent_kafka import KafkaException

        offsets = {int(partition): offset for partition, offset in position["offsets"].items()}
        try:
            self._consumer.commit(offsets=self._places(offsets), asynchronous=True)
        except KafkaException as error:
            self._brokers.hear(error.args[0])

    def is_at_end(self) -> bool:
        """Whether the brokers answer, and have no more."""
        try:
            return all(
                self._brokers.watermarks(self._consumer, partition, seconds=1.0)[1]
                <= max(self._next.get(partition, 0), self._ends.get(partition, 0))
                for partition in self._topic.partitions
            )
        except StreamError:
            return False

    def lag(self) -> int | None:
        """Return how many messages wait, as far as the client knows."""
        from confluent_kafka import TopicPartition

        waiting = 0
        for partition, following in self._next.items():
            there = self._consumer.get_watermark_offsets(
                TopicPartition(self._brokers.address.topic, partition), cached=True
            )
            if there is not None and there[1] > following:
                waiting += there[1] - following
        return waiting

    def close(self) -> None:
        """Leave the brokers, which are given a moment to show the last offsets."""
        self._consumer.close()


def _beginning() -> int:
    import confluent_kafka

    return int(confluent_kafka.OFFSET_BEGINNING)
