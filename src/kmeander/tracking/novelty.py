"""How unusual a row is for its cluster, and how unusual ordinary rows are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.arguments import finite_number, is_finite
from kmeander.arrays import Centroids, Masses, Points, Weights, frozen
from kmeander.exceptions import InputError, argument
from kmeander.kmeans.lloyd import Limits, fit_window, nearest
from kmeander.kmeans.window import Window

# Share of a mass, or of a total, that rounding alone may make.
_ROUNDING = 1e-12

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Novelty:
    """Distances of rows in units of what is usual in their clusters.

    The score of a row is its distance to the nearest centroid, divided by the root of the mean
    squared distance in that cluster. So that clusters of few rows have a unit, too, each counts one
    more row, with the mean squared distance over all clusters.

    Parameters
    ----------
    window : Window
        Divided among `centroids`.
    centroids : ndarray of shape (n_clusters, n_features)
    limits : Limits
        The metric, and how many threads may be used.
    """

    window: Window
    centroids: Centroids
    limits: Limits

    def scores(self, points: Points) -> Numbers:
        """Return how unusual each row is: 1 is usual, and rows farther away have more."""
        labels, squared = nearest(points, self.centroids, self.limits.n_threads)
        return _relative(squared, self._known.spread[labels], self._rounding)

    def threshold(self, rate: float) -> float:
        """Return the score that a share `rate` of ordinary rows passes.

        That is the least score which the other rows of the window do not pass, each judged as if
        its batch had not been learned. One more row is counted as passing it, as conformal
        prediction does: then the share of new rows that pass it is at most `rate`, where they come
        from the same distribution.
        """
        rate = finite_number(
            "rate",
            rate,
            rule="a number above 0 and below 1: the share of ordinary rows that pass the threshold",
            fits=is_finite(rate) and 0 < rate < 1,
        )
        scores, reached, one = self._ordinary
        total = reached[-1] + one
        place = int(np.searchsorted(reached, (1 - rate) * total * (1 - _ROUNDING)))
        if place == len(scores) or not np.isfinite(scores[place]):
            is_over = ~np.isfinite(scores)
            finite = float(reached[~is_over][-1]) if not is_over.all() else 0.0
            raise InputError(
                f"{argument('rate', rate)} is too small for what is remembered, which says nothing "
                f"of shares below {1 - finite / total:.2g}. Ask for more, learn larger batches, or "
                "remember more of them by a larger rho or max_batches."
            )
        return float(scores[place])

    @cached_property
    def _rounding(self) -> float:
        """What squared distances of equal rows may be."""
        largest = float(np.abs(self.centroids).max())
        step = 8 * float(np.finfo(np.float64).eps) * largest
        return float(self.centroids.shape[1] * step * step)

    @cached_property
    def _known(self) -> _Known:
        """Masses, sums and distances of each cluster, batch by batch."""
        window, centroids = self.window, self.centroids
        sums = fit_window(window, centroids, self.limits, only_assign=True, keep_sums=True).sums
        decay = window.decay[:, np.newaxis]
        masses = decay * sums.masses
        means = sums.sums / np.where(sums.masses > 0, sums.masses, 1.0)[:, :, np.newaxis]
        apart = ((means - centroids) ** 2).sum(axis=2)
        spent = decay * sums.scatter + masses * apart
        # What means hide of the distances of their rows is shared by mass.
        hidden = np.array([batch.within / batch.mass for batch in window.batches])
        spent += masses * hidden[:, np.newaxis]
        batches = zip(window.decay.tolist(), window.batches, strict=True)
        one = _typical(np.concatenate([decay * batch.weights_or_ones for decay, batch in batches]))
        mass, total = masses.sum(axis=0), spent.sum(axis=0)
        of_all = float(total.sum() / mass.sum())
        spread = (total + one * of_all) / (mass + one)
        return _Known(
            masses, decay[:, :, np.newaxis] * sums.sums, spent, one, of_all, frozen(spread)
        )

    @cached_property
    def _ordinary(self) -> tuple[Numbers, Numbers, float]:
        """Scores of the window's rows in order, the weight up to each, and that of one row."""
        found, weights = [], []
        batches = zip(self.window.batches, self.window.decay.tolist(), strict=True)
        for place, (batch, decay) in enumerate(batches):
            if batch.summary is None:
                found.append(self._scores_of(place))
                weights.append(decay * batch.weights_or_ones)
        if not found:
            raise InputError(
                "novelty_threshold needs rows, and the batches remembered are weighted means of "
                "theirs. Learn rows, or judge scores by those of rows that you know."
            )
        scores, weight = np.concatenate(found), np.concatenate(weights)
        order = np.argsort(scores, kind="stable")
        return scores[order], np.cumsum(weight[order]), _typical(weight)

    def _scores_of(self, place: int) -> Numbers:
        """Return scores of a batch's rows as if they had not been learned.

        A cluster is taken without the whole batch, since rows of one batch may depend on one
        another; or, where most of its mass is in that batch, without the row alone.
        """
        known, batch = self._known, self.window.batches[place]
        mass, own = known.masses.sum(axis=0), known.masses[place]
        rest = mass - own
        is_apart = (rest >= own * (1 - 1e-9)) & (mass > 0)
        divisor = np.where(is_apart, rest, 1.0)
        sums = known.sums.sum(axis=0) - known.sums[place]
        metric = self.limits.metric
        means = metric.centroids(sums / divisor[:, np.newaxis], self.centroids)
        centroids = np.where(is_apart[:, np.newaxis], means, self.centroids)
        spent = known.spent.sum(axis=0)
        spread = np.where(is_apart, known.spread_of(spent - known.spent[place], rest), known.spread)
        labels, squared = nearest(batch.points, frozen(centroids), self.limits.n_threads)
        scores = _relative(squared, spread[labels], self._rounding)
        begin = sum(before.n_points for before in self.window.batches[:place])
        assert self.window.partition is not None
        were = self.window.partition.labels[begin : begin + batch.n_points]
        alone = np.flatnonzero(~is_apart[labels] & (labels == were))
        if not len(alone):
            return scores
        cluster, decay = labels[alone], self.window.decay[place]
        weight = decay * batch.weights_or_ones[alone]
        others = mass[cluster] - weight
        is_lonely = others <= 1e-9 * mass[cluster]
        others = np.where(is_lonely, 1.0, others)
        left = np.maximum(spent[cluster] - weight * squared[alone], 0.0)
        points = batch.points[alone].astype(np.float64)
        sums = known.sums.sum(axis=0)[cluster] - weight[:, np.newaxis] * points
        means = metric.centroids(sums / others[:, np.newaxis], self.centroids[cluster])
        farther = ((points - means) ** 2).sum(axis=1)
        scores[alone] = np.where(
            is_lonely, np.inf, _relative(farther, known.spread_of(left, others), self._rounding)
        )
        return scores


class _Known(NamedTuple):
    """What each batch adds to each cluster, decayed; and the units of the clusters."""

    masses: Masses  # (batches, k)
    sums: Numbers  # (batches, k, d)
    spent: Numbers  # (batches, k) squared distances to the centroid
    one: float  # weight of one row
    of_all: float  # mean squared distance over all clusters
    spread: Numbers  # (k,)

    def spread_of(self, spent: Numbers, mass: Masses) -> Numbers:
        """Return mean squared distances, one row of all clusters' mean among them."""
        spread: Numbers = (spent + self.one * self.of_all) / (mass + self.one)
        return spread


def _typical(weights: Weights) -> float:
    """Return the weight of one row: of as many equal rows as say as much, together as heavy."""
    return float((weights * weights).sum() / weights.sum())


def _relative(squared: Numbers, spread: Numbers, rounding: float) -> Numbers:
    """Return distances in units; where all rows lie on their centroids any other is infinite.

    Squares up to `rounding` are none.
    """
    is_known, is_apart = spread > rounding, squared > rounding
    ratio = squared / np.where(is_known, spread, 1.0)
    return np.where(is_apart, np.where(is_known, np.sqrt(ratio), np.inf), 0.0)
