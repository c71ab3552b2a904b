"""CSV as people write it: what is recognised is what was meant, and the rest is refused."""

from __future__ import annotations

import csv
import io
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kmeander import InputError
from kmeander.sources.dialect import Dialect, recognise
from kmeander.sources.encodings import Transcoder, encoding_of
from kmeander.sources.numerals import AmbiguousNumberError, form_of, form_with, to_numbers
from kmeander.sources.reading import Reading
from tests.sources.test_sources import blocks_of, opened, rows_of


def found(text: str, **reading: Any) -> Dialect:
    return recognise(text.encode(), "x.csv", Reading(**reading), ",")


def written(number: float, decimal: str, thousands: str) -> str:
    """Return a number with two digits after the sign."""
    signs = str.maketrans({",": thousands, ".": decimal})
    return f"{number:,.2f}".translate(signs)


NUMBERS = st.lists(
    st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 2)), min_size=2, max_size=2),
    min_size=2,
    max_size=8,
)
SIGNS = st.sampled_from(
    [(".", ""), (".", ","), (".", "'"), (".", " "), (",", ""), (",", "."), (",", " ")]
)
NAMES = st.lists(
    st.text(string.ascii_letters, min_size=1, max_size=5), min_size=2, max_size=2, unique=True
)


@given(
    rows=NUMBERS, signs=SIGNS, names=NAMES, delimiter=st.sampled_from(",;|\t"),
    unit=st.sampled_from(["", "$", "€"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
    comment=st.booleans(), end=st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
def test_numbers_written_in_any_way_are_the_numbers_that_were_meant(
    rows: list[list[float]], signs: tuple[str, str], names: list[str], delimiter: str, unit: str,
    encoding: str, comment: bool, end: str, tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(names)
    writer.writerows([[unit + written(cell, *signs) for cell in row] for row in rows])
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    note = f"# by hand{end}" if comment else ""
    path.write_bytes((note + text.getvalue()).encode(encoding))
    source = opened(path)
    assert source.selection.features == tuple(names)
    points = [row for block in blocks_of(source) for row in block.points.tolist()]
    assert points == rows


@given(cells=st.lists(st.text("0123456789.,' -+e$%", max_size=8), min_size=1, max_size=4))
def test_a_column_is_converted_just_as_its_cells_were_recognised(cells: list[str]) -> None:
    import pyarrow as pa

    cells = [cell.strip() for cell in cells]
    for decimal in (".", ","):
        form = form_with(cells, decimal)
        if form is None:
            continue
        column, wrong = to_numbers(pa.chunked_array([cells], pa.string()), form)
        assert wrong is None
        plain = str.maketrans({form.thousands or "_": None, form.unit or "_": None})
        expected = [
            float(cell.translate(plain).replace(" ", "").replace(decimal, ".")) for cell in cells
        ]
        assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5"], "number"), (["inf", "1"], "number"), (["1", "2", "high"], "number"),
        (["true", "FALSE"], "boolean"), (["yes", "no"], "boolean"),
        (["2026-06-01", "2026-06-02"], "time"), (["2026-06-01T10:00:00Z"], "time"),
        (["Oslo", "Rome"], "category"), (["1.2.3", "1.2.4"], "category"),
        (["5", "a", "b"], "category"),
    ],
)  # fmt: skip
def test_a_column_is_what_its_cells_are(cells: list[str], kind: str) -> None:
    assert form_of(cells, None).kind == kind


@pytest.mark.parametrize("cells", [["1,234"], ["1,234", "987"], ["1.234", "987"]])
def test_a_number_that_reads_two_ways_is_in_doubt(cells: list[str]) -> None:
    with pytest.raises(AmbiguousNumberError):
        form_of(cells, None)


def test_a_number_that_reads_two_ways_is_read_as_the_others_are() -> None:
    assert found('a,b\n"1,234",0.5\n').forms[0].thousands == ","
    assert found("a;b\n1,234;0,5\n").forms[0].decimal == ","
    with pytest.raises(InputError) as caught:
        found('a,b\n"1,234",7\n')
    assert str(caught.value) == (
        "x.csv: is 1,234 in column 'a' 1234 or 1.234? decimal=\".\" reads the first, "
        'decimal="," the second.'
    )
    assert found('a,b\n"1,234",7\n', decimal=",").forms[0].decimal == ","
    assert found('a,b\n"1,234",7\n', decimal=".").forms[0].thousands == ","


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ("a", "b")),
        ("\n\na,b\n1,2\n", ("a", "b")),
        (" a , b \n1,2\n", ("a", "b")),
        ("# made by hand\na,b\n1,2\n", ("a", "b")),
        ("# made by hand\n# a,b\n1,2\n", ("a", "b")),
        ("#a,b\n1,x\n2,y\n", ("a", "b")),
        ("3.5,2\n1,2\n", ("x0", "x1")),
        ("7\n3\n", ("x0",)),
        ("1,Oslo\n2,Rome\n", ("x0", "x1")),
        ("city,2019,2020\nOslo,5,6\n", ("city", "2019", "2020")),
        ("0,1,2\n0.5,0.25,0.1\n", ("0", "1", "2")),
        ("a,a,a.2\n1,2,3\n", ("a", "a.3", "a.2")),
        (",a\n0,1\n", ("x0", "a")),
    ],
)  # fmt: skip
def test_names_are_found_where_they_stand(text: str, names: tuple[str, ...]) -> None:
    assert found(text).names == names


def test_a_first_line_that_may_be_names_or_a_row_is_in_doubt() -> None:
    with pytest.raises(InputError) as caught:
        found("0,1\n5,6\n")
    assert str(caught.value) == (
        'x.csv begins with 0,1: names of columns, or a row? header=["0", "1"] takes them for '
        'names, header=["x0", "x1"] for a row.'
    )
    assert found("0,1\n5,6\n", header=["0", "1"]).n_bytes == 4
    assert found("0,1\n5,6\n", header=["x0", "x1"]).n_bytes == 0


def test_lines_among_the_rows_are_comments_if_they_are_no_rows() -> None:
    assert found("a,b\n1,2\n# sensor changed\n3,4\n").comment == "#"
    assert found("a,b\n#1,2\n#3,4\n").comment is None
    assert found("a,b\n#1,2\n#3,4\n", comment="#").comment == "#"
    assert found("a,b\n% x\n1,2\n", comment="%").names == ("a", "b")


def test_comments_keep_their_line_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("# pump 3\na,b\n1,2\n# sensor changed\n3,x\n4,5\n")
    (block,) = blocks_of(opened(tmp_path / "x.csv"))
    assert block.points.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert block.rows.tolist() == [0, 3]
    assert [bad.place.number for bad in block.bad] == [5]


def test_what_is_unusual_is_said() -> None:
    text = "# by hand\nname;load;load;price;share\nx;1,5;NA;€1.000,50;12 %\ny;2;-;€7,00;3 %\n"
    assert found(text).notes == (
        "';' stands between columns",
        "column 3, 'load', is called 'load.2'",
        "lines that begin with # are left out",
        "the decimal sign is a comma in columns 'load', 'price'",
        "'.' stands between thousands in column 'price'",
        "% is taken off in column 'share'",
        "€ is taken off in column 'price'",
        "'-', 'NA' stand for missing numbers",
    )
    assert found("a,b\n1,2\n").notes == ()


def test_where_no_row_fits_the_message_says_what_to_try(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("t\n1,5\n2,5\n")
    (bad, _) = blocks_of(opened(path))[0].bad
    assert bad.reason.advice == 'decimal="," reads 1,5 as one number'
    assert rows_of(path, decimal=",").tolist() == [[1.5], [2.5]]
    path.write_text("a:b\n1,5:2\n2,5:3\n")
    (bad, _) = blocks_of(opened(path))[0].bad
    assert bad.reason.advice == (
        "no row has as many, with ',' between: delimiter=... says what stands between columns"
    )
    assert rows_of(path, delimiter=":").tolist() == [[1.5, 2.0], [2.5, 3.0]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "windows-1252", "latin-1"])
@pytest.mark.parametrize("block_bytes", [3, 1 << 20])
def test_text_in_another_encoding_is_the_same_text(
    encoding: str, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kmeander.sources.line_parsing.BLOCK_BYTES", block_bytes)
    path = tmp_path / "x.csv"
    path.write_bytes("größe,b\n1,2\n3,4\n".encode(encoding))
    given = None if block_bytes > 3 else encoding
    source = opened(path, encoding=given)
    blocks = blocks_of(source)
    assert source.selection.features == ("größe", "b")
    assert [row for block in blocks for row in block.points.tolist()] == [[1.0, 2.0], [3.0, 4.0]]
    for block in blocks:
        for row in block.rows.tolist():
            rest = blocks_of(opened(path, encoding=given), block.position_at(row))
            assert [n for part in rest for n in part.rows.tolist()] == list(range(row, 2))


@given(text=st.text(min_size=1), size=st.integers(1, 5))
def test_transcoding_loses_nothing(text: str, size: int) -> None:
    assume("\x00" not in text and text.isprintable())
    data = text.encode("utf-16")
    pieces = iter([data[at : at + size] for at in range(0, len(data), size)] + [b""])
    transcoder = Transcoder(lambda _: next(pieces), "utf-16", "x")
    read = b""
    while piece := transcoder.read(size):
        read += piece
    assert read.decode() == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1....", 'x is Parquet, not text: use format="parquet".'),
        (b"\x1f\x8b\x08", "x is compressed, not text: give its name the ending .gz."),
        (b"a\0\0\0\0bc\0\0", "x is no text: it holds zero bytes. format=... says what else it may "
         "be, encoding=... in which encoding it is."),
        (b"caf\x81\n", "x is neither UTF-8 (invalid start byte at byte 3) nor windows-1252. Say "
         "what it is: encoding=...."),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        encoding_of(content, "x")
    assert str(caught.value) == message


def test_an_encoding_that_does_not_hold_throughout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n1,\xff\n")
    with pytest.raises(InputError) as caught:
        opened(path, encoding="ascii")
    assert str(caught.value) == (
        f"{path} is not ascii throughout: ordinal not in range(128) after byte 6. encoding=... "
        "says what it is."
    )


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"delimiter": ";;"}, "delimiter must be one character, or tab or space, got ';;'. It is "
         "what stands between columns."),
        ({"delimiter": ",", "decimal": ","}, "delimiter and decimal cannot both be a comma. One "
         "stands between columns, the other in numbers."),
        ({"decimal": "x"}, "decimal must be one of '.', ',', got 'x'."),
        ({"encoding": "klingon"}, "encoding must be one that Python knows, such as utf-8, latin-1 "
         "or utf-16, got 'klingon'."),
        ({"encoding": "rot13"}, "encoding must be one that Python knows, such as utf-8, latin-1 "
         "or utf-16, got 'rot13'."),
        ({"comment": " "}, "comment must be what lines to leave out begin with, such as #, got "
         "' '."),
        ({"na_values": "n.d."}, 'na_values must be a list of names, got \'n.d.\': pass ["n.d."].'),
    ],
)  # fmt: skip
def test_what_is_said_of_reading_is_checked(reading: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Reading(**reading)
    assert str(caught.value) == message


def test_a_file_that_has_grown_is_read_on_as_it_began(tmp_path: Path) -> None:
    """What comes later would have been recognised otherwise."""
    path = tmp_path / "x.csv"
    path.write_text("a;price\n1;€5\n2;€6\n")
    (block,) = blocks_of(opened(path))
    position = block.position_at(2)
    path.write_text(path.read_text() + "3;7\n" * 50 + "4;€8\n")
    found = blocks_of(opened(path), position)
    assert [row for part in found for row in part.points.tolist()] == [[4.0, 8.0]]
    assert str(found[0].bad[0].reason) == "'7' in column 'price' is not a number"


def test_files_of_a_folder_have_each_their_own_signs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,load\n1.5,2\n")
    (tmp_path / "b.csv").write_bytes("t;load\n2,5;3\n".encode("utf-16"))
    (tmp_path / "c.csv").write_text("# later\nload|t\n4|3.5\n")
    assert rows_of(tmp_path).tolist() == [[1.5, 2.0], [2.5, 3.0], [3.5, 4.0]]


def test_columns_are_chosen_by_patterns(tmp_path: Path) -> None:
    from kmeander.sources import Wanted

    names = ["id", "temp1", "temp2", "load", "a[0]"]
    assert Wanted(["temp*", "load"]).among(names, "x").features == ("temp1", "temp2", "load")
    assert Wanted(exclude=["temp?", "id"]).among(names, "x").features == ("load", "a[0]")
    assert Wanted(["a[0]"]).among(names, "x").features == ("a[0]",)
    with pytest.raises(InputError, match=r"x has no column 'volt\*'\. It has 'id', 'temp1'"):
        Wanted(["volt*"]).among(names, "x")
