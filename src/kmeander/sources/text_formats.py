"""What a line of text means: the contract of CSV and NDJSON, and NDJSON itself."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kmeander.exceptions import InputError, argument, shown
from kmeander.json_text import from_json
from kmeander.sources.line_parsing import ParsedLines, count_lines, parse_lines
from kmeander.sources.reasons import Reason, reason_for
from kmeander.sources.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_OBJECTS = 100  # lines of NDJSON from which the names are taken


class TextFormat(ABC):
    """How lines are read as rows. `names` and `notes` are known once `begin` has been called.

    Parameters
    ----------
    names : list of str
    notes : list of str
        What was recognised that is not as usual, for people.
    least_lines : int
        Lines that `begin` needs to recognise anything.
    """

    names: list[str]
    notes: list[str]
    least_lines = 1

    @abstractmethod
    def begin(self, sample: bytes, name: str) -> int:
        """Look at the first lines of a file and return how many bytes of them hold no rows."""

    @property
    def forms(self) -> dict[str, dict[str, str]]:
        """How columns are written that are not plain numbers, for a checkpoint to keep."""
        return {}

    def expect(  # noqa: B027  # JSON says what its values are
        self, forms: Mapping[str, Mapping[str, str]], *, exactly: bool
    ) -> None:
        """Read columns as what they were in an earlier part of the stream."""

    @abstractmethod
    def select(self, selection: Selection) -> None:
        """Hear which columns are wanted."""

    @abstractmethod
    def parse(self, block: bytes) -> ParsedLines:
        """Return the rows of some lines."""


class JsonFormat(TextFormat):
    """One JSON object per line; keys that are not asked for are ignored."""

    def begin(self, sample: bytes, name: str) -> int:
        """Take the names from the first lines that are objects."""
        self.notes = []
        self._first: dict[str, Any] = {}
        lines = sample.removeprefix(codecs.BOM_UTF8).split(b"\n", FIRST_OBJECTS)
        for line in lines[:FIRST_OBJECTS]:
            for key, value in _object(line).items():
                if self._first.get(key) is None:
                    self._first[key] = value
        if self._first:
            self.names = list(self._first)
            return len(codecs.BOM_UTF8) if sample.startswith(codecs.BOM_UTF8) else 0
        if not sample.strip():
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


def _fits(value: Any, kind: Any) -> bool:
    if str(kind) == "string":
        return isinstance(value, str)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (str(kind) == "double" or isinstance(value, int))
