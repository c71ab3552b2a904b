"""Which cluster the rows of an Arrow block are in: what executors do for `assign`.

Nothing here needs scikit-learn, which a worker would take half a second to import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kmeander.arrays import LARGEST_VALUE, Centroids, Points
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import nearest
from kmeander.kmeans.metric import EUCLIDEAN, Metric, metric_of
from kmeander.models.base import StreamModel
from kmeander.preparation import FittedPreparation, Rows
from kmeander.spark.columns import rows_of, unequal_lengths
from kmeander.spark.storage import read_from_executor
from kmeander.wire.arrow import to_arrow, to_numpy

RESULT = "cluster int, id bigint, distance double"
NAMES = ("cluster", "id", "distance")


@dataclass(frozen=True, eq=False)
class Fixed:
    """All that it takes to assign rows: centroids, ids of their clusters, and how rows are read."""

    centroids: Centroids
    ids: NDArray[np.int64]
    preparation: FittedPreparation | None = None
    metric: Metric = EUCLIDEAN

    def state(self, columns: Sequence[str]) -> dict[str, Any]:
        """Return it as plain arrays and numbers, with the columns that hold the features."""
        return {
            "centroids": self.centroids,
            "ids": self.ids,
            "columns": list(columns),
            "preparation": None if self.preparation is None else self.preparation.to_dict(),
            "metric": self.metric.name,
        }

    @property
    def n_features(self) -> int:
        """Numbers of a row."""
        if self.preparation is None:
            return int(self.centroids.shape[1])
        return sum(column.width for column in self.preparation.columns)

    def prepared(self, points: Points) -> Points:
        """Return rows of numbers as the model's preparation has them."""
        if self.preparation is None:
            return points
        return self.preparation.prepared(Rows(self.preparation.columns, points)).points

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Fixed:
        """Make it from what `state` returned."""
        known = state.get("preparation")
        preparation = None if known is None else FittedPreparation.from_dict(known)
        metric = metric_of(state.get("metric", EUCLIDEAN.name))
        return cls(state["centroids"], state["ids"], preparation, metric)

    @classmethod
    def of(cls, model: StreamModel) -> Fixed | None:
        """Take it from a model; None while that has no centroids."""
        if model.centroids is None:
            return None
        preparation = model.learned.preparation
        for column in () if preparation is None else preparation.columns:
            if column.kind not in ("number", "boolean", "vector"):
                raise InputError(
                    f"model has learned column {column.name!r}, which holds no numbers as Spark's "
                    "features do. Let it learn without that column."
                )
        return cls(model.centroids, _ids_of(model), preparation, model.settings.limits.metric)


def _ids_of(model: StreamModel) -> NDArray[np.int64]:
    """Return the lasting ids of a model's clusters: the numbers of their rows, if it has none."""
    ids = getattr(model, "cluster_ids", None)
    return np.arange(model.n_clusters, dtype=np.int64) if ids is None else np.asarray(ids, np.int64)


@lru_cache(maxsize=8)
def fixed_at(uri: str, batch_id: int) -> Fixed:
    """Return centroids of a checkpoint; a worker lives on and needs each but once."""
    return Fixed.from_state(read_from_executor(uri, batch_id))


def assigned(block: pa.Array, fixed: Fixed | None) -> pa.Array:
    """Return cluster, id and distance of each row of a block."""
    n_rows = len(block)
    clusters, distances = np.zeros(n_rows, np.int32), np.zeros(n_rows)
    bad = np.ones(n_rows, dtype=bool)
    if fixed is not None:
        points, good = _good_rows(block)
        if len(points):
            if points.shape[1] != fixed.n_features:
                raise InputError(
                    f"the features have {points.shape[1]} values, the model has learned "
                    f"{fixed.n_features}."
                )
            # One thread: a task is one of many on its machine.
            points = fixed.prepared(points)
            lost = fixed.metric.has_no_place(points)
            if lost.any():
                good[np.flatnonzero(good)[lost]], points = False, points[~lost]
            labels, squared = nearest(fixed.metric.points(points), fixed.centroids, 1)
            clusters[good], distances[good], bad = labels, fixed.metric.distances(squared), ~good
    ids = np.zeros(n_rows, np.int64) if fixed is None else fixed.ids[clusters]
    mask = pa.array(bad.tolist(), pa.bool_()) if bad.any() else None
    return pa.StructArray.from_arrays(
        [_masked(values, mask) for values in (clusters, ids, distances)], names=list(NAMES)
    )


def _masked(values: NDArray[Any], mask: pa.Array | None) -> pa.Array:
    column = to_arrow(values)
    if mask is None:
        return column
    import pyarrow.compute as pc

    return pc.if_else(mask, pa.scalar(None, column.type), column)


def _good_rows(block: pa.Array) -> tuple[Points, NDArray[np.bool_]]:
    """Return the rows that are points, and which those are."""
    table = rows_of(block)
    if table is None:  # seldom, and not in a hurry: row by row
        known = [None if row is None or None in row else row for row in (block.to_pylist())]
        good = np.array([row is not None for row in known], dtype=bool)
        complete = [row for row in known if row is not None]
        lengths = {len(row) for row in complete}
        if len(lengths) > 1:
            raise unequal_lengths("the feature column", lengths)
        dtype = np.float32 if pa.types.is_float32(block.type.value_type) else np.float64
        rows: Any = np.array(complete, dtype=dtype).reshape(len(complete), -1)
    else:
        rows, good = table, np.ones(len(table), dtype=bool)
    finite = (np.abs(rows) <= LARGEST_VALUE).all(axis=1) if rows.size else np.zeros(0, dtype=bool)
    if not finite.all():
        good[np.flatnonzero(good)[~finite]] = False
        rows = rows[finite]
    return np.ascontiguousarray(rows), good


def interleaved(columns: Sequence[pa.Array]) -> pa.Array:
    """Return columns of numbers as one of arrays."""
    all_float32 = all(pa.types.is_float32(column.type) for column in columns)
    kind = pa.float32() if all_float32 else pa.float64()
    wide = [column.cast(kind) for column in columns]
    nulls = np.column_stack([to_numpy(column.is_null()) for column in wide])
    rows = np.column_stack([to_numpy(column.fill_null(np.nan)) for column in wide])
    rows[nulls] = np.nan  # which is as good as null: no cluster
    values = to_arrow(rows.ravel())
    offsets = to_arrow(np.arange(len(rows) + 1, dtype=np.int32) * np.int32(rows.shape[1]))
    return pa.ListArray.from_arrays(offsets, values)
