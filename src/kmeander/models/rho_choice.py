"""Online choice of rho: a few memories side by side, and the best forecaster counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kmeander.arrays import Centroids
from kmeander.kmeans.forgetting import TAIL, Tail, rho_for_half_life
from kmeander.kmeans.lloyd import Limits, measure
from kmeander.kmeans.window import Window
from kmeander.records import Batch


class Speeds(NamedTuple):
    """How fast a memory forgets: by `rho`, and where there is a tail, slowly the rest."""

    rho: float
    tail: Tail | None = None


# rho="auto": half-lives of half a batch to four; longer ones gain little and keep many batches.
RHOS = tuple(rho_for_half_life(batches) for batches in (0.5, 1.0, 2.0, 4.0))
LONGEST = max(RHOS)
ONE_SPEED = tuple(map(Speeds, RHOS))
# rho="two-speed": from nearly all in the newest batch to nothing but the tail. As in a mixture of
# the two, the tail's share of all weight is .03, .3, .3 and 1.
TWO_SPEEDS = (
    Speeds(0.1, Tail(0.0017, TAIL.slow)),
    Speeds(0.3, TAIL),
    Speeds(0.7, Tail(0.0667, TAIL.slow)),
    Speeds(0.95, Tail(1.0, TAIL.slow)),
)
# What a model begins with, by the word for rho.
CHOICES = {"auto": ONE_SPEED, "two-speed": TWO_SPEEDS}
FIRST = {"auto": ONE_SPEED[-1], "two-speed": TWO_SPEEDS[1]}

# Batches after which a forecast counts half.
SCORE_HALF_LIFE = 10.0


@dataclass(frozen=True)
class RhoChoice:
    """How well the centroids of each memory have forecast the batches so far.

    Parameters
    ----------
    scores : tuple of float
        Decayed sum, for each of `choices`, of the error of every batch under the centroids that
        this memory would have had before it. Of `ONE_SPEED` it is the error as a share of the mean
        over all of them; else outliers count for what they cost.
    choices : tuple of Speeds
    """

    scores: tuple[float, ...] = (0.0,) * len(RHOS)
    choices: tuple[Speeds, ...] = ONE_SPEED

    @property
    def best(self) -> Speeds:
        """The best so far; of those that are equal but for rounding, the longest."""
        if self.choices == TWO_SPEEDS and not any(self.scores):
            return FIRST["two-speed"]
        least = min(self.scores) * (1 + 1e-9)
        pairs = zip(self.choices, self.scores, strict=True)
        return [speeds for speeds, score in pairs if score <= least][-1]

    @property
    def rho(self) -> float:
        """The rho of the best."""
        return self.best.rho

    def after(
        self, window: Window, batch: Batch, centroids: Centroids, limits: Limits
    ) -> RhoChoice:
        """Return the choice once `batch` has been forecast from `window`, which it is not yet in.

        `centroids` stand for a cluster that weighs nothing.
        """
        metric = limits.metric
        # Where the batch came as means of its rows.
        hidden = metric.error_share * ((batch.within or 0.0) / batch.mass)
        places = [
            metric.centroids(means(window, rho, centroids, tail), centroids)
            for rho, tail in self.choices
        ]
        errors = [
            hidden + measure(batch.handle, place, limits.threads, metric).error for place in places
        ]
        unit = sum(errors) / len(errors) if self.choices == ONE_SPEED else 1.0
        if unit == 0:
            return self
        kept = 0.5 ** (1 / SCORE_HALF_LIFE)
        pairs = zip(self.scores, errors, strict=True)
        scores = tuple([kept * score + error / unit for score, error in pairs])
        return RhoChoice(scores, self.choices)


def means(window: Window, rho: float, centroids: Centroids, tail: Tail | None = None) -> Centroids:
    """Return the means of the window's partition, batches weighing by `rho` and `tail`.

    One update of Lloyd away from those that the rho would have converged to, at the cost of a few
    sums: every batch keeps its own per cluster.
    """
    assert window.partition is not None
    known = window.partition.sums
    assert known is not None, "a model that chooses rho keeps sums"
    weights = [rho**age if tail is None else tail.weight(rho, age) for age in window.ages]
    decay = np.array(weights)
    if window.kept is not None:
        decay *= np.array(window.kept)
    masses = (decay[:, np.newaxis] * known.masses).sum(axis=0)[:, np.newaxis]
    sums = (decay[:, np.newaxis, np.newaxis] * known.sums).sum(axis=0)
    return np.where(masses > 0, sums / np.where(masses > 0, masses, 1.0), centroids)
