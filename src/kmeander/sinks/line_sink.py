"""An output of lines: a text file that grows, and can be cut back to where it was."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any

from kmeander.exceptions import StreamError, argument
from kmeander.sinks.contract import Position, Sink, cannot_write


class LineSink(Sink):
    """Lines that are appended to a file, or to standard output (``-``).

    Standard output cannot be cut back. What a batch gives is up to the children's `write`.

    Parameters
    ----------
    path : str
    output : str
        The argument that names it, for messages.
    """

    def __init__(self, path: str, output: str) -> None:
        super().__init__(argument(output, path))
        self._path = path
        self._file: IO[Any] | None = None

    def open(self, position: Position | None) -> None:
        """Empty the file, or cut it back to `position`."""
        if self._path == "-":
            self._file = sys.stdout.buffer
            return
        path = Path(self._path)
        is_device = path.exists() and not path.is_file()  # such as /dev/full: nothing to cut
        if position is None or is_device:
            self._file = self._opened("wb")
            return
        size = path.stat().st_size if path.exists() else 0
        if size < position["byte"]:
            raise StreamError(
                f"{self.name} has {size} bytes, the checkpoint has written {position['byte']}. It "
                "was changed or lost: put it back, or begin anew with "
                f"another {argument('checkpoint')}."
            )
        self._file = self._opened("r+b")
        self._file.truncate(position["byte"])
        self._file.seek(position["byte"])

    def _opened(self, mode: str) -> IO[Any]:
        try:
            return Path(self._path).open(mode)
        except OSError as error:
            raise StreamError(f"{self.name} cannot be written: {error.strerror}.") from error

    def append(self, text: str) -> None:
        """Write some lines, and hand them on at once."""
        assert self._file is not None
        try:
            self._file.write(text.encode())
            self._file.flush()
        except BrokenPipeError:  # the reader has left: no fault of ours
            raise
        except OSError as error:
            raise cannot_write(self.name, error) from error

    def commit(self) -> Position:
        """Make all lines last, and return where they end."""
        assert self._file is not None
        if self._path == "-":
            return {}
        try:
            if Path(self._path).is_file():
                os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.name, error) from error
        return {"byte": self._file.tell()}

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._file is None or self._path == "-":
            return
        file, self._file = self._file, None
        try:
            file.close()
        except OSError as error:
            raise cannot_write(self.name, error) from error
