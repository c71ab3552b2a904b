# What the compiled kernel promises. Arrays are in C order; `in/out` arrays are written in place.
# A test compares the names and parameters here with those of the module.
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Labels, Masses, Points, Weights

def nearest(
    points: Points,  # in   (n, d)
    centroids: Centroids,  # in   (k, d)
    labels: Labels,  # out  (n,)
    squared: NDArray[np.float64],  # out  (n,)  squared distances to the nearest centroid
    n_threads: int,
) -> None: ...
def measure(
    points: Points,  # in   (n, d)
    weights: Weights | None,  # in   (n,)
    centroids: Centroids,  # in   (k, d)
    labels: Labels,  # out  (n,)
    upper: NDArray[np.float32],  # out  (n,)  bound of the distance to the nearest centroid
    lower: NDArray[np.float32],  # out  (n,)  bound of the distances to the others
    n_threads: int,
) -> tuple[float, float]: ...  # mean squared distance, its standard error as a share of it
def seed(
    points: Points,  # in   (n, d)
    weights: Weights | None,  # in   (n,)
    uniforms: NDArray[np.float64],  # in   (k,)  numbers in [0, 1): one draw each
    chosen: NDArray[np.int64],  # out  (k,)  rows drawn, of which the first n_seeds count
    labels: Labels,  # out  (n,)  nearest of the rows drawn
    upper: NDArray[np.float32],  # out  (n,)  bound of the distance to it
    lower: NDArray[np.float32],  # out  (n,)  bound of the distances to the others
    n_threads: int,
) -> tuple[int, int]: ...  # n_seeds, distances computed
def lloyd(
    points: Sequence[Points],  # in      (n, d) per batch, the oldest first
    weights: Sequence[Weights | None],  # in      (n,) per batch
    decay: Weights,  # in      (batches,)
    labels: Labels,  # in/out  (all points,) where bounds are known
    upper: NDArray[np.float32],  # in/out  (all points,) bound of the own distance
    lower: NDArray[np.float32],  # in/out  (all points,) bound of all other distances
    snapshot: Centroids | None,  # in      (k, d) where the bounds of the first batches hold
    n_bounded: int,  # how many batches those are
    newest_snapshot: Centroids | None,  # in      (k, d) where the bounds of the newest hold
    masses: NDArray[np.float64],  # in/out  (batches, k) without decay
    sums: NDArray[np.float64],  # in/out  (batches, k, d) without decay
    scatter: NDArray[np.float64],  # in/out  (batches, k) about the batch's own means
    n_summed: int,  # in so many batches the totals are already those of labels
    centroids: Centroids,  # in/out  (k, d)
    cluster_masses: Masses,  # out     (k,) decayed
    max_iter: int,
    shift: float,
    n_threads: int,
) -> tuple[int, int, bool, float, float, float, float, float, list[int]]: ...

# passes, distances computed, converged; sums of squared distances at the start, decayed over the
# window and of the newest batch alone, and the same at the end; that of the window once more, each
# batch under centroids made without it; clusters seeded anew
def swap(
    points: Sequence[Points],  # in      (n, d) per batch, the oldest first
    weights: Sequence[Weights | None],  # in      (n,) per batch
    decay: Weights,  # in      (batches,)
    labels: Labels,  # in/out  (all points,) nearest of the centroids
    upper: NDArray[np.float32],  # in/out  (all points,) bound of the own distance
    lower: NDArray[np.float32],  # in/out  (all points,) bound of all other distances
    centroids: Centroids,  # in/out  (k, d)
    uniforms: NDArray[np.float64],  # in      (candidates,) numbers in [0, 1): one draw each
    n_threads: int,
) -> tuple[int, int, list[int]]: ...  # swaps, distances computed, clusters swapped
def valleys(
    points: Sequence[Points],  # in   (n, d) per batch, the oldest first
    weights: Sequence[Weights | None],  # in   (n,) per batch
    decay: Weights,  # in   (batches,)
    labels: Labels,  # in   (all points,)
    centroids: Centroids,  # in   (k, d)
    masses: Masses,  # in   (k,)  of the clusters whose means the centroids are
    rows_per_cluster: int,  # newest rows of each cluster that are looked at
    shallow: float,  # bins between hold more than this times the emptier end: no valley
    neighbours: Labels,  # out  (k,)  nearest other cluster, or -1
    as_one: NDArray[np.float64],  # out  (k,)  score of being one cluster with it
    as_two: NDArray[np.float64],  # out  (k,)  score of being two clusters
) -> None: ...
def merge_costs(
    previous: Centroids,  # in   (k, d)
    previous_masses: Masses,  # in   (k,)
    current: Centroids,  # in   (m, d)
    current_masses: Masses,  # in   (m,)
    squared: NDArray[np.float64],  # out  (k, m)  squared distances
    costs: NDArray[np.float64],  # out  (k, m)  Ward's cost of merging each pair
) -> None: ...
def summarise(
    points: Points,  # in   (n, d)
    weights: Weights | None,  # in   (n,)
    means: Centroids,  # out  (m, d)  of up to m groups
    masses: Masses,  # out  (m,)
) -> tuple[int, float]: ...  # groups, weighted sum of squared distances to their means
def compare(
    masses: NDArray[np.float64],  # in   (batches, k) without decay
    sums: NDArray[np.float64],  # in   (batches, k, d)
    scatter: NDArray[np.float64],  # in   (batches, k) about the batch's own means
    decay: Weights,  # in   (batches,)
    points_per_mass: Weights | None,  # in   (batches,)
    is_whole: NDArray[np.bool_] | None,  # in   (batches,) whether scatter tells how points vary
    oldest: NDArray[np.int64],  # in   (batches,) number of the oldest batch in each
    since: NDArray[np.int64],  # in   (k,) number of the oldest batch to compare with
    moved: NDArray[np.float64],  # in   (k,) how far the centroids moved
    moved_level: float,
    share_level: float,
    evidence: NDArray[np.float64],  # out  (7, k) see changes.hpp
) -> tuple[list[int], list[int], list[int]]: ...  # clusters to look at: moved, share, elsewhere
def moments(
    points: list[Points],  # in   (n_b, d) each
    weights: list[Weights | None],  # in   (n_b,) each
    decay: Weights,  # in   (n_batches,)
    labels: Labels,  # in   (n,) of all points, one batch after another
    centroids: Centroids,  # in   (k, d)
    masses: Masses,  # out  (k,) decayed
    sums: NDArray[np.float64],  # out  (k, d) of the gaps to the centroids
    squares: NDArray[np.float64],  # out  (k, d)
) -> None: ...
def first_beyond(
    points: Points,  # in   (n, d)
    limit: float,
    copy: Points | None = None,  # out  (n, d) the same values
) -> int: ...  # position of the first value not finite or beyond the limit, or -1
def instruction_set() -> str: ...
