"""How far the clusters of a concept must move for a drift of a given size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Labels
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import mean_error

Concept = NDArray[np.float64]

# A drift may miss its epsilon by this share: of epsilon * E, and, in the paper, of the new error.
ROOT_TOLERANCE = 0.001
PAPER_TOLERANCE = 0.05
# Far more than either search needs; a search that runs longer is stuck on rounding.
MOST_TRIALS = 1000


@dataclass(frozen=True, eq=False)
class Shift:
    """The points of a concept, each cluster with the direction in which it will move."""

    points: Concept
    labels: Labels
    centroids: Centroids
    directions: NDArray[np.float64]
    n_threads: int | None = None

    def by(self, magnitude: float) -> Concept:
        """Return the points, every one moved by `magnitude` in its cluster's direction."""
        moved: Concept = self.points + (magnitude * self.directions)[self.labels]
        return moved

    def error(self, magnitude: float) -> float:
        """Return the error of the moved points under the centroids of the unmoved."""
        return mean_error(self.by(magnitude), None, self.centroids, self.n_threads)


def magnitude_by_root(shift: Shift, epsilon: float) -> float:
    """Return the magnitude at which the error has grown by epsilon times itself, to 0.1 %.

    The error is continuous in the magnitude and grows without bound, so there is one. Without
    points that change cluster the error would be ``E + magnitude**2``: as a function of the square
    it is nearly straight, and false position (in the Illinois variant, which does not get stuck
    at one end) needs few trials.
    """
    before = _error_before(shift)
    growth = epsilon * before

    def excess(square: float) -> float:
        return (shift.error(math.sqrt(square)) - before) / growth - 1.0

    low, below = 0.0, -1.0
    high, above = math.inf, math.inf
    trial, side = growth, 0
    for _ in range(MOST_TRIALS):
        found = excess(trial)
        if abs(found) <= ROOT_TOLERANCE:
            return math.sqrt(trial)
        # An end that stays twice counts half from then on, so that it cannot stay for ever.
        if found > 0:
            high, above = trial, found
            below /= 2 if side > 0 else 1
            side = 1
        else:
            low, below = trial, found
            above /= 2 if side < 0 else 1
            side = -1
        if high < math.inf:
            trial = low + (high - low) * below / (below - above)
        else:  # not bracketed yet
            trial = 4 * low if found < -0.5 else 2 * low / (1 + found)
    raise _missed(shift, epsilon, before, "0.1 % of epsilon * E")


def magnitude_by_the_paper(shift: Shift, epsilon: float) -> float:
    """Return the magnitude that the paper's iteration stops at, within 5 % of the new error."""
    before = _error_before(shift)
    target = (1.0 + epsilon) * before
    # The sum of the errors over K * |X|, that is, the mean over K.
    step = math.sqrt(epsilon * before / len(shift.centroids))
    magnitude = step
    for _ in range(MOST_TRIALS):
        ratio = shift.error(magnitude) / target
        if abs(ratio - 1.0) < PAPER_TOLERANCE:
            return magnitude
        magnitude -= (ratio - 1.0) * step
    raise _missed(shift, epsilon, before, "5 % of (1 + epsilon) * E")


MAGNITUDES: dict[str, Callable[[Shift, float], float]] = {
    "root": magnitude_by_root,
    "paper": magnitude_by_the_paper,
}


def _error_before(shift: Shift) -> float:
    before = shift.error(0.0)
    # Rounding of the centroids alone: no error that could grow.
    if before <= 1e-24 * float(np.square(shift.points).max()):
        raise InputError(
            f"X has no K-means error with {len(shift.centroids)} clusters: every point lies on its "
            "centroid, or so near that it is lost in rounding beside values of up to "
            f"{np.abs(shift.points).max():g}. A drift multiplies the error by 1 + epsilon, so "
            "there must be some; pass more distinct points, a smaller n_clusters, or columns less "
            "a constant."
        )
    return before


def _missed(shift: Shift, epsilon: float, before: float, tolerance: str) -> InputError:
    return InputError(
        f"no drift of epsilon={epsilon:g} within {tolerance} was found in {MOST_TRIALS} trials: "
        f"the error {before:g} is too small beside values of up to "
        f"{np.abs(shift.points).max():g}, where double precision ends. Subtract a constant from "
        "the columns of X."
    )
