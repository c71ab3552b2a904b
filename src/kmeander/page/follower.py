"""Steps that a run still writes, read as it does."""

from __future__ import annotations

import copy
import os
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import numpy as np

from kmeander.exceptions import InputError
from kmeander.page.timeline import Timeline
from kmeander.storage.reading import OutputTail

# Seconds between two looks at the file.
PAUSE = 0.05
# Lines taken in before others may look.
AT_ONCE = 200


class Follower:
    """Reads a steps file in a thread of its own, for as long as it is open.

    Parameters
    ----------
    path : path-like
        A file, or a folder of parts. Need not be there yet. When it is cut back, as by a run that
        goes on from a checkpoint, it is read from the start again.
    keep : int
        Batches kept; older ones are forgotten, so that the longest run costs no more.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int) -> None:
        self._path, self._keep = Path(path), keep
        self._lock = threading.Lock()
        self._timeline = Timeline(keep=keep, path=path)
        self._stop = threading.Event()
        self._tail = OutputTail(os.fspath(path))
        self._n_lines = 0
        self._rest = b""
        self.version = 0
        self.problem: str | None = None
        self.read_at: float | None = None  # when the file had something new, by time.monotonic
        self._pauses: deque[float] = deque(maxlen=20)  # between the batches that came
        self._thread = threading.Thread(target=self._run, name="kmeander-follower", daemon=True)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def age(self) -> float | None:
        """Return the seconds since the last batch came; None where none has."""
        return None if self.read_at is None else max(time.monotonic() - self.read_at, 0.0)

    def usual_pause(self) -> float | None:
        """Return the seconds that usually lie between two batches, as far as that is known."""
        with self._lock:
            return None if len(self._pauses) < 3 else float(np.median(self._pauses))

    def _age_of_file(self) -> float:
        """Return how long ago the file, or the newest in the folder, was written."""
        files = [self._path, *(self._path.iterdir() if self._path.is_dir() else ())]
        with suppress(OSError):
            age: float = time.time() - max(file.stat().st_mtime for file in files)
            return max(age, 0.0)
        return 0.0

    @property
    def has_clusters(self) -> bool:
        """Whether there is anything to draw."""
        with self._lock:
            return bool(self._timeline.moments)

    def newest(self, n_batches: int) -> Timeline:
        """Return what is known of the newest batches; it does not change any more."""
        with self._lock:
            timeline = copy.copy(self._timeline)
            timeline.moments = deque(list(self._timeline.moments)[-n_batches:])
            timeline.events = deque(self._timeline.events)
            timeline.lives = {
                number: copy.copy(life) for number, life in self._timeline.lives.items()
            }
            timeline.counts = dict(self._timeline.counts)
        return timeline

    def _run(self) -> None:
        while not self._stop.wait(PAUSE):
            try:
                self._read()
            except InputError as error:
                self.problem = f"{self._path} {error}"
                return
            except OSError as error:
                self.problem = f"{self._path} cannot be read: {error.strerror}."

    def _read(self) -> None:
        for chunk in self._tail.chunks():
            if chunk is None:  # cut back
                with self._lock:
                    self._timeline = Timeline(keep=self._keep, path=self._path)
                self._n_lines, self._rest = 0, b""
                continue
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for begin in range(0, len(lines), AT_ONCE):
                self._take(lines[begin : begin + AT_ONCE])
                if self._stop.is_set():
                    return

    def _take(self, lines: list[bytes]) -> None:
        with self._lock:
            for line in lines:
                self._n_lines += 1
                self._timeline.add(line.decode("utf-8", "replace"), self._n_lines)
                self._forget()
            self.version += 1
            now = time.monotonic()
            if self.read_at is None:  # what was there already is as old as the file
                self.read_at = now - self._age_of_file()
            else:
                self._pauses.append(now - self.read_at)
                self.read_at = now

    def _forget(self) -> None:
        """Let go of lives that ended before anything that is still kept."""
        timeline = self._timeline
        if len(timeline.lives) > 4 * self._keep and timeline.moments:
            first = timeline.moments[0].index
            timeline.lives = {n: life for n, life in timeline.lives.items() if life.end >= first}
