"""Lines made to stop a reader: each costs itself alone, wherever it stands."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeander.exceptions import InputError
from kmeander.sources.block import Block
from kmeander.sources.csv_format import CsvFormat
from kmeander.sources.files import FileSource
from kmeander.sources.reading import Reading
from kmeander.sources.reasons import reason_for
from kmeander.sources.selection import Selection, Wanted
from kmeander.sources.text_formats import JsonFormat
from tests.mock_kafka import MockCluster
from tests.program import kmeander

ROWS = [f'{{"a": {i % 7}, "b": {i % 5}, "s": "r{i}"}}'.encode() for i in range(60)]
NESTED = {
    "a list": b"[" * 5000 + b"]" * 5000,
    "lists as a value": b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b', "b": 1}',
    "objects as a value": b'{"a":' * 2000 + b"1" + b"}" * 2000,
    "300,000 levels": b"[" * 300_000 + b"]" * 300_000,
}
OTHERS = {
    "5000 digits": (b'{"a": ' + b"9" * 5000 + b', "b": 1}', "infinity in column 'a' is not finite"),
    "beyond doubles": (b'{"a": 1e999, "b": 1}', "not NDJSON: JSON parse error: Number too big"),
    "half a surrogate": (
        b'{"a": 1, "b": 1, "s": "\\ud800"}',
        "not NDJSON: JSON parse error: The s",
    ),
    "UTF-16": ('{"a": 1, "b": 1}'.encode("utf-16"), "not NDJSON: no object"),
    "null": (b"null", "a JSON null where an object should be"),
    "null and more": (b" null\x12", "not JSON: Extra data"),
    "two objects": (b'{"a":1,"b":1}{"a":2,"b":2}', "not JSON: Extra data"),
}


def blocks_of(path: Path, wanted: Wanted) -> list[Block]:
    source = FileSource(str(path), wanted, Reading())
    try:
        source.start()
        return [block for block in source.blocks() if block is not None]
    finally:
        source.close()


def written(path: Path, poison: bytes, at: int) -> Path:
    path.write_bytes(b"\n".join([*ROWS[:at], poison, *ROWS[at:]]) + b"\n")
    return path


@pytest.mark.parametrize("at", [0, 30, 60])
@pytest.mark.parametrize("poison", NESTED.values(), ids=NESTED)
def test_a_nested_json_line_is_a_bad_row(tmp_path: Path, poison: bytes, at: int) -> None:
    path = written(tmp_path / "x.ndjson", poison, at)
    (block,) = blocks_of(path, Wanted(columns=["a", "b"]))
    assert len(block.points) == 60
    (bad,) = block.bad
    assert (bad.row, str(bad.reason), bad.text) == (
        at,
        "not JSON: it is nested too deeply",
        poison.decode(),
    )


@pytest.mark.parametrize(("poison", "reason"), OTHERS.values(), ids=OTHERS)
def test_poison_of_other_kinds_is_a_bad_row(tmp_path: Path, poison: bytes, reason: str) -> None:
    path = written(tmp_path / "x.ndjson", poison, 30)
    (block,) = blocks_of(path, Wanted(columns=["a", "b"], id_column="s"))
    assert len(block.points) == 60
    assert [str(bad.reason).startswith(reason) for bad in block.bad] == [True]


def test_text_that_is_not_utf8_is_a_bad_row_where_it_names_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "x.ndjson", b'{"a": 1, "b": 1, "s": "\xe9"}', 30)
    (block,) = blocks_of(path, Wanted(columns=["a", "b"], id_column="s"))
    assert block.keys["s"].to_pylist() == [f"r{i}" for i in range(60)]
    assert str(block.bad[0].reason).startswith("not JSON: 'utf-8' codec can't decode byte 0xe9")
    (block,) = blocks_of(path, Wanted(columns=["a", "b"]))  # what is not read does no harm
    assert len(block.points) == 61 and not block.bad


def test_names_that_are_no_text_name_no_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "x.ndjson", b'{"\\ud800": 1}', 0)
    (block,) = blocks_of(path, Wanted(exclude=["s"]))
    assert len(block.points) == 60 and len(block.bad) == 1


# Lines that beside others could make up for a row too many or too few.
PIECES = [
    b'{"a":1,"b":2}', b'{"a":1,"b":2}{"a":3,"b":4}', b'{"a":1,', b'"b":2}', b'{"a":5,"x":', b"}",
    b"", b" ", b'{"a":1,"b":2}\r', b' {"a":1,"b":2} ', b"{}", b"[", b"1",
    b"null", b'{"a":1,"b":2}null', b'null{"a":1,"b":2}',
]  # fmt: skip
CSV_PIECES = [b"1,2", b"3,4\r5,6", b'7,"8', b'"9,1"', b"", b"1,2\r", b'"1\r",2', b"\r", b'1,"2"']


@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_an_ndjson_row_is_always_one_line(lines: list[bytes]) -> None:
    form = JsonFormat()
    form.begin(b'{"a":1,"b":2}\n', "x")
    form.select(Selection(("a", "b")))
    assert_each_line_is_read_as_if_alone(form, lines)


@given(st.lists(st.sampled_from(CSV_PIECES), max_size=8))
def test_a_csv_row_is_always_one_line(lines: list[bytes]) -> None:
    form = CsvFormat(Reading(header=["a", "b"]))
    form.begin(b"", "x")
    form.select(Selection(("a", "b")))
    assert_each_line_is_read_as_if_alone(form, lines)


def assert_each_line_is_read_as_if_alone(form: JsonFormat | CsvFormat, lines: list[bytes]) -> None:
    parsed = form.parse(b"".join(line + b"\n" for line in lines))
    alone = [form.parse(line + b"\n") for line in lines]
    good = [number for number, one in enumerate(alone) if len(one.lines)]
    assert parsed.lines.tolist() == good
    assert sorted(parsed.bad) == [number for number, one in enumerate(alone) if one.bad]
    assert parsed.table == pa.concat_tables(
        [parsed.table.slice(0, 0), *(one.table for one in alone)]
    )


def test_messages_show_little_of_a_giant_value() -> None:
    values: list[object] = ["x" * 10**6, 10**5000, [[]] * 10**5]
    shown = [str(reason_for(value, "a")) for value in values]
    assert max(map(len, shown)) < 150
    assert shown[1] == "an integer of more than 1000 digits in column 'a' is not a number"
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert str(reason_for(deep, "a")) == "[[[[[[[...]]]]]]] in column 'a' is not a number"


def test_a_nested_line_ends_in_one_sentence_or_among_the_bad_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "x.ndjson", NESTED["a list"], 60)
    words = [
        "run",
        str(path),
        "--columns",
        "a,b",
        "--clusters",
        "3",
        "--batch-size",
        "20",
        "--steps",
    ]
    refused = kmeander(*words, str(tmp_path / "none.jsonl"))
    assert refused.returncode == 1
    assert refused.stderr.endswith(
        "x.ndjson line 61: not JSON: it is nested too deeply (use --bad-rows skip to go on "
        "without such rows).\n"
    )
    bad, steps = tmp_path / "bad.ndjson", tmp_path / "steps.jsonl"
    done = kmeander(*words, str(steps), "--bad-rows", str(bad))
    assert done.returncode == 0, done.stderr
    assert steps.read_text().count("\n") == 3
    assert json.loads(bad.read_text())["text"] == NESTED["a list"].decode()


@pytest.mark.kafka
def test_a_nested_message_does_not_stop_a_topic(tmp_path: Path) -> None:
    cluster = MockCluster()
    try:
        address = cluster.make_topic("poison", 1)
        cluster.send("poison", [*ROWS[:30], NESTED["lists as a value"], *ROWS[30:]])
        bad = tmp_path / "bad.ndjson"
        done = kmeander(
            "run", address, "--columns", "a,b", "--clusters", "3", "--batch-size", "20",
            "--idle-exit", "1.5", "--checkpoint", str(tmp_path / "c"), "--bad-rows", str(bad),
            "--steps", str(tmp_path / "steps.jsonl"),
        )  # fmt: skip
    finally:
        cluster.close()
    assert done.returncode == 0, done.stderr
    assert "60 rows in 3 batches" in done.stderr
    assert json.loads(bad.read_text())["offset"] == 30


def test_a_block_of_bad_rows_costs_no_more_than_its_length(tmp_path: Path) -> None:
    """Each bad row used to split its whole block once more, to quote one line of it."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"a\n" + b"x\n" * 3000)
    (block,) = blocks_of(path, Wanted())
    assert {bad.text for bad in block.bad} == {"x"}
    assert np.array_equal([bad.row for bad in block.bad], np.arange(3000))


def arrow_file() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"a": [1.0, 2.0], "s": ["x", "yz"]})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_an_arrow_file_that_lies_about_its_offsets_is_refused(tmp_path: Path) -> None:
    """Followed as they stand they lead out of memory, and end the process."""
    whole = arrow_file()
    offsets = np.array([0, 1, 3], dtype=np.int32).tobytes()
    assert whole.count(offsets) == 1
    path = tmp_path / "x.arrow"
    path.write_bytes(whole.replace(offsets, np.array([0, 1, 2**30], dtype=np.int32).tobytes()))
    with pytest.raises(InputError, match=r"x\.arrow cannot be read as Arrow IPC: .*offset"):
        blocks_of(path, Wanted(["a"], id_column="s"))


def test_an_arrow_file_that_asks_for_all_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.arrows"
    sink = io.BytesIO()
    table = pa.table({"a": [1.0, 2.0]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    length = np.int64(len(table["a"].chunk(0).buffers()[1])).tobytes()
    path.write_bytes(sink.getvalue().replace(length, np.int64(2**60).tobytes()))
    with pytest.raises(InputError, match=r"x\.arrows cannot be read as Arrow IPC"):
        blocks_of(path, Wanted())


def test_a_parquet_file_that_lies_about_its_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0]}), path)
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        lambda *args, **kwargs: (batch.slice(1) for batch in real(*args, **kwargs)),
    )
    with pytest.raises(
        InputError, match=r"says that it has 3 rows, but 2 are in it: it is damaged"
    ):
        blocks_of(path, Wanted())


def test_a_date_beyond_pythons_is_shown_as_the_number_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    times = pa.array([0, 2**62], pa.timestamp("us"))
    pq.write_table(pa.table({"a": [None, None], "b": [1.0, 2.0], "t": times}), path)
    (block,) = blocks_of(path, Wanted(["a", "b"], time_column="t"))
    assert len(block.bad) == 2
    assert block.bad[1].text == f"{{'a': None, 'b': 2.0, 't': {2**62}}}"
