"""CSV, TSV and NDJSON: what a line of text means."""

from __future__ import annotations

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kmeander.exceptions import InputError, argument, shown
from kmeander.json_text import from_json
from kmeander.sources.line_parsing import ParsedLines, count_lines, parse_lines
from kmeander.sources.reasons import Reason, reason_for
from kmeander.sources.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa

# How pyarrow words a cell that it cannot convert, and a row of another length.
_BAD_CELL = re.compile(r"In CSV column #(?P<column>\d+): .*invalid value '(?P<value>.*)'", re.S)
_BAD_ROW = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+)", re.S)
FIRST_OBJECTS = 100  # lines of NDJSON from which the names are taken
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextFormat(ABC):
    """How lines are read as rows. `names` are known once `begin` has seen the first lines."""

    names: list[str]
    has_header = False

    @abstractmethod
    def begin(self, block: bytes, name: str) -> int:
        """Look at the first lines of a file and return how many bytes of them hold no rows."""

    @abstractmethod
    def select(self, selection: Selection) -> None:
        """Hear which columns are wanted."""

    @abstractmethod
    def parse(self, block: bytes) -> ParsedLines:
        """Return the rows of some lines."""


class CsvFormat(TextFormat):
    r"""Fields with a delimiter between; the first line holds the names unless `header` does.

    Examples
    --------
    >>> form = CsvFormat(",", header=["a", "b"])
    >>> form.begin(b"1,2\n", "x.csv")
    0
    >>> form.select(Selection(("b",)))
    >>> str(form.parse(b"1,2\n3,n/a\n").bad[1])
    "'n/a' in column 'b' is not a number"
    """

    def __init__(self, delimiter: str, header: Sequence[str] | None = None) -> None:
        self._delimiter = delimiter
        self._given = header
        self.has_header = header is None

    def begin(self, block: bytes, name: str) -> int:
        """Read the names ourselves: the columns can then be asked for as numbers from the start.

        Left to itself pyarrow takes the types of the first block for the whole file.
        """
        if self._given is not None:
            self.names = list(self._given)
            return len(BYTE_ORDER_MARK) if block.startswith(BYTE_ORDER_MARK) else 0
        first, end, _ = block.partition(b"\n")
        try:
            text = first.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name} is not UTF-8 text: {error.reason} at byte {error.start} of the "
                "header. Convert it first, with iconv for instance."
            ) from error
        if not text.strip():
            if block.strip():
                raise InputError(
                    f"{name} begins with an empty line. The first line must hold the names of the "
                    "columns; remove what stands before them."
                )
            raise InputError(f"{name} is empty: not even a header.")
        try:
            names = next(csv.reader([text.rstrip("\r")], delimiter=self._delimiter))
        except csv.Error as error:
            raise InputError(
                f"{name} has a header that cannot be read: {error}. Lines must end with a line "
                "feed; tr '\\r' '\\n' converts those of an old Macintosh."
            ) from error
        if all(_is_number(field) for field in names):
            raise InputError(
                f"{name} begins with a row of numbers. The first line must hold the names of "
                f"the columns; where there is none, {argument('header', ...)} names them."
            )
        self.names = names
        return len(first) + len(end)

    def select(self, selection: Selection) -> None:
        """Ask for features as numbers; ids and times stay text."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        types = {
            name: pa.float64() if name in selection.features else pa.string()
            for name in selection.needed
        }
        self._parse_options = arrow_csv.ParseOptions(delimiter=self._delimiter)
        self._convert_options = arrow_csv.ConvertOptions(
            include_columns=selection.needed,
            column_types=types,
            null_values=[""],  # "n/a" and the like are text where a number should be
            strings_can_be_null=True,
        )
        self._empty = pa.Table.from_batches([], schema=pa.schema(types))

    def parse(self, block: bytes) -> ParsedLines:
        """Return the rows of some lines."""
        return parse_lines(block, self._table, self._explain, self._empty, _is_one_csv_row)

    def _table(self, block: bytes) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        options = arrow_csv.ReadOptions(
            column_names=self.names, use_threads=False, block_size=len(block) + 1
        )
        return arrow_csv.read_csv(
            pa.BufferReader(block), options, self._parse_options, self._convert_options
        )

    def _explain(self, line: bytes, message: str) -> Reason:  # noqa: ARG002  # pyarrow says it
        if cell := _BAD_CELL.search(message):
            return reason_for(cell["value"], self.names[int(cell["column"])])
        if row := _BAD_ROW.search(message):
            fields = "field" if row["found"] == "1" else "fields"
            where = "the header has" if self.has_header else "there should be"
            return Reason(
                f"{row['found']} {fields} where {where} {row['expected']}",
                misfits_names=not self.has_header,
            )
        form = "CSV" if self._delimiter == "," else "TSV"
        return Reason(f"not {form}: {message.splitlines()[0]}")


class JsonFormat(TextFormat):
    """One JSON object per line; keys that are not asked for are ignored."""

    def begin(self, block: bytes, name: str) -> int:
        """Take the names from the first lines that are objects."""
        self._first: dict[str, Any] = {}
        lines = block.removeprefix(BYTE_ORDER_MARK).split(b"\n", FIRST_OBJECTS)
        for line in lines[:FIRST_OBJECTS]:
            for key, value in _object(line).items():
                if self._first.get(key) is None:
                    self._first[key] = value
        if self._first:
            self.names = list(self._first)
            return len(BYTE_ORDER_MARK) if block.startswith(BYTE_ORDER_MARK) else 0
        if not block.strip():
            raise InputError(f"{name} is empty: not even one line.")
        raise InputError(
            f"{name} holds no JSON object in its first lines. NDJSON has one object per line, "
            'such as {"temp": 21.5}; '
            f"{argument('format', ...)} says what else it may be."
        )

    def select(self, selection: Selection) -> None:
        """Ask for features as numbers, for id and time as what they first were."""
        import pyarrow as pa

        def kind(name: str) -> pa.DataType:
            if name in selection.features:
                return pa.float64()
            value = self._first.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return pa.int64()
            return pa.float64() if isinstance(value, float) else pa.string()

        self._schema = pa.schema({name: kind(name) for name in selection.needed})
        self._empty = pa.Table.from_batches([], schema=self._schema)

    def parse(self, block: bytes) -> ParsedLines:
        """Return the rows of some lines."""
        return parse_lines(block, self._table, self._explain, self._empty, _is_one_object)

    def _table(self, block: bytes) -> pa.Table:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        if not block.lstrip().startswith(b"{"):
            # A null that comes first ends the process (pyarrow 26, apache/arrow 47409).
            raise pa.ArrowInvalid("no object")
        table = arrow_json.read_json(
            pa.BufferReader(block),
            arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            arrow_json.ParseOptions(
                explicit_schema=self._schema, unexpected_field_behavior="ignore"
            ),
        )
        table.validate(full=True)  # text that is not UTF-8 has not been looked at
        return table

    def _explain(self, line: bytes, message: str) -> Reason:
        try:
            row = from_json(line)
        except ValueError as error:
            return Reason(f"not JSON: {error}")
        if not isinstance(row, dict):
            kind = "null" if row is None else type(row).__name__
            return Reason(f"a JSON {kind} where an object should be")
        for field in self._schema:
            value = row.get(field.name)
            if value is not None and not _fits(value, field.type):
                if str(field.type) in ("double", "int64"):
                    return reason_for(value, field.name)
                return Reason(f"{shown(value)} in column {field.name!r} is not text", field.name)
        return Reason(f"not NDJSON: {message}")


def _object(line: bytes) -> dict[str, Any]:
    """Return the object that a line holds, an empty one where it holds none with usable names."""
    try:
        row = from_json(line)
        if isinstance(row, dict):
            "".join(row).encode()
            return row
    except ValueError:
        pass
    return {}


def _is_one_object(lines: bytes) -> bool:
    """Whether each line begins and ends as an object does, so that none goes on in the next."""
    n_begun = lines.startswith(b"{") + lines.count(b"\n{")
    n_ended = lines.endswith(b"}") + lines.count(b"}\n") + lines.count(b"}\r\n")
    return n_begun == n_ended == count_lines(lines)


def _is_one_csv_row(lines: bytes) -> bool:
    """Whether no line can be several rows: pyarrow ends a line at a carriage return, too."""
    return lines.count(b"\r") == lines.count(b"\r\n") + lines.endswith(b"\r")


def _fits(value: Any, kind: Any) -> bool:
    if str(kind) == "string":
        return isinstance(value, str)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (str(kind) == "double" or isinstance(value, int))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
