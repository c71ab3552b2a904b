"""File systems: what sources, sinks and checkpoints ask of the place where their files lie.

A path is a path on this machine, or the address of an object (``s3://bucket/name``).
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, ClassVar

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://")


@dataclass(frozen=True)
class FileInfo:
    """What is known of a file or folder without opening it.

    Parameters
    ----------
    kind : {"file", "folder", "device"}
        Pipes and sockets are devices, too.
    size : int
    modified : int
        Nanoseconds since 1970.
    """

    kind: str
    size: int = 0
    modified: int = 0


class FileSystem(ABC):
    """A place for files."""

    # Whether a file can grow and be cut back; otherwise it is written once, as a whole.
    can_append: ClassVar[bool]

    @abstractmethod
    def info(self, path: str) -> FileInfo | None:
        """Return what is at `path`, or None where nothing is."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in order; none where there is no folder."""

    @abstractmethod
    def matching(self, pattern: str) -> list[str]:
        """Return the files whose paths match a pattern with ``*``, ``?`` and ``**``, in order."""

    @abstractmethod
    def open(self, path: str, *, buffered: bool = True) -> IO[Any]:
        """Open a file of bytes for reading; without a buffer a pipe gives what it has."""

    @abstractmethod
    def written(self, path: str) -> AbstractContextManager[IO[Any]]:
        """Write a file as a whole: after the block it is there and lasts, or nothing changed."""

    @abstractmethod
    def make_folder(self, path: str) -> None:
        """Make a folder that lasts, and those above it, where they are not there."""

    @abstractmethod
    def remove(self, paths: Iterable[str]) -> None:
        """Remove files of one folder, so that they do not come back; they need not be there."""

    @abstractmethod
    def discard_unfinished(self, folder: str, names: str = "*") -> None:
        """Remove what writers that were killed have left of files whose names match a pattern."""

    @abstractmethod
    def clear(self, path: str) -> None:
        """Remove what writers of one file that were killed have left."""

    @abstractmethod
    def locked(self, folder: str) -> AbstractContextManager[None]:
        """Keep other runs out of a folder; `InUseError` where one is in it."""


class InUseError(Exception):
    """Another run has locked the folder; the message says who, and what can be done."""


def is_address(path: str) -> bool:
    """Whether a path is the address of an object.

    Examples
    --------
    >>> is_address("s3://bucket/readings.csv"), is_address("readings.csv")
    (True, False)
    """
    return _SCHEME.match(path) is not None


def is_one(path: str, other: str) -> bool:
    """Whether two paths, which may not be there yet, mean one file.

    Examples
    --------
    >>> is_one("rows.csv", "./rows.csv"), is_one("s3://bucket/a", "s3://bucket/b")
    (True, False)
    """
    if is_address(path) or is_address(other) or "-" in (path, other):
        return path == other
    return os.path.realpath(path) == os.path.realpath(other)


def joined(folder: str, name: str) -> str:
    """Return the path of a file in a folder.

    Examples
    --------
    >>> joined("s3://bucket/rows/", "part-000000.parquet")
    's3://bucket/rows/part-000000.parquet'
    """
    return f"{folder.rstrip('/')}/{name}"


def split(path: str) -> tuple[str, str]:
    """Return the folder of a path and the name in it.

    Examples
    --------
    >>> split("rows/part-000000.parquet"), split("steps.jsonl"), split("/steps.jsonl")
    (('rows', 'part-000000.parquet'), ('.', 'steps.jsonl'), ('/', 'steps.jsonl'))
    """
    folder, _, name = path.rstrip("/").rpartition("/")
    return folder or ("/" if path.startswith("/") else "."), name
