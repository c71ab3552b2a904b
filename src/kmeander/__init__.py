"""K-means for data streams that change.

kmeander implements Forgetful Streaming K-means (Bidaurrazaga, Pérez, Capó, "K-means for
Evolving Data Streams", ICDM 2021). Every batch updates K clusters so that they describe what
the stream is now; cluster k of this batch is cluster k of the last one.

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kmeander import initialise
    from kmeander.config import show_config
    from kmeander.drifts.concepts import DriftStream, simulate_drifts
    from kmeander.estimators import ForgetfulKMeans, PrivilegedKMeans, load
    from kmeander.estimators.choose_clusters import Suggestion, suggest_clusters
    from kmeander.estimators.prequential import PrequentialSplit, StreamFit
    from kmeander.events import Event
    from kmeander.exceptions import (
        CheckpointError,
        InputError,
        InputTypeError,
        KmeanderError,
        StreamError,
    )
    from kmeander.kmeans.forgetting import max_batches_for, rho_for_drift, rho_for_half_life
    from kmeander.kmeans.lloyd import LloydResult, weighted_lloyd
    from kmeander.kmeans.objective import (
        kmeans_error,
        skm_error,
        surrogate_error,
        theorem1_bound,
        theorem1_gap,
    )
    from kmeander.kmeans.seeding import kmeans_plusplus
    from kmeander.models import FSKM, PSKM
    from kmeander.preparation import Preparation
    from kmeander.records import Batch, ClusterProfile, Contrast, ExampleRow, Noise, Profiles, Step
    from kmeander.runs.api import run
    from kmeander.runs.check import Check, check
    from kmeander.runs.history import History
    from kmeander.runs.predict import predict
    from kmeander.runs.result import Run
    from kmeander.tracking.lineage import remap

__all__ = [
    "FSKM",
    "PSKM",
    "Batch",
    "Check",
    "CheckpointError",
    "ClusterProfile",
    "Contrast",
    "DriftStream",
    "Event",
    "ExampleRow",
    "ForgetfulKMeans",
    "History",
    "InputError",
    "InputTypeError",
    "KmeanderError",
    "LloydResult",
    "Noise",
    "Preparation",
    "PrequentialSplit",
    "PrivilegedKMeans",
    "Profiles",
    "Run",
    "Step",
    "StreamError",
    "StreamFit",
    "Suggestion",
    "check",
    "initialise",
    "kmeans_error",
    "kmeans_plusplus",
    "load",
    "max_batches_for",
    "predict",
    "remap",
    "rho_for_drift",
    "rho_for_half_life",
    "run",
    "show_config",
    "simulate_drifts",
    "skm_error",
    "suggest_clusters",
    "surrogate_error",
    "theorem1_bound",
    "theorem1_gap",
    "weighted_lloyd",
]

_HOMES = {
    "FSKM": "models",
    "PSKM": "models",
    "Batch": "records",
    "Check": "runs.check",
    "CheckpointError": "exceptions",
    "ClusterProfile": "records",
    "Contrast": "records",
    "DriftStream": "drifts.concepts",
    "Event": "events",
    "ExampleRow": "records",
    "ForgetfulKMeans": "estimators",
    "History": "runs.history",
    "InputError": "exceptions",
    "InputTypeError": "exceptions",
    "KmeanderError": "exceptions",
    "LloydResult": "kmeans.lloyd",
    "Noise": "records",
    "Preparation": "preparation",
    "PrequentialSplit": "estimators.prequential",
    "PrivilegedKMeans": "estimators",
    "Profiles": "records",
    "Run": "runs.result",
    "Step": "records",
    "StreamError": "exceptions",
    "StreamFit": "estimators.prequential",
    "Suggestion": "estimators.choose_clusters",
    "check": "runs.check",
    "kmeans_error": "kmeans.objective",
    "kmeans_plusplus": "kmeans.seeding",
    "load": "estimators",
    "max_batches_for": "kmeans.forgetting",
    "predict": "runs.predict",
    "remap": "tracking.lineage",
    "rho_for_drift": "kmeans.forgetting",
    "rho_for_half_life": "kmeans.forgetting",
    "run": "runs.api",
    "show_config": "config",
    "simulate_drifts": "drifts.concepts",
    "skm_error": "kmeans.objective",
    "suggest_clusters": "estimators.choose_clusters",
    "surrogate_error": "kmeans.objective",
    "theorem1_bound": "kmeans.objective",
    "theorem1_gap": "kmeans.objective",
    "weighted_lloyd": "kmeans.lloyd",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("kmeander")
    if name == "initialise":
        return import_module("kmeander.initialise")
    if name not in _HOMES:
        raise AttributeError(f"module 'kmeander' has no attribute {name!r}")
    value = getattr(import_module(f"kmeander.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
