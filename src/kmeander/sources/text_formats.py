"""What a line of text means: the contract of CSV and NDJSON, and NDJSON itself."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kmeander.exceptions import InputError, argument, shown
from kmeander.plain_values import from_json
from kmeander.preparation.tables import flattened
from kmeander.sources.column_kinds import (
    arrow_type,
    kinds_of_json,
    leaves,
)
from kmeander.sources.line_parsing import ParsedLines, count_lines, parse_lines
from kmeander.sources.reasons import Reason, reason_for
from kmeander.sources.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_OBJECTS = 100  # lines of NDJSON from which the names are taken


class TextFormat(ABC):
    """How lines are read as rows. What it knows of them, it knows from `begin` on.

    Parameters
    ----------
    names : list of str
    notes : list of str
        What was recognised that is not as usual, for people.
    least_lines : int
        Lines that `begin` needs to recognise anything.
    may_be_western : bool
        Whether what is not UTF-8 may be text in windows-1252; JSON is UTF-8 by definition.
    """

    names: list[str]
    notes: list[str]
    least_lines = 1
    may_be_western = False

    @abstractmethod
    def begin(self, sample: bytes, name: str) -> int:
        """Look at the first lines of a file and return how many bytes of them hold no rows."""

    @property
    @abstractmethod
    def kinds(self) -> Mapping[str, str]:
        """What columns hold, one of `KINDS`."""

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
        self._paths: dict[str, tuple[str, ...]] = {}
        lines = sample.removeprefix(codecs.BOM_UTF8).split(b"\n", FIRST_OBJECTS)
        for line in lines[:FIRST_OBJECTS]:
            for path, value in leaves(_object(line)):
                key = ".".join(path)
                self._paths.setdefault(key, path)
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

    @property
    def kinds(self) -> Mapping[str, str]:
        """What the first values of each key are."""
        return kinds_of_json(self._first)

    def select(self, selection: Selection) -> None:
        """Ask for features as numbers, for id and time as what they first were."""
        import pyarrow as pa

        def kind(name: str) -> pa.DataType:
            if name in selection.numeric:
                return _type_of_feature(name, selection)
            value = self._first.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return pa.int64()
            return pa.float64() if isinstance(value, float) else pa.string()

        self._types = {name: kind(name) for name in selection.needed}
        self._schema = _nested({self._path(name): kind for name, kind in self._types.items()})
        self._empty = pa.Table.from_batches([], schema=pa.schema(self._types))

    def _path(self, name: str) -> tuple[str, ...]:
        """Return where in an object a column stands; in a file of its own it may be unheard of."""
        return self._paths.get(name, (name,))

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
        return flattened(table).select(list(self._types))

    def _explain(self, line: bytes, message: str) -> Reason:
        try:
            row = from_json(line)
        except ValueError as error:
            return Reason(f"not JSON: {error}")
        if not isinstance(row, dict):
            what = "null" if row is None else type(row).__name__
            return Reason(f"a JSON {what} where an object should be")
        for name, kind in self._types.items():
            value: Any = row
            for key in self._path(name):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None and not _fits(value, kind):
                if str(kind) in ("double", "int64"):
                    return reason_for(value, name)
                what = {"bool": "true or false", "string": "text"}.get(
                    str(kind), "a list of numbers"
                )
                return Reason(f"{shown(value)} in column {name!r} is not {what}", name)
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
    if str(kind) == "bool":
        return isinstance(value, bool)
    if str(kind).startswith("list"):
        return isinstance(value, list) and all(_fits(item, kind.value_type) for item in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (str(kind) == "double" or isinstance(value, int))


def _type_of_feature(name: str, selection: Selection) -> pa.DataType:
    """Return as what pyarrow is asked for a feature; without rules it must be a number or truth."""
    kind = selection.kinds.get(name, "number")
    if selection.rules is None and kind != "boolean":
        kind = "number"
    return arrow_type(kind)


def _nested(types: Mapping[tuple[str, ...], pa.DataType]) -> pa.Schema:
    """Return the schema of objects in which these paths have these types."""
    import pyarrow as pa

    def fields_of(part: Mapping[tuple[str, ...], pa.DataType]) -> list[pa.Field]:
        inside: dict[str, dict[tuple[str, ...], pa.DataType]] = {}
        for path, kind in part.items():
            inside.setdefault(path[0], {})[path[1:]] = kind
        return [
            pa.field(key, below[()] if () in below else pa.struct(fields_of(below)))
            for key, below in inside.items()
        ]

    return pa.schema(fields_of(types))
