"""What a checkpoint of a Spark stream holds: the model with its window, and its centroids alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from kmeander.estimators import base
from kmeander.estimators.forgetful import ForgetfulKMeans, from_saved
from kmeander.exceptions import CheckpointError, InputError, InputTypeError
from kmeander.models import FSKM
from kmeander.spark.columns import Features
from kmeander.spark.storage import Checkpoints, folder_at
from kmeander.storage import model_file as saved_model

# Names below a checkpoint's folder: Spark's own notes, the model, and what `assign` needs of it.
SPARK, MODEL, CENTROIDS = "spark", "model", "centroids"
_MODELS_KEPT = 2
# A batch being assigned asks for the centroids it began with; meanwhile others may be learned.
_CENTROIDS_KEPT = 16


def model_checkpoints(spark: SparkSession, path: str) -> Checkpoints:
    """Return the whole models below a checkpoint's folder."""
    return Checkpoints(folder_at(spark, f"{path}/{MODEL}"), _MODELS_KEPT)


def centroid_checkpoints(spark: SparkSession, path: str) -> Checkpoints:
    """Return the centroids below a checkpoint's folder."""
    return Checkpoints(folder_at(spark, f"{path}/{CENTROIDS}"), _CENTROIDS_KEPT)


def to_state(model: FSKM, batch_id: int, features: Features) -> dict[str, Any]:
    """Return what is saved after a batch: a model's file that `kmeander.load` reads, too."""
    params = {**model.settings.to_dict(), "random_state": model.seed}
    learned = model if model.n_steps else None
    state = saved_model.to_state("ForgetfulKMeans", params, learned, features.names)
    return {**state, "spark": {"batch_id": batch_id, "columns": list(features.columns)}}


def from_state(state: Mapping[str, Any], asked: FSKM, features: Features) -> FSKM:
    """Return the model of a checkpoint, under the settings that are asked for now."""
    known = state["spark"]["columns"]
    if known != list(features.columns):
        raise InputError(
            f"features are {list(features.columns)}, but the checkpoint was begun with {known}. "
            "Pass those, or begin anew with another checkpoint."
        )
    if state["model"] is None:  # nothing was learned, but the seed was drawn
        asked.seed = state["params"]["random_state"]
    else:
        asked.take_over(FSKM.from_state(state["model"]))
    return asked


def model_of(estimator: ForgetfulKMeans) -> FSKM:
    """Return a model with the estimator's settings, and what it has learned so far."""
    if not isinstance(estimator, ForgetfulKMeans):
        raise InputTypeError(
            f"model must be a kmeander.ForgetfulKMeans, got {type(estimator).__name__}."
        )
    model = base.model_of(estimator)
    assert isinstance(model, FSKM)
    rules = model.settings.rules
    if rules is not None and model.learned.preparation is None:
        # Features are asked for by name, and come sorted: a number that grows says nothing.
        named = replace(rules, identifiers="keep")
        model.settings = replace(model.settings, prepare=named)
    return model


def load(checkpoint: str, *, spark: SparkSession | None = None) -> ForgetfulKMeans:
    """Return the newest model of a stream as an estimator.

    Parameters
    ----------
    checkpoint : str
        As given to `learn`, which may be at work meanwhile.
    spark : SparkSession, optional
        By default the active one.
    """
    session = spark if spark is not None else SparkSession.active()
    saved = model_checkpoints(session, str(checkpoint))
    newest = saved.newest()
    if newest is None:
        raise CheckpointError(f"{checkpoint} holds no model: no stream has been learned there.")
    estimator = from_saved(saved.read(newest))
    assert isinstance(estimator, ForgetfulKMeans)
    return estimator
