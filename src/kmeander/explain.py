"""Why a batch fits worse than was expected: each cluster's and each column's part in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import Centroids, Weights
from kmeander.events import Explanation, Part
from kmeander.partition import Partition
from kmeander.records import Ids
from kmeander.window import Remembered, Window

Table = NDArray[np.float64]

# Clusters of which it is told what they did.
N_PARTS = 3


def explain(
    window: Window, batch: Remembered, arrived: Partition, before: Centroids, ids: Ids
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
    arrived : Partition
        Which of `before` is nearest to each of its points.
    before : ndarray of shape (n_clusters, n_features)
    ids : ndarray of shape (n_clusters,)

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
    n_known = window.n_divided
    older = _Moments(
        window.rows[:n_known], window.decay[:n_known], window.partition.division, before
    )
    older.add_hidden(window.within)
    newest = _Moments((batch.rows,), np.ones(1), arrived.division, before)
    newest.add_hidden(batch.within)
    table = newest.parts() - older.parts()
    difference = float(table.sum())
    if difference == 0.0:
        return None
    table /= difference
    clusters = table.sum(axis=1)
    parts = []
    for row in np.argsort(-clusters, kind="stable")[:N_PARTS].tolist():
        if clusters[row] <= 0:
            break
        column = int(np.argmax(table[row]))
        cause, amount = _cause(older.cell(row, column), newest.cell(row, column), difference)
        parts.append(Part(int(ids[row]), column, float(clusters[row]), cause, amount))
    return Explanation(
        difference,
        tuple(zip(ids.tolist(), clusters.tolist(), strict=True)),
        tuple(table.sum(axis=0).tolist()),
        tuple(parts),
    )


class _Cell(NamedTuple):
    """Points of one cluster along one column."""

    share: float  # of all points
    mean: float  # less the centroid
    variance: float


def _cause(before: _Cell, now: _Cell, difference: float) -> tuple[str, float]:
    """Return which of the three made most of the difference, and how much it changed."""
    causes = {
        "moved": now.share * now.mean**2 - before.share * before.mean**2,
        "spread": now.share * (now.variance - before.variance),
        "share": (now.share - before.share) * before.variance,
    }
    amounts = {
        "moved": now.mean - before.mean,
        "spread": _ratio(now.variance, before.variance),
        "share": _ratio(now.share, before.share),
    }
    cause = max(causes, key=lambda name: causes[name] / difference)
    return cause, amounts[cause]


def _ratio(one: float, other: float) -> float:
    return one / other if other > 0 else float(np.finfo(np.float32).max)


class _Moments:
    """Decayed mass, and sums and squares of the gaps to the centroids, by cluster and column."""

    def __init__(
        self,
        rows: tuple[_kernel.Rows, ...],
        decay: Weights,
        division: _kernel.Division,
        centroids: Centroids,
    ) -> None:
        self.mass = np.empty(len(centroids))
        self.sums, self.squares = np.empty((2, *centroids.shape))
        _kernel.moments(
            rows,
            decay,
            division,
            centroids,
            self.mass,
            self.sums,
            self.squares,
        )
        self.total = float(self.mass.sum())

    def add_hidden(self, within: float) -> None:
        """Add what means hide: known in total only, it is shared out like what they show."""
        if within > 0:
            total = self.squares.sum()
            even = self.mass[:, np.newaxis] / self.total / self.squares.shape[1]
            self.squares += within * (self.squares / total if total > 0 else even)

    def parts(self) -> Table:
        """Return the part of each cluster and column in the error."""
        parts: Table = self.squares / self.total
        return parts

    def cell(self, row: int, column: int) -> _Cell:
        """Return share, mean and variance of one cluster along one column."""
        mass = self.mass.item(row)
        mean = self.sums.item(row, column) / mass if mass > 0 else 0.0
        square = self.squares.item(row, column) / mass if mass > 0 else 0.0
        return _Cell(mass / self.total, mean, max(square - mean**2, 0.0))
