"""Weighted Lloyd on points or on a window, k-means++, and nearest centroids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander import _kernel
from kmeander.arguments import (
    finite_number,
    is_finite,
    thread_count,
    whole_number,
)
from kmeander.arrays import (
    Centroids,
    Labels,
    Masses,
    Points,
    Weights,
    checked_centroids,
    checked_points,
    checked_weights,
    frozen,
)
from kmeander.window import Bounds, Partition, Totals, Window

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Limits:
    """When Lloyd stops, and how many threads it may use; checked when made."""

    max_iter: int = 300
    tol: float = 0.0
    n_threads: int | None = None

    def __post_init__(self) -> None:
        max_iter = whole_number(
            "max_iter", self.max_iter, at_least=1, meaning="the most updates of the centroids"
        )
        tol = finite_number(
            "tol",
            self.tol,
            rule="a finite number of at least 0 (0 goes on until no label changes)",
            fits=is_finite(self.tol) and self.tol >= 0,
        )
        n_threads = thread_count(self.n_threads)
        object.__setattr__(self, "max_iter", max_iter)
        object.__setattr__(self, "tol", tol)
        if self.n_threads is not None:
            object.__setattr__(self, "n_threads", n_threads)


@dataclass(frozen=True, eq=False)
class LloydResult:
    """Where weighted Lloyd ended.

    Parameters
    ----------
    centroids : ndarray of shape (n_clusters, n_features)
    labels : ndarray of shape (n_points,)
        Index of the nearest centroid; a tie goes to the lowest index.
    masses : ndarray of shape (n_clusters,)
        Weight of each cluster.
    error : float
        Weighted mean of squared distances.
    n_iter : int
        Assignment passes, the last one included.
    converged : bool
        Whether the last pass left all labels, or `tol` was met, before `max_iter`.
    n_distances, n_distances_plain : int
        Distances really computed, and those a plain Lloyd with the same passes computes.
    bounds : Bounds or None
        What is known of the distances of the points, for whoever goes on from here.
    """

    centroids: Centroids
    labels: Labels
    masses: Masses
    error: float
    n_iter: int
    converged: bool
    n_distances: int
    n_distances_plain: int
    bounds: Bounds | None = None


@dataclass(frozen=True, eq=False)
class WindowFit:
    """Where weighted Lloyd on a window ended. Errors are decayed means over the window."""

    window: Window
    centroids: Centroids
    masses: Masses
    initial_error: float
    error: float
    newest_error: float
    # What a batch like those of the window would cost: each under centroids made without it.
    expected_error: float
    reseeded: tuple[int, ...]
    n_iter: int
    converged: bool
    n_distances: int
    n_distances_plain: int
    totals: Totals  # of the partition, kept there or not


def fit_window(
    window: Window,
    centroids: Centroids,
    limits: Limits,
    *,
    only_assign: bool = False,
    keep_totals: bool = False,
) -> WindowFit:
    """Run weighted Lloyd from `centroids` on all batches of `window`.

    With `only_assign` no centroid moves: one pass finds the partition, with all its totals. With
    `keep_totals` these are kept however small the batches are.
    """
    n_clusters = len(centroids)
    # Fresh arrays throughout: until the caller takes the result, nothing has changed.
    centroids = np.array(centroids, dtype=np.float64, order="C")
    room = _Room(window, centroids)
    masses = np.empty(n_clusters)
    n_iter, n_distances, converged, *errors, left_out, reseeded = _kernel.lloyd(
        [batch.points for batch in window.batches],
        [batch.weights for batch in window.batches],
        window.decay,
        room.labels,
        room.upper,
        room.lower,
        room.snapshot,
        room.n_bounded,
        room.newest_snapshot,
        room.masses,
        room.sums,
        room.scatter,
        room.n_summed,
        centroids,
        masses,
        0 if only_assign else limits.max_iter,
        limits.tol * _mean_variance(window) if limits.tol > 0 else 0.0,
        thread_count(limits.n_threads),
    )
    mass, within, newest = window.mass, window.within, window.batches[-1]
    partition = room.partition(frozen(centroids), keep_totals=only_assign or keep_totals)
    return WindowFit(
        window=window.divided(partition),
        centroids=centroids,
        masses=frozen(masses),
        initial_error=(errors[0] + within) / mass,
        error=(errors[2] + within) / mass,
        newest_error=(errors[3] + newest.within) / newest.mass,
        expected_error=(left_out + within) / mass,
        reseeded=tuple(reseeded),
        n_iter=n_iter,
        converged=converged,
        n_distances=n_distances,
        n_distances_plain=n_iter * len(room.labels) * n_clusters,
        totals=partition.totals or Totals(room.masses, room.sums, room.scatter),
    )


class _Room:
    """Arrays for the partition that the kernel is to find, begun with what is known of it."""

    def __init__(self, window: Window, centroids: Centroids) -> None:
        n_batches, n_points = len(window), window.n_points
        n_clusters, n_features = centroids.shape
        self.labels: Labels = np.empty(n_points, dtype=np.int32)
        self.upper, self.lower = np.empty((2, n_points), dtype=np.float32)
        self.masses, self.scatter = np.empty((2, n_batches, n_clusters))
        self.sums = np.empty((n_batches, n_clusters, n_features))
        self.snapshot: Centroids | None = None
        self.newest_snapshot: Centroids | None = None
        self.n_bounded = self.n_summed = 0
        known = window.partition
        if known is not None and known.bounds is not None:
            self._copy(known.labels, known.bounds, 0)
            self.snapshot = known.bounds.snapshot
            # All batches, or all but the one that has just come.
            self.n_bounded = n_batches - (len(known.labels) < n_points)
            if known.totals is not None:
                self.n_summed = len(known.totals.masses)
                self.masses[: self.n_summed] = known.totals.masses
                self.sums[: self.n_summed] = known.totals.sums
                self.scatter[: self.n_summed] = known.totals.scatter
        newest = window.newest
        if newest is not None and newest.bounds is not None:
            self._copy(newest.labels, newest.bounds, n_points - len(newest.labels))
            self.newest_snapshot = newest.bounds.snapshot

    def _copy(self, labels: Labels, bounds: Bounds, begin: int) -> None:
        end = begin + len(labels)
        self.labels[begin:end] = labels
        self.upper[begin:end] = bounds.upper
        self.lower[begin:end] = bounds.lower

    def partition(self, centroids: Centroids, *, keep_totals: bool) -> Partition:
        """Return what the kernel has found, at `centroids`.

        Where batches are so small that the totals would outweigh the points they are left out, and
        made anew when needed, unless they are to be kept.
        """
        for array in (self.labels, self.upper, self.lower, self.masses, self.sums, self.scatter):
            array.setflags(write=False)
        keep = keep_totals or 4 * self.masses.size <= len(self.labels)
        totals = Totals(self.masses, self.sums, self.scatter) if keep else None
        return Partition(self.labels, Bounds(self.upper, self.lower, centroids), totals)


def fit_points(
    points: Points,
    weights: Weights | None,
    centroids: Centroids,
    limits: Limits,
    known: Partition | None = None,
) -> LloydResult:
    """Run weighted Lloyd from `centroids` on one set of points, all checked before."""
    fit = fit_window(Window(rho=1.0).joined_by(points, weights, known), centroids, limits)
    partition = fit.window.partition
    assert partition is not None
    return LloydResult(
        centroids=fit.centroids,
        labels=partition.labels,
        masses=fit.masses,
        error=fit.error,
        n_iter=fit.n_iter,
        converged=fit.converged,
        n_distances=fit.n_distances,
        n_distances_plain=fit.n_distances_plain,
        bounds=partition.bounds,
    )


def nearest(
    points: Points, centroids: Centroids, n_threads: int | None
) -> tuple[Labels, NDArray[np.float64]]:
    """Return the index of the nearest centroid and the squared distance to it, for each point."""
    labels = np.empty(len(points), dtype=np.int32)
    squared = np.empty(len(points))
    _kernel.nearest(points, centroids, labels, squared, thread_count(n_threads))
    return labels, squared


@dataclass(frozen=True, eq=False)
class Measured:
    """Points under centroids that have not learnt them."""

    error: float
    relative_se: float  # standard error of the error, as a share of it
    partition: Partition


def measure(
    points: Points, weights: Weights | None, centroids: Centroids, n_threads: int | None
) -> Measured:
    """Return the error of points, and all that is known of their distances."""
    labels = np.empty(len(points), dtype=np.int32)
    upper, lower = np.empty((2, len(points)), dtype=np.float32)
    error, relative_se = _kernel.measure(
        points, weights, centroids, labels, upper, lower, thread_count(n_threads)
    )
    return Measured(error, relative_se, Partition(labels, Bounds(upper, lower, centroids)))


def mean_error(
    points: Points, weights: Weights | None, centroids: Centroids, n_threads: int | None
) -> float:
    """Return the weighted mean of squared distances, all arguments checked before."""
    squared = nearest(points, centroids, n_threads)[1]
    if weights is None:
        return float(squared.sum() / len(squared))
    return float((weights * squared).sum() / weights.sum())


def weighted_lloyd(
    X: ArrayLike,
    centroids: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
    n_threads: int | None = None,
) -> LloydResult:
    """Run weighted Lloyd from `centroids` until no label changes.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
    centroids : array-like of shape (n_clusters, n_features)
        Where to start.
    sample_weight : array-like of shape (n_points,), optional
    max_iter : int, default=300
        The most updates of the centroids.
    tol : float, default=0.0
        Stop once the squared moves of the centroids sum to at most `tol` times the mean variance
        of the columns.
    n_threads : int, optional
        The result is the same, bit for bit, for any number.

    Returns
    -------
    LloydResult

    Examples
    --------
    >>> found = weighted_lloyd([[0.0], [2.0], [10.0]], [[0.0], [4.0]])
    >>> found.centroids.tolist(), found.labels.tolist(), found.n_iter
    ([[1.0], [10.0]], [0, 0, 1], 2)
    """
    points = checked_points(X)
    weights = checked_weights(sample_weight, len(points))
    start = checked_centroids(centroids, points.shape[1])
    return fit_points(points, weights, start, Limits(max_iter, tol, n_threads))


def _mean_variance(window: Window) -> float:
    """Return the mean over the columns of their decayed variance, the scale of scikit-learn's tol.

    Two passes, as in ``numpy.var``: one pass would cancel for columns far from zero.
    """
    mass = window.mass
    mean = np.zeros(window.batches[0].points.shape[1])
    for decay, batch in zip(window.decay, window.batches, strict=True):
        mean += decay * _weighted_sum(batch.points.astype(np.float64), batch.weights) / mass
    variance = np.zeros_like(mean)
    for decay, batch in zip(window.decay, window.batches, strict=True):
        variance += decay * _weighted_sum((batch.points - mean) ** 2, batch.weights) / mass
    return float(variance.mean()) + window.within / mass / len(mean)


def _weighted_sum(values: NDArray[np.float64], weights: Weights | None) -> NDArray[np.float64]:
    # Not weights @ values: BLAS may split that by its own number of threads.
    weighted = values if weights is None else weights[:, np.newaxis] * values
    total: NDArray[np.float64] = weighted.sum(axis=0)
    return total
