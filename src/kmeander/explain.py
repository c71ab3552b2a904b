"""Why a batch fits worse than was expected: each cluster's and each column's part in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import Centroids, Labels
from kmeander.events import Explanation, Part
from kmeander.lloyd import nearest
from kmeander.records import Ids
from kmeander.window import Remembered, Window

Table = NDArray[np.float64]

# Clusters of which it is told what they did.
N_PARTS = 3


def explain(
    window: Window, batch: Remembered, before: Centroids, ids: Ids, n_threads: int | None
) -> Explanation | None:
    """Divide the error of a batch, less that of the ones before, among clusters and columns.

    Both errors are those of the centroids before the batch: the prequential error, and the
    surrogate error of the batches remembered before it came. None where there is nothing to
    compare with, or no difference.

    Parameters
    ----------
    window : Window
        The batches before, partitioned by `before`.
    batch : Remembered
        The newest.
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
    labels = nearest(batch.points, before, n_threads)[0]
    newest = _Moments(before)
    newest.add(batch, 1.0, labels)
    newest.add_hidden(batch.within)
    share, mean, variance = newest.normalised()
    share_before, mean_before, variance_before = older.normalised()
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


def _moments(window: Window, centroids: Centroids) -> _Moments | None:
    """Return those of all batches of which the partition is known."""
    labels = window.labels
    if not labels:
        return None
    found = _Moments(centroids)
    for decay, batch, known in zip(window.decay.tolist(), window.batches, labels, strict=False):
        found.add(batch, decay, known)
    found.add_hidden(window.within)
    return found


class _Moments:
    """Decayed mass, and sums and squares of the gaps to the centroids, by cluster and column."""

    def __init__(self, centroids: Centroids) -> None:
        self._centroids = centroids
        self.mass = np.zeros(len(centroids))
        self.sums, self.squares = np.zeros((2, *centroids.shape))

    def add(self, batch: Remembered, decay: float, labels: Labels) -> None:
        _kernel.add_moments(
            batch.points,
            batch.weights,
            decay,
            labels,
            self._centroids,
            self.mass,
            self.sums,
            self.squares,
        )

    def add_hidden(self, within: float) -> None:
        """Add what means hide: known in total only, it is shared out like what they show."""
        if within > 0:
            total = self.squares.sum()
            even = self.mass[:, np.newaxis] / self.mass.sum() / self.squares.shape[1]
            self.squares += within * (self.squares / total if total > 0 else even)

    def normalised(self) -> tuple[Table, Table, Table]:
        """Return share, mean and variance in each cluster along each column."""
        mass = self.mass[:, np.newaxis]
        positive = np.where(mass > 0, mass, 1.0)
        mean = self.sums / positive
        variance = np.maximum(self.squares / positive - mean**2, 0.0)
        return mass / self.mass.sum(), mean, variance
