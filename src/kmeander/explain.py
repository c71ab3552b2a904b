"""Why a batch fits worse than was expected: each cluster's and each column's part in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import Centroids, Labels, Weights
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
    if window.partition is None or not window.batches:
        return None
    n_known = len(window.labels)
    older = _Moments(
        window.batches[:n_known], window.decay[:n_known], window.partition.labels, before
    )
    older.add_hidden(window.within)
    labels = nearest(batch.points, before, n_threads)[0]
    newest = _Moments([batch], np.ones(1), labels, before)
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


class _Moments:
    """Decayed mass, and sums and squares of the gaps to the centroids, by cluster and column."""

    def __init__(
        self, batches: Sequence[Remembered], decay: Weights, labels: Labels, centroids: Centroids
    ) -> None:
        self.mass = np.empty(len(centroids))
        self.sums, self.squares = np.empty((2, *centroids.shape))
        _kernel.moments(
            [batch.points for batch in batches],
            [batch.weights for batch in batches],
            decay,
            labels,
            centroids,
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
