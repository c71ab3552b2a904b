"""All that a model has learnt, and the clock of a step."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kmeander.arrays import Centroids, Points, Weights, frozen
from kmeander.kmeans.window import Window
from kmeander.records import Batch, Step
from kmeander.tracking.lineage import Lineage

if TYPE_CHECKING:
    from kmeander.models.rho_choice import Ladder
    from kmeander.tracking.drift_test import Estimate


class Memory(NamedTuple):
    """All that a model has learnt. Replaced as a whole, so a batch is learnt or it is not."""

    window: Window
    n_steps: int = 0
    n_features: int | None = None
    centroids: Centroids | None = None
    # Points seen before there were K distinct ones: the distinct ones, with their weights.
    waiting_points: Points | None = None
    waiting_weights: Weights | None = None
    waiting_within: float = 0.0  # what they hide, where some of them were means
    concept: int | None = None
    step: Step | None = None
    # What the next batch should cost if nothing changes, and how the latest have differed.
    expected_error: float | None = None
    usual: tuple[Estimate, ...] = ()
    ladder: Ladder | None = None  # where the model chooses rho itself
    lineage: Lineage | None = None  # None as long as there are no centroids

    def with_waiting(self, batch: Batch) -> tuple[Points, Weights | None]:
        """Return the points kept so far and those of the batch as one batch of age 0."""
        if self.waiting_points is None or self.waiting_weights is None:
            return batch.points, batch.weights
        weights = np.ones(batch.n_points) if batch.weights is None else batch.weights
        points = np.concatenate([self.waiting_points, batch.points])
        points.flags.writeable = False
        return points, frozen(np.concatenate([self.waiting_weights, weights]))

    def within(self, batch: Batch) -> float | None:
        """Return what those points hide of any error; None where each of them is a row."""
        if batch.within is None and self.waiting_within == 0:
            return None
        return self.waiting_within + (batch.within or 0.0)


class Clock:
    """Time since it was made."""

    def __init__(self) -> None:
        self._started = perf_counter()

    def seconds(self) -> float:
        """Return the seconds that have passed."""
        return perf_counter() - self._started
