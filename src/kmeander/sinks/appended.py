"""A text file that grows, and can be cut back to where it was."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any

from kmeander.exceptions import StreamError
from kmeander.sinks.contract import Position


class AppendedFile:
    """Text that is appended to a file, or to standard output (``-``).

    Standard output cannot be cut back.

    Parameters
    ----------
    path : str
    option : str
        The option that named it, for messages.
    """

    def __init__(self, path: str, option: str) -> None:
        self.path = path
        self._option = option
        self._file: IO[Any] | None = None

    def open(self, position: Position | None) -> None:
        """Empty the file, or cut it back to `position`."""
        if self.path == "-":
            self._file = sys.stdout.buffer
            return
        path = Path(self.path)
        is_device = path.exists() and not path.is_file()  # such as /dev/full: nothing to cut
        if position is None or is_device:
            self._file = self._opened("wb")
            return
        size = path.stat().st_size if path.exists() else 0
        if size < position["byte"]:
            raise StreamError(
                f"{self._option} {self.path} has {size} bytes, the checkpoint has written "
                f"{position['byte']}. It was changed or lost: put it back, or begin anew with "
                "another --checkpoint."
            )
        self._file = self._opened("r+b")
        self._file.truncate(position["byte"])
        self._file.seek(position["byte"])

    def _opened(self, mode: str) -> IO[Any]:
        try:
            return Path(self.path).open(mode)
        except OSError as error:
            raise StreamError(
                f"{self._option} {self.path} cannot be written: {error.strerror}."
            ) from error

    def write(self, text: str) -> None:
        """Append some text."""
        assert self._file is not None
        try:
            self._file.write(text.encode())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def flush(self) -> None:
        """Hand on what was written."""
        assert self._file is not None
        try:
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def commit(self) -> Position:
        """Make it last, and return where it ends."""
        assert self._file is not None
        self.flush()
        if self.path == "-":
            return {}
        try:
            if Path(self.path).is_file():
                os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error
        return {"byte": self._file.tell()}

    def _failed(self, error: OSError) -> StreamError:
        return StreamError(
            f"{self._option} {self.path} cannot be written: {error.strerror}. What a checkpoint "
            "holds is safe: make room, and run the same command again."
        )

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._file is None:
            return
        file, self._file = self._file, None
        if self.path != "-":
            try:
                file.close()
            except OSError as error:
                raise self._failed(error) from error
