"""Cycles: whether batches repeat themselves, which points to a season that nobody gave.

The mean of the window is followed from batch to batch, column by column. Its differences are
compared with those some batches later, by their autocorrelation: noise that lasts, walks and jumps
make levels alike over any lag, but differences over none (Box and Jenkins 1970). Those of an AR(1)
process have no positive autocorrelation.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.exceptions import argument
from kmeander.records import Step

# Batches that are looked at, the newest; and cycles that they must hold at least.
MOST_BATCHES = 2000
LEAST_CYCLES = 3
# Below this number of batches nothing is looked for.
_LEAST_BATCHES = 30
# The mean autocorrelation at a lag and its first multiples must be this large, and this number of
# standard errors of that of noise whose level was differenced: sqrt(3/2) of that of independent
# numbers.
_LEAST = 0.15
_SURE = 5.0
_MULTIPLES = 8
_OF_DIFFERENCES = 1.5
# Differences count up to this number of standard deviations, so that a jump counts for little.
_CLIPPED = 2.0
# A normal variable is this many times its median absolute deviation.
_NORMAL_SPREAD = 1.4826
# How far more batches must have come, as a share of those before, for another look.
_ANEW = 0.05


class Cycle(NamedTuple):
    """A length after which batches repeat themselves."""

    n_batches: int
    correlation: float  # of the differences of means, that far apart

    def words(self, of: str | None = None) -> str:
        """Return it as a sentence; `of` names what takes the season, where that is not plain.

        Examples
        --------
        >>> print(Cycle(24, 0.9312).words())
        the stream repeats itself every 24 batches (autocorrelation 0.93): with season=24 each \
batch would be compared with the same phase of past cycles
        """
        return (
            f"the stream repeats itself every {self.n_batches} batches (autocorrelation "
            f"{self.correlation:.2f}): with {argument('season', self.n_batches, of=of)} each batch "
            "would be compared with the same phase of past cycles"
        )


class CycleSearch:
    """The means of the newest batches, and the cycle that they show."""

    def __init__(self) -> None:
        self._means: deque[NDArray[np.float64]] = deque(maxlen=MOST_BATCHES)
        self._n_seen = self._n_looked_at = 0
        self._found: Cycle | None = None

    def add(self, step: Step) -> None:
        """Take in one more Step."""
        if step.centroids is None or step.masses is None or not step.mass > 0:
            return
        self._means.append((step.masses[:, np.newaxis] * step.centroids).sum(axis=0) / step.mass)
        self._n_seen += 1

    @property
    def cycle(self) -> Cycle | None:
        """The cycle so far; looked for anew when enough batches have come."""
        if self._n_seen > (1 + _ANEW) * self._n_looked_at:
            self._found = find_cycle(np.array(self._means))
            self._n_looked_at = self._n_seen
        return self._found


def find_cycle(means: NDArray[np.float64]) -> Cycle | None:
    """Return the shortest cycle of a series of means, or None where there is none.

    Parameters
    ----------
    means : ndarray of shape (n_batches, n_features)

    Examples
    --------
    >>> hours = np.arange(100)
    >>> find_cycle(np.sin(hours[:, np.newaxis] * 2 * np.pi / 24)).n_batches
    24
    >>> find_cycle(hours[:, np.newaxis] ** 2.0) is None
    True
    """
    if len(means) < _LEAST_BATCHES:
        return None
    found = _autocorrelations(np.diff(means, axis=0))
    n, n_columns = found.shape
    longest = n // LEAST_CYCLES
    lags = np.arange(1, longest + 2)
    # A cycle shows at its multiples, too, and the more precisely.
    totals, counts = np.zeros((len(lags), n_columns)), np.zeros((len(lags), 1))
    for times in range(1, _MULTIPLES + 1):
        known = np.flatnonzero(times * lags <= n - longest)
        totals[known] += found[times * lags[known]]
        counts[known] += 1
    scores = totals / np.maximum(counts, 1)
    here, error = scores[1:-1], np.sqrt(_OF_DIFFERENCES / (n - lags[1:-1]))[:, np.newaxis]
    is_peak = (here >= scores[:-2]) & (here >= scores[2:])
    peaks = np.where(is_peak & (here >= np.maximum(_LEAST, _SURE * error)), here, -np.inf)
    column = int(peaks.max(axis=0).argmax())
    best = peaks[:, column].max()
    if best == -np.inf:
        return None
    # Every multiple of a cycle is one: the shortest of those that are as good.
    place = int(np.flatnonzero(peaks[:, column] >= best - error[:, 0])[0])
    length = int(lags[place + 1])
    return Cycle(length, float(found[length, column]))


def _autocorrelations(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the autocorrelation of each column, a row for each lag; 0 where nothing varies."""
    spread = _NORMAL_SPREAD * np.median(np.abs(differences), axis=0)
    spread = np.where(spread > 0, spread, differences.std(axis=0))
    scores = differences / np.where(spread > 0, spread, 1.0)
    scores = np.clip(scores, -_CLIPPED, _CLIPPED)
    scores -= scores.mean(axis=0)
    n = len(scores)
    spectrum = np.abs(np.fft.rfft(scores, 2 * n, axis=0)) ** 2
    products = np.fft.irfft(spectrum, 2 * n, axis=0)[:n]
    counts = n - np.arange(n)[:, np.newaxis]
    found: NDArray[np.float64] = products / np.maximum(products[0], 1e-9 * n) * (n / counts)
    return found
