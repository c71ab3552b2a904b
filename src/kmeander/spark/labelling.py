"""Which cluster the rows of a block of columns are in: what executors do for `assign`.

Nothing here needs scikit-learn, which a worker would take half a second to import; pandas it has
already, where Spark calls these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import LARGEST_VALUE, Centroids, Points
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import nearest
from kmeander.kmeans.metric import EUCLIDEAN, Metric, metric_of
from kmeander.models.base import StreamModel
from kmeander.preparation import FittedPreparation, Rows
from kmeander.spark.columns import unequal_lengths
from kmeander.spark.storage import Checkpoints

if TYPE_CHECKING:
    import pandas as pd

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

    @property
    def fills_gaps(self) -> bool:
        """Whether a row may lack values."""
        return self.preparation is not None and self.preparation.rules.missing == "median"

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
def fixed_at(folder: str, batch_id: int) -> Fixed:
    """Return centroids of a checkpoint; a worker lives on and needs each but once."""
    return Fixed.from_state(Checkpoints(folder, 1).read(batch_id))


def newest_at(folder: str) -> int | None:
    """Return the id of the newest centroids of a checkpoint."""
    return Checkpoints(folder, 1).newest()


def table_of(columns: Sequence[pd.Series], all_float32: bool | None = None) -> Points:
    """Return columns of numbers, or one of arrays, as a table; NaN where nothing is there.

    By default it is of 32-bit floats where all columns are.

    Examples
    --------
    >>> import pandas as pd
    >>> table_of([pd.Series([1.0, None]), pd.Series([2, 3])]).tolist()
    [[1.0, 2.0], [nan, 3.0]]
    >>> table_of([pd.Series([np.array([1.0, 2.0]), None])]).tolist()
    [[1.0, 2.0], [nan, nan]]
    """
    if len(columns) == 1 and columns[0].dtype == object:
        rows = columns[0].tolist()
        known = [row for row in rows if isinstance(row, np.ndarray | list)]
        if known or all(row is None for row in rows):
            return _table_of_arrays(rows, known, all_float32)
    if all_float32 is None:
        all_float32 = all(column.dtype == np.float32 for column in columns)
    table = np.empty((len(columns[0]), len(columns)), np.float32 if all_float32 else np.float64)
    for place, column in enumerate(columns):
        table[:, place] = np.asarray(column.to_numpy(), dtype=table.dtype)  # None becomes NaN
    return table


def _table_of_arrays(rows: list[Any], known: list[Any], all_float32: bool | None) -> Points:
    lengths = {len(row) for row in known}
    if len(lengths) > 1:
        raise unequal_lengths("the feature column", lengths)
    if all_float32 is None:
        all_float32 = bool(known) and getattr(known[0], "dtype", None) == np.float32
    width = max(lengths, default=0)
    table = np.full((len(rows), width), np.nan, np.float32 if all_float32 else np.float64)
    if known:
        there = np.fromiter((row is not None for row in rows), dtype=bool, count=len(rows))
        table[there] = np.array(known, dtype=table.dtype)
    return table


def assigned(table: Points, fixed: Fixed | None) -> pd.DataFrame:
    """Return cluster, id and distance of each row of a table."""
    import pandas as pd

    n_rows = len(table)
    clusters, distances = np.zeros(n_rows, np.int32), np.full(n_rows, np.nan)
    good = np.zeros(n_rows, dtype=bool)
    # Rows of nothing, or of none, have a width that says nothing.
    if fixed is not None and table.shape[1]:
        if table.shape[1] != fixed.n_features:
            raise InputError(
                f"the features have {table.shape[1]} values, the model has learned "
                f"{fixed.n_features}."
            )
        beyond: Any = np.abs(table) > LARGEST_VALUE
        missing: Any = np.isnan(table)
        good = ~beyond.any(axis=1)
        good &= ~missing.all(axis=1) if fixed.fills_gaps else ~missing.any(axis=1)
        rows = np.ascontiguousarray(table if good.all() else table[good])
        points = fixed.prepared(rows)
        lost = fixed.metric.has_no_place(points)
        if lost.any():
            good[np.flatnonzero(good)[lost]], points = False, points[~lost]
        if len(points):
            # One thread: a task is one of many on its machine.
            labels, squared = nearest(fixed.metric.points(points), fixed.centroids, 1)
            clusters[good], distances[good] = labels, fixed.metric.distances(squared)
    ids = np.zeros(n_rows, np.int64) if fixed is None else fixed.ids[clusters]
    return pd.DataFrame(
        {
            "cluster": pd.arrays.IntegerArray(clusters, ~good),
            "id": pd.arrays.IntegerArray(ids, ~good),
            "distance": distances,
        }
    )
