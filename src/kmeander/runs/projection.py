"""First two principal components (PCA by power iteration with deflation), to draw points in 2D."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Points

_MAX_ITERATIONS = 1000


def projection(points: Points) -> dict[str, Any]:
    """Return the mean of `points` and their first two principal components, as lists.

    Found by power iteration with deflation, with sums in a fixed order: BLAS would let the last
    digits depend on its number of threads. The largest entry of a component is positive; where
    points vary in fewer directions the components that are left over are 0.

    Examples
    --------
    >>> projection(np.array([[0.0, 1.0], [4.0, 1.0]]))
    {'mean': [2.0, 1.0], 'components': [[1.0, 0.0], [0.0, 0.0]]}
    """
    wide = points.astype(np.float64)
    mean = wide.mean(axis=0)
    centred = wide - mean
    largest = np.abs(centred).max(initial=0.0)
    if largest > 0:
        centred /= largest  # squares stay finite
    found: list[NDArray[np.float64]] = []
    for _ in range(2):
        found.append(_principal(centred))
        centred = centred - _matrix_vector(centred, found[-1])[:, np.newaxis] * found[-1]
    # Adding 0 turns -0.0 into 0.0.
    return {"mean": mean.tolist(), "components": [(part + 0.0).tolist() for part in found]}


def _matrix_vector(rows: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = (rows * vector).sum(axis=1)
    return products


def _principal(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the direction of the largest variance by power iteration."""
    n_rows, n_columns = centred.shape
    if np.abs(centred).max(initial=0.0) <= 1e-12:
        return np.zeros(n_columns)
    products = np.einsum("ni,nj->ij", centred, centred) if n_columns <= n_rows else None
    # Begin with the row that lies farthest out, in which the direction surely has a part.
    direction = centred[int(np.argmax((centred * centred).sum(axis=1)))].copy()
    direction /= np.sqrt((direction * direction).sum())
    for _ in range(_MAX_ITERATIONS):
        if products is not None:
            updated = _matrix_vector(products, direction)
        else:
            updated = (_matrix_vector(centred, direction)[:, np.newaxis] * centred).sum(axis=0)
        updated /= np.sqrt((updated * updated).sum())
        change = np.abs(updated - direction).max()
        direction = updated
        if change < 1e-12:
            break
    sign = 1.0 if direction[int(np.argmax(np.abs(direction)))] > 0 else -1.0
    signed: NDArray[np.float64] = direction * sign
    return signed
