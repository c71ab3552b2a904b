"""What estimators are given as `X`: points or rows, and what is then known of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from kmeander.arrays import Points, checked_points
from kmeander.exceptions import InputError, argument
from kmeander.preparation import Rows, rows_of


def read_rows(X: ArrayLike) -> tuple[Rows, dict[str, Any]]:
    """Return the rows of `X`, and what is then known of the features."""
    rows = rows_of(X)
    features: dict[str, Any] = {"n_features_in_": len(rows.columns)}
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        features["feature_names_in_"] = np.array(rows.names, dtype=object)
    return rows, features


def read_points(
    estimator: BaseEstimator, X: ArrayLike, *, reset: bool, copy: bool = False
) -> tuple[Points, dict[str, Any]]:
    """Return the points of `X`, and what is then known of the features."""
    known = vars(estimator)
    if (
        not reset
        and type(X) is np.ndarray
        and X.ndim == 2
        and len(X) > 0
        and X.dtype.char in "fd"
        and X.shape[1] == known["n_features_in_"]
        and "feature_names_in_" not in known
    ):
        # Of a plain array scikit-learn would find out nothing more, and take a while for it.
        return checked_points(X, copy=copy), {"n_features_in_": X.shape[1]}
    # scikit-learn knows data frames, feature names and what its own checks expect, and notes
    # features before it has seen all values: on a stand-in, since a bad batch must not show.
    # Values are looked at by checked_points, which says where a bad one is.
    stand_in = object.__new__(type(estimator))
    stand_in.__dict__.update(known)
    try:
        array = validate_data(stand_in, X, reset=reset, dtype=None, ensure_all_finite=False)
    except np.exceptions.DTypePromotionError as error:
        raise InputError(
            f"X has columns that are no numbers: {_no_numbers(X)}. Leave them out, convert dates "
            f"and durations to numbers, or let {argument('prepare', 'auto')} leave out times."
        ) from error
    features: dict[str, Any] = {
        name: stand_in.__dict__[name]
        for name in ("n_features_in_", "feature_names_in_")
        if name in stand_in.__dict__
    }
    names = features.get("feature_names_in_") if hasattr(X, "columns") else None
    return checked_points(array, columns=names, copy=copy), features


def in_place(
    values: NDArray[Any], kept: NDArray[np.bool_] | None, otherwise: float
) -> NDArray[Any]:
    """Return the values of the rows that were kept where those rows stood among all."""
    if kept is None:
        return values
    placed = np.full((len(kept), *values.shape[1:]), otherwise, dtype=values.dtype)
    placed[kept] = values
    return placed


def _no_numbers(X: Any) -> str:
    """Return the columns of a data frame that are no numbers, each with its type."""
    return ", ".join(
        f"{name!r} ({kind})"
        for name, kind in zip(X.columns, X.dtypes, strict=True)
        if getattr(kind, "kind", "O") not in "biuf"
    )
