"""A folder of checkpoints: the last two are kept, and one run at a time may use it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from kmeander.exceptions import CheckpointError, argument, shown
from kmeander.plain_values import is_whole
from kmeander.storage import checkpoint, filesystem_of
from kmeander.storage.filesystem import InUseError, joined

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
    ...     list(checkpoints.states(print))
    [{'n': 2, 'layout': 1}, {'n': 1, 'layout': 1}]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.name = argument("checkpoint", self.path)
        self._files = filesystem_of(self.path)
        # The numbers of the files that `states` has looked at, newest first.
        self._seen: list[int] = []
        self._held = ExitStack()
        try:
            self._files.make_folder(self.path)
        except OSError as error:
            raise self._failure("made", error) from error
        try:
            self._held.enter_context(self._files.locked(self.path))
            self._files.discard_unfinished(self.path, "checkpoint-*")  # of a run that was killed
            self._newest = max(self._numbers(), default=-1)
        except InUseError as error:
            raise CheckpointError(f"{self.name} {error}") from None
        except OSError as error:
            self._held.close()
            raise self._failure("written", error) from error

    def _failure(self, done: str, error: OSError) -> CheckpointError:
        return CheckpointError(f"{self.name} cannot be {done}: {error.strerror or error}.")

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _numbers(self) -> list[int]:
        found = (_NAME.fullmatch(name) for name in self._files.names(self.path))
        return sorted(int(match[1]) for match in found if match is not None)

    def _file(self, number: int) -> str:
        return joined(self.path, f"checkpoint-{number:08}.ckpt")

    def states(self, notify: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """Yield the states that can be read, newest first.

        A damaged one is reported, and the one before it is next. One that a newer kmeander wrote
        is refused: the one before it would be older than the outputs.
        """
        damaged: CheckpointError | None = None
        n_whole = 0
        try:
            numbers = self._numbers()
        except OSError as error:
            raise self._failure("read", error) from error
        for number in reversed(numbers):
            self._seen.append(number)
            try:
                state = checkpoint.read(self._file(number))
            except checkpoint.NewerFormatError:
                raise
            except CheckpointError as error:
                damaged = error
                notify(f"{error} Trying the checkpoint before it.")
                continue
            except OSError as error:
                raise self._failure("read", error) from error
            layout = state.get("layout", 0)
            if not is_whole(layout):
                damaged = CheckpointError(f"{self._file(number)} has layout {shown(layout)}.")
                notify(f"{damaged} Trying the checkpoint before it.")
                continue
            if layout > LAYOUT:
                raise checkpoint.NewerFormatError(
                    f"{self._file(number)} has layout {layout}, this kmeander reads "
                    f"{LAYOUT}. Install a newer kmeander."
                )
            n_whole += 1
            yield state
        if damaged is not None and not n_whole:
            raise CheckpointError(
                f"{self.path} holds no checkpoint that can be read: {damaged} Begin anew with "
                f"another {argument('checkpoint')}, or restore this one from a copy."
            )

    def go_on_from_here(self) -> None:
        """Remove the checkpoints after the state that was yielded last."""
        try:
            self._files.remove(self._file(number) for number in self._seen[:-1])
        except OSError as error:
            raise self._failure("written", error) from error

    def save(self, state: dict[str, Any]) -> None:
        """Write a state, and let go of those before the last two."""
        try:
            numbers = self._numbers()
            if numbers and numbers[-1] > self._newest:
                raise CheckpointError(
                    f"{self._file(numbers[-1])} was written by another run, while this one was "
                    "going on: nothing locks the folder where it lies, or the lock was removed. "
                    "End one of the two, and run the same command again."
                )
            following = numbers[-1] + 1 if numbers else 0
            checkpoint.write(self._file(following), {**state, "layout": LAYOUT})
            self._newest = following
            self._files.remove(self._file(number) for number in numbers[: 1 - KEPT])
        except OSError as error:
            if self._is_gone():
                raise CheckpointError(
                    f"{self.name} was removed while the run was going on. Put it back, and run the "
                    f"same command again; or begin anew with another {argument('checkpoint')}."
                ) from error
            raise CheckpointError(
                f"{self.name} cannot be written: {error.strerror or error}. What was "
                "committed before is safe: make room, and run the same command again."
            ) from error

    def _is_gone(self) -> bool:
        try:
            return self._files.info(self.path) is None
        except OSError:  # it may be there
            return False

    def close(self) -> None:
        """Let others use the folder."""
        self._held.close()
