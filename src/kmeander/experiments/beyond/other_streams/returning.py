"""Concepts that return: A B A B A B, ten batches each, rows drawn independently.

A is a pool of real rows, B what a drift of a given size makes of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kmeander.arrays import Points, checked_points
from kmeander.drifts.concepts import drifting_concepts
from kmeander.experiments.alarms.pools import N_ROWS
from kmeander.experiments.beyond.other_streams.cells import (
    Arrival,
    StreamCell,
    StreamRecord,
    best_of_ten,
)
from kmeander.experiments.beyond.other_streams.variants import BEST_OF_TEN
from kmeander.experiments.protocol import seed_of
from kmeander.kmeans.lloyd import mean_error
from kmeander.records import Batch

EPSILONS = (0.5, 2.0)
N_VISITS, BATCHES_PER_VISIT = 6, 10


@dataclass(frozen=True)
class ReturningCell(StreamCell):
    """One method on a pool and what it drifts to, in turns: the error of each batch beforehand."""

    panel: ClassVar[str] = "returning"

    pool: str
    batch_size: int = N_ROWS
    batches_per_visit: int = BATCHES_PER_VISIT

    @property
    def dataset(self) -> str:
        """Key of the points that it takes."""
        return pool_key(self.pool)

    def run(self, points: Points, n_threads: int | None = 1) -> list[StreamRecord]:
        """Return a record per batch."""
        concepts = self.concepts(points)
        arrivals = self.arrivals(concepts)
        if self.method != BEST_OF_TEN:
            return self.record(arrivals, n_threads)
        best = [
            best_of_ten(concept, self.n_clusters, self.seed, self.stream, i)
            for i, concept in enumerate(concepts)
        ]
        return [
            self.made(
                arrival,
                prequential_error=mean_error(
                    arrival.batch.points, None, best[arrival.visit % 2], n_threads
                ),
            )
            for arrival in arrivals
        ]

    def concepts(self, pool: Points) -> Sequence[Points]:
        """Return A, the pool, and B, what a drift makes of it."""
        rows = checked_points(pool)
        return drifting_concepts(
            rows, self.n_clusters, self.epsilon, 2, seed=self._seed_for("drift"), n_threads=1
        )[0]

    def arrivals(self, concepts: Sequence[Points]) -> Iterator[Arrival]:
        """Yield the batches of all visits."""
        rng = np.random.default_rng(self._seed_for("rows"))
        for visit, t in itertools.product(range(N_VISITS), range(self.batches_per_visit)):
            concept = concepts[visit % 2]
            rows = concept[rng.integers(len(concept), size=self.batch_size)]
            index = visit * self.batches_per_visit + t
            yield Arrival(Batch(index, rows, concept=visit % 2), visit, t + 1)

    def _seed_for(self, purpose: str) -> int:
        return seed_of(self.seed, "returning", self.pool, float(self.epsilon), purpose)


def pool_key(pool: str) -> str:
    """Return the key of a pool's points."""
    return f"pool, {pool}"


def stream_name(pool: str, epsilon: float) -> str:
    """Return what the stream is called."""
    return f"{pool}-epsilon{epsilon:g}"
