"""A text that grows as a folder of parts: one is open, finished ones are compressed.

Nothing but the open part is needed to go on, so finished ones may be taken away at any time.
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Collection, Iterator
from typing import IO, Any

from kmeander.exceptions import StreamError, argument
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import FileSystem, joined
from kmeander.storage.growing import GrowingFile, GrowingOutput, Position

PACKED = ".gz"
# Of compression: the highest would cost a run of small batches 3 % of its time for a tenth less.
LEVEL = 1
_PART = re.compile(rf"part-(\d{{6,}})(\.[a-z0-9]+?)?({re.escape(PACKED)})?")
_ASIDE = re.compile(r"\.part-.*\.aside")


def numbered(names: Collection[str]) -> dict[int, str]:
    """Return the part of each number, in order; unpacked where it is there twice.

    Examples
    --------
    >>> numbered(["part-000002.jsonl", "part-000001.jsonl.gz", "part-000002.jsonl.gz", "notes"])
    {1: 'part-000001.jsonl.gz', 2: 'part-000002.jsonl'}
    """
    found: dict[int, str] = {}
    for name in sorted(names, reverse=True):  # the unpacked one comes last
        match = _PART.fullmatch(name)
        if match is not None:
            found[int(match[1])] = name
    return dict(sorted(found.items()))


def open_part(files: FileSystem, path: str) -> IO[Any]:
    """Open a part, packed or not, for reading."""
    file = files.open(path)
    if not path.endswith(PACKED):
        return file
    unpacked: Any = gzip.GzipFile(fileobj=file)
    unpacked.myfileobj = file  # closed with it
    return unpacked  # type: ignore[no-any-return]


def is_folder(path: str) -> bool:
    """Whether a path of this machine means a folder of parts: it ends in ``/``, or is a folder."""
    files = filesystem_of(path)
    if not files.can_append:
        return False
    found = files.info(path)
    return path.endswith("/") or (found is not None and found.kind == "folder")


class RotatingFolder(GrowingOutput):
    """A folder of parts on this machine.

    Parameters
    ----------
    path : str
    name : str
        As messages show it.
    ending : str
        Of an open part.
    beside : collection of str
        What else may be in the folder.
    """

    def __init__(self, path: str, name: str, ending: str, beside: Collection[str] = ()) -> None:
        super().__init__(path, name)
        self._ending = ending
        self._beside = set(beside)
        self._files = filesystem_of(path)
        self._number = 0
        self._open = GrowingFile(self._part(0), name)

    def _part(self, number: int) -> str:
        return joined(self.path, f"part-{number:06}{self._ending}")

    @property
    def at_beginning(self) -> bool:
        """Whether the next byte is the first of a part."""
        return self._open.at_beginning

    @property
    def size(self) -> int:
        """Bytes of the open part."""
        return self._open.end

    def _parts(self) -> dict[int, str]:
        """Return the names of the parts that are there, or say what else is."""
        found = self._files.info(self.path)
        if found is not None and found.kind != "folder":
            raise StreamError(
                f"{self.name} is a file, to which no parts can be added. Name another, or leave "
                "out the / at its end."
            )
        names = self._files.names(self.path)
        parts = numbered(names)
        for name in names:
            is_part = _PART.fullmatch(name) or _ASIDE.fullmatch(name)
            if not (is_part or name in self._beside):
                raise StreamError(
                    f"{self.name} holds {name}, which is not a part of an earlier run. Name a "
                    "folder for the parts alone."
                )
        return parts

    def is_empty(self) -> bool:
        """Whether there are no parts."""
        return not self._parts()

    def check(self, position: Position) -> None:
        """Refuse a position that the part of which it speaks does not reach."""
        number, byte = position["part"], position["byte"]
        name = self._parts().get(number)
        if name is None:
            if byte:
                raise StreamError(
                    f"{self.name} lacks part-{number:06}{self._ending}, at which the checkpoint "
                    "stands. Put it back, or begin anew with another "
                    f"{argument('checkpoint')}."
                )
        elif name.endswith(PACKED):
            with open_part(self._files, joined(self.path, name)) as file:
                n_bytes = sum(map(len, _chunks(file)))
            if n_bytes < byte:
                raise StreamError(
                    f"{self.name} has {n_bytes} bytes in {name}, the checkpoint has written "
                    f"{byte}. It was changed: put it back, or begin anew with another "
                    f"{argument('checkpoint')}."
                )
        else:
            GrowingFile(self._part(number), f"{name} of {self.name}").check({"byte": byte})

    def open(self, position: Position | None) -> None:
        """Begin anew, or go on in the part of `position`; what was written later is removed."""
        number = 0 if position is None else position["part"]
        if position is not None:
            self.check(position)
        parts = self._parts()
        self._files.make_folder(self.path)
        self._files.discard_unfinished(self.path, "part-*")
        first = 0 if position is None else number + 1
        later = [
            joined(self.path, name)
            for name in self._files.names(self.path)
            if (match := _PART.fullmatch(name)) and int(match[1]) >= first
        ]
        self._files.remove(later)
        for finished, name in parts.items():
            if finished < number and not name.endswith(PACKED):
                self._pack(finished)  # of a run that was killed before it could
        if number in parts and parts[number].endswith(PACKED) and position is not None:
            self._unpack(number)
        self._number = number
        self._open = GrowingFile(self._part(number), self.name)
        self._open.open(None if position is None else {"byte": position["byte"]})
        if position is not None:
            self._files.remove([self._part(number) + PACKED])

    def first_line(self) -> bytes:
        """Return the first line of the open part; nothing where it has none."""
        with self._files.open(self._part(self._number)) as file:
            line: bytes = file.readline()
        return line

    def append(self, data: bytes) -> None:
        """Write some bytes, and hand them on at once."""
        self._open.append(data)

    def rotate(self) -> None:
        """Finish the open part, and begin another."""
        self._open.commit()
        self._open.close()
        finished, self._number = self._number, self._number + 1
        self._open = GrowingFile(self._part(self._number), self.name)
        self._open.open(None)
        self._pack(finished)

    def commit(self) -> Position:
        """Make the open part last, and return where it ends; finished ones last already."""
        return {"part": self._number, **self._open.commit()}

    def close(self) -> None:
        """Let go of the open part."""
        self._open.close()

    def _pack(self, number: int) -> None:
        """Compress a part, to the same bytes whenever and wherever that is done."""
        path = self._part(number)
        with (
            self._files.open(path) as plain,
            self._files.written(path + PACKED) as target,
            gzip.GzipFile("", "wb", LEVEL, target, mtime=0) as packed,
        ):
            shutil.copyfileobj(plain, packed)
        self._files.remove([path])

    def _unpack(self, number: int) -> None:
        path = self._part(number)
        with open_part(self._files, path + PACKED) as packed, self._files.written(path) as target:
            shutil.copyfileobj(packed, target)


def _chunks(file: IO[Any]) -> Iterator[bytes]:
    while chunk := file.read(1 << 20):
        yield chunk
