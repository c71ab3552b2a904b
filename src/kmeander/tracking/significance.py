"""Significance of changes: which of them are larger than sampling noise explains.

The newest batch is compared, cluster by cluster, with the batches before it in the same window,
under the same centroids: means and shares of points that fall into one cell, so that it does not
matter that the cells were found from these points. All comes out of the sums per batch and cluster
that Lloyd leaves; no point is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from math import log, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.kmeans.window import Window

Vector = NDArray[np.float64]

# Events that a stream which does not change may show by chance, in 1000 batches.
FALSE_ALARMS = 1.0
# Kinds that share them: drifts, moves, changes of share.
_N_KINDS = 3


class Evidence(IntEnum):
    """Rows of the evidence, as `EvidenceRow` of kernel/tracking/significance.hpp has them."""

    VARIANCE = 0  # of the points about the mean of their batch and cluster
    FREEDOM = 1  # degrees of freedom of that variance
    SQUARED_SHIFT = 2  # squared distance of the newest mean from the older one
    NOISE = 3  # expectation of that distance under noise
    SHARE = 4  # of the cluster in the newest batch
    SHARE_BEFORE = 5  # in the older ones
    POINTS_BEFORE = 6  # how many points the older share is worth


@dataclass(frozen=True)
class Levels:
    """How large z must be for an event, of each kind."""

    drift: float
    moved: float
    share: float


@lru_cache(maxsize=64)
def levels_for(n_clusters: int, false_alarms: float = FALSE_ALARMS) -> Levels:
    """Return the levels at which `false_alarms` are expected in 1000 batches without change.

    Each kind gets a third; moves and shares are tested once for each cluster, so that each cluster
    gets its part of that (Bonferroni). Distances and shares count in both directions.

    Examples
    --------
    >>> round(levels_for(10).drift, 2), round(levels_for(10).moved, 2)
    (3.4, 4.15)
    """
    of_kind = min(false_alarms / 1000.0, 1.0) / _N_KINDS
    normal = NormalDist()
    two_sided = normal.inv_cdf(1.0 - of_kind / n_clusters / 2.0)
    return Levels(normal.inv_cdf(1.0 - of_kind), two_sided, two_sided)


@dataclass(frozen=True)
class Change:
    """A cluster whose mean or share is not what it was; `row` is its row in the centroids."""

    row: int
    value: float
    was: float | None
    z: float


class Changes(NamedTuple):
    """What sampling noise does not explain."""

    moved: list[Change]
    shares: list[Change]
    elsewhere: list[int]  # rows whose centroid moved farther than their points lie from it
    evidence: NDArray[np.float64]  # (len(Evidence), n_clusters)

    def evidence_row(self, of: Evidence) -> Vector:
        """Return one row of the evidence; (n_clusters,)."""
        values: Vector = self.evidence[of]
        return values


def significant_changes(
    found: _kernel.Partition,
    window: Window,
    since: NDArray[np.int64],
    index: int,
    moved: Vector,
    levels: Levels,
) -> Changes:
    """Compare the newest batch with those since the last event of each cluster.

    Parameters
    ----------
    found : Partition
        Of the window's batches under its centroids, with sums.
    window : Window
        With the newest batch.
    since : ndarray of shape (n_clusters,)
        Number of the oldest batch that a cluster is compared with.
    index : int
        Number of the newest batch.
    moved : ndarray of shape (n_clusters,)
        How far the centroids moved.
    levels : Levels

    Notes
    -----
    A move: the squared distance of the two means, over its expectation under noise, is at most as
    spread as the square of a Student variable, whatever the covariance (among sums of independent
    squares with a given mean the single square has the heaviest tail). So the level holds for any
    number of columns, and is stricter than it need be where many columns vary independently.
    z is the normal quantile of that Student variable (Wallace's approximation).

    A share: the root of the deviance of two binomial samples, the newest count being moved by
    one half towards its expectation.
    """
    evidence = np.empty((len(Evidence), len(since)))
    suspects_moved, suspects_share, elsewhere = _kernel.find_candidate_changes(
        found,
        window.handle,
        _points_per_mass(window),
        *_extents(window, index),
        since,
        moved,
        levels.moved,
        levels.share,
        evidence,
    )
    found_moved, found_shares = [], []
    for row in suspects_moved:
        freedom = evidence.item(Evidence.FREEDOM, row)
        squared = evidence.item(Evidence.SQUARED_SHIFT, row)
        noise = evidence.item(Evidence.NOISE, row)
        z = _normal_from_student(squared / noise, freedom) if noise > 0 else _ALL_BUT_SURE
        if z > levels.moved:
            found_moved.append(Change(row, sqrt(squared), None, z))
    size = window.batches[-1].size if suspects_share else 0.0
    for row in suspects_share:
        now = evidence.item(Evidence.SHARE, row)
        then = evidence.item(Evidence.SHARE_BEFORE, row)
        n_then = evidence.item(Evidence.POINTS_BEFORE, row)
        z = _root_deviance(now * size, size, then * n_then, n_then)
        if z > levels.share:
            found_shares.append(Change(row, now, then, z))
    return Changes(found_moved, found_shares, elsewhere, evidence)


# Where there is no noise at all, as among equal points at 0.
_ALL_BUT_SURE = 99.0


def _points_per_mass(window: Window) -> Vector | None:
    if not window.has_weights:
        return None
    return np.array([batch.size / batch.mass for batch in window.batches])


def _extents(window: Window, index: int) -> tuple[NDArray[np.bool_] | None, NDArray[np.int64]]:
    """Return which entries of the window are whole batches, and the oldest batch in each."""
    if not window.has_summaries:
        return None, np.arange(index + 1 - len(window.batches), index + 1)
    n_batches = np.array([batch.n_batches for batch in window.batches], dtype=np.int64)
    is_whole = np.array([batch.summary is None for batch in window.batches])
    return is_whole, np.ascontiguousarray(index + 1 - np.cumsum(n_batches[::-1])[::-1])


def _normal_from_student(squared: float, freedom: float) -> float:
    scale = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    return scale * sqrt(freedom * log1p(squared / freedom))


def _root_deviance(newest: float, size: float, before: float, n_before: float) -> float:
    expected = size * (newest + before) / (size + n_before)
    newest = max(newest - 0.5, expected) if newest > expected else min(newest + 0.5, expected)
    pooled = (newest + before) / (size + n_before)
    deviance = sum(
        2.0 * n * log(n / m)
        for n, m in (
            (newest, size * pooled),
            (size - newest, size * (1.0 - pooled)),
            (before, n_before * pooled),
            (n_before - before, n_before * (1.0 - pooled)),
        )
        if n > 0 and m > 0
    )
    return sqrt(max(deviance, 0.0))
