"""A folder of checkpoints: the last two are kept, and one run at a time may use it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from kmeander.exceptions import CheckpointError, argument
from kmeander.storage import checkpoint

LAYOUT = 1  # what the state of a run looks like
KEPT = 2
_NAME = re.compile(r"checkpoint-(\d{8,})\.ckpt")


class CheckpointFolder:
    """The checkpoints of one run, oldest first, each a file of `kmeander.checkpoint`.

    Parameters
    ----------
    path : path-like
        Made if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, CheckpointFolder(folder) as checkpoints:
    ...     checkpoints.save({"n": 1})
    ...     checkpoints.save({"n": 2})
    ...     checkpoints.newest(print)
    {'n': 2, 'layout': 1}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._name = argument("checkpoint", str(self.path))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"{self._name} cannot be made: {error.strerror}.") from error
        self._lock = self._locked()
        for aside in self.path.glob(".checkpoint-*.aside"):  # of a run that was killed
            aside.unlink()

    def _locked(self) -> IO[str]:
        """Keep other runs out until this process ends, however it ends."""
        import fcntl

        try:
            lock = (self.path / "lock").open("a+", encoding="ascii")
        except OSError as error:
            raise CheckpointError(f"{self._name} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip()
            lock.close()
            raise CheckpointError(
                f"{self._name} is in use by another run"
                f"{f' (process {owner})' if owner else ''}. Wait until it ends, or name another "
                "folder."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        return lock

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _numbers(self) -> list[int]:
        found = (_NAME.fullmatch(file.name) for file in self.path.iterdir())
        return sorted(int(match[1]) for match in found if match is not None)

    def _file(self, number: int) -> Path:
        return self.path / f"checkpoint-{number:08}.ckpt"

    def newest(self, notify: Callable[[str], None]) -> dict[str, Any] | None:
        """Return the newest state that can be read, or None where there is none at all.

        A damaged one is reported, and the one before it is taken. One that a newer kmeander wrote
        is refused: the one before it would be older than the outputs.
        """
        numbers = self._numbers()
        damaged: CheckpointError | None = None
        for number in reversed(numbers):
            try:
                state = checkpoint.read(self._file(number))
            except checkpoint.NewerFormatError:
                raise
            except CheckpointError as error:
                damaged = error
                notify(f"{error} Trying the checkpoint before it.")
                continue
            if state.get("layout", 0) > LAYOUT:
                raise checkpoint.NewerFormatError(
                    f"{self._file(number)} has layout {state['layout']}, this kmeander reads "
                    f"{LAYOUT}. Install a newer kmeander."
                )
            for later in numbers[numbers.index(number) + 1 :]:
                self._file(later).unlink()
            return state
        if damaged is not None:
            raise CheckpointError(
                f"{self.path} holds no checkpoint that can be read: {damaged} Begin anew with "
                f"another {argument('checkpoint')}, or restore this one from a copy."
            )
        return None

    def save(self, state: dict[str, Any]) -> None:
        """Write a state, and let go of those before the last two."""
        numbers = self._numbers()
        following = numbers[-1] + 1 if numbers else 0
        try:
            checkpoint.write(self._file(following), {**state, "layout": LAYOUT})
        except OSError as error:
            raise CheckpointError(
                f"{self._name} cannot be written: {error.strerror or error}. What was "
                "committed before is safe: make room, and run the same command again."
            ) from error
        for number in numbers[: 1 - KEPT]:
            self._file(number).unlink()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.close()
