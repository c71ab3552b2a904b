"""Twenty faults of a Kafka broker and of runs around it: kmeander to kmeander, over three topics.

One run reads what is sent and writes the clusters to a second topic, another one reads those and
writes to a third. After each fault new messages are sent, and all so far must be in both topics,
each once and in order. A run that was not ended by the fault must not end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np
from confluent_kafka import TopicPartition

from faults.table import Row
from tests.kafka_broker import Broker

N_PARTITIONS = 2
N_SENT = 120  # messages before, during and after each fault
PATIENCE = 60.0  # seconds until what has not arrived counts as lost
KMEANDER = "from kmeander.cli import main; main()"


class Reader:
    """What has arrived in a topic that a run writes, and whether it is in order."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._consumer = broker.consumer()
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(N_PARTITIONS)])
        self._last: dict[tuple[bytes, str], int] = {}
        self.rows: set[str] = set()
        self.n_repeated = 0
        self.n_misplaced = 0

    def read(self) -> None:
        """Take what has come."""
        for message in self._consumer.consume(1000, 0.2):
            if message.error() is None:
                self._take(message)

    def _take(self, message: confluent_kafka.Message) -> None:
        headers: dict[str, Any] = dict(message.headers() or [])
        row, key = headers["kmeander-row"], message.key()
        assert isinstance(key, bytes)
        partition, offset = row.decode().split("/")
        # Rows of one partition with one key: those keep their order from topic to topic.
        self.n_misplaced += int(offset) < self._last.get((key, partition), -1)
        self._last[key, partition] = int(offset)
        self.n_repeated += row.decode() in self.rows
        self.rows.add(row.decode())


class Pipeline:
    """A broker, two runs, and what was sent."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.broker = Broker(_made(folder / "broker"))
        for topic in ("sent", "middle", "last"):
            self.broker.make_topic(topic, N_PARTITIONS)
        self.n_partitions = N_PARTITIONS
        self._rng = np.random.default_rng(0)
        self._producer = self.broker.producer()
        self._sent: set[str] = set()
        self._n_sent = 0
        self.send(400)
        self._commands = [
            self.command("sent", "middle", _made(folder / "first"), "--columns", "a,b", *options),
            self.command("middle", "last", _made(folder / "second"), "--columns", "distance",
                         *options),
        ]  # fmt: skip
        self.runs = [self._started(command) for command in self._commands]
        self._readers = [Reader(self.broker, topic) for topic in ("middle", "last")]
        if self.outcome("nothing").is_bad:
            raise AssertionError("the runs fail even when nothing happens to them.")

    def command(self, source: str, target: str, folder: Path, *more: str) -> list[str]:
        """Return the words of a run that goes on from its folder."""
        return [
            sys.executable, "-c", KMEANDER, "run", self.broker.url(source), "--assignments",
            self.broker.url(target), "--id-column", "id", "--clusters", "4", "--batch-size", "50",
            "--batch-seconds", "0.5", "--steps", f"{folder}/steps.jsonl", "--checkpoint",
            f"{folder}/checkpoint", "--checkpoint-every", "2", "--quiet", *more,
        ]  # fmt: skip

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env={**os.environ, "KMEANDER_NUM_THREADS": "1"})

    def send(self, n_messages: int) -> None:
        """Send messages of ten sensors, to the partitions in turn; brokers may be away."""
        for number in range(self._n_sent, self._n_sent + n_messages):
            a, b = self._rng.normal(scale=3.0, size=2).tolist()
            message = json.dumps({"id": f"sensor {number % 10}", "a": a, "b": b}).encode()
            self._producer.produce(
                "sent", message, partition=number % self.n_partitions, on_delivery=self._heard
            )
        self._n_sent += n_messages
        self._producer.poll(0)

    def add_partition(self) -> None:
        """Let the first topic have one more."""
        self.n_partitions += 1
        self.broker.add_partitions("sent", self.n_partitions)
        while len(self._producer.list_topics("sent", 10).topics["sent"].partitions) < (
            self.n_partitions
        ):
            time.sleep(0.1)

    def _heard(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        assert error is None, error
        self._sent.add(f"{message.partition()}/{message.offset()}")

    def restart(self) -> int:
        """Start runs that are not running, and return how many there were."""
        ended = [number for number, run in enumerate(self.runs) if run.poll() is not None]
        for number in ended:
            self.runs[number] = self._started(self._commands[number])
        return len(ended)

    def outcome(self, fault: str) -> Row:
        """Wait until everything has arrived, or for too long; count what did not, or came twice."""
        self._producer.flush(PATIENCE)
        n_ended = 0
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            n_ended += self.restart()
            for reader in self._readers:
                reader.read()
            if all(len(reader.rows) >= self._n_sent for reader in self._readers):
                break
        first, second = self._readers
        lost = len(self._sent - first.rows) + max(0, self._n_sent - len(second.rows))
        n_repeated = n_misplaced = 0
        for reader in self._readers:
            reader.read()  # what should not come
            n_repeated += reader.n_repeated
            n_misplaced += reader.n_misplaced
            reader.n_repeated = reader.n_misplaced = 0
        return Row(fault, 1, lost, n_repeated, n_ended + n_misplaced)

    def close(self) -> None:
        """End everything."""
        for run in self.runs:
            run.kill()
            run.wait()
        self.broker.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _broker_killed(pipeline: Pipeline) -> int:
    pipeline.broker.kill()
    pipeline.send(N_SENT)
    pipeline.broker.start()
    return 0


def _broker_killed_again_while_it_recovers(pipeline: Pipeline) -> int:
    pipeline.broker.kill()
    for pause in (0.4, 1.0):
        pipeline.broker.begin()
        pipeline.send(N_SENT // 2)
        time.sleep(pause)
        pipeline.broker.kill()
    pipeline.broker.start()
    return 0


def _broker_stopped_and_started(pipeline: Pipeline) -> int:
    pipeline.broker.stop()
    pipeline.send(N_SENT)
    pipeline.broker.start()
    return 0


def _broker_frozen_for_five_seconds(pipeline: Pipeline) -> int:
    pipeline.broker.signal(signal.SIGSTOP)
    pipeline.send(N_SENT)
    time.sleep(5)
    pipeline.broker.signal(signal.SIGCONT)
    return 0


def _partitions_added(pipeline: Pipeline) -> int:
    pipeline.add_partition()
    pipeline.send(N_SENT)
    return 0


def _first_run_killed(pipeline: Pipeline) -> int:
    return _run_killed(pipeline, 0)


def _second_run_killed(pipeline: Pipeline) -> int:
    return _run_killed(pipeline, 1)


def _run_killed(pipeline: Pipeline, number: int) -> int:
    pipeline.send(N_SENT)
    time.sleep(0.7)  # it learns and sends
    pipeline.runs[number].kill()
    pipeline.runs[number].wait()
    pipeline.restart()
    return 0


def _both_runs_killed_while_the_broker_is_away(pipeline: Pipeline) -> int:
    pipeline.send(N_SENT)
    pipeline.broker.kill()
    time.sleep(0.5)
    for run in pipeline.runs:
        run.kill()
        run.wait()
    pipeline.broker.start()
    pipeline.restart()
    return 0


def _both_runs_stopped_while_the_broker_is_away(pipeline: Pipeline) -> int:
    pipeline.send(N_SENT)
    time.sleep(0.3)
    pipeline.broker.kill()
    begun = time.monotonic()
    for run in pipeline.runs:
        run.terminate()
    for run in pipeline.runs:
        run.wait()
    is_late = time.monotonic() - begun > 10
    pipeline.broker.start()
    pipeline.restart()
    return int(is_late)


def _another_reader_with_the_same_group(pipeline: Pipeline) -> int:
    with tempfile.TemporaryDirectory() as folder:
        other = pipeline.command("sent", "other", Path(folder), "--columns", "a,b")
        at = other.index("--assignments")
        other[at + 1] = f"{folder}/rows.ndjson"
        process = subprocess.Popen([*other, "--idle-exit", "2"])
        pipeline.send(N_SENT)
        return int(process.wait() != 0)


FAULTS: tuple[Callable[[Pipeline], int], ...] = (
    _broker_killed,
    _broker_killed_again_while_it_recovers,
    _broker_stopped_and_started,
    _broker_frozen_for_five_seconds,
    _partitions_added,
    _first_run_killed,
    _second_run_killed,
    _both_runs_killed_while_the_broker_is_away,
    _both_runs_stopped_while_the_broker_is_away,
    _another_reader_with_the_same_group,
)


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each fault: each is tried without transactions, and with them."""
    kinds = FAULTS[::3] if quick else FAULTS
    found: dict[str, Row] = {}
    for options in ((), ("--kafka-transactions",)):
        with tempfile.TemporaryDirectory() as folder:
            pipeline = Pipeline(Path(folder), *options)
            try:
                for fault in kinds:
                    pipeline.send(N_SENT)
                    n_wrong = fault(pipeline)
                    pipeline.send(N_SENT)
                    made = pipeline.outcome(f"Kafka: {fault.__name__[1:].replace('_', ' ')}")
                    print(f"{made.as_line()} {' '.join(options)}", file=sys.stderr, flush=True)
                    before = found.get(made.fault, Row(made.fault, 0))
                    found[made.fault] = Row(
                        made.fault,
                        before.trials + made.trials,
                        before.lost + made.lost,
                        before.duplicated + made.duplicated,
                        before.wrong + made.wrong + n_wrong,
                    )
            finally:
                pipeline.close()
    yield from found.values()
