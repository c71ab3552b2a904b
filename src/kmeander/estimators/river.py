"""ForgetfulKMeans for river: one dict at a time in, learned batch by batch inside.

The only module that knows river (``pip install "kmeander[river]"``).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from kmeander.arguments import whole_number
from kmeander.arrays import Labels, Points, checked_points
from kmeander.estimators.turns import turn_of
from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import nearest
from kmeander.kmeans.metric import Metric
from kmeander.models import FSKM
from kmeander.models.cluster_range import ClusterCount
from kmeander.models.settings import Settings
from kmeander.preparation import Preparation, Rows
from kmeander.preparation.tables import rows_of_columns
from kmeander.records import Batch, Step

try:
    from river import base
    from river.utils import dataframe
except ModuleNotFoundError as error:
    raise ImportError("kmeander.river needs river: pip install 'kmeander[river]'") from error

Row = dict[Hashable, Any]


class ForgetfulKMeans(base.Clusterer):
    """K-means that follows a stream and forgets its past, as a river clusterer.

    Rows wait until there are `batch_size` of them; then they are learned as one batch, as
    `kmeander.ForgetfulKMeans.partial_fit` would. Predictions follow from the batches learned, and
    0 until the first of them (river's clusterers must always answer).

    A feature that a row lacks counts as 0, as everywhere in river; with `prepare` it is a missing
    value. The features are those of the first batch; one that comes up later is left out.

    Parameters
    ----------
    n_clusters : int, default=8
    batch_size : int, default=500
        Rows that are learned together. A small batch follows faster, a large one is surer, and
        `rho` forgets by batches.
    init, rho, refine, forgetting, max_batches, max_points, max_iter, tol, n_threads, alarm_rate, \
season, prepare, metric
        As for `kmeander.ForgetfulKMeans`.
    seed : int, optional
        Decides the k-means++ seedings.

    Attributes
    ----------
    features : tuple
        Names of the features, in the order of the columns; empty until the first batch.
    centers : dict of dict
        The features of each cluster's centre; empty until there are K distinct rows.
    step : Step or None
        What the newest batch did.
    n_waiting : int
        Rows that are not learned yet.

    Examples
    --------
    >>> from river import stream
    >>> rows = [[1, 2], [-4, 2], [1, 4], [-4, 4], [1, 0], [-4, 0]]
    >>> model = ForgetfulKMeans(n_clusters=2, batch_size=3, seed=0)
    >>> for x, _ in stream.iter_array(rows):
    ...     model.learn_one(x)
    >>> model.predict_one({0: 0, 1: 1}) == model.predict_one({0: 1, 1: 3})
    True
    >>> model.predict_one({0: 0, 1: 1}) == model.predict_one({0: -5, 1: 1})
    False
    """

    def __init__(
        self,
        n_clusters: ClusterCount = Settings.n_clusters,
        batch_size: int = 500,
        *,
        init: str = Settings.init,
        rho: float | str = Settings.rho,
        refine: str | int | None = Settings.refine,
        forgetting: str = Settings.forgetting,
        max_batches: int | None = Settings.max_batches,
        max_points: int | None = Settings.max_points,
        max_iter: int = Settings.max_iter,
        tol: float = Settings.tol,
        n_threads: int | None = Settings.n_threads,
        alarm_rate: float = Settings.alarm_rate,
        season: int | None = Settings.season,
        prepare: Preparation | str | None = Settings.prepare,
        metric: str = Settings.metric,
        seed: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.batch_size = whole_number(
            "batch_size", batch_size, at_least=1, meaning="the number of rows learned together"
        )
        self.init = init
        self.rho = rho
        self.refine = refine
        self.forgetting = forgetting
        self.max_batches = max_batches
        self.max_points = max_points
        self.max_iter = max_iter
        self.tol = tol
        self.n_threads = n_threads
        self.alarm_rate = alarm_rate
        self.season = season
        self.prepare = prepare
        self.metric = metric
        self.seed = seed
        self.features: tuple[Hashable, ...] = ()
        self._waiting: list[Row] = []
        options = {name: getattr(self, name) for name in Settings.names()}
        self._model = FSKM.of(Settings(**options), seed)

    @property
    def centers(self) -> dict[int, dict[Hashable, Any]]:
        """The features of each cluster's centre, of a category the most frequent level."""
        centroids = self._model.centroids
        if centroids is None:
            return {}
        known = self._model.learned
        preparation = known.preparation
        rows = known.rows_of(np.arange(len(centroids), dtype=np.int32)).tolist()
        if preparation is not None:
            names = {str(name): name for name in self.features}
            restored = preparation.restored_columns(centroids)
            return {
                row: {names.get(name, name): column[k] for name, column in restored.items()}
                for k, row in enumerate(rows)
            }
        return {
            row: dict(zip(self.features, centre, strict=True))
            for row, centre in zip(rows, centroids.tolist(), strict=True)
        }

    @property
    def step(self) -> Step | None:
        """What the newest batch did."""
        return self._model.last_step

    @property
    def n_waiting(self) -> int:
        """Rows that are not learned yet."""
        return len(self._waiting)

    def learn_one(self, x: Mapping[Hashable, Any]) -> None:
        """Take one row; every `batch_size` of them are learned.

        Parameters
        ----------
        x : dict
            Numbers by the names of their features.
        """
        with turn_of(self):
            self._take([self._row(x)])

    def learn_many(self, X: Any) -> None:
        """Take the rows of a frame, as `learn_one` would one after another.

        Parameters
        ----------
        X : data frame of pandas, polars, or another that river reads
        """
        _, rows = self._frame(X)
        if rows:
            with turn_of(self):
                self._take(rows)

    def predict_one(self, x: Mapping[Hashable, Any]) -> int:
        """Return the cluster of a row; 0 as long as nothing is learned.

        Parameters
        ----------
        x : dict
            Numbers by the names of their features.
        """
        return int(self._labels([self._row(x)])[0])

    def predict_many(self, X: Any) -> Any:
        """Return the cluster of each row, as a series of the frame's own kind.

        Parameters
        ----------
        X : data frame of pandas, polars, or another that river reads
        """
        frame, rows = self._frame(X)
        return dataframe.to_native_series(self._labels(rows), name="cluster", like=frame)

    def _row(self, x: Mapping[Hashable, Any]) -> Row:
        return _checked_row(x) if self.prepare is None else dict(x)

    def _frame(self, X: Any) -> tuple[Any, list[Row]]:
        if self.prepare is None:
            return _checked_frame(X)
        frame = dataframe.into_frame(X)
        columns = [frame[name].to_list() for name in frame.columns]
        rows = zip(*columns, strict=True)
        return frame, [dict(zip(frame.columns, row, strict=True)) for row in rows]

    def _take(self, rows: list[Row]) -> None:
        """Queue rows, and learn the batches that they complete."""
        if not self.features and not any(self._waiting) and not any(rows):
            raise InputError(
                "x has no features, and none are known yet. The first batch says which there are; "
                "skip empty rows before it."
            )
        self._waiting += rows
        while len(self._waiting) >= self.batch_size:
            batch = self._waiting[: self.batch_size]
            # Sorted: the order in which a dict has its features must not change a result.
            features = self.features or tuple(
                sorted({name for row in batch for name in row}, key=_in_order)
            )
            if self.prepare is None:
                self._model.step(Batch(self._model.n_steps, _columns(batch, features)))
            else:
                self._model.learn(_table(batch, features))
            self.features = features
            del self._waiting[: self.batch_size]

    def _labels(self, rows: list[Row]) -> Labels:
        if self._model.centroids is None or not rows:
            return np.zeros(len(rows), dtype=np.int32)
        preparation = self._model.learned.preparation
        if preparation is None:
            points = self._space.points(_columns(rows, self.features), "x")
            return self._nearest(points)
        points, _, kept = preparation.prepared(_table(rows, self.features))
        labels = np.full(len(rows), -1, dtype=np.int32)  # of rows that the preparation leaves out
        if len(points):
            points = self._space.points(points, "x")
            labels[slice(None) if kept is None else kept] = self._nearest(points)
        return labels

    def _nearest(self, points: Points) -> Labels:
        known = self._model.learned
        assert known.centroids is not None
        return known.rows_of(nearest(points, known.centroids, self.n_threads)[0])

    @property
    def _space(self) -> Metric:
        return self._model.settings.limits.metric

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Arrays come out of a pickle writeable; what is shown must not damage the model.
        self._model = FSKM.from_state(self._model.state())

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """What river's checks of all estimators use: batches that their short streams fill."""
        yield {"n_clusters": 3, "batch_size": 10}


def _checked_row(x: Mapping[Hashable, Any]) -> Row:
    """Return a copy of a row, its values as floats."""
    row = {}
    for name, value in x.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or isinstance(value, str):
            raise InputError(
                f"x[{name!r}] must be a finite number, got {value!r}. Encode, fill or leave out "
                "such features first, in a river pipeline for instance."
            )
        row[name] = number
    return row


def _checked_frame(X: Any) -> tuple[Any, list[Row]]:
    """Return a frame behind river's interface, and its rows."""
    frame = dataframe.into_frame(X)
    names: list[Hashable] = list(frame.columns)
    values = dataframe.to_numpy(frame)
    if len(values):
        values = checked_points(values, columns=[str(name) for name in names])
    return frame, [dict(zip(names, row, strict=True)) for row in values.tolist()]


def _columns(rows: list[Row], features: tuple[Hashable, ...]) -> Points:
    """Return rows as an array; what a row lacks is 0."""
    return np.array([[row.get(name, 0.0) for name in features] for row in rows], dtype=np.float64)


def _table(rows: list[Row], features: tuple[Hashable, ...]) -> Rows:
    """Return rows to be prepared."""
    return rows_of_columns({str(name): [row.get(name) for row in rows] for name in features})


def _in_order(name: Hashable) -> tuple[str, Any]:
    """Sort numbers as numbers and everything else by its text."""
    return (type(name).__name__, name if isinstance(name, int) else str(name))
