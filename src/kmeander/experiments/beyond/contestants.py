"""All that learns the same streams: the paper's methods, kmeander's defaults, and their peers.

Every contestant goes its own way: unlike the paper's grid no two share C* or C^0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from time import process_time
from typing import Any, Protocol, TypeVar

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from kmeander.arrays import Centroids
from kmeander.experiments.protocol import INITS
from kmeander.kmeans.lloyd import mean_error
from kmeander.models import FSKM, PSKM
from kmeander.models.base import StreamModel
from kmeander.models.settings import DEFAULTS
from kmeander.records import Batch

# The defaults with one part taken out or exchanged, by the name that tables and figures give.
ABLATIONS: dict[str, dict[str, Any]] = {
    "default without swaps": {"refine": None},
    "default, fixed forgetting": {"forgetting": "fixed"},
    "default, Hungarian start": {"init": "hungarian"},
}
DEFAULT, FIXED = "default", "default, fixed forgetting"
MINI_BATCH, RIVER = "MiniBatchKMeans", "river KMeans"

ON_DRIFT = (*INITS, "PSKM", DEFAULT, *ABLATIONS, MINI_BATCH)
ON_STILL = (DEFAULT, FIXED)
IN_ORDER = ("PC", "HI", DEFAULT, MINI_BATCH)


def has_river() -> bool:
    """Return whether river, which only benchmarks need, is installed."""
    return find_spec("river") is not None


Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Learned:
    """What a contestant made of a batch; NaN where there is no prequential error yet.

    `seconds` is the processor's time that learning took, without measuring; `rows_kept` the number
    of rows, or means of rows, that are remembered for the next batch.
    """

    centroids: Centroids
    prequential_error: float
    n_distances: int
    n_distances_plain: int
    history_kept: float
    seconds: float
    rows_kept: int = 0


class Contestant(Protocol):
    """Learns batch by batch."""

    def learn(self, batch: Batch) -> Learned:
        """Learn a batch and say what came of it."""


def contestant(
    name: str, n_clusters: int, rho: float, seed: int, n_threads: int | None
) -> Contestant:
    """Return a new contestant; `rho` is for the paper's methods, the defaults have their own."""
    common: dict[str, Any] = {"n_threads": n_threads, "random_state": seed}
    if name in INITS:
        return ModelContestant(FSKM(n_clusters, init=INITS[name], rho=rho, **common))
    if name == "PSKM":
        return ModelContestant(PSKM(n_clusters, **common))
    if name == MINI_BATCH:
        return _MiniBatch(n_clusters, seed)
    if name == RIVER:
        return _River(n_clusters, seed)
    changed = {DEFAULT: {}, **ABLATIONS}[name]
    return ModelContestant(FSKM(n_clusters, **{**DEFAULTS, **changed}, **common))


class ModelContestant:
    """A model of kmeander."""

    def __init__(self, model: StreamModel) -> None:
        self.model = model

    def learn(self, batch: Batch) -> Learned:
        """Learn a batch and say what came of it."""
        spent, step = timed(lambda: self.model.step(batch))
        assert step.centroids is not None
        before = step.prequential_error
        return Learned(
            step.centroids,
            math.nan if before is None else before,
            step.n_distances,
            step.n_distances_plain,
            step.history_kept,
            spent,
            rows_kept(self.model),
        )


def rows_kept(model: StreamModel) -> int:
    """Return the number of rows, or means of rows, that a model remembers."""
    return model.window.n_points


class Peer(ABC):
    """Somebody else's model, which sees every point once and compares it with K centroids."""

    def __init__(self, n_clusters: int) -> None:
        self.n_clusters = n_clusters
        self.centroids: Centroids | None = None

    def learn(self, batch: Batch) -> Learned:
        """Learn a batch and say what came of it."""
        before = (
            math.nan
            if self.centroids is None
            else mean_error(batch.points, None, self.centroids, n_threads=1)
        )
        spent = self._spent(batch)
        self.centroids = self._centroids(batch.points.shape[1])
        n_distances = batch.n_points * self.n_clusters
        return Learned(self.centroids, before, n_distances, n_distances, 1.0, spent)

    @abstractmethod
    def _spent(self, batch: Batch) -> float:
        """Learn a batch and return the seconds that it took."""

    @abstractmethod
    def _centroids(self, n_columns: int) -> Centroids:
        """Return a copy of the centroids."""


class _MiniBatch(Peer):
    """scikit-learn's, which weighs all points of the stream alike."""

    def __init__(self, n_clusters: int, seed: int) -> None:
        super().__init__(n_clusters)
        self.model = MiniBatchKMeans(n_clusters, random_state=seed % 2**32)

    def _spent(self, batch: Batch) -> float:
        return timed(lambda: self.model.partial_fit(batch.points))[0]

    def _centroids(self, n_columns: int) -> Centroids:  # noqa: ARG002  # river's needs it
        return np.array(self.model.cluster_centers_, dtype=np.float64)


class _River(Peer):
    """river's, with the values of its documentation; making its dicts is not counted."""

    def __init__(self, n_clusters: int, seed: int) -> None:
        from river import cluster

        super().__init__(n_clusters)
        self.model = cluster.KMeans(n_clusters, halflife=0.1, sigma=3, seed=seed % 2**32)

    def _spent(self, batch: Batch) -> float:
        rows = [dict(enumerate(row)) for row in batch.points.tolist()]

        def learn() -> None:
            for row in rows:
                self.model.learn_one(row)

        return timed(learn)[0]

    def _centroids(self, n_columns: int) -> Centroids:
        centres = self.model.centers
        return np.array([[centres[k][j] for j in range(n_columns)] for k in range(self.n_clusters)])


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds that it took, and the result."""
    # Of the processor: on a busy machine waiting for it would be most of the time on the clock.
    started = process_time()
    result = work()
    return process_time() - started, result
