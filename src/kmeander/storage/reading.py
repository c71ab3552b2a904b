"""Lines of an output, be it a file or a folder of parts: once, or as they are added."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import joined
from kmeander.storage.rotating import numbered, open_part

_AT_ONCE = 1 << 20


def lines_of(path: str | os.PathLike[str]) -> Generator[bytes]:
    """Yield the lines of an output, be it a file or a folder of parts, packed or not."""
    name = os.fspath(path)
    files = filesystem_of(name)
    found = files.info(name)
    if found is None or found.kind != "folder":
        with files.open(name) as file:
            yield from file
        return
    done = -1
    while parts := {n: part for n, part in numbered(files.names(name)).items() if n > done}:
        done, part = next(iter(parts.items()))
        try:
            file = open_part(files, joined(name, part))
        except FileNotFoundError:  # packed at this very moment, or taken away
            done -= 1
            continue
        with file:
            yield from file


class OutputTail:
    """An output that still grows, read as it does.

    Parameters
    ----------
    path : str
        Of a file or a folder of parts; it need not be there yet.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = filesystem_of(path)
        self._number, self._byte = -1, 0

    def chunks(self) -> Iterator[bytes | None]:
        """Yield what has been added; None where the output was cut, and is read from the start."""
        found = self._files.info(self._path)
        if found is None:
            return
        if found.kind != "folder":
            yield from self._chunks_of(self._path)
            return
        while True:
            parts = numbered(self._files.names(self._path))
            if self._number not in parts:
                later = [number for number in parts if number > self._number]
                if not later and self._number >= 0:
                    self._begin_anew()
                    yield None
                if not parts:
                    return
                self._number, self._byte = min(later or parts), 0
            try:
                yield from self._chunks_of(joined(self._path, parts[self._number]))
            except FileNotFoundError:  # packed at this very moment
                return
            if self._number not in parts:  # begun anew
                continue
            following = [number for number in parts if number > self._number]
            if not following:
                return
            self._number, self._byte = min(following), 0

    def _chunks_of(self, path: str) -> Iterator[bytes | None]:
        with open_part(self._files, path) as file:
            if file.seek(0, os.SEEK_END) < self._byte:
                self._begin_anew()
                yield None
                return
            file.seek(self._byte)
            while chunk := file.read(_AT_ONCE):
                self._byte += len(chunk)
                yield chunk

    def _begin_anew(self) -> None:
        self._number, self._byte = -1, 0
