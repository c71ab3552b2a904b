"""Local search: swaps before Lloyd, split-merge after it; centroids go where they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arguments import whole_number
from kmeander.arrays import Centroids, frozen
from kmeander.exceptions import ArgumentError
from kmeander.kmeans.lloyd import Limits, WindowFit, fit_window
from kmeander.kmeans.window import Window

# Candidates tried at each batch with refine="swaps"; measured, see docs/decisions/models.md.
CANDIDATES = 20


# With refine="split-merge", beside those: rounds of it after Lloyd, the share of the error that a
# round must save, and the most batches that it rests for once a round has found nothing.
_ROUNDS = 2
_LEAST_SAVED = 1e-4
_LONGEST_REST = 8


class Refinement(NamedTuple):
    """What `refine` means: the candidates of swaps, and whether clusters are split and merged."""

    n_candidates: int
    splits: bool


def refinement_of(refine: Any) -> Refinement:
    """Return what `refine` means: None, "swaps", "split-merge" or a number of candidates."""
    if refine is None:
        return Refinement(0, splits=False)
    if isinstance(refine, str) and refine in ("swaps", "split-merge"):
        return Refinement(CANDIDATES, splits=refine == "split-merge")
    if isinstance(refine, str):
        raise ArgumentError(
            f'refine must be None, "swaps", "split-merge" or the number of swaps to try at each '
            f"batch, got {refine!r}."
        )
    n_candidates = whole_number(
        "refine",
        refine,
        at_least=1,
        meaning='the number of swaps to try at each batch; "swaps", "split-merge" and None also '
        "serve",
    )
    return Refinement(n_candidates, splits=False)


class Rest(NamedTuple):
    """How many batches split-merge is left out for, since it last found nothing."""

    n_left: int = 0
    length: int = 1  # of the rest before

    def after(self, has_found: bool) -> Rest:
        """Return the rest after an attempt: 2, 4, 8 batches, and 8 again, until one succeeds."""
        if has_found:
            return Rest()
        length = min(2 * self.length, _LONGEST_REST)
        return Rest(length, length)


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


def split_and_merge(
    fit: WindowFit,
    rng: np.random.Generator,
    limits: Limits,
    *,
    before: Centroids | None = None,
    keep_sums: bool = False,
) -> tuple[WindowFit, tuple[int, ...]]:
    """Give centroids that are missed least to clusters that gain most as two, and run Lloyd again.

    What a cluster gains is found by a short 2-means on its points; exchanges are made while a
    split gains more than a removal costs, beyond chance [1]_. Lloyd's new end is kept if the error
    has fallen. Returns the best fit, and the clusters whose centroids went elsewhere.

    References
    ----------
    .. [1] Capó, Pérez, Lozano, "An efficient split-merge re-start for the K-means algorithm",
       IEEE TKDE 2022.
    """
    elsewhere: set[int] = set()
    for _ in range(_ROUNDS):
        centroids = np.array(fit.centroids, order="C")
        assert fit.window.partition is not None
        split, removed, n_distances = _kernel.exchange(
            fit.window.handle, fit.window.partition, centroids, rng.random(2 * len(centroids)),
            limits.threads,
        )  # fmt: skip
        fit = fit.plus(n_distances, 2 * fit.window.n_points)
        if not split:
            break
        if len(removed) > 1:
            order = _shortest_ways(fit.centroids, centroids, removed)
            centroids = centroids[order]
        start = limits.metric.centroids(frozen(centroids), fit.centroids)
        again = fit_window(fit.window, start, limits, before=before, keep_sums=keep_sums)
        saves = again.error < fit.error * (1 - _LEAST_SAVED)
        fit = (
            again.following(fit) if saves else fit.plus(again.n_distances, again.n_distances_plain)
        )
        if not saves:
            break
        elsewhere.update(removed)
    return fit, tuple(sorted(elsewhere))


def _near_their_old_places(
    before: Centroids, after: Centroids, partition: _kernel.Partition, swapped: list[int]
) -> tuple[Centroids, _kernel.Partition]:
    """Return centroids and partition with the swapped clusters numbered anew, the shortest way.

    Several swaps may hand a place on from one cluster to another; its id should stay there.
    """
    order = _shortest_ways(before, after, swapped)
    return after[order], partition.renumbered(order)


def _shortest_ways(before: Centroids, after: Centroids, rows: list[int]) -> NDArray[np.int64]:
    """Return an order in which each of these rows of `after` is near its place before."""
    from scipy.optimize import linear_sum_assignment

    squared = ((before[rows][:, np.newaxis] - after[rows]) ** 2).sum(axis=2)
    order = np.arange(len(after))
    order[rows] = np.array(rows)[linear_sum_assignment(squared)[1]]
    return order
