"""CSV in its many forms: what a line of it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kmeander.sources.dialect import recognise
from kmeander.sources.line_parsing import ParsedLines, parse_lines
from kmeander.sources.numerals import FALSE, PLAIN, TRUE, ColumnForm, to_numbers
from kmeander.sources.reading import Reading
from kmeander.sources.reasons import Reason, reason_for
from kmeander.sources.selection import Selection
from kmeander.sources.text_formats import TextFormat

if TYPE_CHECKING:
    import pyarrow as pa

# How pyarrow words a cell that it cannot convert, and a row of another length.
_BAD_CELL = "In CSV column #{}: CSV conversion error to {}: invalid value '{}'"
_CELL = re.compile(
    r"In CSV column #(?P<column>\d+): .*? to (?P<type>\w+): invalid value '(?P<value>.*)'", re.S
)
_NOT_UTF8 = re.compile(r"In CSV column #(?P<column>\d+): .*invalid UTF8", re.S)
_ROW = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+)", re.S)


class CsvFormat(TextFormat):
    r"""Fields with a delimiter between; the first line holds the names unless `header` does.

    Parameters
    ----------
    reading : Reading
        What the user said; the rest is recognised from the first lines.
    usual : str
        What stands between columns where nothing tells.

    Examples
    --------
    >>> form = CsvFormat(Reading(header=["a", "b"]))
    >>> form.begin(b"1,2\n", "x.csv")
    0
    >>> form.select(Selection(("b",)))
    >>> str(form.parse(b"1,2\n3,high\n").bad[1])
    "'high' in column 'b' is not a number"
    """

    may_be_western = True

    def __init__(self, reading: Reading, usual: str = ",") -> None:
        self._reading = reading
        self._usual = usual
        self._has_header = reading.header is None
        self.least_lines = 2 if self._has_header else 1

    def begin(self, sample: bytes, name: str) -> int:
        """Recognise names and forms: columns can then be asked for by type from the start.

        Left to itself pyarrow takes the types of the first block for the whole file.
        """
        self._dialect = recognise(sample, name, self._reading, self._usual)
        self.names = list(self._dialect.names)
        self.notes = list(self._dialect.notes)
        self._forms = dict(zip(self.names, self._dialect.forms, strict=True))
        return self._dialect.n_bytes

    @property
    def kinds(self) -> dict[str, str]:
        """What columns hold: numbers, truths, times or categories."""
        return {name: form.kind for name, form in self._forms.items()}

    @property
    def forms(self) -> dict[str, dict[str, str]]:
        """How columns are written that are not plain numbers, for a checkpoint to keep."""
        return {name: asdict(form) for name, form in self._forms.items() if form != PLAIN}

    def expect(self, forms: Mapping[str, Mapping[str, str]], *, exactly: bool) -> None:
        """Read columns as what they were in an earlier part of the stream.

        Unless `exactly` so, signs are those of this file: it may have other decimals.
        """
        for name, form in self._forms.items():
            before = ColumnForm(**forms.get(name, {}))
            if exactly or form.kind != before.kind:
                self._forms[name] = before

    def select(self, selection: Selection) -> None:
        """Ask for each column by its type; ids and times stay text."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        plain = {"number": pa.float64(), "boolean": pa.bool_()}
        decimals = [form.decimal for form in self._forms.values() if form.kind == "number"]
        decimal = max((".", ","), key=decimals.count)
        usual = ColumnForm(decimal=decimal)
        self._converted: dict[str, ColumnForm] = {}
        self._words: list[str] = []  # columns of text
        asked, types = {}, {}
        for name in selection.needed:
            form = self._forms[name]
            kind = self._kind(name, selection)
            types[name] = asked[name] = plain.get(kind, pa.string())
            if kind not in plain:
                self._words.append(name)
            elif kind == form.kind == "number" and form != usual:
                asked[name] = pa.string()
                self._converted[name] = form
        missing = sorted(self._reading.missing)
        self._parse_options = arrow_csv.ParseOptions(delimiter=self._dialect.delimiter)
        self._convert_options = arrow_csv.ConvertOptions(
            include_columns=selection.needed,
            column_types=asked,
            null_values=[*missing, *(f" {word}" for word in missing)],
            true_values=TRUE,
            false_values=FALSE,
            decimal_point=decimal,
            strings_can_be_null=False,  # "NA" may be the name of something
        )
        self._places = {name: place for place, name in enumerate(self.names)}
        self._empty = pa.Table.from_batches([], schema=pa.schema(types))

    def _kind(self, name: str, selection: Selection) -> str:
        """Return as what a column is read; without rules features are numbers or truths."""
        if name not in selection.numeric:
            return "category"
        kind = selection.kinds.get(name, self._forms[name].kind)
        is_prepared = selection.rules is not None and name in selection.features
        return kind if is_prepared or kind == "boolean" else "number"

    def parse(self, block: bytes) -> ParsedLines:
        """Return the rows of some lines."""
        sign = (self._dialect.comment or "").encode()
        if sign and (block.startswith(sign) or b"\n" + sign in block):
            block = re.sub(rb"^%s[^\n]*" % re.escape(sign), b"", block, flags=re.M)
        return parse_lines(block, self._table, self._explain, self._empty, _is_one_csv_row)

    def _table(self, block: bytes) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        options = arrow_csv.ReadOptions(
            column_names=self.names, use_threads=False, block_size=len(block) + 1
        )
        table = arrow_csv.read_csv(
            pa.BufferReader(block), options, self._parse_options, self._convert_options
        )
        for name in (*self._words, *self._converted):
            table = self._replaced(table, name)
        return table

    def _replaced(self, table: pa.Table, name: str) -> pa.Table:
        """Return the table with a column of text as what it stands for."""
        import pyarrow as pa
        import pyarrow.compute as pc

        place = table.column_names.index(name)
        column = table.column(place)
        is_word = name in self._words
        words = ["", *self._reading.na_values] if is_word else sorted(self._reading.missing)
        key = column if is_word else pc.utf8_trim_whitespace(column)
        is_missing = pc.is_in(key, pa.array(words))
        if pc.any(is_missing).as_py():
            column = pc.if_else(is_missing, pa.scalar(None, pa.string()), column)
        if not is_word:
            column, wrong = to_numbers(column, self._converted[name])
            if wrong is not None:  # as pyarrow says it, for its line to be found as any other
                raise pa.ArrowInvalid(_BAD_CELL.format(self._places[name], "double", wrong))
        return table.set_column(place, name, column)

    def _explain(self, line: bytes, message: str) -> Reason:  # noqa: ARG002  # pyarrow says it
        if cell := _CELL.search(message):
            return _reason(cell["value"], self.names[int(cell["column"])], cell["type"])
        if cell := _NOT_UTF8.search(message):
            name = self.names[int(cell["column"])]
            return Reason(f"what stands in column {name!r} is not UTF-8", name)
        if row := _ROW.search(message):
            fields = "field" if row["found"] == "1" else "fields"
            where = "the header has" if self._has_header else "there should be"
            return Reason(
                f"{row['found']} {fields} where {where} {row['expected']}",
                misfits_names=not self._has_header,
                advice=self._dialect.advice,
            )
        return Reason(f"not CSV: {message.splitlines()[0]}")


def _reason(value: Any, name: str, kind: str) -> Reason:
    if kind == "bool":
        return Reason(f"{value!r} in column {name!r} is neither true nor false", name)
    return reason_for(value, name)


def _is_one_csv_row(lines: bytes) -> bool:
    """Whether no line can be several rows: pyarrow ends a line at a carriage return, too."""
    if b"\r" not in lines:  # nearly always, and found out faster
        return True
    return lines.count(b"\r") == lines.count(b"\r\n") + lines.endswith(b"\r")
