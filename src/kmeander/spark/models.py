"""What a checkpoint of a Spark stream holds: the model with its window, and its centroids alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from kmeander.estimators import base
from kmeander.estimators.forgetful import ForgetfulKMeans, from_saved
from kmeander.exceptions import CheckpointError, InputError, InputTypeError
from kmeander.models import FSKM
from kmeander.spark.batches import Collected
from kmeander.spark.columns import Features
from kmeander.spark.storage import Checkpoints, place_of
from kmeander.storage import model_file as saved_model
from kmeander.storage.filesystem import joined

# Names below a checkpoint's folder: Spark's own notes, the model, and what `assign` needs of it.
SPARK, MODEL, CENTROIDS = "spark", "model", "centroids"
_MODELS_KEPT = 2
# A batch being assigned asks for the centroids it began with; meanwhile others may be learned.
_CENTROIDS_KEPT = 16


def model_checkpoints(path: str | os.PathLike[str]) -> Checkpoints:
    """Return the whole models below a checkpoint's folder."""
    return Checkpoints(joined(place_of(path), MODEL), _MODELS_KEPT)


def centroid_checkpoints(path: str | os.PathLike[str]) -> Checkpoints:
    """Return the centroids below a checkpoint's folder."""
    return Checkpoints(joined(place_of(path), CENTROIDS), _CENTROIDS_KEPT)


@dataclass(frozen=True)
class StreamState:
    """Where a stream stands, beside what the model has learned.

    Parameters
    ----------
    batch_id : int
        Of the newest batch learned.
    newest_time : int, optional
        When the newest row so far happened, in microseconds since 1970.
    n_bad : int
        Rows set aside so far.
    notices : mapping
        Of events, by receiver: those that were not taken yet.
    """

    batch_id: int
    newest_time: int | None = None
    n_bad: int = 0
    notices: Mapping[str, list[str]] = field(default_factory=dict)

    def after(
        self, collected: Collected, notices: Mapping[str, list[str]] | None = None
    ) -> StreamState:
        """Return it after a batch of this id."""
        times = [time for time in (self.newest_time, collected.last_time) if time is not None]
        return StreamState(
            self.batch_id,
            max(times, default=None),
            self.n_bad + collected.n_bad,
            self.notices if notices is None else notices,
        )

    def elapsed(self, newest_time: int | None, period: int | None, least: float) -> float:
        """Return the periods from the newest row so far to that time; one where nobody says."""
        if period is None or newest_time is None or self.newest_time is None:
            return 1.0
        n_periods = newest_time // period - self.newest_time // period
        return float(n_periods) if n_periods > 0 else least

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> StreamState:
        """Make it of what is saved; early versions saved the batch's id alone."""
        known = state["spark"]
        return cls(
            known["batch_id"],
            known.get("newest_time"),
            known.get("n_bad", 0),
            known.get("notices", {}),
        )


def to_state(model: FSKM, stream: StreamState, features: Features) -> dict[str, Any]:
    """Return what is saved after a batch: a model's file that `kmeander.load` reads, too."""
    params = {**model.settings.to_dict(), "random_state": model.seed}
    learned = model if model.n_steps else None
    state = saved_model.to_state("ForgetfulKMeans", params, learned, features.names)
    return {**state, "spark": {**vars(stream), "columns": list(features.columns)}}


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


def load(
    checkpoint: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,  # noqa: ARG001
) -> ForgetfulKMeans:
    """Return the newest model of a stream as an estimator.

    Parameters
    ----------
    checkpoint : str or path-like
        As given to `learn`, which may be at work meanwhile.
    spark : SparkSession, optional
        Of no use any more: no session is needed.
    """
    found = model_checkpoints(checkpoint).read_newest()
    if found is None:
        raise CheckpointError(f"{checkpoint} holds no model: no stream has been learned there.")
    estimator = from_saved(found[1])
    assert isinstance(estimator, ForgetfulKMeans)
    return estimator
