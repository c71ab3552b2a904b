"""The drift test: whether a new batch costs more than chance explains, before it is learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from kmeander import _kernel
from kmeander.arrays import Centroids
from kmeander.kmeans.forgetting import NEGLIGIBLE
from kmeander.kmeans.lloyd import Limits, measure
from kmeander.kmeans.window import Window
from kmeander.records import Batch

# False alarms that adaptive forgetting accepts, per batch.
FALSE_ALARM_RATE = 1e-3
ALARM_Z = NormalDist().inv_cdf(1 - FALSE_ALARM_RATE)

# Latest estimates of epsilon whose median and median absolute deviation are the baseline.
BASELINE_SIZE = 20

# A normal variable is this many times its median absolute deviation.
_NORMAL_SPREAD = 1.4826


class Estimate(NamedTuple):
    """An estimate of the paper's epsilon.

    Parameters
    ----------
    epsilon : float
        The batch costs ``1 + epsilon`` times what a batch like those remembered would cost.
    se : float
        Its standard error, by the sampling of points alone.
    """

    epsilon: float
    se: float

    def z(self, baseline: Sequence[Estimate], n_points: int) -> float | None:
        """Return how many standard deviations `epsilon` lies above the baseline.

        The baseline is the median of the estimates before; their spread, beyond what sampling
        explains, counts as chance: a stream that changes at every batch is not in alarm all the
        time. Without estimates a stream is taken to be calm. With few points, Student's t is turned
        into the z that is as rare (Wallace 1959). None for a batch of one point, or where nothing
        scatters.
        """
        if n_points < 2:
            return None
        centre = spread = beyond = 0.0
        if baseline:
            centre, deviation, explained = _kernel.medians(baseline)
            spread = _NORMAL_SPREAD * deviation
            beyond = max(0.0, spread * spread - explained)
        variance = self.se * self.se + beyond
        # After errors near 0 the squares may be infinite.
        is_far = math.isinf(variance)
        deviation = math.hypot(self.se, spread) if is_far else math.sqrt(variance)
        if deviation == 0:
            return None
        t, freedom = (self.epsilon - max(centre, 0.0)) / deviation, n_points - 1
        rare = math.sqrt(freedom * math.log1p(t * t / freedom))
        return math.copysign(rare * (8 * freedom + 1) / (8 * freedom + 3), t)


class DriftTest(NamedTuple):
    """A batch under the centroids before it."""

    error: float  # of the batch, before it is learned
    partition: _kernel.Partition
    estimate: Estimate | None = None
    z: float | None = None

    @property
    def is_drift(self) -> bool:
        """Whether the batch contradicts what was learned, beyond the rate of false alarms."""
        return self.z is not None and self.z > ALARM_Z

    @property
    def history_kept(self) -> float:
        """Share of their weight that the batches before it should keep.

        A drift leaves a gap of ``rho**T * epsilon * E`` after T batches (Theorem 1). Where the test
        finds one, the history loses at once what makes that gap negligible.
        """
        if not self.is_drift or self.estimate is None:
            return 1.0
        return min(1.0, NEGLIGIBLE / max(self.estimate.epsilon, NEGLIGIBLE))


def measure_arrival(
    batch: Batch,
    window: Window,
    centroids: Centroids,
    expected_error: float | None,
    baseline: Sequence[Estimate],
    limits: Limits,
) -> DriftTest:
    """Measure a batch against the centroids of the window before it, before it is learned.

    Parameters
    ----------
    batch : Batch
    window : Window
        Without the batch.
    centroids : ndarray of shape (n_clusters, n_features)
    expected_error : float or None
        What a batch should cost if nothing changes; without it nothing is tested.
    baseline : sequence of Estimate
        The latest estimates before.
    limits : Limits
    """
    found = measure(batch.handle, centroids, limits.threads, limits.metric)
    error = found.error
    if batch.within is not None:  # what means hide is error, too, but says nothing of its scatter
        error += limits.metric.error_share * (batch.within / batch.mass)
    n_known = window.handle.n_effective
    if not expected_error or not n_known:
        return DriftTest(error, found.partition)
    # Both means scatter, as far as their points go.
    scatter = math.sqrt(1 + batch.n_points / n_known)
    se = found.error / expected_error * found.relative_se * scatter
    estimate = Estimate(error / expected_error - 1, se)
    if math.isinf(estimate.epsilon) or math.isinf(se):  # as good as no error expected
        return DriftTest(error, found.partition)
    return DriftTest(error, found.partition, estimate, estimate.z(baseline, batch.n_points))


def ages_to_keep(share: float, rho: float) -> float:
    """Return by how much batches must grow older to keep that share of their weight."""
    if share == 1.0:
        return 0.0
    # With rho = 1 no age takes weight away, so they leave.
    return math.log(share) / math.log(rho) if rho < 1.0 else math.inf
