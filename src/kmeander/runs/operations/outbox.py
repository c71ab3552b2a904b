"""Notices on their way to one receiver: in order, again and again until taken, never in the way."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from kmeander.runs.operations.activity import Deliveries

# Notices that may wait; when another comes the oldest is dropped.
MOST = 1000
# Seconds between two attempts: at first, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class Outbox:
    """Notices that wait for one receiver, and the thread that delivers them.

    A notice is kept until the receiver has taken it, and the next is not tried before. Where it is
    not taken, pauses between attempts double. Nothing here ever makes `put` wait.

    Parameters
    ----------
    receiver : str
        What messages call it.
    deliver : callable
        Given a notice, returns None once it is taken, or why it was not.
    waiting : iterable of str
        Notices that an earlier run could not deliver.
    most : int
        How many may wait.
    first_pause : float
        Seconds until the second attempt.
    """

    def __init__(
        self,
        receiver: str,
        deliver: Callable[[str], str | None],
        waiting: Iterable[str] = (),
        *,
        most: int = MOST,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._receiver, self._deliver = receiver, deliver
        self._waiting = deque(waiting)
        self._most, self._first_pause = most, first_pause
        self._changed = threading.Condition()
        self._news: list[str] = []
        self._n_delivered = self._n_failures = self._n_lost = 0
        self._is_failing = self._in_hurry = self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="kmeander-notices", daemon=True)
        self._thread.start()

    def put(self, notices: Iterable[str]) -> None:
        """Take notices on; where too many wait the oldest are dropped."""
        with self._changed:
            for notice in notices:
                self._waiting.append(notice)
                if len(self._waiting) > self._most:
                    del self._waiting[1]  # the first may be on its way
                    self._n_lost += 1
                    if self._n_lost == 1:
                        self._news.append(
                            f"{self._most:,} notices wait for {self._receiver}: from now on the "
                            "oldest are dropped, and counted."
                        )
            self._changed.notify_all()

    def waiting(self) -> list[str]:
        """Return what was not taken yet, in order."""
        with self._changed:
            return list(self._waiting)

    def counts(self) -> Deliveries:
        """Return how it is getting on."""
        with self._changed:
            return Deliveries(self._n_delivered, self._n_failures, len(self._waiting), self._n_lost)

    def news(self) -> list[str]:
        """Return sentences for people that were not given yet."""
        if not self._news:  # as a rule; without a lock
            return []
        with self._changed:
            news, self._news = self._news, []
        return news

    def drain(self, seconds: float) -> None:
        """Wait until all is delivered, but not for longer than so."""
        until = time.monotonic() + seconds
        with self._changed:
            self._in_hurry = True
            self._changed.notify_all()
            while self._waiting and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._in_hurry = False

    def close(self) -> None:
        """Begin no further attempt."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        pause = self._first_pause
        while (notice := self._next()) is not None:
            try:
                refused = self._deliver(notice)
            except Exception as error:  # whatever a receiver does, go on
                refused = f"{type(error).__name__}: {error}"
            with self._changed:
                if refused is None:
                    self._taken()
                    pause = self._first_pause
                    continue
                self._refused(refused)
                self._wait(pause)
                pause = self._first_pause if self._in_hurry else min(2 * pause, LONGEST_PAUSE)

    def _next(self) -> str | None:
        """Wait for the next notice; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return None if self._is_closed else self._waiting[0]

    def _wait(self, pause: float) -> None:
        """Wait before the next attempt; a run that ends shortens a long pause."""
        is_long = pause > self._first_pause
        self._changed.wait_for(lambda: self._is_closed or (is_long and self._in_hurry), pause)

    def _taken(self) -> None:
        self._waiting.popleft()
        self._n_delivered += 1
        if self._is_failing:
            self._is_failing = False
            self._news.append(f"{self._receiver} takes notices again.")
        if not self._waiting:
            self._changed.notify_all()

    def _refused(self, why: str) -> None:
        self._n_failures += 1
        if not self._is_failing:
            self._is_failing = True
            self._news.append(
                f"{self._receiver} did not take a notice: {why}. It is tried again until it does; "
                f"the newest {self._most:,} are kept."
            )
