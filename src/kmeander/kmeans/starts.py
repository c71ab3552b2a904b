"""Initialisation: where Lloyd starts when a batch has arrived (PC, CC, WI and HI).

All four keep the ids: row k of the start continues cluster k of the previous centroids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander import _kernel
from kmeander.arguments import generator_for, seed_from
from kmeander.arrays import (
    Centroids,
    Masses,
    checked_centroids,
    checked_masses,
    checked_points,
)
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import Limits, LloydResult
from kmeander.kmeans.seeding import kmeans

if TYPE_CHECKING:
    from kmeander.arguments import RandomState

Matching = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Centroids and what they stand for."""

    centroids: Centroids
    masses: Masses


class Start(NamedTuple):
    """Centroids to start from, and the distances it took to find them."""

    centroids: Centroids
    n_distances: int = 0
    n_distances_plain: int = 0
    newest: _kernel.Partition | None = None  # of the batch, where its K-means has left one

    def plus(self, n_distances: int, plain: int | None = None) -> Start:
        """Return the same after more distances; a plain Lloyd needs `plain`, or the same number."""
        return Start(
            self.centroids,
            self.n_distances + n_distances,
            self.n_distances_plain + (n_distances if plain is None else plain),
            self.newest,
        )


# C^0 costs a K-means on the batch, so it is asked for and not handed over: PC never asks.
Current = Callable[[], LloydResult]
# So does a generator; only WI draws.
Draws = Callable[[], np.random.Generator]
Initialisation = Callable[[Clusters, Current, Draws], Start]


def start_previous(previous: Clusters, current: Current, draws: Draws) -> Start:
    """PC: the centroids C* that the window before the batch converged to."""
    return Start(previous.centroids)


def start_current(previous: Clusters, current: Current, draws: Draws) -> Start:
    """CC: the centroids C^0 of the new batch alone, in the order of the previous ones."""
    found = current()
    matching = _match(previous, Clusters(found.centroids, found.masses))
    centroids = _placed(previous.centroids, found.centroids, matching)
    return _start(centroids, matching, found, newest=_renumbered(found, matching))


def start_weighted(previous: Clusters, current: Current, draws: Draws) -> Start:
    """WI: weighted K-means on the union of C* and C^0, Algorithm 3."""
    found = current()
    merged = _merge(previous, Clusters(found.centroids, found.masses), draws())
    matching = _match(previous, Clusters(merged.centroids, merged.masses))
    centroids = _placed(previous.centroids, merged.centroids, matching)
    return _start(centroids, matching, found, merged)


def start_hungarian(previous: Clusters, current: Current, draws: Draws) -> Start:
    """HI: the weighted mean of each pair of C* and C^0 that the assignment joins, Algorithm 4."""
    found = current()
    newest = Clusters(found.centroids, found.masses)
    matching = _match(previous, newest)
    centroids = _averaged(previous, newest, matching)
    return _start(centroids, matching, found, newest=_renumbered(found, matching))


INITIALISATIONS: dict[str, Initialisation] = {
    "previous": start_previous,
    "current": start_current,
    "weighted": start_weighted,
    "hungarian": start_hungarian,
}


def hungarian(
    previous: ArrayLike, previous_mass: ArrayLike, current: ArrayLike, current_mass: ArrayLike
) -> tuple[Centroids, Matching]:
    """Hungarian initialisation: match two sets of centroids and average the pairs.

    The matching minimises the sum of Ward's merge costs,
    ``w*w0 / (w*+w0) * ||c* - c0||**2``; each pair becomes its weighted mean (Theorem 3).

    Parameters
    ----------
    previous : array-like of shape (n_clusters, n_features)
    previous_mass : array-like of shape (n_clusters,)
    current : array-like of shape (n_current, n_features)
        At most as many as `previous`; a previous centroid that gets no partner stays.
    current_mass : array-like of shape (n_current,)

    Returns
    -------
    centroids : ndarray of shape (n_clusters, n_features)
    matching : ndarray of shape (n_clusters,)
        Index in `current`, -1 where unmatched.

    Examples
    --------
    >>> centroids, matching = hungarian([[0.0], [10.0]], [1, 1], [[12.0], [1.0]], [1, 3])
    >>> centroids.tolist(), matching.tolist()
    ([[0.75], [11.0]], [1, 0])
    """
    before, newest = _checked_pair(previous, previous_mass, current, current_mass)
    matching = _match(before, newest)
    return _averaged(before, newest, matching), matching


def weighted(
    previous: ArrayLike,
    previous_mass: ArrayLike,
    current: ArrayLike,
    current_mass: ArrayLike,
    *,
    random_state: RandomState = None,
) -> Centroids:
    """Weighted initialisation: weighted K-means on the union of two sets of centroids.

    Parameters
    ----------
    previous, previous_mass, current, current_mass
        As for `hungarian`.
    random_state : int, Generator, RandomState or None
        For the weighted k-means++ seeding.

    Returns
    -------
    ndarray of shape (n_clusters, n_features)
        Row k is the one matched to ``previous[k]``. Where the union has fewer distinct points of
        positive mass than clusters, the previous centroids left over stay.

    Examples
    --------
    >>> weighted([[0.0], [10.0]], [1, 1], [[12.0], [1.0]], [1, 3], random_state=0).tolist()
    [[0.75], [11.0]]
    """
    before, newest = _checked_pair(previous, previous_mass, current, current_mass)
    merged = _merge(before, newest, generator_for(seed_from(random_state), 0))
    matching = _match(before, Clusters(merged.centroids, merged.masses))
    return _placed(before.centroids, merged.centroids, matching)


def _start(
    centroids: Centroids,
    matching: Matching,
    *runs: LloydResult,
    newest: _kernel.Partition | None = None,
) -> Start:
    # The last run's clusters were measured against the previous ones, each against each.
    n_matched = len(matching) * len(runs[-1].centroids)
    return Start(
        centroids,
        n_matched + sum(run.n_distances for run in runs),
        n_matched + sum(run.n_distances_plain for run in runs),
        newest,
    )


def _renumbered(found: LloydResult, matching: Matching) -> _kernel.Partition | None:
    """Return the partition of the batch under the ids of the previous centroids.

    None where one of those has no partner: its distances are not known.
    """
    if found.partition is None or len(found.centroids) < len(matching):
        return None
    return found.partition.renumbered(matching)


def _merge(previous: Clusters, current: Clusters, rng: np.random.Generator) -> LloydResult:
    centroids = np.concatenate([previous.centroids, current.centroids])
    masses = np.concatenate([previous.masses, current.masses])
    # A centroid without mass is no point of the weighted problem, unless there are no others.
    heavy = masses > 0
    if not heavy.any():
        heavy, masses = ~heavy, np.ones_like(masses)
    return kmeans(
        centroids[heavy], masses[heavy], len(previous.centroids), rng, Limits(n_threads=1)
    )


def _match(previous: Clusters, current: Clusters) -> Matching:
    """Return for each previous centroid its partner in `current`, or -1."""
    from scipy.optimize import linear_sum_assignment

    squared, costs = np.empty((2, len(previous.centroids), len(current.centroids)))
    _kernel.merge_costs(
        previous.centroids, previous.masses, current.centroids, current.masses, squared, costs
    )
    rows, columns = linear_sum_assignment(costs)
    matching: Matching = columns
    if len(rows) < len(previous.centroids):
        matching = np.full(len(previous.centroids), -1, dtype=np.intp)
        matching[rows] = columns
    # A cluster that has lost its mass costs nothing wherever it goes. Among such clusters, and
    # the partners they share out, the shortest way wins: their ids should not jump about.
    idle = np.flatnonzero(previous.masses == 0)
    shared = matching[idle][matching[idle] >= 0] if idle.size else idle
    if shared.size:
        rows, columns = linear_sum_assignment(squared[np.ix_(idle, shared)])
        matching[idle] = -1
        matching[idle[rows]] = shared[columns]
    return matching


def _placed(previous: Centroids, found: Centroids, matching: Matching) -> Centroids:
    """Put each of `found` where its partner was; previous centroids without one stay."""
    return np.where(matching[:, np.newaxis] >= 0, found[matching], previous)


def _averaged(previous: Clusters, current: Clusters, matching: Matching) -> Centroids:
    """Return the weighted mean of each pair (Theorem 3); without partner or mass: unchanged."""
    averaged = np.empty_like(previous.centroids)
    _kernel.average(
        previous.centroids,
        previous.masses,
        current.centroids,
        current.masses,
        matching,
        averaged,
    )
    return averaged


def _checked_pair(
    previous: ArrayLike, previous_mass: ArrayLike, current: ArrayLike, current_mass: ArrayLike
) -> tuple[Clusters, Clusters]:
    before = checked_points(previous, "previous").astype(np.float64, copy=False)
    newest = checked_centroids(current, before.shape[1], "current")
    if len(newest) > len(before):
        raise InputError(
            f"current has {len(newest)} centroids, previous has {len(before)}. "
            "There cannot be more new clusters than there are ids to continue."
        )
    return (
        Clusters(before, checked_masses(previous_mass, len(before), "previous_mass")),
        Clusters(newest, checked_masses(current_mass, len(newest), "current_mass")),
    )
