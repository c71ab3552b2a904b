"""Python objects as streams: arrays, tables, and whatever speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from kmeander.exceptions import InputError, InputTypeError, argument
from kmeander.preparation.tables import arrow_table
from kmeander.sources.already_read import ReadRows, check_same
from kmeander.sources.block import Block, Position, Source, nothing
from kmeander.sources.columnar_files import table_block
from kmeander.sources.conversion import to_block
from kmeander.sources.selection import Selection, Wanted
from kmeander.wire.arrow import to_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

WAY_OUT = (
    "Pass arrays of two dimensions, Arrow batches, or data frames of pandas or polars, one after "
    "the other"
)


class IterableSource(Source):
    """The rows of arrays or tables that an iterable yields, or of one object that speaks Arrow.

    Columns of arrays are called x0, x1 and so on. A resumed run expects the same rows from the
    beginning and skips those that it has.

    Examples
    --------
    >>> source = IterableSource([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], Wanted())
    >>> source.start()
    >>> source.selection.features, [block.points.tolist() for block in source.blocks()]
    (('x0', 'x1'), [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]])
    """

    def __init__(self, items: Any, wanted: Wanted) -> None:
        super().__init__(f"the {type(items).__name__}")
        self._wanted = wanted
        self._items = _iterator(items)

    @property
    def selection(self) -> Selection:
        """The columns that are read, known once the source has started."""
        return self._selection

    def start(self, tick: Callable[[], None] = nothing) -> None:
        """Take the first item, which decides the columns."""
        try:
            self._first = _table(next(self._items), self.name, 0)
        except StopIteration:
            raise InputError(f"{self.name} has no rows.") from None
        self._selection = self._wanted.among(self._first.column_names, self.name)
        tick()

    def blocks(self, position: Position | None = None) -> Iterator[Block | None]:
        """Yield one block per item."""
        n_seen, skip = 0, 0 if position is None else position["row"]
        read = ReadRows()
        for index, table in enumerate(self._tables()):
            if index:
                self._selection.check(
                    table.column_names, self._wanted, f"item {index}", "item 0 of the stream"
                )
            table = table.select(self._selection.needed)
            begin = min(max(0, skip - n_seen), table.num_rows)
            read = read.and_then(table.slice(0, begin))
            if begin and n_seen + begin == skip and position is not None:
                check_same(self.name, read, position, f"row {skip}")
            rest = table.slice(begin)
            if rest.num_rows:
                block = table_block(rest, self.name, 0, n_seen + begin, read)
                yield to_block(block, self._selection)
                read = read.and_then(rest)
            n_seen += table.num_rows
        if n_seen < skip:
            raise InputError(
                f"{self.name} has {n_seen} rows, but the checkpoint has read {skip}. Pass the same "
                f"stream from its beginning, or begin anew with another {argument('checkpoint')}."
            )

    def _tables(self) -> Iterator[pa.Table]:
        yield self._first
        for index, item in enumerate(self._items, start=1):
            yield _table(item, self.name, index)


def is_table(source: Any) -> bool:
    """Whether an object is one table, and no sequence of batches.

    Examples
    --------
    >>> import pandas as pd
    >>> is_table(pd.DataFrame()), is_table([[[1.0]]])
    (True, False)
    """
    if isinstance(source, np.ndarray):
        return source.ndim == 2
    has_columns = hasattr(source, "columns") or hasattr(source, "column_names")
    return has_columns and hasattr(source, "shape")


def _iterator(items: Any) -> Iterator[Any]:
    import pyarrow as pa

    if is_table(items):
        return iter([items])
    if hasattr(items, "__arrow_c_stream__"):
        return iter(pa.RecordBatchReader.from_stream(items))
    if isinstance(items, np.ndarray):
        return iter([items])
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | dict):
        return iter(items)
    raise InputTypeError(f"source is a {type(items).__name__}, which has no rows. {WAY_OUT}.")


def _table(item: Any, name: str, index: int) -> pa.Table:
    import pyarrow as pa

    if isinstance(item, pa.RecordBatch):
        return pa.Table.from_batches([item])
    if hasattr(item, "__arrow_c_stream__") or hasattr(item, "__arrow_c_array__"):
        return arrow_table(item)
    try:
        array = np.asarray(item)
    except ValueError as error:
        raise InputError(f"item {index} of {name} is no table: {error}. {WAY_OUT}.") from error
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.shape[1]:
        raise InputError(
            f"item {index} of {name} has shape {array.shape} and type {array.dtype}, which is no "
            f"table of numbers. {WAY_OUT}."
        )
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float64)
    if array.dtype.kind == "b" or not array.dtype.isnative:
        array = array.astype(np.float64)
    columns = {f"x{i}": array[:, i] for i in range(array.shape[1])}
    return pa.Table.from_batches([to_batch(columns)])
