"""What a fitted estimator answers: clusters, distances and scores of rows, and its centroids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from kmeander.arrays import Centroids, Labels, Points, checked_weights
from kmeander.estimators.reading import in_place, read_points
from kmeander.exceptions import InputError
from kmeander.html_cards import card
from kmeander.kmeans.lloyd import nearest
from kmeander.kmeans.metric import Metric
from kmeander.models.base import StreamModel
from kmeander.models.cluster_range import ClusterCount
from kmeander.models.state import State
from kmeander.preparation import rows_of
from kmeander.records import Ids, Step

if TYPE_CHECKING:
    import pandas as pd


class FittedKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """The questions that both estimators answer of rows, once they have learned some."""

    n_clusters: ClusterCount
    n_clusters_: int
    n_threads: int | None
    cluster_centers_: Centroids
    cluster_ids_: Ids
    step_: Step
    _model: StreamModel
    _learned: State  # what is shown: all of it is replaced at once

    def predict(self, X: ArrayLike) -> Labels:
        """Return the cluster of each row: the index of the nearest centroid.

        **A living cluster keeps its row**, so the same number means the same cluster from batch to
        batch. A row that becomes free goes to a new cluster; `predict_ids` gives ids, which are
        never given to another cluster.

        Safe while another thread runs `partial_fit`: it sees the centroids before the batch or
        those after it. Rows that the preparation leaves out are in none: -1.
        """
        points, learned, kept = self._points_and_state(X)
        assert learned.centroids is not None
        labels = nearest(points, learned.centroids, self.n_threads)[0]
        return in_place(learned.rows_of(labels), kept, -1)

    def predict_ids(self, X: ArrayLike) -> Ids:
        """Return the id of the cluster of each row, which is never given to another cluster.

        Examples
        --------
        >>> from kmeander import ForgetfulKMeans
        >>> model = ForgetfulKMeans(2, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
        >>> (model.predict_ids([[0.5], [10.5]]) == model.ids_[[0, 2]]).all().item()
        True
        """
        points, learned, kept = self._points_and_state(X)
        assert learned.lineage is not None
        assert learned.centroids is not None
        labels = nearest(points, learned.centroids, self.n_threads)[0]
        return in_place(learned.lineage.ids[labels], kept, -1)

    def transform(self, X: ArrayLike) -> Points:
        """Return the distance of each row to each centroid; 1 - cosine with that metric.

        There is a column for each living cluster, in the order of their rows: where the number of
        clusters follows the stream, as many as there are at the moment.
        """
        points, centroids, kept = self._points_and_centroids(X)
        distances = np.empty((len(points), len(centroids)))
        for k in range(len(centroids)):
            squared = nearest(points, centroids[k : k + 1], self.n_threads)[1]
            distances[:, k] = self._space.distances(squared)
        # float32 for float32, unless a distance is too large for it.
        if points.dtype == np.float32 and distances.max() <= np.finfo(np.float32).max:
            distances = distances.astype(np.float32)
        return in_place(distances, kept, np.nan)

    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return minus the weighted sum of squared distances to the nearest centroid.

        With ``metric="cosine"`` that of 1 - cosine.
        """
        points, centroids, kept = self._points_and_centroids(X)
        weights = checked_weights(sample_weight, len(points) if kept is None else len(kept))
        if weights is not None and kept is not None:
            weights = weights[kept]
        squared = nearest(points, centroids, self.n_threads)[1]
        total = float((squared if weights is None else weights * squared).sum())
        return -self._space.error_share * total

    def centers_frame(self) -> pd.DataFrame:
        """Return the centroids as a pandas frame, by cluster id, in the columns that were learned.

        Where rows are prepared that is in their units, a category is its most frequent level.
        """
        import pandas as pd

        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        learned = self._learned
        assert learned.centroids is not None
        assert learned.lineage is not None
        index = pd.Index(learned.lineage.ids, name="cluster")
        if learned.preparation is not None:
            return pd.DataFrame(
                learned.preparation.restored_columns(learned.centroids), index=index
            )
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{place}" for place in range(learned.centroids.shape[1])]
        return pd.DataFrame(learned.centroids, index=index, columns=names)

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it: its clusters, once it has learned some."""
        if not hasattr(self, "cluster_centers_"):
            unfitted: str = super()._repr_html_()
            return unfitted
        return f"{card(repr(self))}<br>{self.step_._repr_html_()}"

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _points_and_centroids(
        self, X: ArrayLike
    ) -> tuple[Points, Centroids, NDArray[np.bool_] | None]:
        points, learned, kept = self._points_and_state(X)
        assert learned.centroids is not None
        return points, learned.centroids, kept

    def _points_and_state(self, X: ArrayLike) -> tuple[Points, State, NDArray[np.bool_] | None]:
        """Return points, what is known, and which rows are points where some are left out."""
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        learned, space = self._learned, self._space  # once: another thread may replace them
        if learned.preparation is None:
            return space.points(read_points(self, X, reset=False)[0]), learned, None
        points, _, kept = learned.preparation.prepared(rows_of(X))
        if not len(points):
            raise InputError(
                "every row of X lacks a value, and the preparation leaves such rows out. Fill them "
                "first."
            )
        return space.points(points), learned, kept

    @property
    def _space(self) -> Metric:
        """The metric of what was learned."""
        return self._model.settings.limits.metric

    def _why_not_fitted(self) -> str:
        name = type(self).__name__
        if not hasattr(self, "_model"):
            return (
                f"This {name} instance is not fitted yet. Call 'fit' or 'partial_fit' with "
                "appropriate arguments before using this estimator."
            )
        return (
            f"This {name} instance is not fitted yet: the stream has shown "
            f"{self._model.n_distinct} distinct points so far, n_clusters={self.n_clusters!r} "
            f"needs {self._model.n_clusters}. Call 'partial_fit' with more."
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_
