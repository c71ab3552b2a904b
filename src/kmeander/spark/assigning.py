"""The cluster of every row, as columns of any frame, at rest or streaming, or in SQL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf

from kmeander.estimators import ForgetfulKMeans
from kmeander.estimators.base import model_of
from kmeander.exceptions import InputError, InputTypeError
from kmeander.spark import labelling
from kmeander.spark.columns import Features
from kmeander.spark.labelling import NAMES, RESULT, Fixed, fixed_at, interleaved
from kmeander.spark.models import centroid_checkpoints
from kmeander.spark.storage import newest_from_executor

_VERSION, _HIDDEN = "__kmeander_version__", "__kmeander__"
# Its stub asks for an argument that is there for compatibility alone.
_function: Any = arrow_udf
Assigned = Callable[[pa.Array], pa.Array]


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
    if isinstance(model, ForgetfulKMeans):
        columns = features if features is not None else _known_columns(model)
        found = Features.of(frame, columns)
        return with_clusters(frame, found, _fixed(model), prefix=prefix)
    path = _path_of(model)
    saved = centroid_checkpoints(frame.sparkSession, path)
    if features is None:
        newest = saved.newest()
        if newest is None:
            raise InputError(
                f"features must be given: {path} holds no centroids yet that would name the "
                "columns."
            )
        features = saved.read(newest)["columns"]
    found = Features.of(frame, features)
    versioned = frame.withColumn(_VERSION, _newest_version(saved.place.uri, frame.sparkSession))
    result = _clusters_by_version(found, saved.place.uri)
    return _expanded(versioned, result, prefix).drop(_VERSION)


def with_clusters(
    frame: DataFrame, features: Features, fixed: Fixed, *, prefix: str = ""
) -> DataFrame:
    """Add the three columns by a model that stays as it is."""
    return _expanded(frame, _function(_assigned_by(fixed), RESULT)(features.array()), prefix)


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
    if isinstance(model, ForgetfulKMeans):
        fixed = _fixed(model)
    else:
        path = _path_of(model)
        saved = centroid_checkpoints(spark, path)
        newest = saved.newest()
        if newest is None:
            raise InputError(f"{path} holds no centroids yet: no batch has been learned there.")
        fixed = Fixed.from_state(saved.read(newest))
    assigned = _assigned_by(fixed)

    def of_columns(*columns: pa.Array) -> pa.Array:
        if len(columns) == 1 and pa.types.is_list(columns[0].type):
            return assigned(columns[0])
        return assigned(interleaved(columns))

    spark.udf.register(name, _function(of_columns, RESULT))


def _assigned_by(fixed: Fixed) -> Assigned:
    """Return the function of a block of rows; Spark broadcasts it with the centroids inside."""

    def assigned(block: pa.Array) -> pa.Array:
        return labelling.assigned(block, fixed)

    return assigned


def _newest_version(uri: str, spark: SparkSession) -> Column:
    """Return the number of the newest model in a checkpoint.

    Asked by a subquery: Spark computes it once for each micro-batch, before any row, so that all
    tasks get the same.
    """

    def version(ones: pa.Array) -> pa.Array:
        return pa.array([newest_from_executor(uri)] * len(ones), pa.int64())

    ask = _function(version, "bigint").asNondeterministic()
    newest = spark.range(1).select(ask("id")).scalar()
    # Spark must not move the subquery into the arguments of another Python function, whose tasks
    # cannot compare it with others; what looks like chance stays where it is.
    return newest + F.floor(F.rand(0)).cast("bigint")


def _clusters_by_version(features: Features, uri: str) -> Column:
    """Return the struct of a row by the model that its version names."""

    def assigned(block: pa.Array, versions: pa.Array) -> pa.Array:
        number = versions[0].as_py() if len(versions) else None
        return labelling.assigned(block, None if number is None else fixed_at(uri, number))

    result: Column = _function(assigned, RESULT)(features.array(), F.col(_VERSION))
    return result


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
