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
def seed(
    points: Points,  # in   (n, d)
    weights: Weights | None,  # in   (n,)
    uniforms: NDArray[np.float64],  # in   (k,)  numbers in [0, 1): one draw each
    chosen: NDArray[np.int64],  # out  (k,)  rows drawn, of which the first n_seeds count
    n_threads: int,
) -> tuple[int, int]: ...  # n_seeds, distances computed
def lloyd(
    points: Sequence[Points],  # in      (n, d) per batch, the oldest first
    weights: Sequence[Weights | None],  # in      (n,) per batch
    decay: Weights,  # in      (batches,)
    labels: Sequence[Labels],  # in/out  (n,) per batch, -1 where not yet known
    upper: Sequence[NDArray[np.float32]],  # in/out  (n,) per batch: bound of the own distance
    lower: Sequence[NDArray[np.float32]],  # in/out  (n,) per batch: bound of all other distances
    snapshots: Sequence[Centroids | None],  # in      (k, d) per batch: where the bounds hold
    masses: Sequence[Masses],  # in/out  (k,) per batch, without decay
    sums: Sequence[Centroids],  # in/out  (k, d) per batch, without decay
    scatter: Sequence[Masses],  # in/out  (k,) per batch, about the batch's own means
    summed: Sequence[bool],  # in      masses, sums and scatter are already those of labels
    centroids: Centroids,  # in/out  (k, d)
    first_errors: NDArray[np.float64],  # out     (batches,) sums, without decay
    last_errors: NDArray[np.float64],  # out     (batches,)
    reseeded: NDArray[np.uint8],  # out     (k,)
    max_iter: int,
    shift: float,
    n_threads: int,
) -> tuple[int, int, bool]: ...  # passes, distances computed, converged
def first_beyond(
    points: Points,  # in   (n, d)
    limit: float,
) -> int: ...  # position of the first value not finite or beyond the limit, or -1
def instruction_set() -> str: ...
