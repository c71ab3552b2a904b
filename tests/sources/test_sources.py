"""Sources: any format gives the same rows, and any row is a place to go on from."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kmeander import DriftStream, InputError, InputTypeError
from kmeander.sources import Reading, Source, Wanted, line_parsing, open_source
from kmeander.sources.block import Block
from kmeander.sources.conversion import to_points, to_weights
from kmeander.sources.line_parsing import (
    count_lines,
    line_start,
    parse_lines,
    split_lines,
    whole_lines,
)
from kmeander.sources.reasons import Reason
from kmeander.sources.selection import Selection
from kmeander.sources.times import to_times

Rows = NDArray[np.float64]


def texts(reasons: Mapping[int, Reason]) -> dict[int, str]:
    return {position: reason.text for position, reason in reasons.items()}


def opened(source: Any, wanted: Wanted | None = None, **reading: Any) -> Source:
    made = open_source(source, wanted or Wanted(), Reading(**reading))
    made.start()
    return made


def blocks_of(source: Source, position: Any = None) -> list[Block]:
    try:
        return [block for block in source.blocks(position) if block is not None]
    finally:
        source.close()


def rows_of(source: Any, wanted: Wanted | None = None, **reading: Any) -> Rows:
    made = opened(source, wanted, **reading)
    return np.concatenate([block.points for block in blocks_of(made)])


def write_csv(path: Path, rows: Rows, delimiter: str = ",") -> None:
    text = [delimiter.join(["a", "b"])]
    text += [delimiter.join(map(repr, row)) for row in rows.tolist()]
    path.write_text("\n".join(text) + "\n")


def write_ndjson(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in rows.tolist()))


def table(rows: Rows) -> pa.Table:
    return pa.table({"a": rows[:, 0], "b": rows[:, 1]})


def write_arrow(path: Path, rows: Rows, *, stream: bool) -> None:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with path.open("wb") as file, new(file, table(rows).schema) as writer:
        for batch in table(rows).to_batches(max_chunksize=7):
            writer.write_batch(batch)


WRITERS: dict[str, Callable[[Path, Rows], Any]] = {
    "x.csv": write_csv,
    "x.tsv": lambda path, rows: write_csv(path, rows, "\t"),
    "x.ndjson": write_ndjson,
    "x.parquet": lambda path, rows: pq.write_table(table(rows), path, row_group_size=5),
    "x.arrow": lambda path, rows: write_arrow(path, rows, stream=False),
    "x.arrows": lambda path, rows: write_arrow(path, rows, stream=True),
}


def packed_by_arrow(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


def zipped(data: bytes, names: Sequence[str] = ("inside.csv", "__MACOSX/._inside.csv")) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, data)
    return archive.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": packed_by_arrow,
    ".zip": zipped,
}


@pytest.fixture
def rows() -> Rows:
    return np.random.default_rng(3).normal(size=(23, 2))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks even of a small file."""
    monkeypatch.setattr(line_parsing, "BLOCK_BYTES", 64)
    monkeypatch.setattr("kmeander.sources.columnar_files.BLOCK_ROWS", 4)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(name: str, rows: Rows, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name, rows)
    source = opened(tmp_path / name)
    blocks = blocks_of(source)
    assert source.selection.features == ("a", "b")
    assert len(blocks) > 1
    assert np.concatenate([block.points for block in blocks]).tolist() == rows.tolist()
    numbers = np.concatenate([block.rows for block in blocks])
    assert numbers.tolist() == list(range(23))
    assert [row for block in blocks for row in block.keys["row"].to_pylist()] == list(range(23))
    assert blocks[-1].end == 23


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", [*WRITERS, *(f"x.csv{ending}" for ending in PACKERS)])
def test_any_row_is_a_place_to_go_on_from(name: str, rows: Rows, tmp_path: Path) -> None:
    path = tmp_path / name
    plain = path.with_suffix("") if path.suffix in PACKERS else path
    WRITERS[plain.name](plain, rows)
    if plain != path:
        path.write_bytes(PACKERS[path.suffix](plain.read_bytes()))
    first = opened(path)
    blocks = blocks_of(first)
    for block in blocks:
        for row in [*block.rows.tolist(), block.end]:
            again = opened(path)
            rest = blocks_of(again, block.position_at(row))
            found = np.concatenate([np.empty((0, 2)), *(part.points for part in rest)])
            assert found.tolist() == rows[row:].tolist()
            assert [n for part in rest for n in part.rows.tolist()] == list(range(row, 23))


@pytest.mark.usefixtures("small_blocks")
def test_files_of_a_folder_are_one_stream(rows: Rows, tmp_path: Path) -> None:
    for index, name in enumerate(("b.csv", "a.parquet", "c.ndjson")):
        WRITERS[f"x.{name[2:]}"](tmp_path / name, rows[index * 5 : index * 5 + 5])
        os.utime(tmp_path / name, ns=(index, index))
    (tmp_path / "notes.txt").write_text("not data")
    (tmp_path / ".hidden.csv").write_text("a,b\n9,9\n")
    by_name = [*rows[5:10].tolist(), *rows[:5].tolist(), *rows[10:15].tolist()]
    assert rows_of(tmp_path).tolist() == by_name
    assert rows_of(f"{tmp_path}/*.[cpn]*").tolist() == by_name
    assert rows_of(tmp_path, order="time").tolist() == rows[:15].tolist()
    source = opened(tmp_path)
    positions = {
        row: block.position_at(row)
        for block in blocks_of(source)
        for row in range(int(block.rows[0]), block.end + 1)
    }
    for row, position in positions.items():
        rest = blocks_of(opened(tmp_path), position)
        assert [p for block in rest for p in block.points.tolist()] == by_name[row:]
    (tmp_path / "aa.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError) as caught:
        blocks_of(opened(tmp_path), positions[12])
    assert str(caught.value) == (
        f"{tmp_path}/c.ndjson, which the checkpoint was reading, is no longer file number 3 of "
        f"{tmp_path}. New files must come after those already read; begin anew with another "
        "checkpoint otherwise."
    )


# Lines of text, some of them no rows at all.
CELLS = st.sampled_from(["1", "-2.5", "3e2", "n/a", "", "nan", "inf", " 4 ", '"5"', "1e999"])
LINES = st.lists(
    st.lists(CELLS, min_size=1, max_size=3).map(",".join) | st.just("") | st.just("  "), max_size=12
)


@given(text=LINES, ends=st.booleans(), size=st.integers(1, 40))
@settings(max_examples=300)
def test_good_and_bad_rows_do_not_depend_on_where_blocks_end(
    text: list[str], ends: bool, size: int
) -> None:
    """Every line is blank, good or bad, by its own contents alone."""

    def is_good(cell: str) -> bool:
        try:
            value = float(cell.strip('"'))
        except ValueError:
            return False
        return abs(value) <= 1e120

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.csv")
        path.write_text("a,b\n" + "\n".join(text) + ("\n" if ends and text else ""))
        before, line_parsing.BLOCK_BYTES = line_parsing.BLOCK_BYTES, size
        try:
            source = opened(path)
            blocks = blocks_of(source)
        finally:
            line_parsing.BLOCK_BYTES = before
    good = {int(row) for block in blocks for row in block.rows}
    bad = {row.row: row for block in blocks for row in block.bad}
    for number, line in enumerate(text):
        cells = line.split(",")
        if not line.strip():
            assert number not in good
            assert number not in bad
        elif len(cells) == 2 and all(map(is_good, cells)):
            assert number in good
        else:
            assert number in bad
            assert str(bad[number].place) == f"{path} line {number + 2}"
            assert bad[number].text == line
    assert len(good) + len(bad) == sum(bool(line.strip()) for line in text)


@given(
    pieces=st.lists(st.text("ab\n", max_size=5).map(str.encode) | st.none(), max_size=10),
    ends=st.booleans(),
)
def test_whole_lines_lose_nothing(pieces: list[bytes | None], ends: bool) -> None:
    filled = [piece for piece in pieces if piece != b""]
    left = iter([*filled, b""])
    found = list(whole_lines(lambda _: next(left), "x", ends=ends))
    text = b"".join(piece for piece in filled if piece is not None)
    blocks = [block for block in found if block is not None]
    assert found.count(None) == filled.count(None)
    kept = text if ends else text[: text.rfind(b"\n") + 1]
    assert b"".join(blocks) == kept
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    for block in blocks:
        starts = [line_start(block, number) for number in range(count_lines(block) + 1)]
        assert starts[-1] == len(block)
        cut = [block[a:b].rstrip(b"\n") for a, b in pairwise(starts)]
        assert cut == split_lines(block)


@given(bad=st.sets(st.integers(0, 30)), blank=st.sets(st.integers(0, 30)), n=st.integers(0, 31))
def test_sifting_finds_every_bad_line_and_keeps_the_others(
    bad: set[int], blank: set[int], n: int
) -> None:
    def parse(block: bytes) -> pa.Table:
        rows = [line for line in block.split(b"\n") if line]
        if b"x" in rows:
            raise pa.ArrowInvalid("no")
        return pa.table({"v": pa.array(map(int, rows), pa.int64())})

    def line(number: int) -> bytes:
        return b"" if number in blank else b"x" if number in bad else b"%d" % number

    block = b"".join(line(number) + b"\n" for number in range(n))

    def explain(text: bytes, why: str) -> Reason:
        return Reason(f"{text!r}: {why}")

    parsed = parse_lines(block, parse, explain, parse(b""), lambda _: True)
    good = [number for number in range(n) if number not in bad | blank]
    assert parsed.lines.tolist() == good
    assert parsed.table["v"].to_pylist() == good
    assert texts(parsed.bad) == {number: "b'x': no" for number in range(n) if number in bad - blank}


def test_ndjson_says_what_is_wrong_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(
        '{"a": 1, "b": 2, "extra": []}\n'
        '{"a": "n/a", "b": 2}\n'
        '{"a": 1}\n'
        '{"a": 1, "b": 2\n'
        "[1, 2]\n"
        "\n"
        '{"a": true, "b": 2}\n'
        '{"a": NaN, "b": 2}\n'
        '{"b": 4, "a": 3.5}\n'
    )
    source = opened(path, Wanted(columns=["a", "b"]))
    (block,) = blocks_of(source)
    assert block.points.tolist() == [[1.0, 2.0], [3.5, 4.0]]
    assert block.rows.tolist() == [0, 8]
    assert [(row.place.number, row.reason.text) for row in block.bad] == [
        (2, "'n/a' in column 'a' is not a number"),
        (3, "nothing in column 'b'"),
        (4, "not JSON: Expecting ',' delimiter: line 1 column 16 (char 15)"),
        (5, "a JSON list where an object should be"),
        (7, "True in column 'a' is not a number"),
        (8, "NaN in column 'a' is not finite"),
    ]


def test_ids_are_carried_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("key,a\n007,1\nb,2\n")
    (tmp_path / "x.ndjson").write_text('{"key": 7, "a": 1}\n{"key": 8, "a": 2}\n')
    keys = [
        blocks_of(opened(tmp_path / name, Wanted(id_column="key")))[0].keys.to_pydict()
        for name in ("x.csv", "x.ndjson")
    ]
    assert keys == [{"key": ["007", "b"]}, {"key": [7, 8]}]


def test_columns_are_chosen_excluded_and_checked() -> None:
    names = ["id", "t", "a", "b"]
    assert Wanted(["b", "a"]).among(names, "x").features == ("b", "a")
    selection = Wanted(exclude=["a"], id_column="id", time_column="t").among(names, "x")
    assert selection.features == ("b",)
    assert selection.needed == ["b", "id", "t"]
    cases = {
        "x has no column 'c'. It has 'id', 't', 'a', 'b'.": Wanted(exclude=["c"]),
        "x has no column 'd'. It has 'id', 't', 'a', 'b'.": Wanted(time_column="d"),
        "column 'a' cannot be clustered and be left out, the id, the time, the "
        "weight or the text at once. Name it in one place only.": Wanted(["a"], id_column="a"),
        "x has no column left to cluster: it has 'id', 't', 'a', 'b'.": Wanted(exclude=names),
        "column 'a' is there more than once in 'a, a' of x. Name it once in columns.": Wanted(
            ["a", "a"]
        ),
    }
    for message, wanted in cases.items():
        with pytest.raises(InputError) as caught:
            wanted.among(names, "x")
        assert str(caught.value) == message
    with pytest.raises(InputError) as caught:
        Wanted().among(["a", "a"], "x")
    assert str(caught.value) == (
        "column 'a' is there more than once in 'a, a' of x. Every column needs a name of its own; "
        'exclude=["a"] leaves columns out.'
    )


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("b,c,a\n3,4,5\n")
    with pytest.raises(InputError) as caught:
        rows_of(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/b.csv has a column 'c', which {tmp_path}/a.csv does not have. Name the "
        "columns to cluster with columns=..., or leave this one out with "
        'exclude=["c"].'
    )
    assert rows_of(tmp_path, Wanted(["a", "b"])).tolist() == [[1.0, 2.0], [5.0, 3.0]]
    (tmp_path / "b.csv").write_text("b\n3\n")
    with pytest.raises(InputError) as caught:
        rows_of(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/b.csv has no column 'a', which {tmp_path}/a.csv has. All files of a stream "
        "need the columns that are read."
    )


def test_columns_of_other_types_become_numbers_or_bad_rows() -> None:
    from decimal import Decimal

    made = pa.table(
        {
            "whole": pa.array([1, None, 3], pa.int16()),
            "decimal": [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")],
            "truth": [True, False, True],
            "coded": pa.array([1.0, 2.0, 1.0]).dictionary_encode(),
            "text": ["x", None, "y"],
        }
    )
    names = ("whole", "decimal", "truth", "coded")
    points, reasons = to_points(made, names)
    assert points[[0, 2]].tolist() == [[1.0, 1.5, 1.0, 1.0], [3.0, 3.5, 1.0, 1.0]]
    assert texts(reasons) == {1: "nothing in column 'whole'"}
    assert texts(to_points(made, ("text",))[1]) == {
        0: "'x' in column 'text' is not a number",
        1: "nothing in column 'text'",
        2: "'y' in column 'text' is not a number",
    }


def test_times_in_every_form_are_the_same_moment() -> None:
    expected = [1_700_000_000_000_000, 1_700_000_000_500_000]
    text = ["2023-11-14T22:13:20Z", "2023-11-14 22:13:20.5"]
    moments = pd.to_datetime(text, format="ISO8601", utc=True)
    for column in (
        pa.array(text),
        pa.array(["1700000000", "1700000000.5"]),
        pa.array([1_700_000_000.0, 1_700_000_000.5]),
        pa.array(moments, pa.timestamp("us", "UTC")),
        pa.array(moments.tz_localize(None), pa.timestamp("ms")),
        pa.chunked_array([pa.array(moments, pa.timestamp("ns", "UTC"))]),
    ):
        micros, reasons = to_times(column, "t")
        assert micros.tolist() == expected
        assert reasons == {}
    bad = to_times(pa.array(["soon", None, "", "nan"]), "t")[1]
    assert texts(bad) == {
        0: "'soon' in column 't' is not a time",
        1: "nothing in column 't'",
        2: "nothing in column 't'",
        3: "'nan' in column 't' is not a time",
    }
    assert texts(to_times(pa.array([True]), "t")[1]) == {0: "True in column 't' is not a time"}
    assert texts(to_times(pa.array([float("nan")]), "t")[1]) == {
        0: "nan in column 't' is not a time"
    }


@given(
    moment=st.datetimes(datetime(1970, 4, 1), datetime(2199, 12, 31)),
    unit=st.sampled_from(["s", "ms", "us", "ns"]),
    as_text=st.booleans(),
    said=st.booleans(),
)
def test_the_size_of_a_number_tells_what_it_counts(
    moment: datetime, unit: str, as_text: bool, said: bool
) -> None:
    """From the fourth month of 1970 on; before that a number of milliseconds may be of seconds."""
    micros = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    count = micros * 1000 // {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    column = pa.array([str(count)] if as_text else [count])
    times, reasons = to_times(column, "t", unit if said else None)
    assert reasons == {}
    assert abs(int(times[0]) - micros) < {"s": 10**6, "ms": 10**3, "us": 2, "ns": 300}[unit]


def test_numbers_outside_1970_to_2200_are_no_times() -> None:
    ways = "is no time between 1970 and 2200, in whatever unit; time_unit=... says it, if it is one"
    assert texts(to_times(pa.array([-1.0, 7.3e18]), "t")[1]) == {
        0: f"-1 in column 't' {ways}",
        1: f"7.3e+18 in column 't' {ways}",
    }
    assert to_times(pa.array([-1.0]), "t", "s")[0].tolist() == [-1_000_000]
    assert texts(to_times(pa.array([7.3e18]), "t", "s")[1]) == {
        0: "7.3e+18 in column 't' is not a time"
    }


def test_rows_may_have_weights(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,n\n1,2\n2,0\n3,1.5\n4,x\n5,1e300\n")
    (block,) = blocks_of(opened(tmp_path / "x.csv", Wanted(weight_column="n")))
    assert block.points.tolist() == [[1.0], [3.0]]
    assert block.weights is not None and block.weights.tolist() == [2.0, 1.5]
    assert [bad.reason.text for bad in block.bad] == [
        "0 in column 'n' is not a weight above 0",
        "'x' in column 'n' is not a number",
        "1e+300 in column 'n' is not a weight of at most 1e+30",
    ]
    assert texts(to_weights(pa.array([1, None]), "n")[1]) == {1: "nothing in column 'n'"}


def test_python_objects_are_streams(rows: Rows) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b"])
    batches = table(rows).to_batches(max_chunksize=10)
    for source in (
        [rows[:10], rows[10:]],
        (part for part in (rows[:3].tolist(), rows[3:])),
        rows,
        table(rows),
        batches,
        frame,
        [frame[:4], frame[4:]],
        pa.RecordBatchReader.from_batches(batches[0].schema, batches),
    ):
        assert rows_of(source).tolist() == rows.tolist()
    assert opened(frame).selection.features == ("a", "b")
    assert opened(rows).selection.features == ("x0", "x1")
    source = opened([rows[:10], rows[10:]])
    positions = [block.position_at(row) for block in blocks_of(source) for row in block.rows]
    for row, position in enumerate(positions):
        rest = blocks_of(opened([rows[:10], rows[10:]]), position)
        assert np.concatenate([part.points for part in rest]).tolist() == rows[row:].tolist()


def test_the_simulator_is_a_stream_that_needs_no_skipping(rows: Rows) -> None:
    stream = DriftStream([rows, rows + 5], batch_size=6, batches_per_concept=2, random_state=0)
    expected = np.concatenate([batch for batch, _ in stream])
    assert rows_of(stream).tolist() == expected.tolist()
    blocks = blocks_of(opened(stream))
    rest = blocks_of(opened(stream), blocks[1].position_at(9))
    assert np.concatenate([part.points for part in rest]).tolist() == expected[9:].tolist()


def test_a_simulated_stream_can_be_named(rows: Rows, tmp_path: Path) -> None:
    write_csv(tmp_path / "x.csv", rows)
    address = f"drift:{tmp_path}/x.csv?clusters=2&epsilon=0.5&concepts=2&batch_size=4&seed=3"
    found = rows_of(address)
    assert found.shape == (80, 2)
    assert {tuple(row) for row in found[:40].tolist()} <= {tuple(row) for row in rows.tolist()}
    with pytest.raises(InputError) as caught:
        opened(f"drift:{tmp_path}/x.csv?size=4")
    assert str(caught.value).endswith(
        "there is no 'size'. Use clusters, epsilon, concepts, batch_size, batches_per_concept, "
        "seed."
    )
    with pytest.raises(InputError, match="epsilon must be a number, got 'big'"):
        opened(f"drift:{tmp_path}/x.csv?epsilon=big")


def test_what_is_no_stream_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (3, InputTypeError, "source is a int, which has no rows. Pass arrays of two dimensions"),
        ([], InputError, "the list has no rows."),
        ([[1.0, 2.0]], InputError, "item 0 of the list has shape (2,) and type float64, which is"),
        ([[["x"]]], InputError, "item 0 of the list has shape (1, 1) and type <U1, which is no"),
        ([[[1.0], [1.0, 2.0]]], InputError, "item 0 of the list is no table: "),
        (str(tmp_path), InputError, f"{tmp_path} holds no file to read. Files must end in .csv, "),
        (f"{tmp_path}/x.dat", InputError, f"{tmp_path}/x.dat does not exist (looked for "),
    ]
    for source, kind, message in cases:
        with pytest.raises(kind) as caught:
            opened(source)
        assert str(caught.value).startswith(message)
    (tmp_path / "x.dat").write_text("a\n1\n")
    with pytest.raises(InputError) as caught:
        opened(tmp_path / "x.dat")
    assert str(caught.value) == (
        f"{tmp_path}/x.dat: its ending '.dat' does not say the format. Say it with "
        "format=..., one of csv, tsv, ndjson, json, parquet, arrow."
    )
    assert rows_of(tmp_path / "x.dat", form="csv").tolist() == [[1.0]]


def test_an_archive_of_one_file_is_that_file(tmp_path: Path, rows: Rows) -> None:
    write_ndjson(tmp_path / "x.ndjson", rows)
    data = (tmp_path / "x.ndjson").read_bytes()
    (tmp_path / "x.zip").write_bytes(zipped(data, ["inside.ndjson"]))
    assert rows_of(tmp_path / "x.zip").tolist() == rows.tolist()
    (tmp_path / "x.zip").write_bytes(zipped(data, ["1.ndjson", "2.ndjson"]))
    with pytest.raises(InputError) as caught:
        opened(tmp_path / "x.zip")
    assert str(caught.value) == (
        f"{tmp_path}/x.zip holds 2 files, and one is read. Unpack it: python -m zipfile -e "
        f"{tmp_path}/x.zip x, and read the folder x."
    )
    (tmp_path / "x.parquet.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"a compressed file of parquet cannot be read, for it"):
        opened(tmp_path / "x.parquet.gz")


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_that_is_cut_short_is_explained(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.csv{ending}"
    lines = "a,b\n" + "".join(f"{n},{n * n % 977}\n" for n in range(9000))
    path.write_bytes(PACKERS[ending](lines.encode())[:-1000])
    with pytest.raises(InputError, match=r"cannot be read: |lines|damaged"):
        rows_of(path)


def test_damaged_files_are_explained(tmp_path: Path, rows: Rows) -> None:
    (tmp_path / "x.csv.gz").write_bytes(b"not gzip at all")
    with pytest.raises(InputError, match=r"x.csv.gz cannot be read: "):
        opened(tmp_path / "x.csv.gz")
    pq.write_table(table(rows), tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(whole[:-9])
    with pytest.raises(InputError, match=r"x.parquet cannot be read as Parquet: "):
        opened(tmp_path / "x.parquet")
    write_arrow(tmp_path / "x.arrow", rows, stream=True)
    whole = (tmp_path / "x.arrow").read_bytes()
    (tmp_path / "x.arrow").write_bytes(whole[: len(whole) // 2])
    source = opened(tmp_path / "x.arrow")
    with pytest.raises(InputError, match=r"x.arrow cannot be read"):
        blocks_of(source)
    with pytest.raises(InputError, match=r"/proc/self/mem cannot be read: Input/output error."):
        opened("/proc/self/mem", form="csv")


def test_another_file_in_place_of_the_first_is_noticed(tmp_path: Path, rows: Rows) -> None:
    for name, shorter in (("x.csv", "ends before byte"), ("x.parquet", "has 2 rows, but the")):
        WRITERS[name](tmp_path / name, rows)
        source = opened(tmp_path / name)
        position = blocks_of(source)[-1].position_at(20)
        WRITERS[name](tmp_path / name, rows[:2])
        other = opened(tmp_path / name)
        with pytest.raises(InputError) as caught:
            blocks_of(other, position)
        assert shorter in str(caught.value)
        assert "begin anew with another checkpoint." in str(caught.value)
    WRITERS["x.csv"](tmp_path / "x.csv", np.round(rows * 1e9))
    other = opened(tmp_path / "x.csv")
    middle = (tmp_path / "x.csv").read_bytes().index(b".0,")
    position["place"] = {"row": 3, "byte": middle}
    position["file"] = str(tmp_path / "x.csv")
    with pytest.raises(InputError, match=f"has no line that ends at byte {middle}"):
        blocks_of(other, position)


def test_a_file_that_ended_without_a_line_end_may_grow(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n2")
    source = opened(path)
    position = blocks_of(source)[-1].position_at(2)
    path.write_text("a\n1\n2\n3\n")
    grown = opened(path)
    (block,) = blocks_of(grown, position)
    assert block.points.tolist() == [[3.0]]
    assert block.rows.tolist() == [2]


def test_a_growing_file_is_followed_by_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n2")
    source = opened(path, follow=True)
    found: list[float] = []
    stream = source.blocks()

    def take(n: int) -> None:
        deadline = time.monotonic() + 120
        while len(found) < n and time.monotonic() < deadline:
            block = next(stream)
            if block is not None:
                found.extend(block.points.ravel().tolist())

    take(1)
    for _ in range(3):
        assert next(stream) is None  # half a row is no row
    with path.open("a") as file:
        file.write("5\n3\n")
    take(3)
    assert found == [1.0, 25.0, 3.0]
    path.write_text("a\n1\n")
    with pytest.raises(InputError) as caught:
        next(stream)
    source.close()
    assert str(caught.value).startswith(f"{path} was cut from 9 to 4 bytes while it was followed.")


def test_a_followed_file_that_is_replaced_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text('{"a": 1}\n')
    source = opened(path, follow=True)
    stream = source.blocks()
    assert next(stream) is not None
    (tmp_path / "new").write_text('{"a": 1}\n{"a": 2}\n')
    (tmp_path / "new").replace(path)
    with pytest.raises(InputError, match="was removed, or replaced by another file, while"):
        next(stream)
    source.close()


@pytest.mark.parametrize(
    ("path", "reading", "message"),
    [
        ("-", {"follow": True}, "follow=True is for files: standard input is read as it comes"),
        ("-", {"form": "parquet"}, "Parquet cannot be read from standard input: it begins at"),
        ("x.parquet", {"follow": True}, "follow=True reads csv, tsv and ndjson; "),
        ("x.csv.gz", {"follow": True}, "follow=True cannot read "),
        ("x.ndjson", {"header": ["a"]}, "header=... names the columns of csv and tsv; "),
        ("x.csv", {"order": "size"}, "order must be one of 'name', 'time', got 'size'."),
        (
            "x.csv",
            {"form": "xml"},
            "format must be one of 'csv', 'tsv', 'ndjson', 'json', 'parquet', 'arrow',"),
    ],
)  # fmt: skip
def test_readings_that_do_not_go_together_are_refused(
    path: str, reading: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if path != "-":
        (tmp_path / path).write_text("a\n1\n")
        path = str(tmp_path / path)
    with pytest.raises(InputError) as caught:
        opened(path, **reading)
    assert str(caught.value).startswith(message)


def test_only_files_are_followed(rows: Rows) -> None:
    for source in ([rows], "kafka://127.0.0.1:1/t", "drift:x.csv"):
        with pytest.raises(InputError, match="follow=True is for files: other streams are read as"):
            opened(source, follow=True)


def test_a_header_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbf1,2\n3,x\n")
    source = opened(tmp_path / "x.csv", header=["a", "b"])
    (block,) = blocks_of(source)
    assert block.points.tolist() == [[1.0, 2.0]]
    assert [str(row.place) for row in block.bad] == [f"{tmp_path}/x.csv line 2"]


def test_waiting_for_the_first_line_can_be_given_up(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b")

    class EnoughError(Exception):
        pass

    ticks: list[None] = []

    def tick() -> None:
        ticks.append(None)
        if len(ticks) == 2:
            raise EnoughError

    source = open_source(tmp_path / "x.csv", Wanted(), Reading(follow=True))
    with pytest.raises(EnoughError):
        source.start(tick)


def test_selection_lists_a_column_once() -> None:
    assert Selection(("a",), "t", "t").needed == ["a", "t"]


def test_nothing_of_a_stream_is_read_ahead(tmp_path: Path) -> None:
    """Back-pressure: a source is asked for more only when its rows have been taken."""
    asked: list[int] = []

    def items() -> Any:
        for index in range(5):
            asked.append(index)
            yield [[float(index)]]

    source = opened(items())
    stream = source.blocks()
    next(stream)
    assert asked == [0]
    next(stream)
    assert asked == [0, 1]
