"""The rule for independent rows: what noise is expected if no row depends on another.

It compares the newest batch with those since a cluster's last event, under the same centroids:
means and shares by the sampling of rows alone, and the error by the drift test. Where rows are
independent it keeps the rate of false alarms that it is asked for; where they are not it shows what
learning the noise between batches is worth. It reads what the model hands out: the sums of each
batch and cluster in its window, the ids, and the z of the drift test.

Where the model forgot all older batches at once there is nothing to compare with, and the drift
test alone speaks.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from kmeander.arrays import Points
from kmeander.models.fskm import FSKM
from kmeander.records import Step

Values = NDArray[np.float64]

# Per batch, a third each for drifts, moves and shares.
ALARM_RATE = 0.001
_N_KINDS = 3
# A variance below this share of squared coordinates is rounding.
_ROUNDING = 1e-22


class IndependentRule:
    """Judges batch by batch what a model of K clusters has learned.

    Examples
    --------
    >>> rule = IndependentRule(n_clusters=10)
    >>> round(rule.drift_level, 2), round(rule.level, 2)
    (3.4, 4.15)
    """

    def __init__(self, n_clusters: int) -> None:
        of_kind = ALARM_RATE / _N_KINDS
        self.drift_level = NormalDist().inv_cdf(1 - of_kind)
        # Distances and shares count in both directions.
        self.level = NormalDist().inv_cdf(1 - of_kind / n_clusters / 2)
        self._since: dict[int, int] = {}  # batch from which each id is compared
        self._last: Step | None = None

    def alarms(self, points: Points, step: Step, model: FSKM) -> bool:
        """Return whether the batch that `model` has just learned has an event."""
        del points
        last, self._last = self._last, step
        partition = model.window.partition
        if step.ids is None or partition is None or partition.sums is None:
            return False
        found = self._has_drift(step, last)
        ids = step.ids.tolist()
        since = np.array([self._since.setdefault(number, step.index) for number in ids])
        if last is None or last.ids is None:
            return found
        sums = partition.sums
        oldest = step.index + 1 - len(sums.masses)
        numbers = np.arange(oldest, step.index)
        compared = model.window.decay[:-1, np.newaxis] * (numbers[:, np.newaxis] >= since)
        older = _Older.of(sums.masses[:-1], sums.sums[:-1], compared)
        changed = self._moved(sums.masses, sums.sums[-1], sums.scatter, older)
        changed |= self._has_other_share(sums.masses[-1], older)
        for row in np.flatnonzero(changed).tolist():
            self._since[ids[row]] = step.index
        return found or bool(changed.any())

    def _has_drift(self, step: Step, last: Step | None) -> bool:
        """Whether a drift begins: while centroids catch up with one, the error is too large."""
        if step.drift_z is None or step.drift_z <= self.drift_level:
            return False
        if last is None or last.drift_z is None or last.drift_epsilon is None:
            return True
        assert step.drift_epsilon is not None
        return last.drift_z <= self.drift_level or step.drift_epsilon > last.drift_epsilon

    def _moved(
        self, counts: Values, newest: Points, scatter: Values, older: _Older
    ) -> NDArray[np.bool_]:
        """Whether squared distances of means exceed their expectation, as Student variables."""
        n = counts[-1]
        freedom = np.maximum(counts - 1, 0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = scatter.sum(axis=0) / freedom
            squared = ((newest / n[:, np.newaxis] - older.means) ** 2).sum(axis=1)
            noise = variance * (1 / n + 1 / older.n_effective)
            noise += _ROUNDING * (older.means**2).sum(axis=1)
            # The normal variable that is as rare (Wallace 1959).
            z = (
                (8 * freedom + 1)
                / (8 * freedom + 3)
                * np.sqrt(freedom * np.log1p(squared / noise / freedom))
            )
        is_known = (n > 0) & (older.counts > 0) & (freedom >= 1)
        moved: NDArray[np.bool_] = is_known & (np.nan_to_num(z) > self.level)
        return moved

    def _has_other_share(self, counts: Values, older: _Older) -> NDArray[np.bool_]:
        """Whether two binomial samples differ, by the root of the deviance."""
        size = counts.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            n_before = older.all_effective
            before = older.counts / older.all * n_before
            expected = size * (counts + before) / (size + n_before)
            # A count is moved by one half towards its expectation.
            counts = np.where(
                counts > expected,
                np.maximum(counts - 0.5, expected),
                np.minimum(counts + 0.5, expected),
            )
            pooled = (counts + before) / (size + n_before)
            deviance = 2 * sum(
                xlogy(part, part / whole / share)
                for part, whole, share in (
                    (counts, size, pooled),
                    (size - counts, size, 1 - pooled),
                    (before, n_before, pooled),
                    (n_before - before, n_before, 1 - pooled),
                )
            )
        differs: NDArray[np.bool_] = np.nan_to_num(deviance) > self.level**2
        return differs


class _Older(NamedTuple):
    """The batches that each cluster is compared with, decayed; a value for each cluster."""

    counts: Values
    n_effective: Values  # rows of equal weight that say as much (Kish)
    means: Points
    all: Values  # rows of all clusters in the same batches
    all_effective: Values

    @classmethod
    def of(cls, counts: Values, sums: NDArray[np.float64], decay: Values) -> _Older:
        """Weigh the rows of each batch and cluster by `decay`, of the same shape as `counts`."""
        own = (decay * counts).sum(axis=0)
        sizes = counts.sum(axis=1, keepdims=True)
        every = (decay * sizes).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(
                counts=own,
                n_effective=own**2 / (decay**2 * counts).sum(axis=0),
                means=(decay[:, :, np.newaxis] * sums).sum(axis=0) / own[:, np.newaxis],
                all=every,
                all_effective=every**2 / (decay**2 * sizes).sum(axis=0),
            )
