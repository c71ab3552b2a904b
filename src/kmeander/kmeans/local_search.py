"""Local search (LS++ swaps) before Lloyd: centroids that do little go where they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kmeander import _kernel
from kmeander.arguments import whole_number
from kmeander.arrays import Centroids, frozen
from kmeander.exceptions import ArgumentError
from kmeander.kmeans.lloyd import Limits, fit_window
from kmeander.kmeans.window import Window

# Candidates tried at each batch with refine="swaps"; measured, see docs/decisions/models.md.
CANDIDATES = 20


def candidates_of(refine: Any) -> int:
    """Return how many candidates `refine` means: None, "swaps" or a number."""
    if refine is None:
        return 0
    if refine == "swaps" and isinstance(refine, str):
        return CANDIDATES
    if isinstance(refine, str):
        raise ArgumentError(
            f'refine must be None, "swaps" or the number of swaps to try at each batch, got '
            f"{refine!r}."
        )
    return whole_number(
        "refine",
        refine,
        at_least=1,
        meaning='the number of swaps to try at each batch; "swaps" and None also serve',
    )


@dataclass(frozen=True, eq=False)
class Refined:
    """Where local search ended: the window under the centroids found."""

    window: Window
    centroids: Centroids
    swapped: tuple[int, ...]
    n_swaps: int
    n_distances: int
    n_distances_plain: int  # each candidate against each point, each point against each centroid


def swap_centroids(
    window: Window,
    centroids: Centroids,
    n_candidates: int,
    rng: np.random.Generator,
    limits: Limits,
) -> Refined:
    """Try `n_candidates` points of the window as centroids, and keep those that lower the error.

    A candidate is drawn with probability proportional to its decayed weight times its squared
    distance, and takes the place of the centroid whose removal costs least, if the surrogate error
    falls (LS++ [1]_).

    References
    ----------
    .. [1] Lattanzi, Sohler, "A Better k-means++ Algorithm via Local Search", ICML 2019.
    """
    moved = np.array(centroids, dtype=np.float64, order="C")
    drawn = (rng.random(n_candidates), limits.metric.on_sphere, limits.threads)
    n_distances = 0
    found = _kernel.swap(window.handle, window.partition, window.newest, moved, *drawn)
    if found is None:  # labels and bounds are not known at these centroids
        fit = fit_window(window, centroids, limits, only_assign=True)
        window, n_distances = fit.window, fit.n_distances
        found = _kernel.swap(window.handle, window.partition, None, moved, *drawn)
        assert found is not None
    partition, n_swaps, n_computed, swapped = found
    if len(swapped) > 1:
        moved, partition = _near_their_old_places(centroids, moved, partition, swapped)
    return Refined(
        window=window.divided(partition),
        centroids=frozen(moved) if n_swaps else centroids,
        swapped=tuple(swapped),
        n_swaps=n_swaps,
        n_distances=n_distances + n_computed,
        n_distances_plain=(n_candidates + len(moved)) * window.n_points,
    )


def _near_their_old_places(
    before: Centroids, after: Centroids, partition: _kernel.Partition, swapped: list[int]
) -> tuple[Centroids, _kernel.Partition]:
    """Return centroids and partition with the swapped clusters numbered anew, the shortest way.

    Several swaps may hand a place on from one cluster to another; its id should stay there.
    """
    from scipy.optimize import linear_sum_assignment

    squared = ((before[swapped][:, np.newaxis] - after[swapped]) ** 2).sum(axis=2)
    order = np.arange(len(after))
    order[swapped] = np.array(swapped)[linear_sum_assignment(squared)[1]]
    return after[order], partition.renumbered(order)
