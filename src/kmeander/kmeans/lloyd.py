"""Weighted Lloyd on points or on a window of batches, and nearest centroids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

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
from kmeander.kmeans.metric import EUCLIDEAN, Metric, metric_of
from kmeander.kmeans.window import Remembered, Window


@dataclass(frozen=True)
class Limits:
    """When Lloyd stops, how many threads it may use, and where centroids lie; checked when made.

    `threads` is their number, also where `n_threads` leaves it to the environment.
    """

    max_iter: int = 300
    tol: float = 0.0
    n_threads: int | None = None
    metric: Metric = EUCLIDEAN
    threads: int = field(init=False, repr=False, compare=False)

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
        threads = thread_count(self.n_threads)
        n_threads = None if self.n_threads is None else threads
        vars(self).update(max_iter=max_iter, tol=tol, n_threads=n_threads, threads=threads)


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
        Weighted mean of squared distances; of 1 - cosine with ``metric="cosine"``.
    n_iter : int
        Assignment passes, the last one included.
    converged : bool
        Whether the last pass left all labels, or `tol` was met, before `max_iter`.
    n_distances, n_distances_plain : int
        Distances really computed, and those a plain Lloyd with the same passes computes.
    partition : Partition or None
        All that is known of the points, for whoever goes on from here.
    """

    centroids: Centroids
    labels: Labels
    masses: Masses
    error: float
    n_iter: int
    converged: bool
    n_distances: int
    n_distances_plain: int
    partition: _kernel.Partition | None = None


class WindowFit(NamedTuple):
    """Where weighted Lloyd on a window ended. Errors are decayed means over the window."""

    window: Window
    centroids: Centroids
    masses: Masses
    moved: NDArray[np.float64] | None
    initial_error: float
    error: float
    newest_error: float
    # What another batch of the same kind would cost: each under centroids made without it.
    expected_error: float
    reseeded: tuple[int, ...]
    n_iter: int
    converged: bool
    n_distances: int
    n_distances_plain: int
    found: _kernel.Partition  # that of the window, with sums, which may not be kept there

    @property
    def sums(self) -> _kernel.ClusterSums:
        """What each batch adds to each cluster."""
        assert self.found.sums is not None
        return self.found.sums

    def plus(self, n_distances: int, plain: int) -> WindowFit:
        """Return the same after more distances; a plain search needs `plain` of them."""
        return self._replace(
            n_distances=self.n_distances + n_distances,
            n_distances_plain=self.n_distances_plain + plain,
        )

    def following(self, first: WindowFit) -> WindowFit:
        """Return the fit as the end of what began with `first`."""
        return self._replace(
            initial_error=first.initial_error,
            reseeded=tuple(sorted({*first.reseeded, *self.reseeded})),
            n_iter=first.n_iter + self.n_iter,
            n_distances=first.n_distances + self.n_distances,
            n_distances_plain=first.n_distances_plain + self.n_distances_plain,
        )


def fit_window(
    window: Window,
    centroids: Centroids,
    limits: Limits,
    *,
    before: Centroids | None = None,
    only_assign: bool = False,
    keep_sums: bool = False,
) -> WindowFit:
    """Run weighted Lloyd from `centroids` on all batches of `window`.

    How far they end from `before` is found on the way. With `only_assign` no centroid moves: one
    pass finds the partition, with all its sums. With `keep_sums` these are kept however small
    the batches are.
    """
    held = window.handle
    n_clusters = len(centroids)
    # Fresh arrays throughout: until the caller takes the result, nothing has changed.
    centroids = centroids.copy()
    masses = np.empty(n_clusters)
    moved = None if before is None else np.empty(n_clusters)
    found, n_iter, n_distances, converged, initial, error, newest_error, left_out, reseeded = (
        _kernel.lloyd(
            held,
            window.partition,
            window.newest,
            centroids,
            masses,
            before,
            moved,
            0 if only_assign else limits.max_iter,
            limits.tol * _mean_variance(window) if limits.tol > 0 else 0.0,
            limits.metric.on_sphere,
            limits.threads,
        )
    )
    n_points, mass, within, batch = held.n_points, held.mass, window.within, window.batches[-1]
    kept, error_share = found, limits.metric.error_share
    if 4 * n_clusters * len(window) > n_points and not (only_assign or keep_sums):
        # Batches so small that the sums outweigh the points: made anew when needed.
        kept = found.without_sums()
    return WindowFit(
        window=window.divided(kept),
        centroids=frozen(centroids),
        masses=frozen(masses),
        moved=None if moved is None else frozen(moved),
        initial_error=error_share * ((initial + within) / mass),
        error=error_share * ((error + within) / mass),
        newest_error=error_share * ((newest_error + batch.within) / batch.mass),
        expected_error=error_share * ((left_out + within) / mass),
        reseeded=tuple(reseeded),
        n_iter=n_iter,
        converged=converged,
        n_distances=n_distances,
        n_distances_plain=n_iter * n_points * n_clusters,
        found=found,
    )


def reordered(
    fit: WindowFit, order: NDArray[np.int64], limits: Limits, before: Centroids
) -> WindowFit:
    """Return a fit with its clusters in other rows: the one in order[r] comes to row r.

    A tie goes to the lowest row, so Lloyd goes on from there where it had come to its end; as a
    rule it takes one pass. Where `limits` have stopped it no centroid moves any more.
    """
    window = fit.window.divided(fit.found.renumbered(order))
    keep_sums = fit.window.partition is not None and fit.window.partition.sums is not None
    was_stopped = not fit.converged or limits.tol > 0
    again = fit_window(
        window, fit.centroids[order], limits,
        before=before, only_assign=was_stopped, keep_sums=keep_sums,
    )  # fmt: skip
    if not keep_sums:
        again = again._replace(window=again.window.divided(again.found.without_sums()))
    rows = np.argsort(order)
    return again._replace(
        initial_error=fit.initial_error,
        reseeded=tuple(sorted({*rows[list(fit.reseeded)].tolist(), *again.reseeded})),
        n_iter=fit.n_iter + again.n_iter,
        converged=fit.converged if was_stopped else again.converged,
        n_distances=fit.n_distances + again.n_distances,
        n_distances_plain=fit.n_distances_plain + again.n_distances_plain,
    )


def fit_batch(
    batch: Remembered, centroids: Centroids, limits: Limits, known: _kernel.Partition | None = None
) -> LloydResult:
    """Run weighted Lloyd from `centroids` on one batch."""
    fit = fit_window(Window(1.0, (batch,), (0.0,), None, known), centroids, limits)
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
        partition=partition,
    )


def nearest(
    points: Points, centroids: Centroids, n_threads: int | None
) -> tuple[Labels, NDArray[np.float64]]:
    """Return the index of the nearest centroid and the squared distance to it, for each point."""
    labels = np.empty(len(points), dtype=np.int32)
    squared = np.empty(len(points))
    _kernel.nearest(points, centroids, labels, squared, thread_count(n_threads))
    return labels, squared


def distances_to(
    points: Points, centroids: Centroids, labels: Labels, n_threads: int | None
) -> NDArray[np.float64]:
    """Return the squared distance of each point to the centroid of its label, as `nearest` does."""
    squared = np.empty(len(points))
    _kernel.distances_to(points, centroids, labels, squared, thread_count(n_threads))
    return squared


class Measured(NamedTuple):
    """Points under centroids that have not learned them."""

    error: float
    relative_se: float  # standard error of the error, as a share of it
    partition: _kernel.Partition


def measure(
    rows: _kernel.BatchHandle, centroids: Centroids, n_threads: int, metric: Metric = EUCLIDEAN
) -> Measured:
    """Return the error of a batch, and all that is known of its points' distances."""
    error, relative_se, partition = _kernel.measure(rows, centroids, n_threads)
    return Measured(metric.error_share * error, relative_se, partition)


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
    metric: str = "euclidean",
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
    metric : {"euclidean", "cosine"}, default="euclidean"
        With ``"cosine"`` rows and centroids are taken at length 1, and errors are 1 - cosine.

    Returns
    -------
    LloydResult

    Examples
    --------
    >>> found = weighted_lloyd([[0.0], [2.0], [10.0]], [[0.0], [4.0]])
    >>> found.centroids.tolist(), found.labels.tolist(), found.n_iter
    ([[1.0], [10.0]], [0, 0, 1], 2)
    """
    space = metric_of(metric)
    points = space.points(checked_points(X))
    weights = checked_weights(sample_weight, len(points))
    start = space.points(checked_centroids(centroids, points.shape[1]), "centroids")
    limits = Limits(max_iter, tol, n_threads, space)
    return fit_batch(Remembered(points, weights), np.asarray(start, np.float64), limits)


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
