"""Explanation of a drift: the share of each cluster and column in the change of the error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kmeander import _kernel
from kmeander.arrays import Centroids
from kmeander.events import Explanation, Part
from kmeander.kmeans.window import Remembered, Window
from kmeander.records import Ids

# Clusters whose part in a drift is reported.
N_PARTS = 3


def explain(
    window: Window,
    batch: Remembered,
    arrived: _kernel.Partition,
    before: Centroids,
    ids: Ids,
    n_threads: int = 1,
) -> Explanation | None:
    """Divide the error of a batch, less that of the ones before, among clusters and columns.

    Both errors are under the centroids before the batch: the prequential error, and the
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
    n_threads : int, default=1

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
    difference, clusters, columns, parts = _kernel.explain(
        window.handle,
        window.n_divided,
        window.partition,
        window.within,
        batch.handle,
        arrived,
        batch.within,
        before,
        N_PARTS,
        n_threads,
    )
    if difference == 0.0:
        return None
    names = ids.tolist()
    largest = []
    for row, column, then, now in parts:
        cause, amount = _cause(_Cell(*then), _Cell(*now), difference)
        largest.append(Part(names[row], column, clusters[row], cause, amount))
    return Explanation(
        difference, tuple(zip(names, clusters, strict=True)), tuple(columns), tuple(largest)
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
