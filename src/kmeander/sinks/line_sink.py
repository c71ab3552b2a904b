"""An output of lines: a text that grows, and can be cut back to where it was."""

from __future__ import annotations

import sys

from kmeander.exceptions import StreamError, argument
from kmeander.sinks.contract import Position, Sink, explained
from kmeander.storage.growing import GrowingOutput, growing_output


class LineSink(Sink):
    """Lines that are appended to a file, or to standard output (``-``).

    On an object store, where nothing can be appended to, `path` is a folder of parts. Standard
    output cannot be cut back. What a batch gives is up to the children's `write`.

    Parameters
    ----------
    path : str
    output : str
        The argument that names it, for messages.
    grows : GrowingOutput, optional
        What grows at `path`, where that is neither a file nor a folder of an object store.
    """

    def __init__(self, path: str, output: str, grows: GrowingOutput | None = None) -> None:
        super().__init__(argument(output, path))
        if grows is None:
            with explained(self.name):
                grows = _StandardOutput() if path == "-" else growing_output(path, self.name)
        self._output = grows

    def is_empty(self) -> bool:
        """Whether there are no lines yet."""
        with explained(self.name):
            return self._output.is_empty()

    def check(self, position: Position) -> None:
        """Refuse a position that the output does not reach."""
        with explained(self.name):
            self._output.check(position)

    def open(self, position: Position | None) -> None:
        """Empty it, or cut it back to `position`."""
        try:
            self._output.open(position)
        except OSError as error:
            raise StreamError(
                f"{self.name} cannot be written: {error.strerror or error}."
            ) from error

    @property
    def at_beginning(self) -> bool:
        """Whether the next line is the first of its file."""
        return self._output.at_beginning

    def append(self, text: str) -> None:
        """Write some lines, and hand them on at once."""
        with explained(self.name):
            # Names of files need not be UTF-8; in JSON this is half a surrogate pair, as elsewhere.
            self._output.append(text.encode(errors="backslashreplace"))

    def commit(self) -> Position:
        """Make all lines last, and return where they end."""
        with explained(self.name):
            return self._output.commit()

    def close(self) -> None:
        """Close the file; standard output stays open."""
        with explained(self.name):
            self._output.close()


class _StandardOutput(GrowingOutput):
    """What is written there is gone: it can neither be cut back nor made to last."""

    def __init__(self) -> None:
        super().__init__("-", "standard output")
        self._is_fresh = True

    @property
    def at_beginning(self) -> bool:
        """Whether nothing was written yet."""
        return self._is_fresh

    def is_empty(self) -> bool:
        """Say that nothing of it can be removed."""
        return True

    def check(self, position: Position) -> None:
        """Take any position."""

    def open(self, position: Position | None) -> None:
        """Open nothing: it is open."""

    def append(self, data: bytes) -> None:
        """Write some bytes, and hand them on at once."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        self._is_fresh = False

    def commit(self) -> Position:
        """Return no position."""
        return {}

    def close(self) -> None:
        """Leave it open."""
