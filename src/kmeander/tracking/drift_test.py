"""A batch as it arrives: its error under centroids that have not learnt it, and what that says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from kmeander import _kernel
from kmeander.arrays import Centroids
from kmeander.kmeans.forgetting import NEGLIGIBLE
from kmeander.kmeans.lloyd import Limits, measure
from kmeander.kmeans.partition import Partition
from kmeander.kmeans.window import Window
from kmeander.records import Batch

# False alarms that adaptive forgetting accepts, per batch.
FALSE_ALARM_RATE = 1e-3
ALARM_Z = NormalDist().inv_cdf(1 - FALSE_ALARM_RATE)

# Estimates that say what is usual: so many of the latest.
MOST_USUAL = 20

# A normal variable is this many times its median absolute deviation.
_NORMAL_SPREAD = 1.4826


class Estimate(NamedTuple):
    """How far a batch contradicts what was learnt before it.

    Parameters
    ----------
    epsilon : float
        Estimate of the paper's epsilon: the batch costs ``1 + epsilon`` times what a batch like
        those remembered would cost.
    se : float
        Its standard error, by the sampling of points alone.
    """

    epsilon: float
    se: float

    def z(self, usual: Sequence[Estimate], n_points: int) -> float | None:
        """Return how many standard deviations `epsilon` lies above what is usual.

        The median of the estimates before counts as usual, and their spread, as far as sampling
        does not explain it, as chance: a stream that changes at every batch is not in alarm all the
        time. As long as nothing is known, a stream is taken to be calm. With few points, Student's
        t is turned into the z that is as rare (Wallace 1959). None for a batch of one point, or
        where nothing scatters.
        """
        if n_points < 2:
            return None
        centre = beyond = 0.0
        if usual:
            centre, deviation, explained = _kernel.medians(usual)
            beyond = max(0.0, (_NORMAL_SPREAD * deviation) ** 2 - explained)
        deviation = math.sqrt(self.se**2 + beyond)
        if deviation == 0:
            return None
        t, freedom = (self.epsilon - max(centre, 0.0)) / deviation, n_points - 1
        rare = math.sqrt(freedom * math.log1p(t * t / freedom))
        return math.copysign(rare * (8 * freedom + 1) / (8 * freedom + 3), t)


class Arrival(NamedTuple):
    """A batch under the centroids before it."""

    error: float  # prequential
    partition: Partition
    estimate: Estimate | None = None
    z: float | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether the batch contradicts what was learnt, beyond the rate of false alarms."""
        return self.z is not None and self.z > ALARM_Z

    @property
    def history_kept(self) -> float:
        """Share of their weight that the batches before it should keep.

        A drift leaves a gap of ``rho**T * epsilon * E`` after T batches (Theorem 1). At an alarm
        the history loses at once what makes that gap negligible.
        """
        if not self.is_alarm or self.estimate is None:
            return 1.0
        return min(1.0, NEGLIGIBLE / max(self.estimate.epsilon, NEGLIGIBLE))


def ages_to_keep(share: float, rho: float) -> float:
    """Return by how much batches must grow older to keep that share of their weight."""
    if share == 1.0:
        return 0.0
    # With rho = 1 no age takes weight away, so they leave.
    return math.log(share) / math.log(rho) if rho < 1.0 else math.inf


def arrive(
    batch: Batch,
    window: Window,
    centroids: Centroids,
    expected: float | None,
    usual: Sequence[Estimate],
    limits: Limits,
) -> Arrival:
    """Measure a batch against the centroids of the window before it, before it is learned.

    `expected` is the error to expect if nothing changes, `usual` the latest estimates before.
    """
    found = measure(batch.rows, centroids, limits.n_threads)
    # What means hide is part of the error, but says nothing of how it scatters.
    error = found.error + (batch.within or 0.0) / batch.mass
    n_known = window.n_effective
    if not expected or not n_known:
        return Arrival(error, found.partition)
    # Both means scatter, as far as their points go.
    scatter = math.sqrt(1 + batch.n_points / n_known)
    se = found.error / expected * found.relative_se * scatter
    estimate = Estimate(error / expected - 1, se)
    z = estimate.z(usual, batch.n_points)
    return Arrival(error, found.partition, estimate, z)


def usual_after(usual: tuple[Estimate, ...], arrival: Arrival | None) -> tuple[Estimate, ...]:
    """Return the latest estimates, that of `arrival` included."""
    if arrival is None or arrival.estimate is None:
        return usual
    return (*usual, arrival.estimate)[-MOST_USUAL:]
