"""Published files to arrays: CSV and text, plain, gzipped or in a zip archive, and Parquet.

Files are read block by block, and of a large one a sample is kept: no file needs to fit into
memory.
"""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kmeander.arrays import flaw_of
from kmeander.exceptions import InputError
from kmeander.sources.line_parsing import whole_lines
from kmeander.sources.reasons import reason_for

Block = NDArray[np.float64]

_BAD_CELL = re.compile(r"In CSV column #(?P<column>\d+): .*invalid value '(?P<value>.*)'", re.S)


@dataclass(frozen=True)
class DataFile:
    """A file, or a member of a zip archive."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """Its own name, without folders."""
        return self.path.name if self.member is None else self.member.rsplit("/", 1)[-1]

    def __str__(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}:{self.member}"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open for reading, unpacked; damage to the archive becomes a message."""
        try:
            with self._raw() as raw:
                if self.name.endswith(".gz"):
                    with gzip.open(raw) as unpacked:
                        yield unpacked  # type: ignore[misc]  # a file of bytes all the same
                else:
                    yield raw
        except (zipfile.BadZipFile, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"{self} is damaged or cut off ({error}). Download it again."
            ) from error

    @contextmanager
    def _raw(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
        else:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
                yield file


def files_in(folder: Path) -> list[DataFile]:
    """Return all files below `folder`, and in its zip archives, in order of their names."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Name one that holds the datasets' files.")
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if path.suffix.lower() != ".zip":
            found.append(DataFile(path))
            continue
        try:
            with zipfile.ZipFile(path) as archive:
                found += [DataFile(path, name) for name in sorted(archive.namelist())]
        except zipfile.BadZipFile as error:
            raise InputError(
                f"{path} is not a whole zip archive ({error}). Download it again or remove it."
            ) from error
    return found


# Reads a file as blocks of its feature columns.
Reader = Callable[[DataFile], Iterator[Block]]


def without_header(n_columns: int, skipped: Sequence[int] = ()) -> Reader:
    """Return the reader of comma-separated numbers without names; `skipped` are no features."""
    names = [f"column {i + 1}" for i in range(n_columns)]
    features = [name for i, name in enumerate(names) if i not in skipped]

    def read(file: DataFile) -> Iterator[Block]:
        yield from _csv_blocks(file, features, names, n_skipped=0)

    return read


def with_header(wanted: Sequence[str]) -> Reader:
    """Return the reader of the columns `wanted` of a CSV file with names in its first line.

    Spaces do not count: a published header has "MFCCs_ 1" beside "MFCCs_22".
    """

    def read(file: DataFile) -> Iterator[Block]:
        with file.open() as opened:
            first = opened.readline().decode("utf-8-sig", "replace")
        names = [name.strip() for name in next(csv.reader([first]), [])]
        unique = _distinct(names)
        column_of = {_squeezed(name): name for name in reversed(unique)}
        for name in wanted:
            if _squeezed(name) not in column_of:
                raise InputError(
                    f"{file} has no column {name!r}. Its first line names "
                    f"{', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}."
                )
        features = [column_of[_squeezed(name)] for name in wanted]
        yield from _csv_blocks(file, features, unique, n_skipped=1)

    return read


def google_ratings(file: DataFile) -> Iterator[Block]:
    """Read the published Google review ratings, in which two rows are malformed.

    One has an empty field too many, another a tab where the decimal point should be; once
    both are corrected, each row holds a user and 24 ratings.
    """
    rows = []
    with file.open() as opened:
        lines = csv.reader(line.decode("utf-8-sig") for line in opened)
        next(lines, None)
        for number, line in enumerate(lines, start=2):
            values = [value for value in line[1:] if value.strip()]
            if len(values) != 24:
                raise InputError(
                    f"{file} line {number} has {len(values)} ratings, 24 are expected. The file is "
                    "cut off or not the published one."
                )
            try:
                rows.append([float(re.sub(r"(\d)\t(\d)\.?$", r"\1.\2", v)) for v in values])
            except ValueError as error:
                raise InputError(f"{file} line {number}: {error}.") from error
    if rows:
        yield np.array(rows)


def parquet_columns(file: DataFile) -> tuple[int, list[str]]:
    """Return the number of rows of a Parquet file and its feature columns: all but `label`."""
    with _parquet(file) as parquet:
        names = [name for name in parquet.schema_arrow.names if name != "label"]
        return parquet.metadata.num_rows, names


def parquet(columns: Sequence[str]) -> Reader:
    """Return the reader of these columns of a Parquet file."""

    def read(file: DataFile) -> Iterator[Block]:
        n_read = 0
        with _parquet(file) as opened:
            for batch in opened.iter_batches(columns=list(columns)):
                yield _numbers(file, batch, columns, n_read)
                n_read += batch.num_rows

    return read


@contextmanager
def _parquet(file: DataFile) -> Iterator[Any]:
    try:
        with file.open() as opened, pq.ParquetFile(opened) as parquet_file:
            yield parquet_file
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(
            f"{file} cannot be read as Parquet ({error}). It may be cut off: write it again."
        ) from error


def _csv_blocks(
    file: DataFile, features: Sequence[str], names: Sequence[str], *, n_skipped: int
) -> Iterator[Block]:
    convert = pa_csv.ConvertOptions(
        include_columns=list(features),
        column_types=dict.fromkeys(features, pa.float64()),
        null_values=[""],
    )
    n_read = 0
    try:
        with file.open() as opened:
            for _ in range(n_skipped):
                opened.readline()
            # Read here and parsed there: pyarrow's own threads, reading from a Python file ahead of
            # a line that is wrong, would now and then abort the interpreter as it ends.
            for block in whole_lines(opened.read, str(file)):
                assert block is not None  # a file does not wait
                options = pa_csv.ReadOptions(
                    column_names=names, use_threads=False, block_size=len(block) + 1
                )
                table = pa_csv.read_csv(pa.BufferReader(block), options, convert_options=convert)
                yield _numbers(file, table.combine_chunks(), features, n_read)
                n_read += table.num_rows
    except pa.ArrowInvalid as error:
        cell = _BAD_CELL.search(str(error))
        if cell is not None:
            column = names[int(cell["column"])]
            raise InputError(f"{file}: {reason_for(cell['value'], column)}.") from error
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{file} cannot be read as published: {reason}.") from error


def _numbers(file: DataFile, batch: Any, columns: Sequence[str], n_before: int) -> Block:
    """Return a block of finite numbers, or name the row and column that is none."""
    arrays = []
    for name in columns:
        column = batch.column(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise InputError(
                f"{file}: column {name!r} holds {column.type}, not numbers. Leave it out, or call "
                "it 'label'."
            )
        values = column.to_numpy(zero_copy_only=False).astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            row = int(bad[0])
            flaw = flaw_of(values[row] if column[row].is_valid else None)
            raise InputError(
                f"{file} row {n_before + row + 1}: {flaw.shown} in column {name!r}. {flaw.rule}."
            )
        arrays.append(values)
    return np.stack(arrays, axis=1)


def _squeezed(name: str) -> str:
    return re.sub(r"\s+", "", name)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names, made unique where one is empty or occurs twice."""
    return [
        f"{name} #{i}" if name in names[:i] or not name else name for i, name in enumerate(names)
    ]


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rows kept, in their order, and how many there were."""

    points: Block
    n_rows: int


def sampled(blocks: Iterator[Block], max_rows: int, rng: np.random.Generator) -> Sampled | None:
    """Return all rows, or a random sample of `max_rows` where there are more; None without any.

    Each row draws a number and those with the least stay, so one pass is enough whatever the
    length, and a different size of blocks changes nothing.
    """
    kept: list[Block] = []
    keys: list[NDArray[np.float64]] = []
    n_rows = n_kept = 0
    for block in blocks:
        kept.append(block)
        keys.append(rng.random(len(block)))
        n_rows += len(block)
        n_kept += len(block)
        if n_kept > 4 * max_rows:
            kept, keys = _least(kept, keys, max_rows)
            n_kept = max_rows
    if not n_rows:
        return None
    if n_kept > max_rows:
        kept, keys = _least(kept, keys, max_rows)
    return Sampled(np.concatenate(kept), n_rows)


def _least(
    kept: list[Block], keys: list[NDArray[np.float64]], max_rows: int
) -> tuple[list[Block], list[NDArray[np.float64]]]:
    points, key = np.concatenate(kept), np.concatenate(keys)
    stay = np.sort(np.argpartition(key, max_rows)[:max_rows])
    return [points[stay]], [key[stay]]
