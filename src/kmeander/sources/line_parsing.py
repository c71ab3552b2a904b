"""Bytes to blocks of whole lines, and lines to tables: what CSV, NDJSON and Kafka share.

A row is a line. pyarrow parses whole blocks; only where it refuses one, or a line is blank, are
the lines looked at in ever smaller groups, until each bad one is alone with pyarrow's reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import InputError, argument
from kmeander.sources.reasons import Reason

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 28

# Returns some bytes, b"" at the end of the stream, None if nothing has come for a moment.
Read = Callable[[int], bytes | None]


def whole_lines(read: Read, name: str, *, ends: bool = True) -> Iterator[bytes | None]:
    """Yield blocks that end where a line ends, in order; None whenever `read` does.

    Without `ends` a last line that lacks its end is not complete, and not yielded.
    """
    rest: list[bytes] = []
    n_rest = 0
    while (piece := read(BLOCK_BYTES)) != b"":
        if piece is None:
            yield None
            continue
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, piece[:cut]])
            rest, n_rest = [piece[cut:]], len(piece) - cut
            continue
        rest.append(piece)
        n_rest += len(piece)
        if n_rest > LONGEST_LINE:
            raise InputError(
                f"{name} has a line of more than {LONGEST_LINE >> 20} MiB. Is it text at all? "
                f"{argument('format', ...)} says what else it may be."
            )
    if n_rest and ends:
        yield b"".join(rest)


@dataclass(frozen=True, eq=False)
class ParsedLines:
    """The rows that pyarrow read from some lines.

    Parameters
    ----------
    table : pyarrow.Table
    lines : ndarray of shape (n_rows,)
        Which line each row comes from, from 0.
    bad : dict
        Why other lines could not be read; blank ones are in neither.
    n_lines : int
        All of them.
    """

    table: pa.Table
    lines: NDArray[np.int64]
    bad: dict[int, Reason]
    n_lines: int


def count_lines(block: bytes) -> int:
    r"""Return the number of lines; the last may lack its end.

    Examples
    --------
    >>> count_lines(b"a\nb\n"), count_lines(b"a\nb"), count_lines(b"")
    (2, 2, 0)
    """
    # bytes.count takes eight times as long.
    ends = np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
    return int(ends) + (not block.endswith(b"\n") and bool(block))


def split_lines(block: bytes) -> list[bytes]:
    """Return the lines without their ends."""
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def line_start(block: bytes, line: int) -> int:
    """Return the byte at which a line begins; that after the last one is the length."""
    if line == 0:
        return 0
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
    return int(ends[line - 1]) + 1 if line <= len(ends) else len(block)


def parse_lines(
    block: bytes,
    parse: Callable[[bytes], Any],
    explain: Callable[[bytes, str], Reason],
    empty: Any,
    are_rows: Callable[[bytes], bool],
) -> ParsedLines:
    """Return what `parse` makes of the lines of `block`.

    Parameters
    ----------
    block : bytes
    parse : callable
        Bytes to a pyarrow table; raises ArrowInvalid.
    explain : callable
        A line and pyarrow's message to a `Reason`.
    empty : pyarrow.Table
        The table without rows.
    are_rows : callable
        Whether lines, parsed together, give as many rows only if each is one row. Two rows in one
        line and one row in two lines could otherwise pass for three good lines.
    """
    import pyarrow as pa

    n_lines = count_lines(block)
    if are_rows(block):
        try:
            table = parse(block)
        except pa.ArrowInvalid:
            pass
        else:
            if table.num_rows == n_lines:
                return ParsedLines(table, np.arange(n_lines), {}, n_lines)
    written = [(number, line) for number, line in enumerate(split_lines(block)) if line.strip()]
    tables: list[Any] = [empty]
    bad: dict[int, Reason] = {}
    for are_safe, group in groupby(written, lambda one: are_rows(one[1])):
        together = list(group)
        for lines in [together] if are_safe else [[one] for one in together]:
            _sift(lines, parse, explain, tables, bad)
    good = np.array([number for number, _ in written if number not in bad], dtype=np.int64)
    return ParsedLines(pa.concat_tables(tables), good, bad, n_lines)


def _sift(
    lines: Sequence[tuple[int, bytes]],
    parse: Callable[[bytes], Any],
    explain: Callable[[bytes, str], Reason],
    tables: list[Any],
    bad: dict[int, Reason],
) -> None:
    """Append the tables of the good lines, in order, and note the bad ones."""
    import pyarrow as pa

    try:
        table = parse(b"\n".join(line for _, line in lines))
        if table.num_rows == len(lines):
            tables.append(table)
            return
        message = f"{table.num_rows} rows in one line"
    except pa.ArrowInvalid as error:
        message = str(error)
    if len(lines) == 1:
        number, line = lines[0]
        bad[number] = explain(line, message)
        return
    middle = len(lines) // 2
    _sift(lines[:middle], parse, explain, tables, bad)
    _sift(lines[middle:], parse, explain, tables, bad)
