"""The cluster of every row, as columns of any frame, at rest or streaming, or in SQL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.pandas.functions import pandas_udf

from kmeander.estimators import ForgetfulKMeans
from kmeander.estimators.base import model_of
from kmeander.exceptions import InputError, InputTypeError
from kmeander.spark import labelling
from kmeander.spark.columns import Features
from kmeander.spark.labelling import NAMES, RESULT, Fixed, fixed_at, newest_at, table_of
from kmeander.spark.models import centroid_checkpoints
from kmeander.spark.sessions import check_version

_VERSION, _HIDDEN = "__kmeander_version__", "__kmeander__"


def assign(
    frame: DataFrame,
    model: ForgetfulKMeans | str | os.PathLike[str],
    features: str | Sequence[str] | None = None,
    *,
    prefix: str = "",
) -> DataFrame:
    """Add the columns ``cluster``, ``id`` and ``distance`` to a frame, at rest or streaming.

    Parameters
    ----------
    frame : DataFrame
    model : ForgetfulKMeans, str or path-like
        A model that has learned; or the checkpoint of `learn`, whose newest model is looked up when
        a frame at rest is computed, and anew for each micro-batch of a streaming one: all rows of
        a micro-batch are assigned by the same model. Executors read it there.
    features : str or sequence of str, optional
        As for `learn`. By default the columns that the model has learned.
    prefix : str, default=""
        Put before the names of the new columns.

    Returns
    -------
    DataFrame
        ``cluster`` is the index of the nearest centroid, ``id`` the lasting id of its cluster and
        ``distance`` the way to it. All three are null where a value is null, NaN or infinite, and
        while the model has no clusters yet.
    """
    check_version(frame.sparkSession)
    if isinstance(model, ForgetfulKMeans):
        columns = features if features is not None else _known_columns(model)
        found = Features.of(frame, columns)
        return with_clusters(frame, found, _fixed(model), prefix=prefix)
    saved = centroid_checkpoints(_path_of(model))
    if features is None:
        newest = saved.read_newest()
        if newest is None:
            raise InputError(
                f"features must be given: {os.fspath(model)} holds no centroids yet that would "
                "name the columns."
            )
        features = newest[1]["columns"]
    found = Features.of(frame, features)
    folder = saved.folder

    def assigned(versions: pd.Series, *columns: pd.Series) -> pd.DataFrame:
        number = versions.iloc[0] if len(versions) else None
        fixed = None if number is None or number < 0 else fixed_at(folder, int(number))
        return labelling.assigned(table_of(columns, found.all_float32), fixed)

    versioned = frame.crossJoin(F.broadcast(_newest_version(folder, frame.sparkSession)))
    result = _function(assigned, RESULT)(F.col(_VERSION), *found.as_columns())
    return _expanded(versioned, result, prefix).drop(_VERSION)


def with_clusters(
    frame: DataFrame, features: Features, fixed: Fixed, *, prefix: str = ""
) -> DataFrame:
    """Add the three columns by a model that stays as it is."""
    assigned = _function(_assigned_by(fixed, features.all_float32), RESULT)
    return _expanded(frame, assigned(*features.as_columns()), prefix)


def register(
    spark: SparkSession, name: str, model: ForgetfulKMeans | str | os.PathLike[str]
) -> None:
    """Make a function for SQL: of the features, in order, to a struct of the three columns.

    Parameters
    ----------
    spark : SparkSession
    name : str
        As in ``SELECT name(x, y).cluster FROM readings``. One argument that is an array of numbers
        also serves.
    model : ForgetfulKMeans, str or path-like
        A model that has learned, or the checkpoint of `learn`, whose newest model is taken now:
        register again to take a newer one.
    """
    check_version(spark)
    if isinstance(model, ForgetfulKMeans):
        fixed = _fixed(model)
    else:
        newest = centroid_checkpoints(_path_of(model)).read_newest()
        if newest is None:
            raise InputError(
                f"{os.fspath(model)} holds no centroids yet: no batch has been learned there."
            )
        fixed = Fixed.from_state(newest[1])
    spark.udf.register(name, _function(_assigned_by(fixed), RESULT))


def _function(of: Callable[..., Any], result: str) -> Any:
    """Make a function of Spark's; pandas' are those that 3.5, 4.x and Connect all have."""
    of.__annotations__ = dict.fromkeys(of.__annotations__, pd.Series)
    of.__annotations__["return"] = pd.Series if result == "bigint" else pd.DataFrame
    make: Any = pandas_udf  # whose many overloads know no annotations that are made here
    return make(of, result)


def _assigned_by(fixed: Fixed, all_float32: bool | None = None) -> Callable[..., pd.DataFrame]:
    """Return the function of columns; Spark broadcasts it with the centroids inside."""

    def assigned(*columns: pd.Series) -> pd.DataFrame:
        return labelling.assigned(table_of(columns, all_float32), fixed)

    return assigned


def _newest_version(folder: str, spark: SparkSession) -> DataFrame:
    """Return a row with the number of the newest model in a checkpoint; -1 where there is none.

    Joined to a frame, as a broadcast: Spark computes it once for each micro-batch, before any row,
    so that all tasks get the same.
    """

    def version(ones: pd.Series) -> pd.Series:
        newest = newest_at(folder)
        return pd.Series([-1 if newest is None else newest] * len(ones), dtype="int64")

    ask = _function(version, "bigint").asNondeterministic()
    return spark.range(1).coalesce(1).select(ask("id").alias(_VERSION))


def _expanded(frame: DataFrame, result: Column, prefix: str) -> DataFrame:
    names = [f"{prefix}{name}" for name in NAMES]
    taken = [name for name in names if name in frame.columns]
    if taken:
        raise InputError(
            f"the frame has a column {taken[0]!r} already. Pass prefix='cluster_', or any other "
            "that makes names of their own."
        )
    return frame.withColumn(_HIDDEN, result).select(
        *(F.col(f"`{name}`") for name in frame.columns),
        *(
            F.col(f"{_HIDDEN}.{name}").alias(shown)
            for name, shown in zip(NAMES, names, strict=True)
        ),
    )


def _fixed(model: ForgetfulKMeans) -> Fixed:
    if not hasattr(model, "cluster_centers_"):
        raise InputError(
            "model has no clusters yet. Let it learn first; a checkpoint's path may be given "
            "before."
        )
    fixed = Fixed.of(model_of(model))
    assert fixed is not None
    return fixed


def _known_columns(model: ForgetfulKMeans) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise InputError(
            "features must be given: the model has learned from arrays, which name no columns."
        )
    return [str(name) for name in names]


def _path_of(model: object) -> str:
    if isinstance(model, str | os.PathLike):
        return os.fspath(model).rstrip("/")
    raise InputTypeError(
        f"model must be a kmeander.ForgetfulKMeans or the checkpoint's path, got "
        f"{type(model).__name__}."
    )
