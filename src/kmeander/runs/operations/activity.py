"""What a run is doing: the stage it is in, since when, and whether that is as it should be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kmeander.records import Step

READ, LEARN, WRITE, COMMIT = STAGES = ("read", "learn", "write", "commit")
LEARNING, WAITING, STALLED = STATUSES = ("learning", "waiting", "stalled")

# Seconds of reading without a batch after which a run waits.
PAUSE = 1.0
# A stage is stalled after so many seconds, and so many times its longest so far.
LONG, TIMES_LONGEST = 60.0, 10.0


class Activity:
    """The stage that a run is in, and the seconds that each has taken.

    The run enters stages, in one thread; others may ask at any time.

    Parameters
    ----------
    clock : callable
        Seconds that only grow.

    Examples
    --------
    >>> now = 0.0
    >>> activity = Activity(lambda: now)
    >>> now = 2.0
    >>> activity.enter("learn")
    >>> now = 2.5
    >>> activity.enter("read")
    >>> activity.seconds["read"], activity.seconds["learn"], activity.status()
    (2.0, 0.5, 'learning')
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = dict.fromkeys(STAGES, 0.0)  # of the stages that are over
        self.lag: int | None = None  # rows that wait to be read, where that is known
        self._since = (READ, clock())
        self._heard = self._since[1]
        self._longest = 0.0
        self._committed: float | None = None

    def enter(self, stage: str) -> None:
        """Note that a stage begins, and that the one before it is over; or that it goes on."""
        before, since = self._since
        if stage == before:
            return
        now = self._clock()
        self._seconds[before] += now - since
        if before != READ:
            self._longest = max(self._longest, now - since)
        self._since = (stage, now)

    def commit(self) -> None:
        """Note that all so far is in a checkpoint."""
        self._committed = self._clock()

    def hear(self) -> None:
        """Note that rows have come."""
        self._heard = self._clock()

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each stage, the present one included."""
        stage, since = self._since
        seconds = dict(self._seconds)
        seconds[stage] += self._clock() - since
        return seconds

    @property
    def checkpoint_age(self) -> float | None:
        """Seconds since the newest checkpoint, or since it was gone on from; None without one."""
        committed = self._committed
        return None if committed is None else self._clock() - committed

    def status(self) -> str:
        """Return one of `STATUSES`.

        A run is stalled while it does not get on although it could: a batch or a commit takes far
        longer than any before, or rows are there and none is read. It waits while none come.
        """
        stage, since = self._since
        now = self._clock()
        limit = max(LONG, TIMES_LONGEST * self._longest)
        if stage != READ:
            return STALLED if now - since > limit else LEARNING
        if self.lag and now - max(self._heard, since) > limit:
            return STALLED
        return WAITING if now - since > PAUSE else LEARNING


@dataclass(frozen=True)
class Deliveries:
    """How the notices of one receiver are getting on, by number."""

    n_delivered: int = 0
    n_failures: int = 0
    n_waiting: int = 0
    n_lost: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment, as metrics and health say it; None stands where nobody knows.

    Counts are those of this process, not of the stream.
    """

    status: str
    n_batches: int
    n_points: int
    events: Mapping[str, int]
    n_unconfirmed: int
    last: Step | None
    n_bad: int | None = None
    n_late: int | None = None
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    lag: int | None = None
    checkpoint_age: float | None = None
    deliveries: Mapping[str, Deliveries] = field(default_factory=dict)
