"""One method on one stream with one seed: what a process computes and a file holds.

So what does not change, rivals and references, is found again when the default has changed.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.cluster import kmeans_plusplus
from threadpoolctl import threadpool_limits

from kmeander.arrays import Centroids, Points, checked_points
from kmeander.experiments.beyond.contestants import Contestant
from kmeander.experiments.beyond.other_streams.learners import contestant
from kmeander.experiments.beyond.other_streams.variants import NAMED, OF_DEFAULT
from kmeander.experiments.program import LEARNING, program_digest
from kmeander.experiments.protocol import seed_of
from kmeander.kmeans.lloyd import mean_error, weighted_lloyd
from kmeander.records import Batch

N_RESTARTS = 10


@dataclass(frozen=True)
class StreamRecord:
    """What one batch did to one method.

    `since_drift` counts the batches since the drift, or since the start, the newest included.
    `skm_error` is the error over all of them, NaN where it was not measured. Of "best of ten" it
    is the least of ten restarts of K-means on those batches; its `prequential_error` is that of the
    batch under the best of ten restarts on the whole concept.
    """

    panel: str
    stream: str
    n_clusters: int
    epsilon: float
    method: str
    seed: int
    batch: int
    visit: int
    since_drift: int
    prequential_error: float
    skm_error: float
    n_points: int
    n_distances: int
    rows_kept: int


class Arrival(NamedTuple):
    """A batch, and where it stands in its stream."""

    batch: Batch
    visit: int  # how many concepts came before
    since_drift: int


@dataclass(frozen=True)
class StreamCell(ABC):
    """One method on one stream with one seed.

    `settings` are the method's, `program` the digest of the code for the default and its variants:
    both are part of what tells a stored cell from another.
    """

    panel: ClassVar[str]

    stream: str
    method: str
    seed: int
    settings: str
    program: str
    n_clusters: int
    epsilon: float

    @property
    @abstractmethod
    def dataset(self) -> str:
        """Key of the points that it takes."""

    @abstractmethod
    def run(self, points: Points, n_threads: int | None = 1) -> list[StreamRecord]:
        """Return its records, ordered by batch."""

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch."""
        return (self.method,)

    @property
    def name(self) -> str:
        """What its file is called, without its ending."""
        method = re.sub(r"[^a-z0-9.]+", "-", self.method.lower())
        program = f"-{self.program[:8]}" if self.program else ""
        return f"{self.panel}-{self.stream}-{method}-s{self.seed}{program}"

    def record(
        self,
        arrivals: Iterable[Arrival],
        n_threads: int | None,
        skm_error: Callable[[Arrival, Centroids], float] = lambda *_: math.nan,
    ) -> list[StreamRecord]:
        """Let the method learn the batches."""
        model: Contestant = contestant(self.method, self.n_clusters, self.seed, n_threads)
        records = []
        with threadpool_limits(n_threads):
            for arrival in arrivals:
                learned = model.learn(arrival.batch)
                records.append(
                    self.made(
                        arrival,
                        prequential_error=learned.prequential_error,
                        skm_error=skm_error(arrival, learned.centroids),
                        n_distances=learned.n_distances,
                        rows_kept=learned.rows_kept,
                    )
                )
        return records

    def made(
        self,
        arrival: Arrival,
        *,
        prequential_error: float = math.nan,
        skm_error: float = math.nan,
        n_distances: int = 0,
        rows_kept: int = 0,
    ) -> StreamRecord:
        """Return the record of a batch."""
        batch = arrival.batch
        return StreamRecord(
            self.panel, self.stream, self.n_clusters, self.epsilon, self.method, self.seed,
            batch.index, arrival.visit, arrival.since_drift, prequential_error, skm_error,
            batch.n_points, n_distances, rows_kept,
        )  # fmt: skip


def settings_of(method: str) -> tuple[str, str]:
    """Return a method's settings, and the digest of the program where it follows the default."""
    variant = {**NAMED, **OF_DEFAULT}.get(method)
    settings = "" if variant is None else repr(sorted(variant.all_settings.items(), key=str))
    return settings, program_digest(LEARNING) if method in OF_DEFAULT else ""


def best_of_ten(points: Points, n_clusters: int, seed: int, *words: object) -> Centroids:
    """Return the best of ten K-means, each begun by greedy k-means++."""
    rows = checked_points(points)
    found = []
    with threadpool_limits(1):
        for restart in range(N_RESTARTS):
            random_state = seed_of(seed, *words, "restart", restart) % 2**32
            start, _ = kmeans_plusplus(rows, n_clusters, random_state=random_state)
            found.append(weighted_lloyd(rows, start, n_threads=1).centroids)
    return min(found, key=lambda centroids: mean_error(rows, None, centroids, 1))


def joined(batches: Iterable[Batch]) -> Points:
    """Return the points of several batches together."""
    points: Points = np.concatenate([batch.points for batch in batches])
    return points
