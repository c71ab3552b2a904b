"""The upper bound of Theorem 2, for the centroids that HI starts from."""

from __future__ import annotations

import numpy as np

from kmeander.arrays import Centroids
from kmeander.kmeans.lloyd import LloydResult, nearest
from kmeander.kmeans.starts import hungarian
from kmeander.kmeans.window import Window


def hungarian_bound(previous: Centroids, aged: Window, current: LloydResult) -> float:
    """Return ``f + const`` of Theorem 2 for HI, which its initial surrogate error cannot exceed.

    Parameters
    ----------
    previous : ndarray of shape (n_clusters, n_features)
        C*.
    aged : Window
        The batches remembered, with their ages after the new batch has arrived and with the
        partition that C* gives them.
    current : LloydResult
        C^0, the K-means on the new batch.

    Notes
    -----
    The theorem takes C* for the means of their cells. When the oldest batch has just left the
    window they are so only nearly; the bound is therefore written with the means themselves,
    which makes it exact.
    """
    n_clusters = len(previous)
    masses = aged.cluster_masses(n_clusters)
    start, matching = hungarian(previous, masses, current.centroids, current.masses)
    means = np.zeros_like(previous)
    scatter = 0.0
    for decay, batch, labels in zip(aged.decay, aged.batches, aged.labels, strict=True):
        np.add.at(means, labels, decay * batch.points)
        scatter += decay * float(nearest(batch.points, previous, 1)[1].sum())
    heavy = masses > 0
    means[heavy] /= masses[heavy, np.newaxis]
    means[~heavy] = previous[~heavy]
    scatter -= float((masses * _squared(previous, means)).sum())
    partners = np.flatnonzero(matching >= 0)
    pulled = current.masses[matching[partners]] * _squared(
        start[partners], current.centroids[matching[partners]]
    )
    total = scatter + float((masses * _squared(start, means)).sum())
    total += current.error * float(current.masses.sum()) + float(pulled.sum())
    return total / (float(masses.sum()) + float(current.masses.sum()))


def _squared(one: Centroids, other: Centroids) -> Centroids:
    squared: Centroids = ((one - other) ** 2).sum(axis=1)
    return squared
