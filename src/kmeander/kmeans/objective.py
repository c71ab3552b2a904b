"""The errors of the paper, and Theorem 1 on how two of them are related."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from kmeander.arguments import finite_number, is_finite, positive_number, share_kept, whole_number
from kmeander.arrays import Centroids, Points, checked_centroids, checked_points, checked_weights
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import mean_error, nearest
from kmeander.kmeans.metric import Metric, metric_of


def kmeans_error(
    X: ArrayLike,
    centroids: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    metric: str = "euclidean",
) -> float:
    """Return the K-means error, equation (1): the mean squared distance to the nearest centroid.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
    centroids : array-like of shape (n_clusters, n_features)
    sample_weight : array-like of shape (n_points,), optional
        With weights, the weighted mean.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With ``"cosine"`` the error of a point is 1 less the cosine of its angle with the nearest
        centroid.

    Examples
    --------
    >>> kmeans_error([[0.0], [2.0], [5.0]], [[1.0], [5.0]])  # (1 + 1 + 0) / 3
    0.6666666666666666
    >>> round(kmeans_error([[3.0, 4.0]], [[2.0, 0.0]], metric="cosine"), 12)  # 1 - 3/5
    0.4
    """
    points = checked_points(X)
    weights = checked_weights(sample_weight, len(points))
    start, space = checked_centroids(centroids, points.shape[1]), metric_of(metric)
    points, start = space.points(points), _placed(start, space)
    return space.error_share * mean_error(points, weights, start, None)


def skm_error(
    batches: Sequence[ArrayLike], centroids: ArrayLike, *, metric: str = "euclidean"
) -> float:
    """Return the streaming K-means error: the mean over the batches since the drift.

    Parameters
    ----------
    batches : sequence of array-like of shape (n_points, n_features)
        Those since the last drift, the batch of the drift included.
    centroids : array-like of shape (n_clusters, n_features)
    metric : {"euclidean", "cosine"}, default="euclidean"
        As for `kmeans_error`.

    Examples
    --------
    >>> skm_error([[[0.0], [2.0]], [[4.0]]], [[1.0]])  # (1 + 1 + 9) / 3
    3.6666666666666665
    """
    return surrogate_error(batches, centroids, rho=1.0, metric=metric)


def surrogate_error(
    batches: Sequence[ArrayLike],
    centroids: ArrayLike,
    rho: float,
    *,
    metric: str = "euclidean",
) -> float:
    """Return the surrogate error of `centroids` over `batches`.

    A point of a batch aged t weighs ``rho**t`` (the newest has age 0), so no knowledge of drift
    is needed [1]_. Batches may differ in size.

    Parameters
    ----------
    batches : sequence of array-like of shape (n_points, n_features)
        In order of arrival: the newest is last.
    centroids : array-like of shape (n_clusters, n_features)
    rho : float
        Share of weight that a batch keeps when the next one arrives.
    metric : {"euclidean", "cosine"}, default="euclidean"
        As for `kmeans_error`.

    Returns
    -------
    float
        Weighted mean of squared distances to the nearest centroid.

    Examples
    --------
    >>> surrogate_error([[[0.0], [2.0]], [[4.0]]], [[1.0]], rho=0.5)  # (0.5*1 + 0.5*1 + 1*9) / 2
    5.0

    References
    ----------
    .. [1] Bidaurrazaga, Pérez, Capó, "K-means for Evolving Data Streams", ICDM 2021.
    """
    rho = share_kept(rho)
    points, start = _checked_batches(batches, centroids)
    space = metric_of(metric)
    points = [space.points(batch, f"batches[{i}]") for i, batch in enumerate(points)]
    start = _placed(start, space)
    total = mass = 0.0
    for age, batch in enumerate(reversed(points)):
        total += rho**age * float(nearest(batch, start, None)[1].sum())
        mass += rho**age * len(batch)
    return space.error_share * (total / mass)


def theorem1_gap(rho: float, n_batches: int, epsilon: float, error: float) -> float:
    """Return the expected difference of SKM and surrogate error: ``rho**T * epsilon * E``.

    Parameters
    ----------
    rho : float
    n_batches : int
        Batches since the drift, T.
    epsilon : float
        Size of the drift.
    error : float
        Expected squared distance to the centroid before it, E.

    Examples
    --------
    >>> theorem1_gap(rho=0.5, n_batches=3, epsilon=2.0, error=4.0)
    1.0
    """
    rho, n_batches = _checked_theorem1(rho, n_batches)
    finite_number("epsilon", epsilon, rule="a finite number")
    finite_number("error", error, rule="a finite number")
    return float(rho**n_batches * epsilon * error)


def theorem1_bound(
    rho: float, n_batches: int, batch_size: int, value_range: float, delta: float
) -> float:
    """Return gamma of Theorem 1.

    With probability at least ``1 - delta`` the difference of SKM and surrogate error of a single
    centroid lies within gamma of `theorem1_gap`.

    Parameters
    ----------
    rho : float
    n_batches : int
        Batches since the drift, T.
    batch_size : int
        Points per batch, N.
    value_range : float
        Upper bound of the squared distances to the centroid, u.
    delta : float
        Probability, in (0, 1), with which the difference may lie outside.

    Examples
    --------
    >>> bound = theorem1_bound(rho=0.5, n_batches=1, batch_size=600, value_range=60.0, delta=0.05)
    >>> round(bound, 6)  # 60 * sqrt(1/3 / 1200 * ln 40)
    1.920646
    """
    rho, n_batches = _checked_theorem1(rho, n_batches)
    whole_number("batch_size", batch_size, at_least=1, meaning="the number of points per batch")
    positive_number("value_range", value_range)
    if not (is_finite(delta) and 0 < delta < 1):
        raise InputError(f"delta must lie in (0, 1), got {delta!r}. It is a probability.")
    # A sum of squares (of the weights' differences), so negative by rounding only.
    spread = max(0.0, (2 * rho**n_batches - 1) / n_batches + (1 - rho) / (1 + rho))
    return float(value_range * math.sqrt(spread / (2 * batch_size) * math.log(2 / delta)))


def _checked_theorem1(rho: float, n_batches: int) -> tuple[float, int]:
    return share_kept(rho, below_one=True), whole_number(
        "n_batches", n_batches, at_least=1, meaning="the number of batches since the drift"
    )


def _placed(centroids: Centroids, space: Metric) -> Centroids:
    return np.asarray(space.points(centroids, "centroids"), np.float64)


def _checked_batches(
    batches: Sequence[ArrayLike], centroids: ArrayLike
) -> tuple[list[Points], Centroids]:
    if not isinstance(batches, Iterable) or len(batches) == 0:
        raise InputError(f"batches must be a sequence of at least one batch, got {batches!r}.")
    points = [checked_points(batch, f"batches[{i}]") for i, batch in enumerate(batches)]
    start = np.asarray(checked_centroids(centroids, points[0].shape[1]))
    for i, batch in enumerate(points):
        if batch.shape[1] != start.shape[1]:
            raise InputError(
                f"batches[{i}] has {batch.shape[1]} columns, the centroids have {start.shape[1]}."
            )
    return points, start
