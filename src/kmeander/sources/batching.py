"""Blocks to batches: by rows, by seconds of waiting, or by the time at which rows happened."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kmeander.arguments import one_of, positive_number, whole_number
from kmeander.arrays import Points, Weights
from kmeander.exceptions import ArgumentError, InputError, argument
from kmeander.preparation import Rows, joined
from kmeander.records import Captions, Times
from kmeander.records.event_time import as_text
from kmeander.sources.block import BadRow, Block, Position

if TYPE_CHECKING:
    import pyarrow as pa

UNITS = {"ms": 1_000, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
BAD_ROWS = ("error", "skip")
LATE = ("keep", "skip", "error")
MOST_BAD = 1000
NO_TIME = 1e-9  # ages that pass between two batches of one period


def microseconds(duration: str, name: str = "every") -> int:
    """Return the length of a duration such as ``10m``, the argument `name`.

    Examples
    --------
    >>> microseconds("1.5s"), microseconds("10m")
    (1500000, 600000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]+)\s*", str(duration))
    length = round(float(found[1]) * UNITS.get(found[2], 0)) if found else 0
    if length < 1:
        raise ArgumentError(
            f"{argument(name)} must be a duration such as 30s, 10m or 1h, got {duration!r}. The "
            f"units are {', '.join(UNITS)}."
        )
    return length


@dataclass(frozen=True)
class Batching:
    """Where one batch ends and the next begins.

    Parameters
    ----------
    size : int, optional
        Rows of a batch.
    seconds : float, optional
        A batch ends, too, once so long has passed since its first row was read.
    every : int, optional
        Microseconds of a period: a batch holds the rows that happened in one.
    late : {"keep", "skip", "error"}
        What is done with rows of a period that is over: learned with the present one, left out, or
        refused.

    Without any of the three every block is a batch.
    """

    size: int | None = None
    seconds: float | None = None
    every: int | None = None
    late: str = "keep"

    def __post_init__(self) -> None:
        if self.size is not None:
            whole_number("batch_size", self.size, at_least=1, meaning="the rows of a batch")
        if self.seconds is not None:
            positive_number("batch_seconds", self.seconds)
        if self.every is not None and (self.size is not None or self.seconds is not None):
            raise ArgumentError(
                f"{argument('every')} cannot be given with {argument('batch_size')} or "
                f"{argument('batch_seconds')}: a batch holds the rows of one period, however many "
                "they are."
            )
        one_of("late_rows", self.late, LATE)


@dataclass(frozen=True, eq=False)
class BatchRows:
    """The rows of one batch, and where the stream stands after it.

    Bad and late rows count to the batch before whose last row they came. Where bad rows end the
    stream the last batch has no points.
    """

    table: Rows
    keys: pa.Table
    origin: pa.Table
    elapsed: float
    bad: tuple[BadRow, ...]
    n_late: int
    position: Callable[[], Position]
    weights: Weights | None = None
    times: Times | None = None
    captions: Captions | None = None

    @property
    def points(self) -> Points:
        """The rows as numbers."""
        return self.table.values


@dataclass(eq=False)
class Batches:
    """The batches of a stream of blocks.

    Parameters
    ----------
    blocks : iterator of Block or None
        As `Source.blocks` yields them.
    rule : Batching
    refuse_bad : bool
        Whether a bad row raises, once all complete batches before it have been yielded.
    period : int, optional
        That of the last batch before a restart.
    clock : callable
        Seconds that only grow.
    may_exclude : bool
        Whether a column can still be left out: none was asked for by name.
    """

    blocks: Iterator[Block | None]
    rule: Batching
    refuse_bad: bool = True
    period: int | None = None
    clock: Callable[[], float] = time.monotonic
    may_exclude: bool = True
    n_waiting: int = field(default=0, init=False)  # rows that wait for their batch to be complete

    def __post_init__(self) -> None:
        self._parts: list[tuple[Block, int, int]] = []
        self._bad: deque[BadRow] = deque()  # read, and not yet handed on
        self._n_late = 0
        self._current = self.period  # that of the rows that wait
        self._since = 0.0
        self._newest: Block | None = None

    def __iter__(self) -> Iterator[BatchRows | None]:
        """Yield batches; None whenever the source has nothing for a moment."""
        block: Block | None = None
        for block in self.blocks:
            if block is not None:
                self._newest = block
                self._bad += block.bad
                yield from self._split(block)
            is_over = self._time_is_up() or (self._each_block and self.n_waiting)
            # Where nothing but bad rows come they are handed on all the same.
            is_over = is_over or (len(self._bad) >= MOST_BAD and not self.n_waiting)
            if is_over and self._newest is not None:
                yield self._finished(self._newest, self._newest.end)
            elif block is None:
                yield None
        if self._newest is not None and (self.n_waiting or self._bad or self._n_late):
            yield self._finished(self._newest, self._newest.end)

    @property
    def _each_block(self) -> bool:
        return self.rule.size is None and self.rule.seconds is None and self.rule.every is None

    def _time_is_up(self) -> bool:
        seconds = self.rule.seconds
        return seconds is not None and self.n_waiting > 0 and self.clock() - self._since >= seconds

    def _split(self, block: Block) -> Iterator[BatchRows]:
        """Take the rows of one block, up to the first that is refused."""
        stop = len(block.rows)
        refused = None
        if self.refuse_bad:
            refused = next((bad for bad in block.bad if not bad.reason.is_tolerated), None)
        if refused is not None:
            stop = int(np.searchsorted(block.rows, refused.row))
        if self.rule.every is not None and block.times is not None:
            yield from self._split_by_time(block, block.times[:stop] // self.rule.every)
        else:
            yield from self._split_by_size(block, stop)
        if refused is not None:
            raise InputError(f"{refused.place}: {refused.reason} ({self._way_out(refused)}).")

    def _way_out(self, refused: BadRow) -> str:
        if refused.reason.advice:
            return refused.reason.advice
        skip = f"use {argument('bad_rows', 'skip')} to go on without such rows"
        if refused.reason.misfits_names and refused.row == 0:
            return f"give {argument('header', ...)} a name for every field, or {skip}"
        words = refused.reason.text_columns
        if words and self.may_exclude:
            exclude, prepare = argument("exclude", list(words)), argument("prepare", "auto")
            many = f"columns {', '.join(map(repr, words))} hold text: " if len(words) > 1 else ""
            return (
                f"{many}{exclude} leaves {'them' if many else 'it'} out, {prepare} makes numbers "
                "of categories"
            )
        column = refused.reason.column
        if column is None or not self.may_exclude:
            return skip
        exclude = f"leave the column out with {argument('exclude', [column])}"
        # Where a column is text every row is bad.
        return f"{exclude}, or {skip}" if refused.reason.is_text else f"{skip}, or {exclude}"

    def _split_by_size(self, block: Block, stop: int) -> Iterator[BatchRows]:
        size = stop + self.n_waiting if self.rule.size is None else self.rule.size
        begin = 0
        while begin < stop:
            end = min(stop, begin + size - self.n_waiting)
            self._take(block, begin, end)
            if self.rule.size is not None and self.n_waiting == size:
                yield self._finished(block, int(block.rows[end - 1]) + 1)
            begin = end

    def _split_by_time(self, block: Block, periods: NDArray[np.int64]) -> Iterator[BatchRows]:
        if not len(periods):
            return
        before = periods[0] if self._current is None else self._current
        present = np.maximum(np.maximum.accumulate(periods), before)
        late = periods < present
        stop = len(periods)
        if self.rule.late == "error" and late.any():
            stop = int(np.argmax(late))
        # Runs of rows that share a period and are all late or all in time.
        for begin, end in _runs(2 * present[:stop] + late[:stop]):
            if self._current != present[begin] and self.n_waiting:
                yield self._finished(block, int(block.rows[begin]))
            self._current = int(present[begin])
            if late[begin]:
                self._n_late += end - begin
            if not (late[begin] and self.rule.late == "skip"):
                self._take(block, begin, end)
        if stop < len(periods):
            raise InputError(
                f"row {block.rows[stop] + 1} of the stream is late: its period was over when it "
                f"came. Use {argument('late_rows', 'keep')} to learn such rows with the present "
                f"batch, or {argument('late_rows', 'skip')} to leave them out."
            )

    def _take(self, block: Block, begin: int, end: int) -> None:
        if not self.n_waiting:
            self._since = self.clock()
        self._parts.append((block, begin, end))
        self.n_waiting += end - begin

    def _finished(self, block: Block, end: int) -> BatchRows:
        """Return the rows that wait as a batch; row `end`, of `block`, is the next to come."""
        import pyarrow as pa

        parts = self._parts or [(block, 0, 0)]
        bad = []
        while self._bad and self._bad[0].row < end:
            bad.append(self._bad.popleft())
        period, elapsed = self._current, 1.0
        if period is not None and self.period is not None:
            elapsed = max(float(period - self.period), NO_TIME)
        finished = BatchRows(
            table=joined([part.table.taken(slice(a, b)) for part, a, b in parts]),
            keys=pa.Table.from_batches([part.keys.slice(a, b - a) for part, a, b in parts]),
            origin=pa.Table.from_batches([part.origin.slice(a, b - a) for part, a, b in parts]),
            elapsed=elapsed,
            bad=tuple(bad),
            n_late=self._n_late,
            position=lambda: {"source": block.position_at(end), "period": period},
            weights=_weights_of(parts),
            times=_times_of(parts),
            captions=_captions_of(parts),
        )
        self._parts, self.n_waiting, self._n_late = [], 0, 0
        if len(finished.points):
            self.period = period
        return finished


def _weights_of(parts: list[tuple[Block, int, int]]) -> Weights | None:
    """Return the weights of a batch's rows, where rows have any."""
    if parts[0][0].weights is None:
        return None
    weights: Weights = np.concatenate(
        [part.weights[a:b] for part, a, b in parts if part.weights is not None]
    )
    return weights


def _times_of(parts: list[tuple[Block, int, int]]) -> Times | None:
    """Return when the first and the last of a batch's rows happened, where that is known."""
    known = [part.times[a:b] for part, a, b in parts if part.times is not None and b > a]
    if not known:
        return None
    return as_text(min(int(times.min()) for times in known)), as_text(
        max(int(times.max()) for times in known)
    )


def _captions_of(parts: list[tuple[Block, int, int]]) -> Captions | None:
    """Return what names a batch's rows and what they say, where that is known."""
    import pyarrow as pa

    said = [part.said.slice(a, b - a) for part, a, b in parts if part.said is not None]
    if not said:
        return None
    table = pa.Table.from_batches(said)
    ids, texts = (
        table.column(name) if name in table.column_names else None for name in ("id", "text")
    )
    return Captions(ids, texts)


def _runs(values: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the first and the following index of each run of equal values."""
    edges = np.flatnonzero(np.diff(values)) + 1
    yield from zip([0, *edges.tolist()], [*edges.tolist(), len(values)], strict=True)
