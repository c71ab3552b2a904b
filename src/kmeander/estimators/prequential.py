"""Prequential (test-then-train) splits and scores for scikit-learn's model selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kmeander.arguments import whole_number
from kmeander.arrays import Labels, checked_weights
from kmeander.exceptions import InputError, InputTypeError

BATCH_SIZE = "the number of rows in a batch of the stream"


class PrequentialSplit:
    """Splits of a stream into the rows before a batch and the batch itself.

    Rows are in the order of the stream. Each batch but the first is tested once, after those
    before it were learned ("prequential": predict, then learn). For `GridSearchCV`,
    `cross_validate` and everything else of scikit-learn that takes ``cv``.

    `ForgetfulKMeans.fit` learns all training rows as one batch, so that nothing is forgotten and
    every `rho` scores the same: wrap the estimator in `StreamFit`, which learns batch by batch.

    Parameters
    ----------
    batch_size : int
        Rows in a batch. The last batch may be shorter; as a score of K-means is a sum over rows,
        each row counts the same all the same.
    min_train_batches : int, default=1
        Batches learned before the first test.
    max_train_batches : int, optional
        Learn only this number of batches before the one tested. By default all, at a cost that
        grows with the square of the stream; ``max_batches_for(rho)`` of the largest `rho` is all
        that matters.

    Examples
    --------
    >>> for train, test in PrequentialSplit(2).split(range(7)):
    ...     print(train.tolist(), test.tolist())
    [0, 1] [2, 3]
    [0, 1, 2, 3] [4, 5]
    [0, 1, 2, 3, 4, 5] [6]
    """

    def __init__(
        self,
        batch_size: int,
        *,
        min_train_batches: int = 1,
        max_train_batches: int | None = None,
    ) -> None:
        self.batch_size = whole_number("batch_size", batch_size, at_least=1, meaning=BATCH_SIZE)
        self.min_train_batches = whole_number(
            "min_train_batches",
            min_train_batches,
            at_least=1,
            meaning="the number of batches learned before the first test",
        )
        if max_train_batches is not None:
            max_train_batches = whole_number(
                "max_train_batches",
                max_train_batches,
                at_least=1,
                meaning="the most batches learned before a test; leave it out for all",
            )
        self.max_train_batches = max_train_batches

    def split(
        self, X: Any, y: object = None, groups: object = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows to learn and the rows to test, in the order of the stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            In the order of the stream.
        y, groups : ignored
        """
        n_rows = _n_rows(X)
        for index in range(self.min_train_batches, self.min_train_batches + self.get_n_splits(X)):
            first = 0 if self.max_train_batches is None else index - self.max_train_batches
            begin, end = index * self.batch_size, min((index + 1) * self.batch_size, n_rows)
            yield np.arange(max(first, 0) * self.batch_size, begin), np.arange(begin, end)

    def get_n_splits(self, X: Any = None, y: object = None, groups: object = None) -> int:
        """Return the number of batches tested.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y, groups : ignored
        """
        if X is None:
            raise InputError("X must be given: the number of splits depends on its rows.")
        n_batches = -(-_n_rows(X) // self.batch_size)
        if n_batches <= self.min_train_batches:
            raise InputError(
                f"X has {_n_rows(X)} rows, which make {n_batches} batches of "
                f"{self.batch_size}: none is left to test after min_train_batches="
                f"{self.min_train_batches}. Give more rows or a smaller batch_size."
            )
        return n_batches - self.min_train_batches

    def __repr__(self) -> str:
        return (
            f"PrequentialSplit(batch_size={self.batch_size}, "
            f"min_train_batches={self.min_train_batches}, "
            f"max_train_batches={self.max_train_batches})"
        )


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _estimator_has(name: str) -> Any:
    """Whether the estimator has a method, for what StreamFit only hands on."""

    def check(self: StreamFit) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


class StreamFit(MetaEstimatorMixin, BaseEstimator):
    """An estimator whose `fit` learns the rows batch by batch, in order.

    With it scikit-learn's model selection sees an estimator of streams as a stream would: see
    `PrequentialSplit`. Any estimator with `partial_fit` will do, so that
    `MiniBatchKMeans` can be judged beside `ForgetfulKMeans`.

    Parameters
    ----------
    estimator : estimator with `partial_fit`
    batch_size : int, default=500
        Rows in a batch; the last one may be shorter.

    Attributes
    ----------
    estimator_ : estimator
        The one fitted, a clone of `estimator`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `X` has names.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from kmeander import ForgetfulKMeans
    >>> rng = np.random.default_rng(0)
    >>> centres = np.repeat([[0.0], [50.0]], 10, axis=0)
    >>> X = np.concatenate([centres + 4 * hour + rng.normal(size=(20, 1)) for hour in range(12)])
    >>> model = StreamFit(ForgetfulKMeans(2, forgetting="fixed", random_state=0), batch_size=20)
    >>> search = GridSearchCV(model, {"estimator__rho": [0.1, 0.9]}, cv=PrequentialSplit(20))
    >>> search.fit(X).best_params_
    {'estimator__rho': 0.1}
    >>> search.best_estimator_.estimator_.n_steps_
    12
    """

    def __init__(self, estimator: Any, *, batch_size: int = 500) -> None:
        self.estimator = estimator
        self.batch_size = batch_size

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn `X`, batch by batch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            In the order of the stream.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        """
        size = whole_number("batch_size", self.batch_size, at_least=1, meaning=BATCH_SIZE)
        if not hasattr(self.estimator, "partial_fit"):
            raise InputTypeError(
                f"estimator must have partial_fit, got {self.estimator!r}, which cannot learn "
                "batch by batch. In a pipeline put StreamFit around the last step alone."
            )
        (X,) = indexable(X)
        n_rows = _n_rows(X)
        weights = checked_weights(sample_weight, n_rows)
        estimator = clone(self.estimator)
        by_rows = X.iloc if hasattr(X, "iloc") else X
        for begin in range(0, max(n_rows, 1), size):  # no rows: the estimator says what is wrong
            rows = slice(begin, begin + size)
            given = {} if weights is None else {"sample_weight": weights[rows]}
            estimator.partial_fit(by_rows[rows], **given)
        self.estimator_ = estimator
        return self

    @available_if(_estimator_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Labels:
        """Return what the fitted estimator predicts."""
        return self._fitted().predict(X)  # type: ignore[no-any-return]

    @available_if(_estimator_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the fitted estimator's score of `X`; of K-means minus the sum of the errors."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._fitted().score(X, **given))

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the fitted estimator."""
        return self._fitted().n_features_in_  # type: ignore[no-any-return]

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of those features, where there are any."""
        return self._fitted().feature_names_in_  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.estimator_
