"""What is drawn of a batch, and what happened at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kmeander.events import Event
from kmeander.records.event_time import in_words

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moment:
    """One batch, with what is drawn of it and no more."""

    index: int
    n_points: int
    surrogate: float
    batch: float
    prequential: float
    epsilon: float
    epsilon_se: float
    ids: tuple[int, ...]
    shares: Vector  # of the decayed weight
    places: Vector  # (n_clusters, 2) on the projection
    events: tuple[Event, ...]
    words: tuple[str, ...]
    when: str  # in words; empty where nobody said
    first_time: str | None = None
    # Of the columns that are followed, in the units of the stream.
    centres: NDArray[np.float32] | None = None


@dataclass(frozen=True, eq=False)
class Happened:
    """An event, with the batch and the time at which it happened, and its words."""

    batch: int
    event: Event
    words: str
    first_time: str | None = None
    last_time: str | None = None
    feature: int | None = None  # the column that a drift is most about

    @property
    def when(self) -> str:
        """The time of the batch, in words."""
        return in_words(self.first_time, self.last_time)
