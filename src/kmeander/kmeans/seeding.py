"""k-means++, and the whole K-means algorithm that begins with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander import _kernel
from kmeander.arguments import generator_for, seed_from, thread_count, whole_number
from kmeander.arrays import Centroids, Points, Weights, checked_points, checked_weights
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import Limits, LloydResult, fit_batch
from kmeander.kmeans.metric import metric_of
from kmeander.kmeans.window import Remembered

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


def kmeans(
    points: Points,
    weights: Weights | None,
    n_clusters: int,
    rng: np.random.Generator,
    limits: Limits,
) -> LloydResult:
    """The whole K-means algorithm, KM++ in the paper: k-means++ seeding, then Lloyd.

    Points are those of the metric. The result has as many clusters as there are distinct points
    where those are fewer.
    """
    batch = Remembered(points, weights)
    seeds = _drawn(batch, n_clusters, rng, limits.threads)
    found = fit_batch(batch, limits.metric.centroids(seeds.centroids), limits, seeds.partition)
    return LloydResult(
        **{
            **vars(found),
            "n_distances": found.n_distances + seeds.n_distances,
            "n_distances_plain": found.n_distances_plain + seeds.n_distances_plain,
        }
    )


@dataclass(frozen=True, eq=False)
class Seeds:
    """Rows that k-means++ has drawn."""

    rows: NDArray[np.int64]
    centroids: Centroids
    # Each point's nearest seed: seeding has measured them all. Labels are final only where bounds
    # are apart; Lloyd sees to the rest.
    partition: _kernel.Partition
    n_distances: int
    n_distances_plain: int  # without the last seed's, which only the partition needs


def draw_seeds(
    points: Points,
    weights: Weights | None,
    n_clusters: int,
    rng: np.random.Generator,
    n_threads: int,
) -> Seeds:
    """Draw rows by k-means++.

    They are fewer than asked for where there are fewer distinct points of positive weight. Points
    that are enough, but lie so near that no distance tells them apart, are refused.
    """
    seeds = _drawn(Remembered(points, weights), n_clusters, rng, n_threads)
    if len(seeds.rows) < n_clusters:
        _refuse_tiny_differences(points, weights, seeds, n_clusters)
    return seeds


def _refuse_tiny_differences(
    points: Points, weights: Weights | None, seeds: Seeds, n_clusters: int
) -> None:
    """Refuse points that differ, but by so little that the squares of their distances are 0."""
    there = points if weights is None else points[weights > 0]
    distinct = np.unique(there + 0.0, axis=0)  # -0.0 is 0.0
    n_distinct, n_distinguishable = len(distinct), len(seeds.rows)
    if n_distinct == n_distinguishable or (n_distinguishable > 1 and n_distinct < n_clusters):
        return
    widest = float(np.max(np.ptp(distinct.astype(np.float64), axis=0)))
    raise InputError(
        f"X has {n_distinct} distinct points of which {n_distinguishable} can be told apart: "
        f"differences below 1e-160 have squares that are 0 (the widest column spans {widest:g}). "
        "Rescale the columns."
    )


def _drawn(batch: Remembered, n_clusters: int, rng: np.random.Generator, n_threads: int) -> Seeds:
    chosen = np.empty(n_clusters, dtype=np.int64)
    n_seeds, n_distances, partition = _kernel.seed(
        batch.handle, rng.random(n_clusters), chosen, n_threads
    )
    assert partition.bounds is not None
    return Seeds(
        rows=chosen[:n_seeds],
        centroids=partition.bounds.snapshot,
        partition=partition,
        n_distances=n_distances,
        n_distances_plain=min(n_seeds, n_clusters - 1) * batch.n_points,
    )


def kmeans_plusplus(
    X: ArrayLike,
    n_clusters: int,
    sample_weight: ArrayLike | None = None,
    *,
    random_state: RandomState = None,
    metric: str = "euclidean",
) -> Centroids:
    """Draw `n_clusters` rows of `X` by k-means++.

    The first is drawn by weight, each next one by weight times squared distance to the nearest
    row drawn so far. With ``metric="cosine"`` rows are taken at length 1.

    Examples
    --------
    >>> sorted(kmeans_plusplus([[0.0], [0.0], [5.0]], 2, random_state=0).ravel().tolist())
    [0.0, 5.0]
    """
    points = metric_of(metric).points(checked_points(X))
    weights = checked_weights(sample_weight, len(points))
    whole_number("n_clusters", n_clusters, at_least=1, meaning="the number of rows to draw")
    rng = generator_for(seed_from(random_state), 0)
    seeds = draw_seeds(points, weights, n_clusters, rng, thread_count(None))
    if len(seeds.rows) < n_clusters:
        raise InputError(
            f"X has {len(seeds.rows)} distinct points of weight above 0, n_clusters={n_clusters} "
            "needs at least as many."
        )
    return seeds.centroids.copy()
