"""Settings of librdkafka from files and options: what is read, refused, and never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kmeander import InputError, StreamError, run
from kmeander.cli import app
from kmeander.exceptions import ArgumentError
from kmeander.sources import Wanted
from kmeander.sources.kafka import KafkaSource
from kmeander.wire.kafka import Topic
from kmeander.wire.kafka_settings import is_secret, kafka_settings

SECRETS = (
    "sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password",
    "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
)  # fmt: skip
KEYS = st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){2,3}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=20)


@given(st.dictionaries(KEYS, VALUES))
def test_a_file_gives_back_what_was_written_into_it(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]
) -> None:
    file = tmp_path_factory.mktemp("settings") / "client.properties"
    lines = [f" {key} = {value} \n" for key, value in settings.items()]
    file.write_text("# a comment\n\n" + "".join(lines), encoding="utf-8")
    assert kafka_settings(None, file) == settings


def test_options_are_over_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("a=1\nb=2\n")
    assert kafka_settings({"b": "3"}, file) == {"a": "1", "b": "3"}
    assert kafka_settings(None, None) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a=1\nhunter2\n", " line 2 must be KEY=VALUE, such as security.protocol=SASL_SSL, or a "
                            "comment that begins with #."),
        (b"=hunter2\n", " line 1 must be KEY=VALUE, such as security.protocol=SASL_SSL, or a "
                        "comment that begins with #."),
        (b"a=hunter2\na=2\n", " line 2 sets a again. Leave one of the two lines."),
        (b"a=\xff", " cannot be read: it is not UTF-8."),
        (None, " cannot be read: No such file or directory."),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_sentence_without_its_lines(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        run("kafka://127.0.0.1:1/t", kafka_config=file)
    assert str(caught.value) == f'kafka_config="{file}"{message}'


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("enable.auto.commit=true", "offsets are kept in the checkpoint, with the model, so that "
                                    "the two cannot disagree."),
        ("auto.commit.enable=true", "offsets are kept in the checkpoint, with the model, so that "
                                    "the two cannot disagree."),
        ("enable.auto.offset.store=true", "offsets are kept in the checkpoint, with the model, so "
                                          "that the two cannot disagree."),
        ("auto.offset.reset=latest", "messages that are gone must be an error, not a leap. Use "
                                     "start instead."),
        ("auto.offset.reset=earliest", "messages that are gone must be an error, not a leap. Use "
                                       "start instead."),
        ("enable.partition.eof=false", "without it nobody knows where a topic ends."),
        ("enable.idempotence=false", "rows would come twice, or in another order, when a broker "
                                     "fails."),
        ("acks=1", "a row counts as delivered once every replica in step has it."),
        ("request.required.acks=0", "a row counts as delivered once every replica in step has it."),
        ("delivery.report.only.error=true", "a checkpoint must know how far the topic was "
                                            "written."),
        ("transactional.id=mine", "it must be the same for each run from a checkpoint, so kmeander "
                                  "makes it. Use kafka_transactions instead."),
        ("group.id=mine", "it has an option of its own. Use group instead."),
        ("bootstrap.servers=other:1", "the address of the topic names its brokers."),
        ("metadata.broker.list=other:1", "the address of the topic names its brokers."),
    ],
)  # fmt: skip
def test_settings_that_would_switch_off_a_guard_are_refused_with_the_reason(
    tmp_path: Path, setting: str, reason: str
) -> None:
    key, _, value = setting.partition("=")
    with pytest.raises(ArgumentError) as caught:
        run("kafka://127.0.0.1:1/t", kafka_options={key: value})
    assert str(caught.value) == f"kafka_options cannot set {setting}: {reason}"
    file = tmp_path / "client.properties"
    file.write_text(setting)
    with pytest.raises(ArgumentError) as caught:
        run("kafka://127.0.0.1:1/t", kafka_config=file)
    assert str(caught.value) == f'kafka_config="{file}" cannot set {setting}: {reason}'


def test_what_kmeander_does_anyway_may_stand_in_a_file() -> None:
    """Files are shared with other programs."""
    shared = {"enable.auto.commit": "False", "acks": "all", "enable.idempotence": "true"}
    assert kafka_settings(shared, None) == shared


@pytest.mark.parametrize("key", SECRETS)
def test_secrets_have_no_place_in_a_list_of_processes(key: str) -> None:
    assert is_secret(key)
    words = ["run", "kafka://127.0.0.1:1/t", "--kafka-option", f"{key}=hunter2"]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert (
        f"--kafka-option {key} would show its value to all who list processes. Write it in a file, "
        "and name that with --kafka-config" in done.stderr
    )


@pytest.mark.kafka
@pytest.mark.parametrize("key", SECRETS)
def test_what_librdkafka_says_of_a_secret_does_not_repeat_it(key: str) -> None:
    protocol = "SSL" if key.startswith("ssl") else "SASL_SSL"
    settings = {"security.protocol": protocol, "sasl.mechanism": "PLAIN", key: "hunter2"}
    if key == "sasl.oauthbearer.assertion.private.key.passphrase":
        settings["sasl.oauthbearer.assertion.algorithm"] = "hunter"
    said = ""
    try:
        KafkaSource("kafka://127.0.0.1:1/t", Wanted(), options=settings).close()
    except InputError as error:
        said = str(error)
    assert "hunter2" not in said


def test_ids_that_are_not_known_are_not_compared() -> None:
    """Checkpoints from before ids were kept; brokers that do not tell them."""
    topic = Topic((0,), "cluster", "topic")
    topic.require({}, "kafka://h:1/t", "read")
    topic.require({"cluster_id": None, "topic_id": None}, "kafka://h:1/t", "read")
    topic.require(topic.ids, "kafka://h:1/t", "read")
    Topic((0,), None, None).require(topic.ids, "kafka://h:1/t", "read")
    with pytest.raises(StreamError) as caught:
        topic.require({"cluster_id": "other", "topic_id": "topic"}, "kafka://h:1/t", "written")
    assert str(caught.value) == (
        "kafka://h:1/t is on the Kafka cluster cluster, the topic that the checkpoint has written "
        "on other. Correct the address, or begin anew with another checkpoint."
    )
    with pytest.raises(StreamError) as caught:
        topic.require({"cluster_id": "cluster", "topic_id": "other"}, "kafka://h:1/t", "read")
    assert str(caught.value) == (
        "kafka://h:1/t was deleted and made anew since it was read, so places in it mean nothing "
        "any more. Begin anew with another checkpoint."
    )


def test_transactions_need_a_topic(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("a\n1\n2\n")
    with pytest.raises(ArgumentError) as caught:
        run(file, 1, assignments=tmp_path / "x.ndjson", kafka_transactions=True)
    assert str(caught.value) == (
        'kafka_transactions=True is for assignments="kafka://host:port/topic": other outputs have '
        "none."
    )
