"""Kafka's own broker: killed while it is read and written, changed under a run, and kept from."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from kmeander import run
from tests.kafka_broker import PASSWORD, USER, Broker, BrokerMissingError
from tests.mock_kafka import MockCluster
from tests.program import PROGRAM, kmeander
from tests.runs.test_kafka import JSON, ROWS, rows_in, without_facts, words
from tests.runs.test_resume import SABOTAGE, lines_in, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.xdist_group("kafka-broker")]

ENDLESS = ("--idle-exit", "600")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        made = Broker(tmp_path_factory.mktemp("broker"))
    except BrokerMissingError as error:
        pytest.skip(f"needs Java 17 and Maven: {error}")
    yield made
    made.close()


def with_ids(n_rows: int, first: int = 0) -> list[bytes]:
    """Return messages of seven sensors, numbered within each."""
    return [
        json.dumps(
            {"a": a, "b": b, "id": f"{i % 7}", "n": i}
        ).encode()
        for i in range(first, first + n_rows)
        for a, b in [ROWS[i % len(ROWS)].tolist()]
    ]  # fmt: skip


class Started(subprocess.Popen[bytes]):
    """A run, and what it has said so far."""

    def __init__(self, command: Sequence[str], file: Path) -> None:
        self._file = file
        with file.open("wb") as said:
            super().__init__([PROGRAM, *command], stderr=said)

    def said(self) -> str:
        return self._file.read_text()


@contextmanager
def running(command: Sequence[str]) -> Iterator[Started]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Started(command, Path(folder, "said")) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def stopped(process: Started, within: float = 10.0) -> tuple[int, str]:
    """Ask a run to stop; return how it ended, and what it said."""
    process.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    code = process.wait(120)
    assert time.monotonic() - begun < within, process.said()
    return code, process.said()


def ended(process: Started) -> tuple[int, str]:
    """Wait until a run ends by itself."""
    return process.wait(120), process.said()


def rows_of(messages: list[confluent_kafka.Message]) -> list[str]:
    """Return which rows of their stream messages are about, in their order by partition."""
    headers: list[dict[str, Any]] = [dict(message.headers() or []) for message in messages]
    return [found["kmeander-row"].decode() for found in headers]


def origins(n_rows: int, n_partitions: int) -> Counter[str]:
    return Counter(f"{i % n_partitions}/{i // n_partitions}" for i in range(n_rows))


def assert_in_order(messages: list[confluent_kafka.Message]) -> None:
    """Messages with one key, which lie in one partition, keep the order of their source."""
    last: dict[tuple[bytes, str], int] = defaultdict(lambda: -1)
    for message, row in zip(messages, rows_of(messages), strict=True):
        partition, offset = row.split("/")
        key = message.key()
        assert isinstance(key, bytes)
        assert int(offset) > last[key, partition]
        last[key, partition] = int(offset)


def test_on_a_real_broker_only_the_address_differs(broker: Broker, tmp_path: Path) -> None:
    address = broker.make_topic("plain")
    broker.send("plain", JSON)
    rows = tmp_path / "rows.ndjson"
    done = kmeander(
        *words(address, tmp_path, "--assignments", str(rows), "--group", "shown",
               "--checkpoint", str(tmp_path / "c"))
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = "\n".join(json.dumps(dict(zip("ab", row, strict=True))) for row in ROWS.tolist())
    (tmp_path / "x.ndjson").write_text(lines)
    run(tmp_path / "x.ndjson", 3, init="previous", batch_size=20, steps=tmp_path / "file.jsonl")
    assert without_facts(tmp_path / "steps.jsonl") == without_facts(tmp_path / "file.jsonl")
    assert [row["offset"] for row in rows_in(rows)] == list(range(360))
    wait_for(lambda: broker.committed("plain", "shown") == 360)


@pytest.mark.parametrize("transactions", [(), ("--kafka-transactions",)], ids=["plain", "whole"])
def test_a_broker_killed_in_the_middle_and_again_while_it_recovers_loses_and_repeats_nothing(
    broker: Broker, tmp_path: Path, transactions: tuple[str, ...]
) -> None:
    """Both topics are on it; the run is never told, and never restarted."""
    name = "-".join(["killed", *transactions])
    source, target = broker.make_topic(name, 3), broker.make_topic(f"{name}-out", 2)
    broker.send(name, with_ids(600), 3)
    command = words(
        source, tmp_path, "--assignments", target, "--id-column", "id", "--checkpoint",
        str(tmp_path / "c"), "--checkpoint-every", "2", *ENDLESS, *transactions,
    )  # fmt: skip
    steps = tmp_path / "steps.jsonl"
    with running(command) as process:
        wait_for(lambda: len(lines_in(steps)) >= 10)
        broker.kill()
        broker.begin()
        time.sleep(0.7)  # it reads its logs
        broker.kill()
        broker.start()
        broker.send(name, with_ids(630, 600), 3)
        wait_for(lambda: len(lines_in(steps)) >= 61)
        code, said = stopped(process)
    assert code == 0, said
    done = kmeander(*command, "--idle-exit", "1")  # the last half batch
    assert done.returncode == 0, done.stderr
    found = broker.messages(f"{name}-out", [0, 1])
    assert Counter(rows_of(found)) == origins(1230, 3)
    assert_in_order(found)


def test_partitions_that_are_added_are_read_from_their_beginning(
    broker: Broker, tmp_path: Path
) -> None:
    """Also after `--start latest`, which is about what was there before the run."""
    address = broker.make_topic("grows", 1)
    broker.send("grows", JSON[:50])
    steps, rows = tmp_path / "steps.jsonl", tmp_path / "rows.ndjson"
    command = words(
        address, tmp_path, "--start", "latest", "--assignments", str(rows), "--checkpoint",
        str(tmp_path / "c"), "--checkpoint-every", "1", *ENDLESS,
    )  # fmt: skip
    with running(command) as process:
        # Who begins at the end of a topic must know where that is before messages come.
        wait_for(lambda: list((tmp_path / "c").glob("*.ckpt")))
        broker.send("grows", JSON[:20])
        wait_for(lambda: len(lines_in(steps)) == 1)
        broker.add_partitions("grows", 2)
        broker.send("grows", JSON[20:60], 2)
        wait_for(lambda: len(lines_in(steps)) == 3)
        code, said = stopped(process)
    assert code == 0, said
    broker.add_partitions("grows", 3)
    broker.send("grows", JSON[60:90], 3)
    done = kmeander(*command, "--idle-exit", "1")
    assert done.returncode == 0, done.stderr
    found = {(row["partition"], row["offset"]) for row in rows_in(rows)}
    assert len(rows_in(rows)) == len(found)
    assert found == {(0, i) for i in range(50, 100)} | {(1, i) for i in range(30)} | {
        (2, i) for i in range(10)
    }


def test_a_topic_deleted_and_made_anew_is_not_taken_for_the_one_that_was_read(
    broker: Broker, tmp_path: Path
) -> None:
    address = broker.make_topic("anew")
    broker.send("anew", JSON[:100])
    steps = tmp_path / "steps.jsonl"
    command = words(address, tmp_path, "--checkpoint", str(tmp_path / "c"))
    assert kmeander(*command).returncode == 0
    broker.delete_topic("anew")
    broker.make_topic("anew")
    broker.send("anew", JSON)
    before = steps.read_bytes()
    refused = kmeander(*command)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"kmeander run: {address} was deleted and made anew since it was read, so places in it "
        "mean nothing any more. Begin anew with another --checkpoint.\n"
    )
    assert steps.read_bytes() == before


def test_a_topic_deleted_and_made_anew_in_the_middle_of_a_run_is_noticed(
    broker: Broker, tmp_path: Path
) -> None:
    address = broker.make_topic("swapped")
    broker.send("swapped", JSON[:100])
    steps = tmp_path / "steps.jsonl"
    command = words(address, tmp_path, "--checkpoint", str(tmp_path / "c"), *ENDLESS)
    with running(command) as process:
        wait_for(lambda: len(lines_in(steps)) == 5)
        broker.delete_topic("swapped")
        broker.make_topic("swapped")
        broker.send("swapped", JSON)
        code, said = ended(process)
    assert code == 1
    assert f"{address} was deleted and made anew since it was read" in said


def test_a_topic_deleted_in_the_middle_of_a_run_is_noticed(broker: Broker, tmp_path: Path) -> None:
    address = broker.make_topic("vanishes")
    broker.send("vanishes", JSON[:100])
    steps = tmp_path / "steps.jsonl"
    with running(words(address, tmp_path, *ENDLESS)) as process:
        wait_for(lambda: len(lines_in(steps)) == 5)
        broker.delete_topic("vanishes")
        code, said = ended(process)
    assert code == 1
    assert said.splitlines()[-1] == (
        f"kmeander run: {address} was deleted while it was read. Begin anew with another topic and "
        "another --checkpoint."
    )


def test_a_topic_of_assignments_made_anew_is_noticed(broker: Broker, tmp_path: Path) -> None:
    source, target = broker.make_topic("kept"), broker.make_topic("kept-out")
    broker.send("kept", JSON[:100])
    command = words(source, tmp_path, "--assignments", target, "--checkpoint", str(tmp_path / "c"))
    assert kmeander(*command).returncode == 0
    broker.delete_topic("kept-out")
    refused = kmeander(*command)
    assert "have no topic 'kept-out'. Make it first" in refused.stderr
    assert "kept-out" not in broker.admin.list_topics(timeout=10).topics  # asking makes none
    broker.make_topic("kept-out")
    refused = kmeander(*command)
    assert refused.returncode == 1
    assert f"{target} was deleted and made anew since it was written" in refused.stderr


def test_a_topic_of_the_same_name_on_another_cluster_is_refused(
    broker: Broker, tmp_path: Path
) -> None:
    address = broker.make_topic("twin")
    broker.send("twin", JSON[:60])
    command = words(address, tmp_path, "--checkpoint", str(tmp_path / "c"))
    assert kmeander(*command).returncode == 0
    other = MockCluster()
    elsewhere = other.make_topic("twin", 1)
    other.send("twin", JSON)
    before = (tmp_path / "steps.jsonl").read_bytes()
    refused = kmeander(*["run", elsewhere, *command[2:]])
    other.close()
    assert refused.returncode == 1
    assert f"{elsewhere} is on the Kafka cluster mockCluster" in refused.stderr
    assert f"the topic that the checkpoint has read on {broker.cluster_id}." in refused.stderr
    assert (tmp_path / "steps.jsonl").read_bytes() == before


def test_a_second_reader_with_the_same_group_costs_neither_a_row(
    broker: Broker, tmp_path: Path
) -> None:
    """Two runs, and a consumer that takes part in the group as Kafka means it."""
    address = broker.make_topic("shared", 2)
    broker.send("shared", JSON[:200], 2)
    subscribed = broker.consumer(**{"group.id": "same", "enable.auto.commit": False})
    subscribed.subscribe(["shared"])
    outs = [tmp_path / "one", tmp_path / "two"]
    processes = []
    for out in outs:
        out.mkdir()
        more = ["--assignments", f"{out}/rows.ndjson", "--group", "same", "--checkpoint",
                f"{out}/c", "--checkpoint-every", "1"]  # fmt: skip
        processes.append(
            subprocess.Popen([PROGRAM, *words(address, out, *more, "--idle-exit", "3")])
        )
    read: list[confluent_kafka.Message] = []
    deadline = time.monotonic() + 30
    while len(read) < 360 and time.monotonic() < deadline:
        read += [message for message in subscribed.consume(100, 0.1) if message.error() is None]
        if len(read) == 200:
            broker.send("shared", JSON[200:], 2)
    assert [process.wait(60) for process in processes] == [0, 0]
    subscribed.close()
    assert len(read) == 360
    for out in outs:
        found = Counter(
            f"{row['partition']}/{row['offset']}" for row in rows_in(out / "rows.ndjson")
        )
        assert found == origins(360, 2)


def test_messages_out_of_retention_are_an_error_and_never_a_gap(
    broker: Broker, tmp_path: Path
) -> None:
    address = broker.make_topic("old")
    broker.send("old", JSON[:100])
    command = words(address, tmp_path, "--checkpoint", str(tmp_path / "c"))
    assert kmeander(*command).returncode == 0
    broker.send("old", JSON[100:200])
    broker.forget("old", 150)
    refused = kmeander(*command)
    assert refused.returncode == 1
    assert f"{address} no longer holds the messages that come next in partition 0" in refused.stderr
    assert refused.stderr.endswith("read: begin anew with another --checkpoint.\n")
    begun_anew = ("--checkpoint", str(tmp_path / "other"), "--overwrite")
    anew = kmeander(*words(address, tmp_path, *begun_anew))
    assert "50 rows in 3 batches" in anew.stderr


def test_sigterm_while_the_source_is_away_ends_within_ten_seconds_and_goes_on_later(
    broker: Broker, tmp_path: Path
) -> None:
    address = broker.make_topic("source-away")
    broker.send("source-away", JSON[:105])
    rows = tmp_path / "rows.ndjson"
    command = words(
        address, tmp_path, "--assignments", str(rows), "--checkpoint", str(tmp_path / "c"), *ENDLESS
    )
    with running(command) as process:
        wait_for(lambda: len(lines_in(rows)) == 100)
        broker.kill()
        wait_for(lambda: "do not answer (" in process.said())
        code, said = stopped(process)
    broker.start()
    assert code == 0, said
    broker.send("source-away", JSON[105:])
    done = kmeander(*command, "--idle-exit", "1")
    assert done.returncode == 0, done.stderr
    assert [row["offset"] for row in rows_in(rows)] == list(range(360))


@pytest.mark.parametrize("transactions", [(), ("--kafka-transactions",)], ids=["plain", "whole"])
def test_sigterm_while_the_sink_is_away_ends_within_ten_seconds_and_goes_on_later(
    broker: Broker, tmp_path: Path, transactions: tuple[str, ...]
) -> None:
    name = "-".join(["sink-away", *transactions])
    target = broker.make_topic(name, 2)
    lines = [f"{a!r},{b!r}\n" for a, b in ROWS.tolist()]
    file = tmp_path / "x.csv"
    file.write_text("a,b\n" + "".join(lines[:100]))
    steps = tmp_path / "steps.jsonl"
    command = [
        "run", str(file), "--follow", "--clusters", "3", "--batch-size", "20", "--steps",
        str(steps), "--assignments", target, "--checkpoint", str(tmp_path / "c"),
        "--checkpoint-every", "1", *transactions,
    ]  # fmt: skip
    with running(command) as process:
        wait_for(lambda: len(lines_in(steps)) == 5)
        broker.kill()
        with file.open("a") as more:
            more.write("".join(lines[100:]))
        wait_for(lambda: "Waiting for them." in process.said())
        assert process.poll() is None
        code, said = stopped(process)
    broker.start()
    assert code == 1
    assert said.endswith(
        f"kmeander run: stopped while the Kafka brokers at {broker.address} do not answer. Rows "
        "that were not delivered are sent again when the run goes on from its checkpoint.\n"
    )
    done = kmeander(*command, "--idle-exit", "1")
    assert done.returncode == 0, done.stderr
    assert Counter(rows_of(broker.messages(name, [0, 1]))) == Counter(map(str, range(360)))


def test_kmeander_to_kmeander_keeps_rows_and_their_order(broker: Broker, tmp_path: Path) -> None:
    """The second run reads what the first one writes, while both are killed and go on."""
    source, middle = broker.make_topic("first", 2), broker.make_topic("middle", 2)
    target = broker.make_topic("last", 2)
    broker.send("first", with_ids(420), 2)
    first = words(
        source, tmp_path, "--id-column", "id", "--assignments", middle, "--checkpoint",
        str(tmp_path / "c1"), "--checkpoint-every", "3",
    )  # fmt: skip
    second = [
        "run", middle, "--clusters", "2", "--columns", "distance", "--id-column", "id",
        "--batch-size", "20", "--assignments", target, "--checkpoint", str(tmp_path / "c2"),
        "--checkpoint-every", "3", "--steps", str(tmp_path / "second.jsonl"), "--bad-rows", "skip",
        "--idle-exit", "1.5",
    ]  # fmt: skip
    for command in (first, second):
        sabotaged = [sys.executable, "-c", SABOTAGE, "9", *command]
        died = subprocess.run(sabotaged, capture_output=True, check=False)
        assert died.returncode == -signal.SIGKILL
    for command in (first, second):
        done = kmeander(*command)
        assert done.returncode == 0, done.stderr
    found = broker.messages("middle", [0, 1])
    assert Counter(rows_of(found)) == origins(420, 2)
    assert_in_order(found)
    last = broker.messages("last", [0, 1])
    assert_in_order(last)
    known = {f"{message.partition()}/{message.offset()}": message for message in found}
    learned = {row for row, message in known.items() if b"null" not in (message.value() or b"")}
    assert Counter(rows_of(last)) == Counter(learned)


def test_a_batch_in_a_transaction_is_read_whole_or_not_at_all(
    broker: Broker, tmp_path: Path
) -> None:
    """Killed in the middle of sending: rows are there, but nobody reads them; then all, once."""
    source, target = broker.make_topic("tx"), broker.make_topic("tx-out", 2)
    broker.send("tx", JSON)
    command = words(
        source, tmp_path, "--assignments", target, "--kafka-transactions", "--checkpoint",
        str(tmp_path / "c"), "--checkpoint-every", "2",
    )  # fmt: skip
    code = (
        "import os, signal, sys\n"
        "from kmeander.sinks import kafka_delivery as module\n"
        "from kmeander.cli import main\n"
        "produce, left = module.Delivery._produce, [107]\n"
        "def dying(self, message):\n"
        "    produce(self, message)\n"
        "    left[0] -= 1\n"
        "    if not left[0]:\n"
        "        self._producer.flush()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "module.Delivery._produce = dying\n"
        "main()\n"
    )
    died = subprocess.run([sys.executable, "-c", code, *command], check=False)
    assert died.returncode == -signal.SIGKILL
    assert len(broker.messages("tx-out", [0, 1], "read_uncommitted")) == 107
    assert len(broker.messages("tx-out", [0, 1])) == 100
    done = kmeander(*command)
    assert done.returncode == 0, done.stderr
    assert Counter(rows_of(broker.messages("tx-out", [0, 1]))) == origins(360, 1)


def test_a_run_that_was_replaced_sends_no_more(broker: Broker, tmp_path: Path) -> None:
    """Transactions keep out a run that was believed dead and wakes up again."""
    source, target = broker.make_topic("woken"), broker.make_topic("woken-out")
    broker.send("woken", JSON[:100])
    command = words(
        source, tmp_path, "--assignments", target, "--kafka-transactions", "--checkpoint",
        str(tmp_path / "c"), *ENDLESS,
    )  # fmt: skip
    steps = tmp_path / "steps.jsonl"
    with running(command) as process:
        wait_for(lambda: len(lines_in(steps)) == 5)
        (tmp_path / "c" / "lock").unlink()  # as on a file system that keeps no locks
        assert kmeander(*command, "--idle-exit", "1").returncode == 0
        broker.send("woken", JSON[100:])
        code, said = ended(process)
    assert code == 1
    assert said.endswith(
        "kmeander run: another run has taken the place of this one: it went on from the same "
        "--checkpoint, and sends to topic 'woken-out'.\n"
    )
    assert kmeander(*command, "--idle-exit", "1").returncode == 0
    assert Counter(rows_of(broker.messages("woken-out", [0]))) == origins(360, 1)


def test_what_a_transaction_has_not_committed_is_not_read(broker: Broker, tmp_path: Path) -> None:
    address = broker.make_topic("isolated")
    broker.send("isolated", JSON[:20])
    producer = broker.producer(**{"transactional.id": "theirs"})
    producer.init_transactions(30)

    def begin(payloads: list[bytes]) -> None:
        producer.begin_transaction()
        for payload in payloads:
            producer.produce("isolated", payload)
        assert producer.flush(30) == 0

    begin(JSON[20:40])
    producer.abort_transaction(30)
    begin(JSON[40:60])
    rows = tmp_path / "rows.ndjson"
    command = words(
        address, tmp_path, "--assignments", str(rows), "--checkpoint", str(tmp_path / "c")
    )
    assert kmeander(*command).returncode == 0
    assert [row["offset"] for row in rows_in(rows)] == list(range(20))
    producer.commit_transaction(30)
    assert kmeander(*command).returncode == 0
    assert [row["offset"] for row in rows_in(rows)] == [*range(20), *range(41, 61)]


def test_secrets_of_a_settings_file_appear_nowhere(broker: Broker, tmp_path: Path) -> None:
    """Neither among the processes, nor in what is said and written, nor when they are wrong."""
    broker.make_topic("secret")
    broker.send("secret", JSON[:100])
    address = f"kafka://{broker.login_address}/secret"
    settings = tmp_path / "client.properties"
    lines = [
        "# how to reach the brokers", "security.protocol = SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN", f"sasl.username={USER}",
    ]  # fmt: skip
    settings.write_text("\n".join([*lines, f"sasl.password={PASSWORD}", ""]))
    out = tmp_path / "out"
    out.mkdir()
    command = words(address, out, "--kafka-config", str(settings), "--assignments",
                    f"{out}/rows.ndjson", "--checkpoint", f"{out}/c")  # fmt: skip
    with running([*command, *ENDLESS]) as process:
        wait_for(lambda: len(lines_in(out / "steps.jsonl")) == 5)
        seen = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        seen += Path(f"/proc/{process.pid}/environ").read_bytes()
        code, said = stopped(process)
    assert code == 0, said
    written = [file.read_bytes() for file in out.rglob("*") if file.is_file()]
    assert len(written) >= 4
    for text in (seen, said.encode(), *written):
        assert PASSWORD.encode() not in text
    wrong = PASSWORD[::-1]
    settings.write_text("\n".join([*lines, f"sasl.password={wrong}"]))
    refused = kmeander(*command)
    assert refused.returncode == 1
    assert (
        refused.stderr.startswith(f"the Kafka brokers at {broker.login_address} refuse: ")
        or "Authentication failed" in refused.stderr
    ), refused.stderr
    assert wrong not in refused.stderr
