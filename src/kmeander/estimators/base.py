"""scikit-learn's API over a model: to learn, to show what was learned, to save."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from numbers import Integral
from operator import is_
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from kmeander.arrays import (
    Labels,
    Points,
)
from kmeander.estimators.exports import ExportedKMeans
from kmeander.estimators.novelty import ScoringKMeans
from kmeander.estimators.reading import in_place, read_points, read_rows
from kmeander.estimators.turns import turn_of
from kmeander.exceptions import CheckpointError
from kmeander.models.base import StreamModel
from kmeander.models.settings import MetricName, PrivilegedSettings
from kmeander.models.state import State
from kmeander.preparation import Preparation, Rows
from kmeander.records import Batch, Captions, Columns, Profiles, Step
from kmeander.storage import checkpoint, model_file

if TYPE_CHECKING:
    from kmeander.arguments import RandomState


# The room of the classes that kmeander.load makes again.
SAVED_IN = __name__.rpartition(".")[0]


class StreamKMeans(ScoringKMeans, ExportedKMeans):
    """How both estimators learn. `_model_class` says which model is behind them."""

    random_state: RandomState
    cluster_weights_: NDArray[np.float64]
    labels_: Labels
    inertia_: float
    surrogate_error_: float
    n_iter_: int
    n_steps_: int
    n_features_in_: int
    step_: Step
    prepare: Preparation | str | None
    metric: MetricName
    _model_class: ClassVar[type[StreamModel]]
    _parameters: ClassVar[tuple[str, ...]]  # of the model's settings
    # Their values, as they were when the model was made; None where that was elsewhere.
    _given: tuple[object, ...] | None

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn `X` as one batch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Each row counts as that many.
        """
        with turn_of(self):
            return self._fit(X, sample_weight)

    def fit_predict(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Labels:
        """Forget everything, learn `X` and return the cluster of each row."""
        with turn_of(self):
            return self._fit(X, sample_weight).labels_

    def fit_transform(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Points:
        """Forget everything, learn `X` and return the distance of each row to each centroid."""
        with turn_of(self):
            return self._fit(X, sample_weight).transform(X)

    def acknowledge(self) -> Self:
        """Take the present as the baseline: what has changed so far is not reported again.

        Part of the state that is saved. Learning does not look at it.
        """
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        self._model.acknowledge()
        return self

    def describe(self) -> Profiles:
        """Return what each cluster is: name, share, age, trend, what sets it apart, a few rows.

        Names are made of the columns, or of the words of `texts`, that set a cluster apart; each
        stays with its cluster for as long as it is true, from the first time it is shown on.

        Returns
        -------
        Profiles
            A sequence of `ClusterProfile`, the largest first; printed it is a table.

        Examples
        --------
        >>> import numpy as np
        >>> from kmeander import ForgetfulKMeans
        >>> temps = np.array([[30.0], [31.0], [32.0], [81.0], [83.0]])
        >>> model = ForgetfulKMeans(2, random_state=0).partial_fit(temps)
        >>> [profile.apart() for profile in model.describe()]
        ['x0 low (31 against 82)', 'x0 high (82 against 31)']
        """
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        with turn_of(self):
            names = getattr(self, "feature_names_in_", None)
            found = self._model.describe(None if names is None else names.tolist())
            self._learned = self._model.learned
        return found

    def name(self, cluster: int, name: str) -> Self:
        """Give the cluster with this id a name, which stays with it: events and profiles say it.

        Examples
        --------
        >>> from kmeander import ForgetfulKMeans
        >>> model = ForgetfulKMeans(1, random_state=0).partial_fit([[1.0], [2.0]])
        >>> model.name(0, "night shift").describe()[0].name
        'night shift'
        """
        if not hasattr(self, "cluster_centers_"):
            raise NotFittedError(self._why_not_fitted())
        with turn_of(self):
            self._model.name(cluster, name)
            self._learned = self._model.learned
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to one file, from which `kmeander.load` makes it again.

        Not a pickle: nothing is executed when it is read. A `random_state` that is a generator is
        stored as the seed that was drawn from it.
        """
        known = model_file.ESTIMATORS.values()
        room = type(self).__module__.rpartition(".")[0]
        if type(self).__name__ not in known or room != SAVED_IN:
            raise CheckpointError(
                f"a {type(self).__name__} cannot be saved: kmeander.load would not know the class. "
                "Pickle it, or save the model that it holds."
            )
        params = self.get_params()
        if isinstance(params["prepare"], Preparation):
            params["prepare"] = params["prepare"].to_dict()
        if isinstance(params["n_clusters"], tuple):
            params["n_clusters"] = list(params["n_clusters"])
        if not isinstance(params["random_state"], Integral | NoneType):
            if not hasattr(self, "_model"):
                raise CheckpointError(
                    "random_state is a generator from which nothing has been drawn yet, and cannot "
                    "be saved. Pass a seed, or learn a batch first."
                )
            params["random_state"] = self._model.seed
        names = getattr(self, "feature_names_in_", None)
        state = model_file.to_state(
            type(self).__name__,
            params,
            getattr(self, "_model", None),
            None if names is None else names.tolist(),
        )
        checkpoint.write(path, state)

    def _settings(self) -> PrivilegedSettings:
        """Return the present parameters, checked."""
        raise TypeError(f"{type(self).__name__} is abstract.")

    def _fit(self, X: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        settings, rows = self._settings(), None
        if settings.rules is not None:
            rows, features = read_rows(X)
            model = self._model_class.of(settings, self.random_state)
            step = model.learn(rows, sample_weight, concept=0, anew=True)
        else:
            points, features = read_points(self, X, reset=True, copy=True)
            batch = Batch.of_points(0, points, sample_weight, concept=0)
            self._model_class.of(settings, 0).check_fit(batch)  # before a generator is drawn from
            model = self._model_class.of(settings, self.random_state)
            step = model.fit(batch)
        self._warn_unless_converged(model, step)
        assert step.masses is not None
        n_distinct = int(np.count_nonzero(step.masses))
        if n_distinct < model.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
                f"({model.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._publish(model, features, rows=rows)
        return self

    def _learn(
        self,
        X: ArrayLike,
        sample_weight: ArrayLike | None,
        elapsed: float,
        concept: int | None,
        row_ids: ArrayLike | None = None,
        texts: ArrayLike | None = None,
    ) -> Self:
        """Learn one batch with the model as it is, under the present parameters."""
        known = getattr(self, "_model", None)
        rows = batch = said = None
        has_captions = row_ids is not None or texts is not None
        if self.prepare is not None:
            rows, features = read_rows(X)
            if has_captions:
                said = Captions.checked(len(rows), row_ids, texts)
        else:
            points, features = read_points(self, X, reset=known is None, copy=True)
            index = 0 if known is None else known.learned.n_steps
            if has_captions:
                said = Captions.checked(len(points), row_ids, texts)
            batch = Batch.of_points(index, points, sample_weight, elapsed, concept, captions=said)
        given = tuple(map(vars(self).get, self._parameters))
        if known is None:
            model = self._model_class.of(self._settings(), self.random_state)
        elif self._given is not None and all(map(is_, given, self._given)):
            model = known
        else:
            model = self._model_class.of(self._settings(), known.seed)
            model.take_over(known)
        before = model.learned
        if rows is not None:
            step = model.learn(rows, sample_weight, elapsed=elapsed, concept=concept, captions=said)
        else:
            assert batch is not None
            step = model.step(batch)
        if not (step.converged or step.waiting):
            try:
                self._warn_unless_converged(model, step)
            except Warning:
                model.learned = before  # the estimator is as it was
                raise
        self._publish(model, features, given, rows)
        return self

    def _resume(self, model: StreamModel, feature_names: list[str] | None) -> None:
        """Become what `save` wrote."""
        preparation = model.learned.preparation
        n_features = model.n_features if preparation is None else len(preparation.columns)
        features: dict[str, Any] = {"n_features_in_": n_features}
        if feature_names is not None:
            features["feature_names_in_"] = np.array(feature_names, dtype=object)
        self._publish(model, features)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_model"):
            # Arrays come out of a pickle writeable; what is shown must not damage the model.
            model = type(self._model).from_state(self._model.state())
            names = getattr(self, "feature_names_in_", None)
            self._resume(model, None if names is None else names.tolist())

    def _publish(
        self,
        model: StreamModel,
        features: dict[str, Any],
        given: tuple[object, ...] | None = None,
        rows: Rows | None = None,
    ) -> None:
        """Show what `model` has learned, from `rows` the last time, all at once."""
        learned = model.learned
        assert learned.step is not None
        step = learned.step.with_columns(_columns(learned, features))
        shown: dict[str, Any] = {
            **features,
            "_model": model,
            "_learned": learned,
            "_given": given,
            "_novelty": None,
            "n_steps_": learned.n_steps,
            "step_": step,
        }
        if learned.centroids is not None:
            assert step.surrogate_error is not None
            assert step.ids is not None
            labels = learned.window.newest_labels(step.n_means or step.n_points)
            ids, places = step.ids[labels], learned.k_choice.places
            if places is not None:
                labels = learned.rows_of(labels)
            if rows is not None and learned.preparation is not None:
                kept = learned.preparation.kept(rows)
                labels, ids = in_place(labels, kept, -1), in_place(ids, kept, -1)
            shown |= {
                "n_clusters_": len(learned.centroids),
                **_by_row(learned, step),
                "labels_": labels,
                "ids_": ids,
                "inertia_": step.surrogate_error * step.mass,
                "surrogate_error_": step.surrogate_error,
                "n_iter_": step.n_iter,
            }
        if "feature_names_in_" not in features:
            self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(shown)

    def _warn_unless_converged(self, model: StreamModel, step: Step) -> None:
        if step.waiting or step.converged:
            return
        warnings.warn(
            f"Lloyd stopped at max_iter={model.settings.max_iter} before the labels settled at "
            f"batch {step.index}. Raise max_iter, or tol to accept less.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _by_row(learned: State, step: Step) -> dict[str, Any]:
    """Return centroids, ids and weights by row: those of free rows, too."""
    centers, ids, weights = learned.centroids, step.ids, step.masses
    assert centers is not None
    assert ids is not None
    assert weights is not None
    places = learned.k_choice.places
    if places is not None:
        centers = places.centers(centers)
        ids, weights = places.spread(ids, -1), places.spread(weights, 0.0)
    return {"cluster_centers_": centers, "cluster_ids_": ids, "cluster_weights_": weights}


def _columns(learned: State, features: Mapping[str, Any]) -> Columns | None:
    """Return names and units of what was learned, as far as anybody has named it."""
    if learned.preparation is not None:
        known = learned.preparation
        return Columns(known.names, known.shift, known.unit)
    names = features.get("feature_names_in_")
    return None if names is None else Columns(tuple(names))


def model_of(estimator: StreamKMeans) -> StreamModel:
    """Return a model of its own that goes on from where an estimator is, with its parameters."""
    known = getattr(estimator, "_model", None)
    seed = estimator.random_state if known is None else known.seed
    model = estimator._model_class.of(estimator._settings(), seed)
    if known is not None:
        model.take_over(known)
    return model
