"""Disks on which every operation can go wrong: one loses what was not synced, one fails."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from kmeander.storage.disk import Disk

# The contents of files, and None for folders, by path.
Tree = dict[Path, bytes | None]


class PowerLoss(BaseException):  # no error: it can be neither handled nor reported
    """Everything stops here."""


class CountingDisk(Disk):
    """A disk that calls `before` ahead of each of its operations.

    Parameters
    ----------
    with_reads : bool
        Whether reading counts.
    """

    def __init__(self, *, with_reads: bool = False) -> None:
        self.n_operations = 0
        self._with_reads = with_reads

    def before(self, name: str, file: IO[Any] | None = None, data: bytes = b"") -> None:
        """Count an operation; it may be prevented by raising."""
        self.n_operations += 1

    def open(self, path: str, mode: str, buffering: int = -1) -> IO[Any]:
        if mode == "rb" and not self._with_reads:
            return super().open(path, mode, buffering)
        self.before(f"open {mode}")
        return cast(IO[Any], _File(self, super().open(path, mode, buffering)))

    def stat(self, path: str) -> os.stat_result:
        if self._with_reads:
            self.before("stat")
        return super().stat(path)

    def names(self, path: str) -> list[str]:
        if self._with_reads:
            self.before("names")
        return super().names(path)

    def sync(self, file: IO[Any]) -> None:
        self.before("sync")

    def truncate(self, file: IO[Any], size: int) -> None:
        self.before("truncate")
        super().truncate(file, size)

    def rename(self, source: str, target: str) -> None:
        self.before("rename")
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.before("remove")
        super().remove(path)

    def make_folder(self, path: str) -> None:
        self.before("make_folder")
        super().make_folder(path)

    def sync_folder(self, path: str) -> None:
        self.before("sync_folder")


class _File(io.BufferedIOBase):
    """An open file whose reads and writes count."""

    def __init__(self, disk: CountingDisk, file: IO[Any]) -> None:
        self._disk = disk
        self._file = file
        self.name = file.name

    def write(self, data: Any) -> int:
        data = bytes(data)
        self._disk.before("write", self._file, data)
        n_written = self._file.write(data)
        self._file.flush()
        return n_written

    def read(self, size: int | None = -1, /) -> bytes:
        self._disk.before("read")
        data: bytes = self._file.read(-1 if size is None else size)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def truncate(self, size: int | None = None, /) -> int:
        return self._file.truncate(size)

    def fileno(self) -> int:
        return self._file.fileno()

    def readable(self) -> bool:
        return self._file.readable()

    def writable(self) -> bool:
        return self._file.writable()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


class FailingDisk(CountingDisk):
    """A disk on which an operation fails, alone or with all after it.

    Parameters
    ----------
    at : int
        The operation, counted from 0.
    number : int
        Of `errno`.
    for_good : bool
    """

    def __init__(self, at: int, number: int, *, for_good: bool) -> None:
        super().__init__(with_reads=True)
        self._at = at
        self._number = number
        self._for_good = for_good

    def before(self, name: str, file: IO[Any] | None = None, data: bytes = b"") -> None:
        now = self.n_operations
        super().before(name)
        if now == self._at or (self._for_good and now > self._at):
            if self._number == errno.ENOSPC and file is not None:  # half of it finds room
                file.write(data[: len(data) // 2])
                file.flush()
            raise OSError(self._number, os.strerror(self._number))


@dataclass(eq=False)
class _Contents:
    """A file: what of its contents was synced, and what there was when it lost its last name."""

    synced: bytes = b""
    final: bytes | None = None


# A name in a folder stands for a file, or for another folder.
_Names = dict[Path, _Contents | None]


class ForgetfulDisk(CountingDisk):
    """A disk that knows what would be left of a folder if the power were lost.

    Files come back with what was synced of them, folders with the names that they had when they
    were synced; of all the rest each thing may have reached the disk or not.

    Parameters
    ----------
    root : Path
        All in it is on the disk when this begins.
    at : int or None
        After so many operations the power is lost.
    """

    def __init__(self, root: Path, at: int | None = None) -> None:
        super().__init__()
        self._root = root
        self._at = at
        self._names: _Names = {
            path: _Contents(path.read_bytes()) if path.is_file() else None
            for path in sorted(root.rglob("*"))
        }
        self._synced_names = dict(self._names)

    def before(self, name: str, file: IO[Any] | None = None, data: bytes = b"") -> None:
        if self._at is not None and self.n_operations >= self._at:
            raise PowerLoss
        super().before(name)

    def _contents(self, path: Path) -> _Contents:
        contents = self._names[path]
        assert contents is not None
        return contents

    def open(self, path: str, mode: str, buffering: int = -1) -> IO[Any]:
        file = super().open(path, mode, buffering)
        if mode != "rb":
            self._names.setdefault(Path(path), _Contents())
        return file

    def sync(self, file: IO[Any]) -> None:
        super().sync(file)
        path = Path(file.name)
        self._contents(path).synced = path.read_bytes()

    def rename(self, source: str, target: str) -> None:
        before = self._leaving(target)
        super().rename(source, target)
        if before is not None:
            before[0].final = before[1]
        self._names[Path(target)] = self._names.pop(Path(source))

    def remove(self, path: str) -> None:
        before = self._leaving(path)
        super().remove(path)
        if before is not None:
            before[0].final = before[1]
            del self._names[Path(path)]

    def _leaving(self, path: str) -> tuple[_Contents, bytes] | None:
        contents = self._names.get(Path(path))
        return None if contents is None else (contents, Path(path).read_bytes())

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        self._names.setdefault(Path(path), None)

    def sync_folder(self, path: str) -> None:
        super().sync_folder(path)
        folder = Path(path)
        kept = {name: it for name, it in self._synced_names.items() if name.parent != folder}
        now = {name: it for name, it in self._names.items() if name.parent == folder}
        self._synced_names = {**kept, **now}

    def left(self, reached: Callable[[Path], bool]) -> Tree:
        """Return what is left without power.

        Parameters
        ----------
        reached : callable
            Whether a change at a path that was not synced has reached the disk all the same.
        """
        tree: Tree = {}
        for path in sorted(self._names.keys() | self._synced_names.keys()):
            if path.parent != self._root and path.parent not in tree:
                continue  # its folder is lost
            names = self._synced_names
            if names.get(path, self) is not self._names.get(path, self) and reached(path):
                names = self._names
            if path not in names:
                continue
            contents = names[path]
            if contents is None:
                tree[path] = None
            elif reached(path):
                tree[path] = self._now(contents)
            else:
                tree[path] = contents.synced
        return tree

    def _now(self, contents: _Contents) -> bytes:
        if contents.final is not None:
            return contents.final
        path = next(path for path, it in self._names.items() if it is contents)
        return path.read_bytes()


def restore(root: Path, tree: Tree) -> None:
    """Put into a folder what was left of it, and nothing else."""
    shutil.rmtree(root)
    root.mkdir()
    for path, contents in tree.items():
        if contents is None:
            path.mkdir()
        else:
            path.write_bytes(contents)
