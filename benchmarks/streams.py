"""The streams that everybody runs: drifting Gaussian mixtures and, where given, real data."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kmeander import DriftStream, simulate_drifts
from kmeander.experiments.datasets import load_datasets

Array = NDArray[np.float64]

BATCHES_BETWEEN_DRIFTS = 10
# Of real data: the paper's way to make it drift, with clusters and batches of a usual size.
REAL_BATCH, REAL_CLUSTERS, REAL_EPSILON, REAL_CONCEPTS, REAL_ROWS = 500, 10, 0.5, 6, 20_000


@dataclass(frozen=True)
class Shape:
    """Rows of a batch, clusters, columns."""

    n_points: int
    n_clusters: int
    n_features: int

    def __str__(self) -> str:
        return f"{self.n_points}, {self.n_clusters}, {self.n_features}"


@dataclass(frozen=True)
class Stream:
    """A name, a shape, and for every seed the same batches again."""

    name: str
    shape: Shape
    batches: Callable[[int], Iterator[Array]]


def mixture(shape: Shape, *, drifting: bool = True) -> Stream:
    """Gaussian clusters whose centres move every ten batches, or never."""

    def batches(seed: int) -> Iterator[Array]:
        rng = np.random.default_rng(seed)
        n, k, d = shape.n_points, shape.n_clusters, shape.n_features
        centres = rng.normal(scale=3.0, size=(k, d))
        for index in itertools.count():
            if drifting and index and index % BATCHES_BETWEEN_DRIFTS == 0:
                centres += rng.normal(scale=1.0, size=(k, d))
            yield centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))

    return Stream("mixture" if drifting else "settled mixture", shape, batches)


def real_streams(folder: Path) -> list[Stream]:
    """Every dataset of the paper that `folder` holds, drifting every ten batches."""
    found, _ = load_datasets(folder, max_rows=REAL_ROWS)
    return [_real_stream(dataset.key, dataset.points) for dataset in found]


def _real_stream(name: str, points: NDArray[np.float64] | NDArray[np.float32]) -> Stream:
    concepts = simulate_drifts(
        points.astype(np.float64), REAL_CLUSTERS, REAL_EPSILON, REAL_CONCEPTS, random_state=0
    )

    def batches(seed: int) -> Iterator[Array]:
        stream = DriftStream(concepts, REAL_BATCH, BATCHES_BETWEEN_DRIFTS, random_state=seed)
        for batch in stream.batches():
            yield batch.points.astype(np.float64)

    return Stream(name, Shape(REAL_BATCH, REAL_CLUSTERS, points.shape[1]), batches)


@dataclass
class RawWindow:
    """The last batches as their user would keep them: to be joined, with weights, for a refit."""

    rho: float
    n_batches: int
    batches: deque[Array] = field(init=False)

    def __post_init__(self) -> None:
        self.batches = deque(maxlen=self.n_batches)

    def add(self, points: Array) -> None:
        self.batches.append(points)

    def joined(self) -> tuple[Array, Array]:
        """All points, the oldest first, and their decayed weights."""
        weights = [self.rho**age for age in reversed(range(len(self.batches)))]
        sizes = [len(batch) for batch in self.batches]
        return np.concatenate(list(self.batches)), np.repeat(weights, sizes)
