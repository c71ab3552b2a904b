"""Metrics: what an error is, and where points and centroids lie.

With the cosine metric rows and centroids lie on the unit sphere. There half the squared distance
of two places is 1 less the cosine of their angle, so all that holds for squared distances (bounds,
sums, means that stand for rows) holds for angles; only a centroid is the mean of its points drawn
out to length 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arguments import one_of
from kmeander.arrays import Centroids, Points, Weights, frozen
from kmeander.exceptions import InputError, argument

# A mean of unit vectors that is no longer than this has no direction but that of its rounding.
SHORTEST_MEAN = 1e-12
# Squares of values below this may vanish.
_SMALL = 1e-100


@dataclass(frozen=True)
class Metric:
    """How far points lie apart.

    Parameters
    ----------
    name : str
    on_sphere : bool
        Whether rows and centroids have length 1.
    error_share : float
        A mean or sum of squared distances, times this, is the error.
    """

    name: str
    on_sphere: bool
    error_share: float

    def has_no_place(self, rows: Points) -> NDArray[np.bool_]:
        """Return which rows are no points: on the sphere those of zeros alone."""
        if not self.on_sphere:
            return np.zeros(len(rows), dtype=bool)
        return np.asarray(~rows.any(axis=1))

    def points(self, rows: Points, name: str = "X") -> Points:
        """Return rows as points; one of zeros, which has no direction, is refused.

        Examples
        --------
        >>> COSINE.points(np.array([[3.0, 4.0]])).tolist()
        [[0.6, 0.8]]
        """
        if not self.on_sphere:
            return rows
        lost = self.has_no_place(rows)
        if lost.any():
            raise InputError(
                f"{name} holds only zeros at row {int(np.argmax(lost))}, and "
                f"{argument('metric', self.name)} compares directions, which zeros do not have. "
                "Leave such rows out."
            )
        return frozen(_divided(rows, _lengths(rows)))

    def centroids(self, means: Centroids, otherwise: Centroids | None = None) -> Centroids:
        """Return means as centroids; one without direction becomes that of `otherwise`.

        Where that is not given, every centroid is as near to it as any other.

        Examples
        --------
        >>> COSINE.centroids(np.array([[0.0, 0.5], [0.0, 0.0]])).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        if not self.on_sphere:
            return means
        lengths = _lengths(means)
        found = _divided(means, np.where(lengths > SHORTEST_MEAN, lengths, 1.0))
        lost = np.flatnonzero(lengths <= SHORTEST_MEAN)
        found[lost] = np.eye(1, means.shape[1]) if otherwise is None else otherwise[lost]
        return frozen(found)

    def rescaled(self, points: Points, factors: Weights) -> Points:
        """Return points with each column multiplied by its factor.

        On the sphere their directions change, and their lengths stay: those of rows are 1, and
        those of means say how far the rows behind them lie apart.
        """
        moved: Any = points * factors.astype(points.dtype)
        if self.on_sphere:
            before, after = _lengths(points), _lengths(moved)
            moved = _divided(moved, np.where(after > 0, after / np.where(before > 0, before, 1), 1))
        return frozen(moved)

    def distances(self, squared: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return distances as they are shown: 1 - cosine on the sphere."""
        found: NDArray[np.float64] = squared / 2 if self.on_sphere else np.sqrt(squared)
        return found


EUCLIDEAN = Metric("euclidean", on_sphere=False, error_share=1.0)
COSINE = Metric("cosine", on_sphere=True, error_share=0.5)
METRICS = {metric.name: metric for metric in (EUCLIDEAN, COSINE)}


def metric_of(name: Any) -> Metric:
    """Return the metric of that name.

    Examples
    --------
    >>> metric_of("cosine").on_sphere
    True
    """
    return METRICS[one_of("metric", name, METRICS)]


def _lengths(rows: Points) -> NDArray[np.float64]:
    """Return the length of each row, also of one whose squares vanish."""
    lengths: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    small = np.flatnonzero(lengths < _SMALL)
    if small.size:
        largest = np.abs(rows[small]).max(axis=1).astype(np.float64)
        scale = np.where(largest > 0, largest, 1.0)[:, np.newaxis]
        lengths[small] = scale[:, 0] * np.sqrt(((rows[small] / scale) ** 2).sum(axis=1))
    return lengths


def _divided(rows: Points, lengths: NDArray[np.float64]) -> Any:
    """Return rows divided by numbers, rounded once."""
    divided = np.empty(rows.shape, rows.dtype)
    np.divide(rows, lengths[:, np.newaxis], out=divided, casting="same_kind")
    return divided
