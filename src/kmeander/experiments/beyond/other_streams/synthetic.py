"""Twelve kinds of synthetic stream: as many modes as clusters, or twice as many, that drift.

Modes are drawn from N(0, 9 I) and rows from N(mode, I). There is a drift every ten batches: it
adds N(0, I) to each mode ("move"), or draws all anew ("jump").
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kmeander.arrays import Centroids, Points
from kmeander.experiments.beyond.other_streams.cells import (
    Arrival,
    StreamCell,
    StreamRecord,
    best_of_ten,
    joined,
)
from kmeander.experiments.beyond.other_streams.variants import BEST_OF_TEN
from kmeander.experiments.protocol import seed_of
from kmeander.experiments.tables import SHOWN
from kmeander.kmeans.lloyd import mean_error
from kmeander.records import Batch

BATCHES_PER_CONCEPT, N_CONCEPTS = 10, 3
_SPREAD_OF_MODES = 3.0
DRIFTS = ("move", "jump")
# Rows of a batch, K, columns, and seeds at most: restarts on many rows take minutes.
SHAPES = ((500, 25, 20, 5), (2000, 64, 128, 3), (5000, 100, 32, 2))


@dataclass(frozen=True)
class Kind:
    """A kind of stream.

    Examples
    --------
    >>> kind = KINDS["N500-K25-d20-2K-jump"]
    >>> next(kind.arrivals(seed=0)).batch.points.shape, kind.n_modes
    ((500, 20), 50)
    """

    batch_size: int
    n_clusters: int
    n_features: int
    modes_per_cluster: int
    drift: str
    most_seeds: int

    @property
    def name(self) -> str:
        """Of its files, and in tables."""
        modes = "K" if self.modes_per_cluster == 1 else f"{self.modes_per_cluster}K"
        return f"N{self.batch_size}-K{self.n_clusters}-d{self.n_features}-{modes}-{self.drift}"

    @property
    def n_modes(self) -> int:
        """The number of modes."""
        return self.modes_per_cluster * self.n_clusters

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """Yield the batches of three concepts; the same seed gives the same bytes."""
        rng = np.random.default_rng(seed_of(seed, "synthetic", self.name))
        shape = (self.n_modes, self.n_features)
        modes = _SPREAD_OF_MODES * rng.normal(size=shape)
        for visit, t in itertools.product(range(N_CONCEPTS), range(BATCHES_PER_CONCEPT)):
            if visit and not t:
                drawn = rng.normal(size=shape)
                modes = modes + drawn if self.drift == "move" else _SPREAD_OF_MODES * drawn
            mode = rng.integers(self.n_modes, size=self.batch_size)
            points = modes[mode] + rng.normal(size=(self.batch_size, self.n_features))
            index = visit * BATCHES_PER_CONCEPT + t
            yield Arrival(Batch(index, points, concept=visit), visit, t + 1)


KINDS = {
    kind.name: kind
    for kind in (
        Kind(batch_size, n_clusters, n_features, modes, drift, most_seeds)
        for batch_size, n_clusters, n_features, most_seeds in SHAPES
        for modes in (1, 2)
        for drift in DRIFTS
    )
}


@dataclass(frozen=True)
class SyntheticCell(StreamCell):
    """One method on one kind of stream: SKM errors 1, 2, 4 and 10 batches after each drift."""

    panel: ClassVar[str] = "synthetic"

    @property
    def dataset(self) -> str:
        """Key of the points that it takes: none, but of as many columns."""
        return empty_key(KINDS[self.stream].n_features)

    def run(self, points: Points, n_threads: int | None = 1) -> list[StreamRecord]:
        """Return a record per batch."""
        del points
        kind = KINDS[self.stream]
        so_far: list[Batch] = []

        def watched() -> Iterator[Arrival]:
            for arrival in kind.arrivals(self.seed):
                if arrival.since_drift == 1:
                    so_far.clear()
                so_far.append(arrival.batch)
                yield arrival

        def is_measured(arrival: Arrival) -> bool:
            return arrival.visit > 0 and arrival.since_drift in SHOWN

        def skm_error(arrival: Arrival, centroids: Centroids) -> float:
            if not is_measured(arrival):
                return float("nan")
            return mean_error(joined(so_far), None, centroids, n_threads)

        if self.method != BEST_OF_TEN:
            return self.record(watched(), n_threads, skm_error)
        records = []
        for arrival in watched():
            if is_measured(arrival):
                words = (self.stream, arrival.batch.index)
                best = best_of_ten(joined(so_far), kind.n_clusters, self.seed, *words)
                records.append(self.made(arrival, skm_error=skm_error(arrival, best)))
        return records


def empty_key(n_features: int) -> str:
    """Return the key of the points of streams that make their own."""
    return f"made, {n_features} columns"
