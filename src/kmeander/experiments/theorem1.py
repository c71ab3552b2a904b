"""Figure 1 of the paper: SKM and surrogate error of one centroid approach each other after a drift.

Forty batches of one concept, then twenty of its drift; the centroid is the mean of the first
concept throughout. Theorem 1 says how far apart the two errors may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arguments import generator_for
from kmeander.arrays import Points
from kmeander.drifts.concepts import drifting_concepts
from kmeander.kmeans.forgetting import max_batches_for, rho_for_drift
from kmeander.kmeans.lloyd import nearest
from kmeander.kmeans.objective import theorem1_bound, theorem1_gap
from kmeander.scores import Box

EPSILON = 0.5
N_BEFORE, N_AFTER = 40, 20
# The probabilities with which the difference may leave the band: 5 % and 32 %.
DELTAS = (0.05, 0.32)


@dataclass(frozen=True)
class Panel:
    """One part of the figure."""

    name: str
    batch_size: int
    m: float

    @property
    def rho(self) -> float:
        """The paper's choice for this m: 0.676 for 2, 0.822 for 1."""
        return rho_for_drift(EPSILON, stable_for=N_AFTER, m=self.m)


PANELS = (Panel("a", 1000, 2.0), Panel("b", 4000, 2.0), Panel("c", 1000, 1.0))


@dataclass(frozen=True, eq=False)
class Gaps:
    """The differences measured for one dataset and panel.

    Parameters
    ----------
    panel : Panel
    error : float
        E, the mean squared distance to the centroid before the drift.
    value_range : float
        u, the largest squared distance to the centroid in either concept.
    gaps : ndarray of shape (n_repetitions, 20)
        SKM error minus surrogate error over all batches, after 1 to 20 batches since the drift.
    cut : ndarray of the same shape
        What the surrogate error changes by when only T_max batches are kept.
    """

    panel: Panel
    error: float
    value_range: float
    gaps: NDArray[np.float64]
    cut: NDArray[np.float64]

    def expected(self, t: int) -> float:
        """Return the difference that Theorem 1 expects."""
        return theorem1_gap(self.panel.rho, t, EPSILON, self.error)

    def bound(self, t: int, delta: float) -> float:
        """Return gamma: how far from it the difference may lie."""
        return theorem1_bound(self.panel.rho, t, self.panel.batch_size, self.value_range, delta)

    def share_within(self, t: int, delta: float) -> float:
        """Return the share of repetitions within the band."""
        off = np.abs(self.gaps[:, t - 1] - self.expected(t))
        return float((off < self.bound(t, delta)).mean())


def measure(points: Points, repetitions: int, seed: int) -> list[Gaps]:
    """Repeat the experiment of Figure 1 with these points, for each of its parts."""
    concepts, (centroid, *_) = drifting_concepts(
        points, 1, EPSILON, 2, seed=seed, all_centroids=True, n_threads=1
    )
    squared = [nearest(concept, centroid, 1)[1] for concept in concepts]
    error, value_range = float(squared[0].mean()), float(max(map(np.max, squared)))
    measured = []
    for number, panel in enumerate(PANELS):
        drawn = [
            _one_repetition(squared, panel, generator_for(seed, 1 + number * repetitions + r))
            for r in range(repetitions)
        ]
        gaps, cut = (np.stack(part) for part in zip(*drawn, strict=True))
        measured.append(Gaps(panel, error, value_range, gaps, cut))
    return measured


def _one_repetition(
    squared: list[NDArray[np.float64]], panel: Panel, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    before, after = (
        source[rng.integers(len(source), size=(count, panel.batch_size))].mean(axis=1)
        for source, count in zip(squared, (N_BEFORE, N_AFTER), strict=True)
    )
    errors = np.concatenate([before, after])
    kept = max_batches_for(panel.rho)
    gaps, cut = np.empty(N_AFTER), np.empty(N_AFTER)
    for t in range(1, N_AFTER + 1):
        seen = errors[: N_BEFORE + t]
        weights = panel.rho ** np.arange(len(seen) - 1, -1, -1.0)
        surrogate = (weights * seen).sum() / weights.sum()
        gaps[t - 1] = after[:t].mean() - surrogate
        recent = (weights * seen)[-kept:].sum() / weights[-kept:].sum()
        cut[t - 1] = recent - surrogate
    return gaps, cut


def rows_of(dataset: str, measured: list[Gaps]) -> list[dict[str, Any]]:
    """Return the numbers of the figure, errors as shares of E, so that datasets compare."""
    return [_row(dataset, found, t) for found in measured for t in range(1, N_AFTER + 1)]


def _row(dataset: str, found: Gaps, t: int) -> dict[str, Any]:
    gaps = found.gaps[:, t - 1] / found.error
    bands = {
        f"{name}_{1 - delta:.0%}": value
        for delta in DELTAS
        for name, value in (
            ("band", found.bound(t, delta) / found.error),
            ("within", found.share_within(t, delta)),
        )
    }
    return {
        "dataset": dataset,
        "panel": found.panel.name,
        "batch_size": found.panel.batch_size,
        "rho": found.panel.rho,
        "since_drift": t,
        **vars(Box.of(gaps)),
        "mean": float(gaps.mean()),
        "expected": found.expected(t) / found.error,
        **bands,
        "cut_at_t_max": float(np.abs(found.cut[:, t - 1]).max()) / found.error,
    }
