"""Modality test, whether K still fits: clusters that have become one mode, or that hold two."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import Centroids, Labels, Masses
from kmeander.kmeans.window import Window

# Chance of a false mark at a batch, over all clusters, for each of the two kinds.
FALSE_ALARMS = 0.005

# Newest rows of each cluster that are looked at: the cost is bounded by them, not by the window.
ROWS_PER_CLUSTER = 256

# Batches of less weight, beside the newest, speak of what is being forgotten, and add little.
LEAST_DECAY = 1 / 4

# Labels read for each cluster: four for each row wanted, so that a cluster of a quarter of the mean
# size is still known in full.
LABELS_PER_CLUSTER = 4 * ROWS_PER_CLUSTER

# Share of the lower peak that the dip between two clusters may hold; with more, they are one.
# Two round ones of equal size come to this border at 3.5 standard deviations.
SHALLOW = 1 / 2

# A cluster that may itself be two has its centroid between them, which is no peak to compare with:
# beyond this score (one chance in twenty) nothing is said of it and its neighbours.
_DOUBTFUL = 1.645

# Bins between the ends; a dip may be in any of them.
_N_BETWEEN = 3


@dataclass(frozen=True, eq=False)
class DipScores:
    """Scores of dips: standard normal at the border, and large beyond it.

    A dip is a minimum of the density between two modes: a valley between two peaks.

    Parameters
    ----------
    neighbours : ndarray of shape (n_clusters,)
        The nearest other cluster, or -1.
    as_one : ndarray of shape (n_clusters,)
        How surely there is no dip between the two.
    as_two : ndarray of shape (n_clusters,)
        How surely there is one within the cluster.
    """

    neighbours: Labels
    as_one: NDArray[np.float64]
    as_two: NDArray[np.float64]


class Misfits(NamedTuple):
    """Clusters that speak against K."""

    merged: tuple[tuple[int, int], ...] = ()
    holds_two: tuple[int, ...] = ()


def misfits(window: Window, centroids: Centroids, masses: Masses) -> Misfits:
    """Return the clusters of a window, learned under `centroids`, that look like one or like two.

    Examples
    --------
    >>> half, far = np.linspace(0.0, 1.0, 200)[:, np.newaxis], 50.0
    >>> points = np.concatenate([half, half + 1.0, half + far, half + far + 5.0])
    >>> from kmeander import _kernel
    >>> labels = np.repeat(np.array([0, 1, 2, 2], dtype=np.int32), 200)
    >>> window = Window(0.5).joined_by(points, None, None).divided(_kernel.Partition(labels))
    >>> misfits(window, np.array([[0.5], [1.5], [53.0]]), np.array([200.0, 200.0, 400.0]))
    Misfits(merged=((0, 1),), holds_two=(2,))
    """
    found = score_dips(window, centroids, masses)
    limit_one, limit_two = _limits(len(centroids))
    pairs = {
        (min(a, b), max(a, b))
        for a in np.flatnonzero(found.as_one > limit_one).tolist()
        for b in [int(found.neighbours[a])]
        if max(found.as_two[a], found.as_two[b]) <= _DOUBTFUL
    }
    return Misfits(tuple(sorted(pairs)), tuple(np.flatnonzero(found.as_two > limit_two).tolist()))


def score_dips(
    window: Window, centroids: Centroids, masses: Masses, least_decay: float = LEAST_DECAY
) -> DipScores:
    """Score each cluster of a window whose partition covers all of its points."""
    assert window.partition is not None
    n_clusters = len(centroids)
    neighbours: Labels = np.empty(n_clusters, dtype=np.int32)
    as_one, as_two = np.empty((2, n_clusters))
    first = len(window.batches) - window.n_recent(LABELS_PER_CLUSTER * n_clusters, least_decay)
    _kernel.score_dips(
        window.handle,
        first,
        window.partition,
        centroids,
        masses,
        ROWS_PER_CLUSTER,
        SHALLOW,
        neighbours,
        as_one,
        as_two,
    )
    return DipScores(neighbours, as_one, as_two)


@lru_cache
def _limits(n_clusters: int) -> tuple[float, float]:
    """Return the scores that only a share of `FALSE_ALARMS` of batches exceeds by chance."""
    normal, alarms = NormalDist(), FALSE_ALARMS / n_clusters
    return normal.inv_cdf(1 - alarms), normal.inv_cdf(1 - alarms / _N_BETWEEN)
