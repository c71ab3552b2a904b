"""Outputs that grow with every commit and can be cut back to where they were at one."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from typing import IO, Any

from kmeander.exceptions import StreamError, argument
from kmeander.storage import filesystem_of
from kmeander.storage.disk import disk
from kmeander.storage.filesystem import joined, split
from kmeander.storage.local import is_same_file

# Where an output ends: plain numbers and text, for a checkpoint to keep.
Position = dict[str, Any]


def removed(name: str) -> StreamError:
    """Return what to raise where an output is taken away while a run writes it."""
    return StreamError(
        f"{name} was removed or replaced while the run was writing it. Put back what was there, "
        f"and run the same command again; or begin anew with another {argument('checkpoint')}."
    )


class GrowingOutput(ABC):
    """Bytes that are appended.

    Parameters
    ----------
    path : str
    name : str
        As messages show it.
    """

    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name

    @property
    @abstractmethod
    def at_beginning(self) -> bool:
        """Whether the next byte is the first of its file."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is nothing that beginning anew would remove."""

    @abstractmethod
    def check(self, position: Position) -> None:
        """Refuse a position that the output does not reach."""

    @abstractmethod
    def open(self, position: Position | None) -> None:
        """Begin anew, or go on from `position`; what was written after it is removed."""

    @abstractmethod
    def append(self, data: bytes) -> None:
        """Write some bytes, and hand them on at once where that can be done."""

    @abstractmethod
    def commit(self) -> Position:
        """Make everything last, and return where it ends."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""


class GrowingFile(GrowingOutput):
    """A file on this machine."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        self._file: IO[Any] | None = None
        self._end = 0
        self._is_named = False
        found = filesystem_of(path).info(path)
        if found is not None and found.kind == "folder":
            raise StreamError(f"{name} cannot be written: it is a folder. Name a file in it.")
        self._is_device = found is not None and found.kind == "device"  # nothing to cut or to sync

    @property
    def at_beginning(self) -> bool:
        """Whether the file is empty."""
        return not self._end

    @property
    def end(self) -> int:
        """Bytes written so far."""
        return self._end

    def _size(self) -> int:
        found = filesystem_of(self.path).info(self.path)
        return 0 if found is None else found.size

    def is_empty(self) -> bool:
        """Whether there is nothing in the file."""
        return self._is_device or not self._size()

    def check(self, position: Position) -> None:
        """Refuse a position after the end of the file."""
        if not self._is_device and self._size() < position["byte"]:
            raise StreamError(
                f"{self.name} has {self._size()} bytes, the checkpoint has written "
                f"{position['byte']}. It was changed or lost: put it back, or begin anew with "
                f"another {argument('checkpoint')}."
            )

    def open(self, position: Position | None) -> None:
        """Empty the file, or cut it back to `position`."""
        if position is None or self._is_device:
            self._file = disk().open(self.path, "wb")
            return
        self.check(position)
        self._end = position["byte"]
        self._file = disk().open(self.path, "r+b" if self._size() or self._end else "wb")
        disk().truncate(self._file, self._end)
        self._file.seek(self._end)

    def append(self, data: bytes) -> None:
        """Write some bytes, and hand them on at once."""
        assert self._file is not None
        self._check_unchanged()
        self._file.write(data)
        self._file.flush()
        self._end += len(data)

    def _check_unchanged(self) -> None:
        """Notice at once when somebody else has had a hand in it."""
        if self._is_device:
            return
        assert self._file is not None
        if not is_same_file(self._file, self.path):
            raise removed(self.name)
        size = os.fstat(self._file.fileno()).st_size
        if size != self._end:
            raise StreamError(
                f"{self.name} has {size} bytes, the run has written {self._end}: something else "
                "writes or cuts it. Give every run a file of its own, and "
                f"{'put back what was cut' if size < self._end else 'remove what was added'}."
            )

    def commit(self) -> Position:
        """Sync the file, and once its name."""
        assert self._file is not None
        if not self._is_device:
            self._check_unchanged()
            disk().sync(self._file)
            if not self._is_named:
                disk().sync_folder(split(os.path.realpath(self.path))[0])
                self._is_named = True
        return {"byte": self._end}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()


class PartFolder:
    """A folder of numbered files, each written as a whole.

    Parameters
    ----------
    path : str
    name : str
        As messages show it.
    ending : str
    """

    def __init__(self, path: str, name: str, ending: str) -> None:
        self.path = path
        self.name = name
        self._ending = ending
        self._files = filesystem_of(path)
        ending = re.escape(ending)
        self._part = re.compile(rf"part-(\d{{6,}}){ending}")
        self._unfinished = re.compile(rf"\.part-\d{{6,}}{ending}(\.[0-9a-f]+)?\.aside")

    def part(self, number: int) -> str:
        """Return the path of a part."""
        return joined(self.path, f"part-{number:06}{self._ending}")

    def _numbers(self) -> dict[int, str]:
        """Return the paths of the parts that are there, or say what else is."""
        found = self._files.info(self.path)
        if found is not None and found.kind != "folder":
            raise StreamError(
                f"{self.name} is a file; with a checkpoint it must be a folder, to which parts are "
                "added. Name another, or remove it."
            )
        numbers = {}
        for name in self._files.names(self.path):
            match = self._part.fullmatch(name)
            if match is not None:
                numbers[int(match[1])] = joined(self.path, name)
            elif not self._unfinished.fullmatch(name):
                raise StreamError(
                    f"{self.name} holds {name}, which is not a part of an earlier run. Name a "
                    "folder for the parts alone."
                )
        return numbers

    def is_empty(self) -> bool:
        """Whether there are no parts."""
        return not self._numbers()

    def check(self, n_parts: int) -> None:
        """Refuse where one of the first `n_parts` is missing."""
        numbers = self._numbers()
        missing = next((number for number in range(n_parts) if number not in numbers), None)
        if missing is not None:
            name = split(self.part(missing))[1]
            raise StreamError(
                f"{self.name} lacks {name}, which the checkpoint has written. Put it back, or "
                f"begin anew with another {argument('checkpoint')}."
            )

    def open(self, n_parts: int) -> None:
        """Make the folder, and remove what is there beyond the first `n_parts`."""
        self.check(n_parts)
        parent, _ = split(self.path)
        if self._files.can_append and self._files.info(parent) is None:
            raise StreamError(f"{self.name} cannot be made: there is no folder {parent}.")
        self._files.make_folder(self.path)
        later = [path for number, path in self._numbers().items() if number >= n_parts]
        self._files.remove(later)
        self._files.discard_unfinished(self.path, "part-*")

    def check_newest(self, n_parts: int) -> None:
        """Notice when parts are removed while more of them are written."""
        if n_parts and self._files.info(self.part(n_parts - 1)) is None:
            raise removed(self.name)


class GrowingParts(GrowingOutput):
    """A folder of parts on an object store, where nothing can be appended to: one each commit."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        ending = f".{split(path)[1].rpartition('.')[2]}"
        self._parts = PartFolder(path, name, ending)
        self._files = filesystem_of(path)
        self._n_parts = 0
        self._waiting: list[bytes] = []

    @property
    def at_beginning(self) -> bool:
        """Whether a part begins."""
        return not self._waiting

    def is_empty(self) -> bool:
        """Whether there are no parts."""
        return self._parts.is_empty()

    def check(self, position: Position) -> None:
        """Refuse a position that speaks of parts that are not there."""
        self._parts.check(position["parts"])

    def open(self, position: Position | None) -> None:
        """Remove the parts after `position`."""
        self._n_parts = 0 if position is None else position["parts"]
        self._parts.open(self._n_parts)

    def append(self, data: bytes) -> None:
        """Keep some bytes for the next part."""
        self._waiting.append(data)

    def commit(self) -> Position:
        """Write a part, if there is anything new."""
        self._parts.check_newest(self._n_parts)
        if self._waiting:
            with self._files.written(self._parts.part(self._n_parts)) as file:
                file.writelines(self._waiting)
            self._n_parts += 1
            self._waiting = []
        return {"parts": self._n_parts}

    def close(self) -> None:
        """Write what is left."""
        self.commit()


def growing_output(path: str, name: str) -> GrowingOutput:
    """Return what grows at `path`."""
    grows = filesystem_of(path).can_append
    return GrowingFile(path, name) if grows else GrowingParts(path, name)
