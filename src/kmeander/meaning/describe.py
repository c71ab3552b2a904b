"""Profiles of the clusters that a model has now: one pass over the batches that it remembers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids
from kmeander.events import plain_name
from kmeander.kmeans.lloyd import distances_to
from kmeander.kmeans.metric import Metric
from kmeander.kmeans.window import Window
from kmeander.meaning.columns import COLUMN_TRUE, ColumnKinds, Differences
from kmeander.meaning.memory import Memory
from kmeander.meaning.naming import COLUMNS, WORDS, Candidate, named
from kmeander.meaning.words import unlike
from kmeander.preparation import FittedPreparation
from kmeander.records import Ids, Noise
from kmeander.records.profile import ClusterProfile, Profiles

# Rows that are looked at together.
CHUNK = 1 << 14
# Standard errors beyond which a share rises or falls.
NOTABLE = 3.0

_Numbers = NDArray[np.float64]


class KnownClusters(NamedTuple):
    """What is known of the clusters."""

    window: Window
    centroids: Centroids
    ids: Ids
    n_steps: int
    metric: Metric
    memory: Memory
    noise: Noise | None = None
    preparation: FittedPreparation | None = None
    columns: Sequence[str] | None = None  # where rows are not prepared
    n_threads: int = 1


def describe(clusters: KnownClusters) -> tuple[Profiles, Memory]:
    """Return what each cluster is, and the memory with the names that were made for it."""
    n_columns = clusters.centroids.shape[1]
    measured = _measured(clusters)
    kinds = ColumnKinds.of(clusters.preparation, clusters.columns, n_columns)
    masses = measured.masses
    found = Differences.of(
        clusters.centroids, masses, measured.deviations, kinds, clusters.preparation
    )
    numbers = clusters.ids.tolist()
    memory = clusters.memory
    telling = {} if memory.words is None else memory.words.telling(numbers)
    candidates = {
        number: _candidate(found, row, telling.get(number, ()))
        for row, number in enumerate(numbers)
    }
    memory = named(candidates, memory)
    names = memory.names
    profiles = []
    for row, number in enumerate(numbers):
        birth, examples = memory.births.get(number), memory.examples
        profiles.append(
            ClusterProfile(
                id=number,
                name=names.get(number, plain_name(number)),
                share=float(masses[row] / masses.sum()),
                spread=measured.spreads.item(row),
                trend=measured.trends.item(row),
                age=None if birth is None else clusters.n_steps - birth.batch,
                since=None if birth is None else birth.time,
                is_given=number in memory.given,
                is_rising=measured.is_rising(row),
                columns=tuple(found.contrasts(row)),
                words=telling.get(number, ()),
                recent=() if examples is None else examples.recent(number),
                old=() if examples is None else examples.old(number),
            )
        )
    order = np.lexsort((clusters.ids, -masses)).tolist()
    return Profiles([profiles[row] for row in order]), memory


def _candidate(found: Differences, row: int, words: tuple[str, ...]) -> Candidate:
    if words:
        return Candidate(unlike(words, len(words)), frozenset(words), WORDS, 0.5)
    parts = [contrast.part for contrast in found.contrasts(row)]
    true = [contrast.part for contrast in found.contrasts(row, COLUMN_TRUE, None)]
    return Candidate(tuple(parts), frozenset(true), COLUMNS, 1.0)


class _Measured(NamedTuple):
    """What the points of the window say of the clusters."""

    masses: _Numbers
    deviations: _Numbers  # of each column, over all points
    spreads: _Numbers
    trends: _Numbers
    errors: _Numbers  # standard errors of the trends

    def is_rising(self, row: int) -> bool | None:
        trend = self.trends.item(row)
        return None if abs(trend) <= NOTABLE * self.errors.item(row) else trend > 0


def _measured(clusters: KnownClusters) -> _Measured:
    """Return masses, spreads, trends and the scatter of columns."""
    window, centroids = clusters.window, clusters.centroids
    n_clusters = len(centroids)
    masses, costs = np.zeros(n_clusters), np.zeros(n_clusters)
    arrived = np.zeros((len(window), n_clusters))  # undecayed masses, by batch
    squares, sums = np.zeros(centroids.shape[1]), np.zeros(centroids.shape[1])
    middle = centroids.mean(axis=0)
    for place, (batch, labels, decay) in enumerate(
        zip(window.batches, window.labels, window.decay.tolist(), strict=True)
    ):
        weights = batch.weights_or_ones
        arrived[place] = np.bincount(labels, weights, n_clusters)
        masses += decay * arrived[place]
        squared = distances_to(batch.points, centroids, labels, clusters.n_threads)
        costs += decay * np.bincount(labels, weights * squared, n_clusters)
        for begin in range(0, batch.n_points, CHUNK):
            part = slice(begin, begin + CHUNK)
            apart = batch.points[part].astype(np.float64) - middle
            sums += decay * (weights[part] @ apart)
            squares += decay * (weights[part] @ (apart * apart))
    mass = masses.sum()
    means = sums / mass
    # What rounding leaves of a column that does not vary is nothing.
    variances = squares / mass - means * means
    variances[variances <= 1e-12 * squares / mass] = 0.0
    costs = clusters.metric.distances(costs / np.where(masses > 0, masses, 1.0))
    trends, errors = _trends(arrived, clusters)
    return _Measured(masses, np.sqrt(variances), costs, trends, errors)


def _trends(arrived: _Numbers, clusters: KnownClusters) -> tuple[_Numbers, _Numbers]:
    """Return the share in the newer half of the batches less that in the older, and its error."""
    window = clusters.window
    half = len(window) // 2
    if half == 0:
        return np.zeros(arrived.shape[1]), np.full(arrived.shape[1], np.inf)
    halves = [arrived[:half].sum(axis=0), arrived[half:].sum(axis=0)]
    older, newer = (half_masses / half_masses.sum() for half_masses in halves)
    sizes = [batch.size for batch in window.batches]
    share = (halves[0] + halves[1]) / (halves[0] + halves[1]).sum()
    noise = 1.0 if clusters.noise is None else max(1.0, clusters.noise.share)
    variance = share * (1 - share) * (1 / sum(sizes[:half]) + 1 / sum(sizes[half:])) * noise
    return newer - older, np.sqrt(variance)
