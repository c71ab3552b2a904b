"""NumPy arrays as Arrow's and back, without the detour on which pyarrow imports pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def to_arrow(values: NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array that shares their memory.

    Examples
    --------
    >>> to_arrow(np.array([1, 2])).to_pylist()
    [1, 2]
    """
    import pyarrow as pa

    packed = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(packed.dtype)
    return pa.Array.from_buffers(kind, len(packed), [None, pa.py_buffer(packed)])


def to_numpy(values: pa.Array) -> NDArray[Any]:
    """Return an Arrow array of numbers or truths, none missing, with its memory if possible.

    Examples
    --------
    >>> to_numpy(to_arrow(np.array([1.5, 2.5])))
    array([1.5, 2.5])
    """
    import pyarrow as pa

    if pa.types.is_boolean(values.type):
        return to_numpy(values.cast(pa.uint8())).astype(bool)
    if not len(values):
        return np.empty(0, dtype=values.type.to_pandas_dtype())
    numbers: NDArray[Any] = np.from_dlpack(values)
    return numbers


def to_batch(columns: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
    """Return columns of numbers as one batch."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(list(map(to_arrow, columns.values())), names=list(columns))


def centroid_table(ids: NDArray[Any], masses: NDArray[Any], centroids: NDArray[Any]) -> pa.Table:
    """Return a row for each cluster: `cluster`, `mass`, and `centroid` as a list of fixed length.

    Examples
    --------
    >>> centroid_table(np.array([7]), np.array([2.5]), np.array([[1.0, 2.0]])).to_pylist()
    [{'cluster': 7, 'mass': 2.5, 'centroid': [1.0, 2.0]}]
    """
    import pyarrow as pa

    places = pa.FixedSizeListArray.from_arrays(to_arrow(centroids.ravel()), centroids.shape[1])
    return pa.table({"cluster": to_arrow(ids), "mass": to_arrow(masses), "centroid": places})
