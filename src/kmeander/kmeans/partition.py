"""Which cluster each point of a window is in, and what is known of distances and totals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import Centroids, Labels


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is known of the distances of points, at the centroids `snapshot`."""

    upper: NDArray[np.float32]  # (n_points,) not below the distance to the own centroid
    lower: NDArray[np.float32]  # (n_points,) not above the distance to any other
    snapshot: Centroids


@dataclass(frozen=True, eq=False)
class Totals:
    """What each batch adds to each cluster, without decay.

    A function of points, weights and labels alone.
    """

    masses: NDArray[np.float64]  # (n_batches, n_clusters) weight
    sums: NDArray[np.float64]  # (n_batches, n_clusters, n_features) weighted sum of points
    # (n_batches, n_clusters) weighted squared distances to the mean of the batch's own points
    scatter: NDArray[np.float64]


class Partition:
    """Which cluster each point is in, for consecutive batches, their points one after another.

    The kernel holds it, so that a step costs the same few objects however long the window; arrays
    are there for who asks. Never changed.
    """

    def __init__(
        self, labels: Labels, bounds: Bounds | None = None, totals: Totals | None = None
    ) -> None:
        self.division = _kernel.Division(
            labels,
            *((None, None, None) if bounds is None else vars(bounds).values()),
            *((None, None, None) if totals is None else vars(totals).values()),
        )
        self.n_features: int | None = None if bounds is None else bounds.snapshot.shape[1]
        # What the division begins with and has left the window since.
        self.batches_gone = self.points_gone = 0

    @classmethod
    def of(
        cls,
        division: _kernel.Division,
        n_features: int | None,
        batches_gone: int = 0,
        points_gone: int = 0,
    ) -> Partition:
        """Return what the kernel has found."""
        partition = object.__new__(cls)
        vars(partition).update(
            division=division,
            n_features=n_features,
            batches_gone=batches_gone,
            points_gone=points_gone,
        )
        return partition

    @cached_property
    def labels(self) -> Labels:
        """Cluster of each point."""
        return self.division.labels[self.points_gone :]

    @cached_property
    def bounds(self) -> Bounds | None:
        """What is known of the distances of the points."""
        bounds = self.division.bounds
        if bounds is None:
            return None
        upper, lower = bounds
        assert self.n_features is not None
        snapshot = self.division.snapshot.reshape(-1, self.n_features)
        return Bounds(upper[self.points_gone :], lower[self.points_gone :], snapshot)

    @cached_property
    def totals(self) -> Totals | None:
        """What each batch adds to each cluster."""
        totals = self.division.totals
        return None if totals is None else Totals(*(part[self.batches_gone :] for part in totals))

    def without(self, n_batches: int, n_points: int) -> Partition:
        """Return what is left once the first batches, of so many points, have gone."""
        return Partition.of(
            self.division,
            self.n_features,
            self.batches_gone + n_batches,
            self.points_gone + n_points,
        )

    def of_the_first(self, n_points: int) -> Partition:
        """Return that of the first batch, of so many points."""
        bounds, totals = self.bounds, self.totals
        if bounds is not None:
            bounds = Bounds(bounds.upper[:n_points], bounds.lower[:n_points], bounds.snapshot)
        if totals is not None:
            totals = Totals(totals.masses[:1], totals.sums[:1], totals.scatter[:1])
        return Partition(self.labels[:n_points], bounds, totals)

    def __reduce__(self) -> tuple[type[Partition], tuple[Any, ...]]:
        return Partition, (self.labels, self.bounds, self.totals)
