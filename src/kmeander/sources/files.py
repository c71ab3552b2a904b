"""Files one after the other, in any format, as one stream."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kmeander.arrays import Points
from kmeander.exceptions import InputError, argument
from kmeander.sources.block import Block, Position, Source, nothing
from kmeander.sources.byte_streams import explained, looked_for
from kmeander.sources.columnar_files import ArrowFile, ParquetFile
from kmeander.sources.compression import ENDINGS, is_compressed, plain_name
from kmeander.sources.conversion import to_block
from kmeander.sources.csv_format import CsvFormat
from kmeander.sources.reading import Reading
from kmeander.sources.selection import Selection, Wanted
from kmeander.sources.text_files import TextFile
from kmeander.sources.text_formats import JsonFormat
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import FileSystem, is_address, joined, split

FORMATS = ("csv", "tsv", "ndjson", "json", "parquet", "arrow")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
ORDERS = ("name", "time")


class FileSource(Source):
    r"""The rows of one file, of standard input (``-``), or of all files of a folder or glob.

    Parameters
    ----------
    path : str
    wanted : Wanted
    reading : Reading
    notify : callable
        Given a sentence on what was recognised of a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "x.csv").write_text("a,b\n1,2\n3,4\n")
    ...     source = FileSource(f"{folder}/x.csv", Wanted(columns=["b"]), Reading())
    ...     source.start()
    ...     print([block.points.tolist() for block in source.blocks()])
    ...     source.close()
    [[[2.0], [4.0]]]
    """

    def __init__(
        self,
        path: str,
        wanted: Wanted,
        reading: Reading,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__("standard input" if path == "-" else path)
        self._wanted = wanted
        self._reading = reading
        self._notify = notify
        self._forms_before: Mapping[str, Any] = {}  # of the first file's columns
        self._files = _listed(path, reading)
        self._forms = [_format_of(file, reading) for file in self._files]
        self._index = 0
        self._file: TextFile | ParquetFile | ArrowFile | None = None

    @property
    def selection(self) -> Selection:
        """The columns that are read, known once the source has started."""
        return self._selection

    def start(self, tick: Callable[[], None] = nothing) -> None:
        """Open the first file, which decides the columns."""
        self._tick = tick
        file = self._opened(0)
        kinds = file.kinds if isinstance(file, TextFile) else None
        self._selection = self._wanted.among(file.names, file.name, kinds)
        if isinstance(file, TextFile):
            self._forms_before = file.forms
            if file.notes:
                self._notify(f"{file.name}: {'; '.join(file.notes)}.")

    def blocks(self, position: Position | None = None) -> Iterator[Block | None]:
        """Yield the rows of one file after the other."""
        start = 0
        for index, name in self._from(position):
            file = self._opened(index)
            if index:
                if isinstance(file, TextFile):
                    file.expect(self._forms_before)
                self._selection.check(file.names, self._wanted, file.name, self._files[0])
            place = None
            if position is not None and position["index"] == index:
                start, place = position["start"], position["place"]
            end = start if place is None else start + place["row"]
            for raw in file.raw_blocks(self._selection, start, place):
                if raw is None:
                    yield None
                    continue
                end = raw.end
                block = to_block(raw, self._selection)
                yield _placed(block, index, name, start)
            start = end

    def _from(self, position: Position | None) -> Iterator[tuple[int, str]]:
        first = 0 if position is None else position["index"]
        if position is not None and self._files[first : first + 1] != [position["file"]]:
            raise InputError(
                f"{position['file']}, which the checkpoint was reading, is no longer file number "
                f"{first + 1} of {self.name}. New files must come after those already read; "
                f"begin anew with another {argument('checkpoint')} otherwise."
            )
        for index in range(first, len(self._files)):
            yield index, self._files[index]

    def _opened(self, index: int) -> TextFile | ParquetFile | ArrowFile:
        if self._file is not None:
            if index == self._index:
                return self._file
            self._file.close()
        path, form = self._files[index], self._forms[index]
        name = "standard input" if path == "-" else path
        if form == "parquet":
            self._file = ParquetFile(path, name)
        elif form == "arrow":
            self._file = ArrowFile(path, name)
        else:
            reading = self._reading
            usual = "\t" if form == "tsv" else ","
            self._file = TextFile(
                path,
                name,
                JsonFormat() if form == "ndjson" else CsvFormat(reading, usual),
                encoding=reading.encoding,
                follow=reading.follow,
                tick=self._tick,
            )
        self._index = index
        return self._file

    def share_read(self) -> float | None:
        """Return how much has been read: of the file, or of the number of files."""
        inside = None if self._file is None else self._file.share_read()
        return None if inside is None else (self._index + inside) / len(self._files)

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()


def read_file(path: str, columns: Sequence[str] | None = None) -> tuple[list[str], Points]:
    """Return the columns of a file, and all of its rows at once.

    The first bad row raises.
    """
    source = FileSource(path, Wanted(columns), Reading())
    source.start()
    blocks = [block for block in source.blocks() if block is not None]
    source.close()
    for bad in (bad for block in blocks for bad in block.bad):
        raise InputError(
            f"{bad.place}: {bad.reason}. Leave such columns out: {argument('columns', ...)} names "
            "others."
        )
    if not any(len(block.points) for block in blocks):
        raise InputError(f"{path} has no rows.")
    return list(source.selection.features), np.concatenate([block.points for block in blocks])


def would_read(source: str, path: str, reading: Reading) -> bool:
    """Whether a new file at `path` would be one of those that a folder or a pattern means."""
    if is_address(source) or is_address(path) or "-" in (source, path) or path.endswith("/"):
        return False
    if not _has_data_name(Path(path).name, reading):
        return False
    if Path(source).is_dir():
        return os.path.realpath(Path(path).parent) == os.path.realpath(source)
    here = Path.cwd()
    return glob.has_magic(source) and (here / path).match(str(here / source))


def _placed(block: Block, index: int, name: str, start: int) -> Block:
    inside = block.position_at

    def position_at(row: int) -> Position:
        return {"index": index, "file": name, "start": start, "place": inside(row)}

    return replace(block, position_at=position_at)


def _listed(path: str, reading: Reading) -> list[str]:
    """Return the files that `path` means."""
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed. Name a file, or send rows through a pipe.")
        if reading.follow:
            raise InputError(
                f"{argument('follow', True)} is for files: standard input is read as it comes "
                "anyway."
            )
        return ["-"]
    files = filesystem_of(path)
    there = explained(path, lambda: files.info(path))
    if there is not None and there.kind != "folder":
        return [path]
    if there is not None:
        inside = (joined(path, name) for name in explained(path, lambda: files.names(path)))
        found = explained(path, lambda: [file for file in inside if _is_data(files, file, reading)])
    elif glob.has_magic(path):
        found = explained(path, lambda: files.matching(path))
    else:
        raise InputError(f"{path} does not exist{looked_for(path)}.")
    if not found:
        raise InputError(
            f"{path} holds no file to read. Files must end in {', '.join(_ENDINGS)}, compressed "
            f"ones in {', '.join(ENDINGS)} after that; {argument('format', ...)} reads others."
        )
    if reading.follow:
        raise InputError(f"{argument('follow', True)} reads one file, {path} means {len(found)}.")
    if reading.order == "time":
        changed = explained(path, lambda: {file: _modified(files, file) for file in found})
        return sorted(found, key=lambda file: (changed[file], file))
    return sorted(found)


def _ending(path: Path) -> str:
    return Path(plain_name(str(path))).suffix.lower()


def _is_data(files: FileSystem, path: str, reading: Reading) -> bool:
    if not _has_data_name(split(path)[1], reading):
        return False
    found = files.info(path)
    return found is not None and found.kind == "file"


def _has_data_name(name: str, reading: Reading) -> bool:
    if name.startswith((".", "_")):
        return False
    return reading.form is not None or _ending(Path(name)) in _ENDINGS


def _modified(files: FileSystem, path: str) -> int:
    found = files.info(path)
    return 0 if found is None else found.modified


def _format_of(path: str, reading: Reading) -> str:
    form = reading.form or ("csv" if path == "-" else _ENDINGS.get(_ending(Path(path))))
    if form is None:
        raise InputError(
            f"{path}: its ending {Path(path).suffix!r} does not say the format. Say it with "
            f"{argument('format', ...)}, one of {', '.join(FORMATS)}."
        )
    if form == "json":  # as topics call it
        form = "ndjson"
    if path == "-" and form == "parquet":
        raise InputError("Parquet cannot be read from standard input: it begins at its end.")
    if is_compressed(path) and form in ("parquet", "arrow"):
        raise InputError(
            f"{path}: a compressed file of {form} cannot be read, for it is read from several "
            f"places. Unpack it first; {form} has a compression of its own."
        )
    if reading.follow and form not in ("csv", "tsv", "ndjson"):
        raise InputError(f"{argument('follow', True)} reads csv, tsv and ndjson; {path} is {form}.")
    if reading.header is not None and form not in ("csv", "tsv"):
        raise InputError(
            f"{argument('header', ...)} names the columns of csv and tsv; {path} is {form}."
        )
    return form
