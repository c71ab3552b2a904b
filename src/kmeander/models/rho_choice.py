"""Online choice of rho: a few values side by side, and the best forecaster counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kmeander.arrays import Centroids
from kmeander.kmeans.forgetting import rho_for_half_life
from kmeander.kmeans.lloyd import Limits, measure
from kmeander.kmeans.window import Window
from kmeander.records import Batch

# Half-lives of half a batch to four: longer ones gain little and keep many batches.
RHOS = tuple(rho_for_half_life(batches) for batches in (0.5, 1.0, 2.0, 4.0))
LONGEST = max(RHOS)

# Batches after which a forecast counts half.
SCORE_HALF_LIFE = 10.0


@dataclass(frozen=True)
class RhoChoice:
    """How well the centroids of each rho have forecast the batches so far.

    Parameters
    ----------
    scores : tuple of float
        Decayed sum, for each of `RHOS`, of the error of every batch under the centroids that this
        rho would have had before it, as a share of the mean over all of them.
    """

    scores: tuple[float, ...] = (0.0,) * len(RHOS)

    @property
    def rho(self) -> float:
        """The best so far; of those that are equal but for rounding, the longest."""
        least = min(self.scores) * (1 + 1e-9)
        return max(rho for rho, score in zip(RHOS, self.scores, strict=True) if score <= least)

    def after(
        self, window: Window, batch: Batch, centroids: Centroids, limits: Limits
    ) -> RhoChoice:
        """Return the choice once `batch` has been forecast from `window`, which it is not yet in.

        `centroids` stand for a cluster that weighs nothing.
        """
        metric = limits.metric
        # Where the batch came as means of its rows.
        hidden = metric.error_share * ((batch.within or 0.0) / batch.mass)
        places = [metric.centroids(means(window, rho, centroids), centroids) for rho in RHOS]
        errors = [
            hidden + measure(batch.handle, place, limits.threads, metric).error for place in places
        ]
        mean = sum(errors) / len(errors)
        if mean == 0:
            return self
        kept = 0.5 ** (1 / SCORE_HALF_LIFE)
        pairs = zip(self.scores, errors, strict=True)
        return RhoChoice(tuple([kept * score + error / mean for score, error in pairs]))


def means(window: Window, rho: float, centroids: Centroids) -> Centroids:
    """Return the means of the window's partition, batches weighing by `rho`.

    One update of Lloyd away from those that the rho would have converged to, at the cost of a few
    sums: every batch keeps its own per cluster.
    """
    assert window.partition is not None
    known = window.partition.sums
    assert known is not None, "a model that chooses rho keeps sums"
    decay = np.array([rho**age for age in window.ages])
    masses = (decay[:, np.newaxis] * known.masses).sum(axis=0)[:, np.newaxis]
    sums = (decay[:, np.newaxis, np.newaxis] * known.sums).sum(axis=0)
    return np.where(masses > 0, sums / np.where(masses > 0, masses, 1.0), centroids)
