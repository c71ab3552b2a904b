"""Streams that tests in several rooms learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from kmeander import Batch
from kmeander.kmeans.window import Window
from kmeander.models.settings import Init

INITS: tuple[Init, ...] = ("hungarian", "weighted", "current", "previous")


def drifting_stream(
    n_batches: int = 12,
    n_points: int = 60,
    n_features: int = 3,
    n_clusters: int = 4,
    seed: int = 0,
) -> list[NDArray[np.float64]]:
    """Gaussian clusters that jump elsewhere every four batches."""
    rng = np.random.default_rng(seed)
    batches = []
    for index in range(n_batches):
        if index % 4 == 0:
            centres = rng.normal(scale=5.0, size=(n_clusters, n_features))
        members = rng.integers(n_clusters, size=n_points)
        batches.append(centres[members] + rng.normal(size=(n_points, n_features)))
    return batches


def rows_of(found: Any, expected: Any) -> NDArray[np.int64]:
    """Which row of `expected` is in each row of `found`, the nearest of each; as it is, if it is.

    A living cluster keeps its row, so a model may have the clusters of plain Lloyd in other rows.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if np.allclose(found, expected, rtol=1e-9, atol=1e-9):
        return np.arange(len(found))
    gaps = ((found[:, np.newaxis] - expected) ** 2).sum(axis=2)
    order: NDArray[np.int64] = linear_sum_assignment(gaps)[1]
    return order


def batches_of(n_batches: int) -> list[Batch]:
    return [Batch(index, points) for index, points in enumerate(drifting_stream(n_batches))]


def golden_stream() -> list[Any]:
    """Streams of which the stored checkpoints have learned the beginning."""
    rng = np.random.default_rng(1)
    return [rng.integers(0, 50, size=(12, 2)) / 4 for _ in range(4)]


def random_window(
    seed: int, n_clusters: int, n_features: int, n_batches: int, *, dtype: Any = np.float64
) -> tuple[Window, Any]:
    """A window of clusters that lie apart, and centroids that are badly placed."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4.0, size=(n_clusters + 1, n_features))
    window = Window(rho=0.7)
    for _ in range(n_batches):
        n = int(rng.integers(n_clusters, n_clusters + 25))
        points = centres[rng.integers(n_clusters + 1, size=n)] + rng.normal(size=(n, n_features))
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if rng.random() < 0.5 else None
        if weights is not None:
            weights[0] = 1.0
        window = window.aged(1.0, np.inf, None).joined_by(points.astype(dtype), weights)
    starts = centres[0] + rng.normal(scale=0.5, size=(n_clusters, n_features))
    return window, starts
