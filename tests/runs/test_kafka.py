"""Kafka for real: the protocol over TCP between processes, brokers that go away, kill -9."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import TopicPartition

from kmeander import InputError, StreamError, run
from kmeander.sources import Reading, Wanted
from kmeander.sources.block import Block
from kmeander.sources.kafka import KafkaSource
from kmeander.wire.kafka import Address
from tests.mock_kafka import MockCluster
from tests.program import PROGRAM, kmeander
from tests.runs.test_resume import SABOTAGE, lines_in, make, wait_for
from tests.streams import drifting_stream

pytestmark = pytest.mark.kafka

ROWS = np.concatenate(drifting_stream(12, n_points=30, n_features=2))
JSON = [json.dumps({"a": a, "b": b, "extra": "x"}).encode() for a, b in ROWS.tolist()]


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    made = MockCluster()
    yield made
    made.close()


def words(address: str, out: Path, *more: str) -> list[str]:
    return [
        "run", address, "--columns", "a,b", "--clusters", "3", "--init", "previous",
        "--batch-size", "20",
        "--steps", str(out / "steps.jsonl"), "--idle-exit", "1.5", *more,
    ]  # fmt: skip


def without_facts(steps: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines_in(steps)]
    del found[0]["run"]
    return found


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_in(path)]


def test_a_topic_gives_the_steps_of_a_file(cluster: MockCluster, tmp_path: Path) -> None:
    address = cluster.make_topic("plain", 1)
    cluster.send("plain", JSON)
    rows = tmp_path / "rows.ndjson"
    done = kmeander(
        *words(address, tmp_path, "--assignments", str(rows), "--group", "shown",
               "--checkpoint", str(tmp_path / "c"))
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"\n{address}: 360 rows in 18 batches, learned in " in f"\n{done.stderr}"
    file = tmp_path / "plain.csv"
    np.savetxt(file, ROWS, "%.17g", delimiter=",", header="a,b", comments="")
    run(file, 3, init="previous", batch_size=20, steps=tmp_path / "file.jsonl")
    assert without_facts(tmp_path / "steps.jsonl") == without_facts(tmp_path / "file.jsonl")
    assert [row["offset"] for row in rows_in(rows)] == list(range(360))
    assert {row["partition"] for row in rows_in(rows)} == {0}
    wait_for(lambda: cluster.committed("plain", "shown") == 360)


def test_csv_messages_and_many_partitions(cluster: MockCluster, tmp_path: Path) -> None:
    address = cluster.make_topic("fields", 3)
    payloads = [f"k{i},{a!r},{b!r}\n".encode() for i, (a, b) in enumerate(ROWS.tolist())]
    cluster.send("fields", payloads, 3)
    rows = tmp_path / "rows.ndjson"
    done = kmeander(
        *words(address, tmp_path, "--format", "csv", "--header", "key,a,b", "--id-column", "key",
               "--assignments", str(rows))
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(row["key"] for row in rows_in(rows)) == sorted(f"k{i}" for i in range(360))


def test_bad_messages_are_set_aside(cluster: MockCluster, tmp_path: Path) -> None:
    address = cluster.make_topic("bad", 1)
    payloads = [b"", None, *JSON[:30], b'{"a": 1, "b": "x"}', b"no json", b'{"a":\n1,\n"b": 2}']
    cluster.send("bad", payloads)
    bad = tmp_path / "bad.ndjson"
    done = kmeander(*words(address, tmp_path, "--bad-rows", str(bad)))
    assert done.returncode == 0, done.stderr
    assert "Bad rows set aside: 4." in done.stderr
    assert "31 rows in 2 batches" in done.stderr
    assert [(row["offset"], row["reason"], row["text"]) for row in rows_in(bad)] == [
        (0, "an empty message", ""),
        (1, "an empty message", ""),
        (32, "'x' in column 'b' is not a number", '{"a": 1, "b": "x"}'),
        (33, "not JSON: Expecting value: line 1 column 1 (char 0)", "no json"),
    ]
    refused = kmeander(*words(address, tmp_path))
    assert refused.returncode == 1
    assert refused.stderr == (
        "kmeander run: bad partition 0 offset 0: an empty message (use --bad-rows skip to go on "
        "without such rows).\n"
    )


def test_killed_and_resumed_a_topic_gives_the_same_bytes(
    cluster: MockCluster, tmp_path: Path
) -> None:
    address = cluster.make_topic("killed", 1)
    cluster.send("killed", JSON)

    def command(out: Path) -> list[str]:
        more = [
            "--assignments",
            f"{out}/rows/",
            "--checkpoint",
            f"{out}/c",
            "--checkpoint-every",
            "4",
        ]
        return words(address, out, *more)

    def contents(out: Path) -> dict[str, bytes]:
        files = [out / "steps.jsonl", *sorted((out / "rows").iterdir())]
        return {file.name: file.read_bytes() for file in files}

    whole = make(tmp_path / "whole")
    assert kmeander(*command(whole)).returncode == 0
    for n_calls in (20, 30):
        out = make(tmp_path / str(n_calls))
        died = subprocess.run(
            [sys.executable, "-c", SABOTAGE, str(n_calls), *command(out)],
            capture_output=True,
            check=False,
        )
        assert died.returncode == -signal.SIGKILL
        done = kmeander(*command(out))
        assert done.returncode == 0, done.stderr
        assert "Going on after batch " in done.stderr
        assert contents(out) == contents(whole)


def test_a_topic_of_assignments_has_every_row_once(cluster: MockCluster, tmp_path: Path) -> None:
    """From three partitions to two, killed twice on the way; ids repeat, rows do not."""
    source = cluster.make_topic("in", 3)
    target = cluster.make_topic("out", 2)
    payloads = [
        json.dumps({"a": a, "b": b, "id": f"sensor {i % 5}"}).encode()
        for i, (a, b) in enumerate(ROWS.tolist())
    ]
    cluster.send("in", payloads, 3)
    more = ["--assignments", target, "--id-column", "id", "--checkpoint", str(tmp_path / "c"),
            "--checkpoint-every", "3"]  # fmt: skip
    for n_calls in (16, 16):
        command = [sys.executable, "-c", SABOTAGE, str(n_calls), *words(source, tmp_path, *more)]
        died = subprocess.run(command, capture_output=True, check=False)
        assert died.returncode == -signal.SIGKILL
    assert cluster.messages("out", [0, 1])  # sent before the crash, and not committed
    done = kmeander(*words(source, tmp_path, *more))
    assert done.returncode == 0, done.stderr
    found = cluster.messages("out", [0, 1])
    rows = sorted(str(dict(message.headers() or [])["kmeander-row"]) for message in found)
    assert rows == sorted(str(f"{i % 3}/{i // 3}".encode()) for i in range(360))
    payload = json.loads(found[0].value() or b"")
    assert sorted(payload) == ["cluster", "distance", "id"]
    assert found[0].key() == payload["id"].encode()


def test_brokers_that_are_away_at_the_start_are_one_line(
    cluster: MockCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kmeander.wire.kafka.Brokers.topic.__defaults__", (1.0,))
    with pytest.raises(StreamError) as caught:
        run("kafka://127.0.0.1:1/t", checkpoint=tmp_path / "c")
    assert str(caught.value).startswith("the Kafka brokers at 127.0.0.1:1 do not answer (")
    with pytest.raises(StreamError) as caught:
        run("kafka://127.0.0.1:1/t", assignments="kafka://127.0.0.1:1/u")
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n2\n")
    with pytest.raises(StreamError, match=r"the Kafka brokers at 127\.0\.0\.1:1 do not answer"):
        run(file, 1, assignments="kafka://127.0.0.1:1/u")
    with pytest.raises(StreamError) as caught:
        run(f"kafka://{cluster.address}/nowhere")
    assert str(caught.value) == (
        f"the brokers at {cluster.address} have no topic 'nowhere'. Make it first, or correct the "
        "name."
    )


def test_brokers_that_go_away_and_come_back(tmp_path: Path) -> None:
    own = MockCluster()
    address = own.make_topic("away", 1)
    own.send("away", JSON[:100])
    rows = tmp_path / "rows.ndjson"
    with subprocess.Popen(
        [PROGRAM, *words(address, tmp_path, "--idle-exit", "600", "--assignments", str(rows))],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: len(lines_in(rows)) == 100)
        own.down()
        time.sleep(2)
        assert process.poll() is None
        own.up()
        own.send("away", JSON[100:])
        wait_for(lambda: len(lines_in(rows)) == 360)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(timeout=120) == 0
    own.close()
    assert f"the Kafka brokers at {own.address} do not answer (" in said
    assert "Waiting for them." in said
    assert [row["offset"] for row in rows_in(rows)] == list(range(360))


def test_silence_is_an_end_only_where_brokers_answer_and_have_no_more() -> None:
    own = MockCluster()
    address = own.make_topic("silent", 1)
    own.send("silent", JSON[:10])
    source = KafkaSource(address, Wanted(["a", "b"]))
    source.start()
    assert not source.is_at_end()
    blocks(source, 10)
    assert source.is_at_end()
    own.down()
    assert not source.is_at_end()
    own.up()
    wait_for(source.is_at_end)
    own.send("silent", JSON[:1])
    assert not source.is_at_end()
    source.close()
    own.close()


def test_a_signal_ends_a_topic(cluster: MockCluster, tmp_path: Path) -> None:
    address = cluster.make_topic("signal", 1)
    cluster.send("signal", JSON[:110])
    with subprocess.Popen(
        [PROGRAM, "run", address, "--columns", "a,b", "--batch-size", "20", "--steps",
         str(tmp_path / "steps.jsonl"), "--checkpoint", str(tmp_path / "c")],
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_for(lambda: len(lines_in(tmp_path / "steps.jsonl")) == 5)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(timeout=120) == 0
    assert "10 rows wait for their batch to be complete." in said


def blocks(source: KafkaSource, n_rows: int, position: Any = None) -> list[Block]:
    found: list[Block] = []
    for block in source.blocks(position):
        if block is not None:
            found.append(block)
        if sum(len(part.rows) for part in found) >= n_rows:
            break
    return found


def test_a_message_that_comes_again_is_left_out(cluster: MockCluster) -> None:
    address = cluster.make_topic("again", 1)
    cluster.send("again", JSON[:50])
    source = KafkaSource(address, Wanted(["a", "b"]))
    source.start()
    stream = source.blocks()
    n_rows = 0
    while n_rows < 50:
        block = next(stream)
        n_rows += 0 if block is None else len(block.rows)
    source._consumer.seek(TopicPartition("again", 0, 20))  # the broker hands out 30 of them again
    cluster.send("again", JSON[50:60])
    found: list[int] = []
    while len(found) < 10:
        block = next(stream)
        found += [] if block is None else block.keys["offset"].to_pylist()
    source.close()
    assert found == list(range(50, 60))
    assert source.n_repeated == 30


def test_a_look_at_the_topic_takes_no_message_from_the_stream(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kmeander.sources.kafka.LOOK_EVERY", 0.0)
    address = cluster.make_topic("looked", 2)
    cluster.send("looked", JSON[:60], 2)
    source = KafkaSource(address, Wanted(["a", "b"]))
    source.start()
    stream = source.blocks()
    found: list[tuple[int, int]] = []
    deadline = time.monotonic() + 60
    while len(found) < 360 and time.monotonic() < deadline:
        block = next(stream)
        if block is not None:
            found += zip(*block.keys.to_pydict().values(), strict=True)
            if len(found) % 60 == 0:  # more, while it looks
                cluster.send("looked", JSON[len(found) : len(found) + 60], 2)
    source.close()
    assert sorted(found) == [(partition, offset) for partition in (0, 1) for offset in range(180)]


def test_positions_are_offsets(cluster: MockCluster) -> None:
    address = cluster.make_topic("offsets", 2)
    cluster.send("offsets", JSON[:40], 2)
    source = KafkaSource(address, Wanted(["a", "b"]))
    source.start()
    found = blocks(source, 40)
    source.close()
    whole = {
        (partition, offset)
        for block in found
        for partition, offset in zip(*block.keys.to_pydict().values(), strict=True)
    }
    assert len(whole) == 40
    first = found[0]
    middle = int(first.rows[len(first.rows) // 2])
    seen = {
        pair
        for pair, row in zip(
            zip(*first.keys.to_pydict().values(), strict=True), first.rows, strict=True
        )
        if row < middle
    }
    again = KafkaSource(address, Wanted(["a", "b"]))
    again.start()
    rest = blocks(again, 40 - len(seen), first.position_at(middle))
    again.close()
    assert whole - seen == {
        (partition, offset)
        for block in rest
        for partition, offset in zip(*block.keys.to_pydict().values(), strict=True)
    }
    assert int(rest[0].rows[0]) == middle


def test_messages_that_are_gone_are_said(cluster: MockCluster) -> None:
    address = cluster.make_topic("gone", 1)
    cluster.send("gone", JSON[:10])
    source = KafkaSource(address, Wanted(["a", "b"]))
    source.start()
    with pytest.raises(StreamError) as caught:
        blocks(source, 1, {"row": 0, "offsets": {"0": 999}})
    assert str(caught.value).startswith(
        f"{address} no longer holds the messages that come next in partition 0 ("
    )
    with pytest.raises(StreamError, match="has no partition 7 any more"):
        source.verify({"row": 0, "offsets": {"7": 0}})
    source.close()


def test_latest_begins_at_the_end(cluster: MockCluster) -> None:
    address = cluster.make_topic("latest", 1)
    cluster.send("latest", JSON[:10])
    source = KafkaSource(address, Wanted(["a", "b"]), start="latest")
    source.start()
    stream = source.blocks()
    assert next(stream) is None
    cluster.send("latest", JSON[10:13])
    found: list[int] = []
    while len(found) < 3:
        block = next(stream)
        found += [] if block is None else block.keys["offset"].to_pylist()
    assert source.lag() == 0
    source.close()
    assert found == [10, 11, 12]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reading": Reading("parquet")},
         "format of a Kafka topic must be json or csv, got 'parquet'."),
        ({"reading": Reading("csv")},
         "CSV messages have no header: header=... names their fields."),
        ({"start": "middle"}, "start must be one of 'earliest', 'latest', got 'middle'."),
        ({"options": {"no.such": "1"}}, "the settings of Kafka are refused: No such configuration "
                                        "property: \"no.such\"."),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        KafkaSource("kafka://127.0.0.1:1/t", Wanted(), **settings)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["kafka://", "kafka://host:1", "kafka://host:1/a/b", "kafka:///t"])
def test_addresses_need_brokers_and_a_topic(text: str) -> None:
    with pytest.raises(
        InputError, match=r"is no address of a Kafka topic\. Write kafka://host:port"
    ):
        Address.parsed(text)


def test_without_confluent_kafka_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['confluent_kafka'] = None; sys.argv[1:] = "
        "['run', 'kafka://127.0.0.1:1/t']; from kmeander.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "kmeander run: Kafka needs confluent-kafka: pip install 'kmeander[kafka]'\n"
    )
