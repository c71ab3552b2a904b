"""The batches that are remembered, what they weigh, and how long to remember them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arguments import is_finite, positive_number, share_kept
from kmeander.arrays import Centroids, Labels, Masses, Points, Weights, frozen
from kmeander.exceptions import InputError

# rho**T computed as 0.010000000000000002 still counts as 0.01: about a thousand roundings.
_ROUNDING = 1e-12


def rho_for_drift(
    epsilon: float, stable_for: float, m: float = 2.0, negligible: float = 0.01
) -> float:
    """Return the rho that forgets a drift within a fraction of the time between drifts.

    The paper's heuristic: ``epsilon * rho**(stable_for / m) = negligible``.

    Parameters
    ----------
    epsilon : float
        Size of the drifts: the error grows to ``1 + epsilon`` times its value at one.
    stable_for : float
        Batches between two drifts, on average (tau in the paper).
    m : float, default=2.0
        The difference becomes negligible within ``stable_for / m`` batches.
    negligible : float, default=0.01
        What counts as no difference.

    Examples
    --------
    >>> round(rho_for_drift(epsilon=0.5, stable_for=10), 3)
    0.457
    """
    positive_number("epsilon", epsilon)
    positive_number("stable_for", stable_for)
    positive_number("m", m)
    positive_number("negligible", negligible)
    if epsilon <= negligible:
        raise InputError(
            f"epsilon must exceed negligible={negligible:g}, got {epsilon!r}. A smaller drift "
            "needs no forgetting: use rho close to 1."
        )
    return _between_zero_and_one(
        (negligible / epsilon) ** (m / stable_for),
        f"epsilon={epsilon:g}, stable_for={stable_for:g} and m={m:g}",
    )


def rho_for_half_life(batches: float) -> float:
    """Return the rho with which a batch weighs half after that many batches.

    Examples
    --------
    >>> rho_for_half_life(1)
    0.5
    """
    positive_number("batches", batches)
    return _between_zero_and_one(0.5 ** (1.0 / batches), f"batches={batches:g}")


def max_batches_for(rho: float, negligible: float = 0.01) -> int:
    """Return T_max, the smallest T with ``rho**T <= negligible``.

    Examples
    --------
    >>> max_batches_for(0.5)
    7
    >>> max_batches_for(rho_for_drift(epsilon=1.0, stable_for=10))
    5
    """
    rho = share_kept(rho, below_one=True)
    if not (is_finite(negligible) and 0 < negligible < 1):
        raise InputError(
            f"negligible must lie in (0, 1), got {negligible!r}. It is the weight at which a "
            "batch is let go."
        )
    return max(1, math.ceil(math.log(negligible) / math.log(rho) * (1 - _ROUNDING)))


def _between_zero_and_one(rho: float, arguments: str) -> float:
    if 0 < rho < 1:
        return float(rho)
    raise InputError(
        f"{arguments} would need a rho of {rho:g}. No rho strictly between 0 and 1 forgets "
        f"{'so fast' if rho == 0 else 'so slowly'}."
    )


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is known of the distances of a batch's points, at the centroids `snapshot`."""

    upper: NDArray[np.float32]  # (n_points,) not below the distance to the own centroid
    lower: NDArray[np.float32]  # (n_points,) not above the distance to any other
    snapshot: Centroids


@dataclass(frozen=True, eq=False)
class Totals:
    """What a batch adds to each cluster, without decay.

    A function of points, weights and labels alone.
    """

    masses: Masses  # (n_clusters,) weight
    sums: Centroids  # (n_clusters, n_features) weighted sum of points
    scatter: Masses  # (n_clusters,) weighted squared distances to the mean of these points


@dataclass(frozen=True, eq=False)
class Remembered:
    """One batch in the window.

    Where a batch is so small that its totals would outweigh its points they are None, and made
    anew when needed.
    """

    points: Points
    weights: Weights | None
    labels: Labels  # -1 where not yet known
    bounds: Bounds | None = None
    totals: Totals | None = None

    @property
    def mass(self) -> float:
        """Weight of all its points, without decay."""
        return float(len(self.points) if self.weights is None else self.weights.sum())

    def cluster_masses(self, n_clusters: int) -> Masses:
        """Weight of its points per cluster, without decay."""
        if self.totals is not None:
            return self.totals.masses
        return np.bincount(self.labels, self.weights, n_clusters).astype(np.float64)

    def labelled(self, labels: Labels, bounds: Bounds, totals: Totals) -> Remembered:
        """Return the batch under a new partition."""
        keep = 4 * len(totals.masses) <= len(labels)
        return Remembered(self.points, self.weights, labels, bounds, totals if keep else None)


@dataclass(frozen=True, eq=False)
class Window:
    """Batches in order of arrival, a batch aged t weighing ``rho**t``.

    Windows are never changed: each method returns a new one that shares the points.
    """

    rho: float
    batches: tuple[Remembered, ...] = ()
    ages: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.batches)

    @property
    def n_points(self) -> int:
        """Rows in all batches."""
        return sum(len(batch.points) for batch in self.batches)

    @property
    def decay(self) -> Weights:
        """The weight of each batch."""
        return np.array([self.rho**age for age in self.ages], dtype=np.float64)

    @property
    def mass(self) -> float:
        """Decayed weight of all points."""
        pairs = zip(self.batches, self.ages, strict=True)
        return float(sum(self.rho**age * batch.mass for batch, age in pairs))

    def cluster_masses(self, n_clusters: int) -> Masses:
        """Decayed weight of each cluster; with the ages after an arrival this is w*."""
        if not self.batches:
            return np.zeros(n_clusters)
        masses = np.array([batch.cluster_masses(n_clusters) for batch in self.batches])
        total: Masses = (self.decay[:, np.newaxis] * masses).sum(axis=0)
        return total

    def aged(self, elapsed: float, oldest_age: float, max_batches: int | None) -> Window:
        """Let time pass and make room for one more batch.

        Batches leave once their age reaches `oldest_age`; the oldest leave, too, where with the
        one to come there would be more than `max_batches`. They leave before w* is computed
        (Algorithm 2).
        """
        ages = [age + elapsed for age in self.ages]
        # Seventy times 0.1 add up to a little less than 7.
        n_gone = sum(age >= oldest_age * (1 - _ROUNDING) for age in ages)
        if max_batches is not None:
            n_gone = max(n_gone, len(ages) - (max_batches - 1))
        return Window(self.rho, self.batches[n_gone:], tuple(ages[n_gone:]))

    def joined_by(
        self,
        points: Points,
        weights: Weights | None,
        labels: Labels | None = None,
        bounds: Bounds | None = None,
    ) -> Window:
        """Append the newest batch, with age 0; `labels` and `bounds` where they are known."""
        if labels is None:
            labels = np.full(len(points), -1, dtype=np.int32)
        newest = Remembered(points, weights, frozen(labels), bounds)
        return Window(self.rho, (*self.batches, newest), (*self.ages, 0.0))

    def labelled(self, partition: Iterable[tuple[Labels, Bounds, Totals]]) -> Window:
        """Return the window under a new partition, one entry per batch."""
        pairs = zip(self.batches, partition, strict=True)
        return replace(self, batches=tuple(batch.labelled(*found) for batch, found in pairs))

    def state(self) -> dict[str, Any]:
        """Return everything as arrays and numbers.

        Between two steps all bounds are those at the same centroids, which are stored once.
        """
        known = [batch.bounds.snapshot for batch in self.batches if batch.bounds is not None]
        return {
            "rho": self.rho,
            "ages": list(self.ages),
            "snapshot": known[0] if known else None,
            "batches": [
                {
                    "points": batch.points,
                    "weights": batch.weights,
                    "labels": batch.labels,
                    "upper": None if batch.bounds is None else batch.bounds.upper,
                    "lower": None if batch.bounds is None else batch.bounds.lower,
                    "totals": None if batch.totals is None else dict(vars(batch.totals)),
                }
                for batch in self.batches
            ],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Window:
        """Make a window from what `state` returned."""
        batches = []
        for stored in state["batches"]:
            entry = dict(stored)
            upper, lower, totals = entry.pop("upper"), entry.pop("lower"), entry.pop("totals")
            # Arrays from a pickle can be written to; nothing here may.
            for array in (*entry.values(), upper, lower, *(totals or {}).values()):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
            bounds = None if upper is None else Bounds(upper, lower, state["snapshot"])
            batches.append(
                Remembered(
                    **entry, bounds=bounds, totals=None if totals is None else Totals(**totals)
                )
            )
        return cls(state["rho"], tuple(batches), tuple(state["ages"]))
