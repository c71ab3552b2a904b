"""Whether a batch can be learnt, asked before anything is touched."""

from __future__ import annotations

from numpy.typing import ArrayLike

from kmeander.exceptions import InputError, InputTypeError
from kmeander.kmeans.lloyd import LloydResult
from kmeander.models.state import Memory
from kmeander.records import Batch


def check_step(
    memory: Memory,
    batch: Batch,
    n_clusters: int,
    previous: ArrayLike | None,
    current: LloydResult | None,
) -> None:
    """Refuse a batch, or shared centroids, that do not go on from `memory`."""
    if not isinstance(batch, Batch):
        raise InputTypeError(
            f"step takes a kmeander.Batch, got {type(batch).__name__}. Wrap the points: "
            f"Batch({memory.n_steps}, points)."
        )
    if batch.index != memory.n_steps:
        raise InputError(
            f"batch has index {batch.index}, but the model has taken {memory.n_steps} batches. "
            "A batch was lost or came twice; pass them in order, each once."
        )
    n_features = batch.points.shape[1]
    if memory.n_features is not None and memory.n_features != n_features:
        raise InputError(
            f"batch {batch.index} has {n_features} columns, the batches before it have "
            f"{memory.n_features}. All batches of a stream need the same columns."
        )
    if memory.centroids is None and (previous is not None or current is not None):
        raise InputError(
            "previous and current must be left out until the model has centroids; the first "
            "batch begins with a K-means of its own."
        )
    if current is not None:
        _check_current(current, n_clusters, n_features)


def _check_current(current: LloydResult, n_clusters: int, n_features: int) -> None:
    if not isinstance(current, LloydResult):
        raise InputTypeError(
            f"current must be a LloydResult, as weighted_lloyd returns, got "
            f"{type(current).__name__}."
        )
    n_current, n_columns = current.centroids.shape
    if n_current > n_clusters or n_columns != n_features:
        raise InputError(
            f"current has {n_current} centroids of {n_columns} columns, the model has "
            f"{n_clusters} of {n_features}."
        )
