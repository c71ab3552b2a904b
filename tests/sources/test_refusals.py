"""What a source refuses, in whole sentences, and rarer kinds of rows that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kmeander import InputError
from kmeander.sources import Wanted, line_parsing
from kmeander.sources.files import read_file
from tests.sources.test_sources import blocks_of, opened, rows_of


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def reasons(path: str, **wanted: Any) -> list[str]:
    return [
        bad.reason.text for block in blocks_of(opened(path, Wanted(**wanted))) for bad in block.bad
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" \n", "is empty: not even one line."),
        ("[1, 2]\n", "holds no JSON object in its first lines. NDJSON has one object per line, "
         'such as {"temp": 21.5}; format=... says what else it may be.'),
    ],
)  # fmt: skip
def test_a_file_without_objects_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.ndjson", text)
    with pytest.raises(InputError) as error:
        opened(path)
    assert str(error.value) == f"{path} {message}"


def test_lines_that_no_parser_reads_are_bad_rows(tmp_path: Path) -> None:
    twice = write(tmp_path / "x.ndjson", '{"a": 1, "b": 2}\n{"a": 3, "a": 4, "b": 5}\n')
    (reason,) = reasons(twice)
    assert reason.startswith("not NDJSON: ") and "specified twice" in reason
    other = write(tmp_path / "y.ndjson", '{"a": 1, "id": "x"}\n{"a": 2, "id": 3}\n')
    assert reasons(other, id_column="id") == ["3 in column 'id' is not text"]
    (reason,) = reasons(write(tmp_path / "z.csv", "a,b\n1,2\n3,4\r5,6\n"))
    assert reason == "not CSV: 2 rows in one line"


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_parsing, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(line_parsing, "LONGEST_LINE", 1 << 20)
    path = write(tmp_path / "x.csv", "a,b\n" + "1" * (2 << 20))
    with pytest.raises(InputError) as error:
        blocks_of(opened(path))
    assert str(error.value) == (
        f"{path} has a line of more than 1 MiB. Is it text at all? format=... says what else it "
        "may be."
    )


def test_a_folder_cannot_be_followed(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, "a\n1\n")
    with pytest.raises(InputError) as error:
        opened(str(tmp_path), follow=True)
    assert str(error.value) == f"follow=True reads one file, {tmp_path} means 2."


@pytest.mark.parametrize("ending", ["csv", "arrow"])
def test_a_file_shorter_than_was_read_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{ending}"

    def hold(n_rows: int) -> None:
        table = pa.table({"a": np.arange(n_rows) + 0.5})
        if ending == "csv":
            path.write_text("a\n" + "".join(f"{a}\n" for a in table["a"].to_pylist()))
        else:
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)

    hold(9)
    (block,) = blocks_of(opened(str(path)))
    position = block.position_at(8)
    hold(3)
    with pytest.raises(InputError, match=r"the checkpoint has read|has only 3 rows|checkpoint"):
        blocks_of(opened(str(path)), position)


class ArrowArray:
    """A table of another library, which speaks Arrow's protocol for one batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


def test_rare_kinds_of_tables_hold_the_same_rows() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    batch = pa.record_batch({"x0": rows[:, 0], "x1": rows[:, 1]})
    kinds = [rows.astype(bool), rows.astype(np.float16), rows.astype(">f8"), ArrowArray(batch)]
    for kind in kinds:
        np.testing.assert_array_equal(rows_of([kind]), rows)


def test_a_bad_row_of_a_table_says_where_and_what_it_is() -> None:
    table = pa.table({"a": [1.0, float("nan")], "b": [2.0, 3.0]})
    ((bad,),) = [block.bad for block in blocks_of(opened([table]))]
    assert str(bad.place).endswith("row 2")
    assert bad.text == "{'a': nan, 'b': 3.0}"


def test_a_simulated_stream_has_the_columns_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,b\n" + "".join(f"{n},{n % 7}\n" for n in range(200)))
    source = opened(f"drift:{path}?epsilon=0.5&concepts=2&batch_size=20&clusters=2")
    assert source.selection.features == ("a", "b")
    empty = write(tmp_path / "y.csv", "a,b\n")
    with pytest.raises(InputError) as error:
        read_file(empty)
    assert str(error.value) == f"{empty} has no rows."


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_ids_of_a_columnar_file_come_with_its_rows(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{ending}"
    table = pa.table({"key": ["u", "v", "w"], "a": [1.0, 2.0, 3.0]})
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    (block,) = blocks_of(opened(str(path), Wanted(id_column="key")))
    assert block.keys.column("key").to_pylist() == ["u", "v", "w"]
    np.testing.assert_array_equal(block.points, [[1.0], [2.0], [3.0]])


def test_json_is_another_name_of_ndjson(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", '{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n')
    np.testing.assert_array_equal(rows_of(path, form="json"), [[1.0, 2.0], [3.0, 4.0]])
