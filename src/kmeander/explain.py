"""Why a batch fits worse than was expected: each cluster's and each column's part in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Points, Weights
from kmeander.events import Explanation, Part
from kmeander.lloyd import nearest
from kmeander.records import Ids
from kmeander.window import Window

Table = NDArray[np.float64]

# Clusters of which it is told what they did.
N_PARTS = 3


def explain(
    window: Window, before: Centroids, ids: Ids, n_threads: int | None
) -> Explanation | None:
    """Divide the error of the newest batch, less that of older ones, among clusters and columns.

    Both errors are those of the centroids before the batch: the prequential error, and the
    surrogate error of the batches still remembered. None where there is nothing to compare with,
    or no difference.

    Parameters
    ----------
    window : Window
        The newest batch is last; its partition, of the older ones, is that by `before`.
    before : ndarray of shape (n_clusters, n_features)
    ids : ndarray of shape (n_clusters,)
    n_threads : int, optional

    Notes
    -----
    With p the share of the points that are in a cluster, m the distance of their mean from the
    centroid along a column and v their variance about that mean, the part of both in the error is
    ``p * (v + m**2)``, exactly. The difference is what the mean did, ``p' m'**2 - p m**2``, what
    the variance did, ``p' (v' - v)``, and what the share did, ``(p' - p) v``; the largest is the
    cause.
    """
    older = _moments(window, before)
    if older is None:
        return None
    batch = window.batches[-1]
    labels = nearest(batch.points, before, n_threads)[0]
    newest = _moments_of(batch.points, batch.weights, labels, before)
    share, mean, variance = _normalised(newest)
    share_before, mean_before, variance_before = _normalised(older)
    moved = share * mean**2 - share_before * mean_before**2
    spread = share * (variance - variance_before)
    grown = (share - share_before) * variance_before
    table = share * (variance + mean**2) - share_before * (variance_before + mean_before**2)
    difference = float(table.sum())
    if difference == 0.0:
        return None
    clusters = table.sum(axis=1) / difference
    parts = []
    for row in np.argsort(-clusters, kind="stable")[:N_PARTS].tolist():
        if clusters[row] <= 0:
            break
        column = int(np.argmax(table[row] / difference))
        causes = {
            "moved": (moved, mean[row, column] - mean_before[row, column]),
            "spread": (spread, _ratio(variance[row, column], variance_before[row, column])),
            "share": (grown, _ratio(share[row, 0], share_before[row, 0])),
        }
        cause = max(causes, key=lambda name: float(causes[name][0][row, column] / difference))
        amount = float(causes[cause][1])
        parts.append(Part(int(ids[row]), column, float(clusters[row]), cause, amount))
    return Explanation(
        difference,
        tuple(zip(ids.tolist(), clusters.tolist(), strict=True)),
        tuple((table.sum(axis=0) / difference).tolist()),
        tuple(parts),
    )


def _ratio(one: float, other: float) -> float:
    return float(one / other) if other > 0 else float(np.finfo(np.float32).max)


def _moments(window: Window, centroids: Centroids) -> tuple[Table, Table, Table] | None:
    """Return decayed mass, sums and squares about the centroids of all batches but the newest."""
    labels = window.labels
    if not labels or len(labels) < len(window) - 1:
        return None
    n_clusters, n_features = centroids.shape
    mass = np.zeros((n_clusters, 1))
    sums, squares = np.zeros((2, n_clusters, n_features))
    for decay, batch, known in zip(window.decay, window.batches, labels, strict=False):
        found = _moments_of(batch.points, batch.weights, known, centroids)
        mass += decay * found[0]
        sums += decay * found[1]
        squares += decay * found[2]
    # What summaries hide is known in total only: it is shared out like what they show.
    if window.within > 0:
        total = squares.sum()
        even = np.broadcast_to(mass / mass.sum() / n_features, squares.shape)
        squares = squares + window.within * (squares / total if total > 0 else even)
    return mass, sums, squares


def _moments_of(
    points: Points, weights: Weights | None, labels: NDArray[np.int32], centroids: Centroids
) -> tuple[Table, Table, Table]:
    n_clusters, n_features = centroids.shape
    gaps = points - centroids[labels]
    mass = np.bincount(labels, weights, n_clusters).astype(np.float64)[:, np.newaxis]
    sums, squares = np.empty((2, n_clusters, n_features))
    for column in range(n_features):
        gap = gaps[:, column]
        weighted = gap if weights is None else gap * weights
        sums[:, column] = np.bincount(labels, weighted, n_clusters)
        squares[:, column] = np.bincount(labels, weighted * gap, n_clusters)
    return mass, sums, squares


def _normalised(moments: tuple[Table, Table, Table]) -> tuple[Table, Table, Table]:
    """Return share, mean and variance in each cluster along each column."""
    mass, sums, squares = moments
    positive = np.where(mass > 0, mass, 1.0)
    mean = sums / positive
    return mass / mass.sum(), mean, np.maximum(squares / positive - mean**2, 0.0)
