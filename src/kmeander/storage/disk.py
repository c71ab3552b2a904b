"""The operations of this machine's disk on which recovery rests, one method each.

Everything that kmeander writes to a disk goes through one `Disk`, so that tests can exchange it
for one that loses what was not synced, or fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

# Elsewhere folders cannot be opened; NTFS keeps a log of names.
CAN_SYNC_FOLDERS = os.name == "posix"


class Disk:
    """The real one: what is written may be lost with the power until it is synced.

    A file's contents last once the file is synced; its name, once its folder is.
    """

    def open(self, path: str, mode: str, buffering: int = -1) -> IO[Any]:
        """Open a file of bytes, as `open` does."""
        return Path(path).open(mode, buffering)  # the caller closes it

    def stat(self, path: str) -> os.stat_result:
        """Return what is known of a file or folder, as `os.stat` does."""
        return Path(path).stat()

    def names(self, path: str) -> list[str]:
        """Return the names in a folder."""
        return os.listdir(path)  # noqa: PTH208  # names, no paths

    def sync(self, file: IO[Any]) -> None:
        """Make the contents of an open file last."""
        file.flush()
        os.fsync(file.fileno())

    def truncate(self, file: IO[Any], size: int) -> None:
        """Cut an open file."""
        file.truncate(size)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, in place of whatever had it."""
        Path(source).replace(target)

    def remove(self, path: str) -> None:
        """Remove a file; there need be none."""
        Path(path).unlink(missing_ok=True)

    def make_folder(self, path: str) -> None:
        """Make a folder in one that is there."""
        Path(path).mkdir(exist_ok=True)

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder last: new ones, changed ones, and removals."""
        if not CAN_SYNC_FOLDERS:
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_disk = Disk()


def disk() -> Disk:
    """Return the disk in use."""
    return _disk


@contextmanager
def exchanged(other: Disk) -> Iterator[None]:
    """Use another disk, in all of this process."""
    global _disk
    before, _disk = _disk, other
    try:
        yield
    finally:
        _disk = before
