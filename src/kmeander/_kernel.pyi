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
    masses: Sequence[Masses],  # in/out  (k,) per batch, without decay
    sums: Sequence[Centroids],  # in/out  (k, d) per batch, without decay
    summed: Sequence[bool],  # in      masses and sums are already those of labels
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
