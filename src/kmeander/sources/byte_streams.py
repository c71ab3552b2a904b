"""Streams of bytes: files, compressed files, files that grow, standard input."""

from __future__ import annotations

import os
import queue
import select
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kmeander.exceptions import InputError, argument
from kmeander.sources.compression import is_compressed, unpacked
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import is_address
from kmeander.storage.local import is_same_file

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKED = 256  # bytes of a followed file that must still stand before those that come next
# Whether one can wait for standard input; on Windows, for sockets alone.
CAN_SELECT = os.name == "posix"
PAUSE = 0.1  # seconds after which a source that waits hands over nothing


class ByteStream(Protocol):
    """A stream of bytes that may make its reader wait."""

    # Whether it has an end; where it has none a line without its end is still being written.
    ends: bool
    # Whether its bytes come when they are written, which may be bit by bit.
    is_pipe: bool

    def read(self, size: int) -> bytes | None:
        """Return some bytes, b"" at the end, None if nothing has come for a moment."""

    def skip_to(self, offset: int) -> bool:
        """Go on at `offset`, if that can be done without reading; say whether it was."""

    def share_read(self) -> float | None:
        """Return how much has been read, between 0 and 1, where that is known."""

    def close(self) -> None:
        """Let go of it."""


def open_bytes(path: str, *, follow: bool = False) -> ByteStream:
    """Open a file, compressed or not by its ending, or standard input (``-``)."""
    if path == "-":
        return StandardInput() if CAN_SELECT else ThreadedStandardInput()
    if follow and not filesystem_of(path).can_append:
        raise InputError(
            f"{argument('follow', True)} cannot read {path}: an object of a store never grows. "
            "Read a folder of objects instead, again and again with the same "
            f"{argument('checkpoint')}."
        )
    if follow and is_compressed(path):
        raise InputError(
            f"{argument('follow', True)} cannot read {path}: a compressed file does not grow by "
            "rows."
        )
    found = explained(path, lambda: filesystem_of(path).info(path))
    if follow and found is not None and found.kind == "device":
        raise InputError(
            f"{argument('follow', True)} cannot read {path}: a pipe does not grow, it is read as "
            f"it comes. Leave {argument('follow')} out."
        )
    opened: FileBytes = explained(path, lambda: FileBytes(path, follow=follow))
    return opened


def explained(path: str, attempt: Callable[[], Any]) -> Any:
    """Return the result of `attempt`, or say why the file at `path` cannot be read."""
    try:
        return attempt()
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist{looked_for(path)}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def looked_for(path: str) -> str:
    """Return where a relative path was looked for, for messages."""
    return "" if is_address(path) else f" (looked for {Path(path).absolute()})"


class FileBytes:
    """The bytes of a file; with `follow` it waits for more at the end."""

    is_pipe = False

    def __init__(self, path: str, *, follow: bool) -> None:
        self._path = path
        self.ends = not follow
        files = filesystem_of(path)
        self._raw = files.open(path, buffered=False)
        found = files.info(path)
        self._size = 0 if found is None else found.size
        self._newest = b""  # what was read last of a file that is followed
        try:
            self._stream: Any = unpacked(self._raw, path) if is_compressed(path) else self._raw
        except BaseException:
            self._raw.close()
            raise

    def read(self, size: int) -> bytes | None:
        """Return some bytes, b"" at the end, None where more may come."""
        data: bytes = explained(self._path, lambda: self._stream.read(size))
        if self.ends:
            return data
        explained(self._path, lambda: self._check_unchanged(len(data)))
        if data:
            self._newest = (self._newest + data)[-CHECKED:]
            return data
        time.sleep(PAUSE)
        return None

    def _check_unchanged(self, n_new: int) -> None:
        """Notice when the followed file is no longer the one that was opened, or was cut."""
        offset = self._raw.tell()
        size = os.fstat(self._raw.fileno()).st_size
        if size < offset:
            raise InputError(
                f"{self._path} was cut from {offset} to {size} bytes while it was followed. What "
                "was cut off has been read; what replaces it cannot be distinguished from it. "
                f"Begin anew, with another {argument('checkpoint')}."
            )
        self._raw.seek(offset - n_new - len(self._newest))
        is_same = self._raw.read(len(self._newest)) == self._newest
        self._raw.seek(offset)
        if not is_same:
            raise InputError(
                f"{self._path} was cut, and written anew beyond byte {offset - n_new}, while it "
                "was followed: what stands before that is not what has been read. Begin anew, with "
                f"another {argument('checkpoint')}."
            )
        if not n_new and not explained(self._path, lambda: is_same_file(self._raw, self._path)):
            raise InputError(
                f"{self._path} was removed, or replaced by another file, while it was followed. "
                "All of the old one has been read. Let the writer append, or give it a new name "
                "each time and read the folder."
            )

    def skip_to(self, offset: int) -> bool:
        """Seek, unless the file is compressed."""
        if self._stream is not self._raw:
            return False
        self._raw.seek(offset)
        self._newest = b""
        return True

    def share_read(self) -> float | None:
        """Return the share of the file's size that has been read."""
        return min(1.0, self._raw.tell() / self._size) if self.ends and self._size else None

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()


class StandardInput:
    """What arrives on standard input, as it arrives."""

    ends = True
    is_pipe = True

    def __init__(self) -> None:
        self._handle = sys.stdin.fileno()

    def read(self, size: int) -> bytes | None:
        """Return all that has come, up to about `size` bytes."""
        if not select.select([self._handle], [], [], PAUSE)[0]:
            return None
        pieces = [os.read(self._handle, size)]
        n_read = len(pieces[0])
        # A pipe holds 64 KiB; a larger block costs less to parse. Nothing is waited for.
        while pieces[-1] and n_read < size and select.select([self._handle], [], [], 0)[0]:
            pieces.append(os.read(self._handle, size - n_read))
            n_read += len(pieces[-1])
        return b"".join(pieces)

    def skip_to(self, offset: int) -> bool:  # noqa: ARG002  # a pipe cannot
        """Say that a pipe must be read."""
        return False

    def share_read(self) -> float | None:
        """Say that the length of a pipe is not known."""
        return None

    def close(self) -> None:
        """Leave standard input open: others may have a use for it."""


class ThreadedStandardInput(StandardInput):
    """Standard input where one cannot wait for it: a thread reads ahead."""

    def __init__(self) -> None:
        super().__init__()
        # The end is b"", as for files.
        self._pieces: queue.Queue[bytes | OSError] = queue.Queue(maxsize=16)
        threading.Thread(target=self._read_ahead, name="kmeander-stdin", daemon=True).start()

    def _read_ahead(self) -> None:
        piece: bytes | OSError = b"?"
        while piece and isinstance(piece, bytes):
            try:
                piece = os.read(self._handle, 1 << 16)
            except OSError as error:
                piece = error
            self._pieces.put(piece)

    def read(self, size: int) -> bytes | None:
        """Return all that has come, up to about `size` bytes."""
        pieces: list[bytes] = []
        while sum(map(len, pieces)) < size:
            try:
                piece = self._pieces.get(timeout=0 if pieces else PAUSE)
            except queue.Empty:
                break
            if pieces and not (piece and isinstance(piece, bytes)):
                self._pieces.put(piece)  # for the next time
                break
            if isinstance(piece, OSError):
                raise InputError(f"standard input cannot be read: {piece.strerror}.") from piece
            if not piece:
                self._pieces.put(piece)
                return b""
            pieces.append(piece)
        return b"".join(pieces) if pieces else None
