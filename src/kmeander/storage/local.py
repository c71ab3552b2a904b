"""Files on this machine: written aside, synced, renamed, and the folder synced."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kmeander.storage.disk import disk
from kmeander.storage.filesystem import FileInfo, FileSystem, InUseError, joined, split

_ASIDE = ".{}.{}.aside"
LOCK = "lock"


class LocalFileSystem(FileSystem):
    """What lasts here survives a loss of power, if the disk keeps its word."""

    can_append = True

    def info(self, path: str) -> FileInfo | None:
        """Return what is at `path`, or None where nothing is."""
        try:
            found = disk().stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        kind = "device"
        if stat.S_ISREG(found.st_mode):
            kind = "file"
        elif stat.S_ISDIR(found.st_mode):
            kind = "folder"
        return FileInfo(kind, found.st_size, found.st_mtime_ns)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in order; none where there is no folder."""
        return sorted(disk().names(folder)) if self._is_folder(folder) else []

    def _is_folder(self, path: str) -> bool:
        found = self.info(path)
        return found is not None and found.kind == "folder"

    def matching(self, pattern: str) -> list[str]:
        """Return the files whose paths match a pattern, in order."""
        return sorted(
            path
            for path in glob.glob(pattern, recursive=True)  # noqa: PTH207
            if Path(path).is_file()
        )

    def open(self, path: str, *, buffered: bool = True) -> IO[Any]:
        """Open a file of bytes for reading."""
        return disk().open(path, "rb", -1 if buffered else 0)

    @contextmanager
    def written(self, path: str) -> Iterator[IO[Any]]:
        """Write a file aside, sync it, rename it, and sync the folder."""
        target = _written_at(path)
        known = self.info(target)
        if known is not None and known.kind == "device":  # renaming would put a file in its place
            with disk().open(target, "wb") as device:
                yield device
            return
        folder, name = split(target)
        aside = joined(folder, _ASIDE.format(name, secrets.token_hex(8)))
        try:
            with disk().open(aside, "xb") as file:
                yield file
                if known is not None:  # who may read it stays as it was
                    shutil.copymode(target, aside)
                disk().sync(file)
            disk().rename(aside, target)
        except BaseException:
            with suppress(OSError):  # the first error is the one to report
                disk().remove(aside)
            raise
        disk().sync_folder(folder)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, each of which its parent remembers."""
        folder, missing = Path(path), list[Path]()
        while not self._is_folder(str(folder)):
            if missing and self.info(str(folder)) is not None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
            missing.append(folder)
            folder = folder.parent
        # The nearest that is there may have been made by a run that was killed before it could
        # sync. Where its parent cannot even be read it was not kmeander who made it.
        with suppress(PermissionError):
            disk().sync_folder(str(folder.absolute().parent))
        for folder in reversed(missing):
            disk().make_folder(str(folder))
            disk().sync_folder(str(folder.absolute().parent))

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files of one folder, so that they do not come back."""
        folder = None
        for path in paths:
            disk().remove(path)
            folder, _ = split(path)
        if folder is not None:
            disk().sync_folder(folder)

    def discard_unfinished(self, folder: str, names: str = "*") -> None:
        """Remove what was written aside and never renamed."""
        patterns = (f".{names}.aside", _ASIDE.format(names, "*"))  # the first by earlier versions
        left = [
            name
            for name in self.names(folder)
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        ]
        self.remove(joined(folder, name) for name in left)

    def clear(self, path: str) -> None:
        """Remove what writers of one file have left, beside the file that a link means."""
        folder, name = split(_written_at(path))
        self.discard_unfinished(folder, glob.escape(name))

    @contextmanager
    def locked(self, folder: str) -> Iterator[None]:
        """Hold a lock that ends with this process, however it ends."""
        from filelock import FileLock, Timeout

        path = joined(folder, LOCK)
        lock = FileLock(path, blocking=False)
        try:
            lock.acquire()
        except Timeout:
            owner = ""
            with suppress(OSError):  # Windows lets nobody read a file that is locked
                owner = Path(path).read_text(encoding="ascii", errors="replace").strip()
            raise InUseError(
                f"is in use by another run{f' (process {owner})' if owner else ''}. Wait until it "
                "ends, or name another folder."
            ) from None
        try:
            if sys.platform != "win32":
                Path(path).write_text(str(os.getpid()), encoding="ascii")
            yield
        finally:
            lock.release()


def _written_at(path: str) -> str:
    """Return where a file is written: a link stays one."""
    return os.path.realpath(path) if Path(path).is_symlink() else path


def is_same_file(file: IO[Any], path: str) -> bool:
    """Whether an open file is still the one at `path`; one that was removed or replaced is not."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), disk().stat(path))
    except FileNotFoundError:
        return False
