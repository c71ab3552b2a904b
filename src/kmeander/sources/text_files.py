"""One file, or standard input, of CSV, TSV or NDJSON."""

from __future__ import annotations

import codecs
import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from kmeander.exceptions import InputError, argument
from kmeander.plain_values import PlainValues
from kmeander.sources import line_parsing
from kmeander.sources.already_read import KEPT, ReadBytes, check_same
from kmeander.sources.block import BadRow, Position, RowLocation
from kmeander.sources.byte_streams import open_bytes
from kmeander.sources.conversion import RawBlock
from kmeander.sources.encodings import LONGEST_MARK, UTF8, WESTERN, Transcoder, encoding_of
from kmeander.sources.line_parsing import (
    Read,
    count_lines,
    line_start,
    split_lines,
    whole_lines,
)
from kmeander.sources.selection import Selection
from kmeander.sources.text_formats import TextFormat

SAMPLE_BYTES = 1 << 17
PATIENCE = 0.5  # seconds for which more of a pipe is waited for, to recognise its form
_NAMES = {"cp1252": WESTERN}  # as people know it


class TextFile:
    """The rows of one file of lines; row 0 is the first line after the header.

    Parameters
    ----------
    path : str
    name : str
        As messages show it.
    form : TextFormat
    encoding : str, optional
        By default it is recognised.
    follow : bool
    tick : callable
        Called whenever there is nothing to read yet; it may raise.
    """

    def __init__(
        self,
        path: str,
        name: str,
        form: TextFormat,
        *,
        encoding: str | None,
        follow: bool,
        tick: Callable[[], None],
    ) -> None:
        self.name = name
        self._form = form
        self._bytes = open_bytes(path, follow=follow)
        try:
            read = self._as_utf8(encoding, tick)
            self._blocks = whole_lines(read, name, ends=self._bytes.ends)
            self._first = self._first_blocks(tick)
            sample = b"".join(self._first)
            self._n_before_rows = form.begin(sample, name)
            self._n_lines_before = sample[: self._n_before_rows].count(b"\n")
        except BaseException:
            self._bytes.close()
            raise
        self.names, self.kinds = form.names, form.kinds
        self.notes = [*self._encoding_notes(encoding), *form.notes]

    def _as_utf8(self, encoding: str | None, tick: Callable[[], None]) -> Read:
        """Return what reads the stream from its beginning, in UTF-8."""
        first = b""
        while (
            len(first) < LONGEST_MARK
            and (piece := self._bytes.read(line_parsing.BLOCK_BYTES)) != b""
        ):
            first += piece or b""
            if piece is None:
                tick()
        if encoding is None:
            western = self._form.may_be_western
            encoding = encoding_of(first, self.name, may_be_western=western)
        self._encoding = codecs.lookup(encoding).name
        pieces = [first]

        def read(size: int) -> bytes | None:
            return pieces.pop() if pieces else self._bytes.read(size)

        if self._encoding == UTF8:
            return read
        return Transcoder(read, self._encoding, self.name).read

    def _encoding_notes(self, given: str | None) -> list[str]:
        if given is not None or self._encoding == UTF8:
            return []
        return [f"it is read as {_NAMES.get(self._encoding, self._encoding)}"]

    def _first_blocks(self, tick: Callable[[], None]) -> list[bytes]:
        """Return the blocks from which the form of the rows is recognised.

        How much that is does not depend on where blocks end. What comes bit by bit is recognised
        from what has come after a moment.
        """
        found: list[bytes] = []
        deadline = math.inf
        for block in self._blocks:
            if block is not None:
                if self._bytes.is_pipe and not found:
                    deadline = time.monotonic() + PATIENCE
                found.append(block)
            n_lines = sum(map(count_lines, found))
            if sum(map(len, found)) >= SAMPLE_BYTES or (
                n_lines >= self._form.least_lines and (block is None or time.monotonic() > deadline)
            ):
                break
            if block is None:
                tick()
        return found

    @property
    def forms(self) -> dict[str, dict[str, str]]:
        """How columns are written that are not plain numbers."""
        return self._form.forms

    def expect(self, forms: Mapping[str, Any]) -> None:
        """Read columns as what they were in the file before."""
        self._form.expect(forms, exactly=False)

    def raw_blocks(
        self, selection: Selection, start: int, place: Position | None
    ) -> Iterator[RawBlock | None]:
        """Yield the rows from `place` on; `start` is the number of the file's row 0."""
        if place is not None:
            self._form.expect(place.get("forms", {}), exactly=True)
        self._form.select(selection)
        self._read = ReadBytes()
        row, offset = 0, self._n_before_rows
        byte = 0 if place is None else PlainValues(place, "the position").whole("byte")
        if place is not None and byte > offset:
            row, offset = place["row"], byte
            blocks = self._from(offset, place)
        else:
            blocks = self._from(offset, None)
        for block in blocks:
            if block is None:
                yield None
                continue
            raw = self._raw_block(block, start, row)
            yield raw
            self._read = self._read.and_then(block)
            row = raw.end - start

    def _from(self, offset: int, place: Position | None) -> Iterator[bytes | None]:
        """Yield the blocks after the first `offset` bytes; `place` is where a checkpoint was."""
        blocks, n_seen = self._first_and_rest(), 0
        if place is not None and self._encoding == UTF8 and self._bytes.skip_to(0):
            self._read = self._skipped(offset)
            blocks = whole_lines(self._bytes.read, self.name, ends=self._bytes.ends)
            n_seen = offset
            check_same(self.name, self._read, place, f"byte {offset}")
        is_line_open = place is not None
        for block in blocks:
            if block is None:
                yield None
                continue
            cut = max(0, offset - n_seen)
            n_seen += len(block)
            rest = block[cut:]
            self._read = self._read.and_then(block[:cut])
            if cut and n_seen >= offset and place is not None:
                check_same(self.name, self._read, place, f"byte {offset}")
            if rest and is_line_open:
                is_line_open = False
                if not self._read.tail.endswith(b"\n"):
                    # The stream ended there, without the end of a line, which must follow now.
                    if not rest.startswith(b"\n"):
                        self._refuse_as_another(offset)
                    self._read, rest = self._read.and_then(b"\n"), rest[1:]
            if rest:
                yield rest
        if n_seen < offset:
            self._refuse_as_too_short(offset)

    def _skipped(self, offset: int) -> ReadBytes:
        """Go on at `offset`, and return what stands before it."""
        head = self._bytes_between(0, min(KEPT, offset))
        tail = self._bytes_between(max(0, offset - KEPT), offset)
        if len(tail) < min(KEPT, offset):
            self._refuse_as_too_short(offset)
        return ReadBytes(offset, head, tail)

    def _bytes_between(self, begin: int, end: int) -> bytes:
        self._bytes.skip_to(begin)
        found = b""
        while len(found) < end - begin and (data := self._bytes.read(end - begin - len(found))):
            found += data
        return found

    def _first_and_rest(self) -> Iterator[bytes | None]:
        yield from self._first
        yield from self._blocks

    def _refuse_as_another(self, offset: int) -> None:
        raise InputError(
            f"{self.name} has no line that ends at byte {offset}, where the checkpoint stopped "
            "reading. It is not the stream of the checkpoint: give that one, or begin anew with "
            f"another {argument('checkpoint')}."
        )

    def _refuse_as_too_short(self, offset: int) -> None:
        raise InputError(
            f"{self.name} ends before byte {offset}, up to which the checkpoint has read it. Give "
            "the same stream from its beginning, or begin anew with "
            f"another {argument('checkpoint')}."
        )

    def _raw_block(self, block: bytes, start: int, first: int) -> RawBlock:
        before = self._read
        parsed = self._form.parse(block)
        base = start + first
        heading = 1 + self._n_lines_before
        forms = self._form.forms

        def place(row: int) -> RowLocation:
            return RowLocation(self.name, "line", row - start + heading)

        @cache  # all lines of a block may be bad
        def lines() -> list[bytes]:
            return split_lines(block)

        def text(row: int) -> str:
            return lines()[row - base].rstrip(b"\r").decode("utf-8", "replace")

        def position_at(row: int) -> Position:
            end = line_start(block, row - base)
            checksum = before.and_then(block[:end]).checksum()
            place: Position = {
                "row": row - start,
                "byte": before.n_bytes + end,
                "checksum": checksum,
            }
            return {**place, "forms": forms} if forms else place

        bad = tuple(
            BadRow(base + line, place(base + line), reason, text(base + line))
            for line, reason in parsed.bad.items()
        )
        return RawBlock(
            table=parsed.table,
            rows=base + parsed.lines,
            bad=bad,
            end=base + parsed.n_lines,
            position_at=position_at,
            place=place,
            text=text,
        )

    def share_read(self) -> float | None:
        """Return how much of the file has been read."""
        return self._bytes.share_read()

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()
