"""Standardisation of columns: mean 0 and scale 1 on the first batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Points
from kmeander.exceptions import InputError, argument


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Mean and standard deviation of each column; a column of equal values keeps its unit.

    Examples
    --------
    >>> fitted = Standardizer.fitted(np.array([[0.0, 5.0], [4.0, 5.0]]))
    >>> fitted.apply(np.array([[6.0, 7.0]])).tolist()
    [[2.0, 2.0]]
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fitted(cls, points: Points) -> Standardizer:
        """Take mean and scale from `points`."""
        if len(points) < 2:
            raise InputError(
                f"{argument('standardize', True)} takes mean and scale from the first batch, which "
                f"has {len(points)} row. Make batches larger."
            )
        wide = points.astype(np.float64)
        mean = wide.mean(axis=0)
        scale = wide.std(axis=0)
        # Where rounding alone makes a difference there is none.
        scale[scale <= 1e-13 * np.abs(mean)] = 1.0
        scale[scale == 0] = 1.0
        return cls(mean, scale)

    def apply(self, points: Points) -> Points:
        """Return points in the model's units."""
        scaled: Points = (points - self.mean) / self.scale
        return scaled

    def restore(self, centroids: Centroids) -> Centroids:
        """Return centroids in the stream's units."""
        restored: Centroids = centroids * self.scale + self.mean
        return restored

    def state(self) -> dict[str, Any]:
        """Return everything as arrays."""
        return {"mean": self.mean, "scale": self.scale}
