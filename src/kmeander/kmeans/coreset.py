"""Coreset of a batch too large to hold: weighted means, made part by part, then merged.

Every mean keeps the weight of its rows, and what they add to any error beyond what it adds is one
number for all, `within`. Both add up, so means of means are as good as means: nothing of a
part's mass, mean or error is lost, however often it is compressed. What is lost is only where a
cluster would want some of the rows behind a mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kmeander import _kernel
from kmeander.arguments import whole_number
from kmeander.arrays import Centroids, Masses, Points, Weights
from kmeander.records import Batch, Times

# Rows are compressed as soon as there is this number for each mean: few enough to stay in the cache
# and in memory, many enough that one pass leaves little to choose for the next.
_ROWS_PER_MEAN = 16


@dataclass(frozen=True, eq=False)
class Coreset:
    """Weighted means that stand for rows.

    Parameters
    ----------
    means : ndarray of shape (n_means, n_features)
    masses : ndarray of shape (n_means,)
    within : float
        Weighted squared distances of the rows to their means.
    n_rows : int
    """

    means: Centroids
    masses: Masses
    within: float
    n_rows: int

    def batch(self, index: int, elapsed: float = 1.0, times: Times | None = None) -> Batch:
        """Return it as a batch that a model can learn."""
        return Batch.of_means(
            index,
            self.means,
            self.masses,
            within=self.within,
            n_rows=self.n_rows,
            elapsed=elapsed,
            times=times,
        )


class Compressor:
    """Takes rows block by block and keeps about sixteen times `size` of them, or of means.

    Parameters
    ----------
    size : int
        The most means that are left in the end.

    Examples
    --------
    >>> compressor = Compressor(2)
    >>> for block in ([[0.0], [8.0]], [[1.0], [9.0]]):
    ...     compressor.add(np.array(block))
    >>> found = compressor.coreset()
    >>> found.means.ravel().tolist(), found.masses.tolist(), found.within, found.n_rows
    ([0.5, 8.5], [2.0, 2.0], 1.0, 4)
    """

    def __init__(self, size: int) -> None:
        self.size = whole_number("size", size, at_least=1, meaning="the most means of a coreset")
        self._rows: list[Points] = []
        self._weights: list[Weights] = []
        self._n_waiting = 0
        self._means: list[Coreset] = []

    def add(self, block: Points, weights: Weights | None = None) -> None:
        """Take the rows of `block`, finite and in C order; they must not change afterwards.

        Where one block has weights, all have.
        """
        limit = _ROWS_PER_MEAN * self.size
        for begin in range(0, len(block), limit):
            piece = block[begin : begin + limit]
            self._rows.append(piece)
            if weights is not None:
                self._weights.append(weights[begin : begin + limit])
            self._n_waiting += len(piece)
            if self._n_waiting >= limit:
                self._compress_rows()

    def coreset(self) -> Coreset | None:
        """Return the means of all rows so far; None where there was none."""
        if self._rows:
            self._compress_rows()
        return merged(self._means, self.size)

    def _compress_rows(self) -> None:
        rows: Any = np.concatenate(self._rows)  # all float32 or all float64
        weights = np.concatenate(self._weights) if self._weights else None
        self._means.append(_compressed(rows, weights, 0.0, len(rows), self.size))
        self._rows, self._weights, self._n_waiting = [], [], 0
        if len(self._means) == _ROWS_PER_MEAN:
            whole = merged(self._means, self.size)
            assert whole is not None
            self._means = [whole]


def merged(parts: Iterable[Coreset], size: int) -> Coreset | None:
    """Return coresets as one of at most `size` means; None where there is none.

    The order of the parts does not matter.

    Examples
    --------
    >>> one = Coreset(np.array([[0.0], [8.0]]), np.ones(2), 0.0, 2)
    >>> other = Coreset(np.array([[1.0]]), np.ones(1), 0.5, 1)
    >>> both = merged([one, other], 2)
    >>> both.means.ravel().tolist(), both.masses.tolist(), both.within, both.n_rows
    ([0.5, 8.0], [2.0, 1.0], 1.0, 3)
    """
    known = list(parts)
    if not known:
        return None
    means = np.concatenate([part.means for part in known])
    masses = np.concatenate([part.masses for part in known])
    # In an order of their own, as parts may come in any.
    order = lexicographic(np.column_stack([means, masses]))
    within = sum(sorted(part.within for part in known))
    n_rows = sum(part.n_rows for part in known)
    return _compressed(means[order], masses[order], within, n_rows, size)


def lexicographic(points: Points) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the order of rows by their first column, then by the second, and so on.

    Examples
    --------
    >>> lexicographic(np.array([[1.0, 5.0], [0.0, 7.0], [1.0, 2.0]])).tolist()
    [1, 2, 0]
    """
    first = points[:, 0]
    order = np.argsort(first, kind="stable")
    # Mostly the first column tells all rows apart; the others are asked where it does not.
    ranked = first[order]
    same = ranked[1:] == ranked[:-1]
    if not same.any() or points.shape[1] == 1:
        return order
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    rows = order[tied]
    keys = [points[rows, column] for column in range(points.shape[1] - 1, 0, -1)]
    order[tied] = rows[np.lexsort([*keys, ranked[tied]])]
    return order


def _compressed(
    points: Points, weights: Masses | None, within: float, n_rows: int, size: int
) -> Coreset:
    """Return points as at most `size` means; they hide `within` already."""
    if len(points) <= size:
        masses = np.ones(len(points)) if weights is None else weights
        return Coreset(points.astype(np.float64), masses, within, n_rows)
    means, masses = np.empty((size, points.shape[1])), np.empty(size)
    n_found, hidden = _kernel.summarise(points, weights, means, masses)
    return Coreset(means[:n_found].copy(), masses[:n_found].copy(), within + hidden, n_rows)
