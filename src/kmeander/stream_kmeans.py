"""What the two estimators share: scikit-learn's API over a model. No algorithm lives here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from kmeander import _kernel, checkpoint
from kmeander.arrays import Centroids, Labels, Points, checked_points, checked_weights
from kmeander.lloyd import nearest
from kmeander.records import Batch, Step
from kmeander.stream_model import StreamModel

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


class StreamKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """What both estimators share. `_new_model` says which model is behind them."""

    n_clusters: int
    n_threads: int | None
    random_state: RandomState
    cluster_centers_: Centroids
    cluster_weights_: NDArray[np.float64]
    labels_: Labels
    inertia_: float
    surrogate_error_: float
    n_iter_: int
    n_steps_: int
    n_features_in_: int
    step_: Step
    _model: StreamModel

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn `X` as one batch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Each row counts as that many.
        """
        with self._as_before_on_error():
            batch = Batch(0, self._read(X, reset=True), sample_weight, concept=0)
            model = self._new_model(self.random_state)
            step = model.fit(batch)
            self._publish(model)
        self._warn_unless_converged(step, stacklevel=3)
        assert step.masses is not None
        n_distinct = int(np.count_nonzero(step.masses))
        if n_distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def fit_predict(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Labels:
        """Forget everything, learn `X` and return the cluster of each row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Points:
        """Forget everything, learn `X` and return the distance of each row to each centroid."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def predict(self, X: ArrayLike) -> Labels:
        """Return the cluster of each row: the index of the nearest centroid.

        Safe while another thread runs `partial_fit`: it sees the centroids before the batch or
        those after it.
        """
        return nearest(*self._points_and_centroids(X), self.n_threads)[0]

    def transform(self, X: ArrayLike) -> Points:
        """Return the distance of each row to each centroid."""
        points, centroids = self._points_and_centroids(X)
        distances = np.empty((len(points), len(centroids)), dtype=points.dtype)
        for k in range(len(centroids)):
            distances[:, k] = np.sqrt(nearest(points, centroids[k : k + 1], self.n_threads)[1])
        return distances

    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return minus the weighted sum of squared distances to the nearest centroid."""
        points, centroids = self._points_and_centroids(X)
        weights = checked_weights(sample_weight, len(points))
        squared = nearest(points, centroids, self.n_threads)[1]
        return -float((squared if weights is None else weights * squared).sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to one file, from which `kmeander.load` makes it again.

        Not a pickle: nothing is executed when it is read. A `random_state` that is a generator is
        stored as the seed that was drawn from it.
        """
        params = self.get_params()
        if params["random_state"] is not None and hasattr(self, "_model"):
            params["random_state"] = self._model.seed
        names = getattr(self, "feature_names_in_", None)
        checkpoint.write(
            path,
            {
                "estimator": type(self).__name__,
                "params": params,
                "feature_names_in": None if names is None else names.tolist(),
                "instruction_set": _kernel.instruction_set(),
                "model": self._model.state() if hasattr(self, "_model") else None,
            },
        )

    def _new_model(self, random_state: RandomState) -> StreamModel:
        """Make a model with the present parameters, which checks them."""
        raise TypeError(f"{type(self).__name__} is abstract.")

    def _learn(
        self, X: ArrayLike, sample_weight: ArrayLike | None, elapsed: float, concept: int | None
    ) -> Self:
        """Learn one batch with the model as it is, under the present parameters."""
        known = getattr(self, "_model", None)
        with self._as_before_on_error():
            points = self._read(X, reset=known is None)
            n_steps = 0 if known is None else known.n_steps
            batch = Batch(n_steps, points, sample_weight, elapsed, concept)
            model = self._new_model(self.random_state if known is None else known.seed)
            if known is not None:
                model.take_over(known)
            step = model.step(batch)
            self._publish(model)
        self._warn_unless_converged(step, stacklevel=4)
        return self

    @contextmanager
    def _as_before_on_error(self) -> Iterator[None]:
        """Undo what an exception leaves half done: scikit-learn notes features before values."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read(self, X: ArrayLike, *, reset: bool) -> Points:
        # scikit-learn knows data frames, feature names and what its own checks expect; values are
        # looked at by checked_points, which says where a bad one is.
        array = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        return checked_points(array)

    def _points_and_centroids(self, X: ArrayLike) -> tuple[Points, Centroids]:
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        centroids = self.cluster_centers_  # read once: another thread may replace it
        return self._read(X, reset=False), centroids

    def _why_not_fitted(self) -> str:
        name = type(self).__name__
        if not hasattr(self, "_model"):
            return (
                f"This {name} instance is not fitted yet. Call 'fit' or 'partial_fit' with "
                "appropriate arguments before using this estimator."
            )
        return (
            f"This {name} instance is not fitted yet: the stream has shown "
            f"{self._model.n_distinct} distinct points so far, n_clusters={self.n_clusters} needs "
            f"{self.n_clusters}. Call 'partial_fit' with more."
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
        return len(self.cluster_centers_)

    def _resume(self, model: StreamModel, feature_names: list[str] | None) -> None:
        """Become what `save` wrote."""
        assert model.n_features is not None
        self.n_features_in_ = model.n_features
        if feature_names is not None:
            self.feature_names_in_ = np.array(feature_names, dtype=object)
        self._publish(model)

    def _publish(self, model: StreamModel) -> None:
        """Show what `model` has learnt."""
        step = model.last_step
        assert step is not None
        shown: dict[str, Any] = {"_model": model, "n_steps_": model.n_steps, "step_": step}
        if model.centroids is not None:
            assert step.surrogate_error is not None
            shown |= {
                "cluster_centers_": model.centroids,
                "cluster_weights_": step.masses,
                "labels_": model.labels,
                "inertia_": step.surrogate_error * step.mass,
                "surrogate_error_": step.surrogate_error,
                "n_iter_": step.n_iter,
            }
        self.__dict__.update(shown)

    def _warn_unless_converged(self, step: Step, stacklevel: int) -> None:
        if step.waiting or step.converged:
            return
        warnings.warn(
            f"Lloyd stopped at max_iter={self._model.limits.max_iter} before the labels settled "
            f"at batch {step.index}. Raise max_iter, or tol to accept less.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
