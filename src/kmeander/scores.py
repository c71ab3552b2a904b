"""Scores that can be compared across datasets, and what a box plot shows of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmeander.exceptions import InputError

Scores = NDArray[np.float64]


def normalise(errors: ArrayLike) -> Scores:
    """Return how far each error lies above the least one, as a share of that.

    The paper's score ``(E - min E) / min E``, per batch over the methods compared.

    Parameters
    ----------
    errors : array-like of shape (..., n_methods)
        Not negative. The least is taken along the last axis.

    Returns
    -------
    ndarray of the same shape
        0 for the best method. Where the least error is 0, every other one is infinitely worse.

    Examples
    --------
    >>> normalise([[2.0, 3.0, 2.0], [10.0, 10.0, 15.0]]).tolist()
    [[0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
    """
    values = _checked(errors, "errors")
    least = values.min(axis=-1, keepdims=True)
    worse = values - least
    score = np.where(worse > 0, np.inf, 0.0)
    with np.errstate(over="ignore"):  # beside a least error of next to nothing, infinity is right
        np.divide(worse, least, out=score, where=least > 0)
    return score


def relative(counts: ArrayLike) -> Scores:
    """Return each count as a multiple of the least one: ``D / min D`` of the paper.

    Parameters
    ----------
    counts : array-like of shape (..., n_methods)
        Above 0, such as numbers of distances.

    Examples
    --------
    >>> relative([[100, 150, 210]]).tolist()
    [[1.0, 1.5, 2.1]]
    """
    values = _checked(counts, "counts")
    least = values.min(axis=-1, keepdims=True)
    if (least == 0).any():
        raise InputError("counts holds 0, of which nothing is a multiple. Count what was done.")
    ratios: Scores = values / least
    return ratios


@dataclass(frozen=True)
class Box:
    """What a box plot shows of some values.

    The whiskers, `low` and `high`, end at the last value within one and a half times the height
    of the box from it.

    Examples
    --------
    >>> box = Box.of([1.0, 2.0, 3.0, 4.0, 100.0])
    >>> box.q1, box.median, box.q3, box.high
    (2.0, 3.0, 4.0, 4.0)
    """

    n: int
    low: float
    q1: float
    median: float
    q3: float
    high: float

    @classmethod
    def of(cls, values: ArrayLike) -> Box:
        """Summarise `values`; without any, all is NaN."""
        array = np.asarray(values, dtype=np.float64).ravel()
        if not array.size:
            return cls(0, *[float("nan")] * 5)
        # Not interpolated through infinity, which would be NaN.
        q1, median, q3 = (_quantile(array, share) for share in (0.25, 0.5, 0.75))
        reach = 1.5 * (q3 - q1) if np.isfinite(q3) else 0.0
        inside = array[(array >= q1 - reach) & (array <= q3 + reach)]
        low = float(min(inside.min(initial=q1), q1))
        high = float(max(inside.max(initial=q3), q3))
        return cls(len(array), low, q1, median, q3, high)

    @property
    def spread(self) -> float:
        """Height of the box: the distance of its quartiles."""
        return self.q3 - self.q1


def _quantile(values: NDArray[np.float64], share: float) -> float:
    if np.isfinite(values).all():
        return float(np.quantile(values, share))
    return float(np.quantile(values, share, method="higher"))


def _checked(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise InputError(f"{name} needs at least one method, got shape {array.shape}.")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InputError(f"{name} must be finite and not negative: they are means of squares.")
    return array
