"""Three kinds of streams: with the paper's drifts, without any, and files in the order they have.

Each is a cell like the ones of the paper's grid: one process computes it, one file holds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kmeander.arrays import Points
from kmeander.drifts.concepts import DriftStream
from kmeander.experiments.beyond.contestants import (
    IN_ORDER,
    ON_DRIFT,
    ON_STILL,
    RIVER,
    Contestant,
    contestant,
)
from kmeander.experiments.grid import Grid
from kmeander.experiments.program import LEARNING, program_digest
from kmeander.experiments.protocol import Cell, Setting, check_enough, seed_of, streams_of
from kmeander.experiments.storage import AnyCell
from kmeander.kmeans.lloyd import mean_error
from kmeander.records import Batch

# rho of the paper's methods where nobody knows epsilon: the paper's for drifts of 0.5.
USUAL_RHO = Setting(n_clusters=1, epsilon=0.5).rho

# Datasets that are recordings: their rows follow each other in time, or in blocks.
RECORDINGS = ("gesture", "frogs")
FEWEST_IN_ORDER, SEEDS_IN_ORDER = 10, 20


@dataclass(frozen=True)
class ContestantRecord:
    """What one batch did to one contestant.

    `skm_error` is the paper's, over all batches since the drift (or the start); NaN where it was
    not measured. `seconds`, of the processor, is the one thing that differs from run to run.
    """

    dataset: str
    n_clusters: int
    epsilon: float
    m: float
    repetition: int
    method: str
    batch: int
    concept: int
    since_drift: int
    prequential_error: float
    skm_error: float
    n_distances: int
    n_distances_plain: int
    history_kept: float
    seconds: float


@dataclass(frozen=True)
class DriftCell(Cell):
    """A stream of the paper's protocol, learned by everybody, burn-in included."""

    river: bool = False
    program: str = field(default_factory=lambda: program_digest(LEARNING))

    @property
    def name(self) -> str:
        """What the cell's file is called, without its ending."""
        return f"drift-{super().name}-{self.program[:8]}"

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch, in that order."""
        return (*ON_DRIFT, RIVER) if self.river else ON_DRIFT

    def run(self, points: Points, n_threads: int | None = 1) -> list[ContestantRecord]:  # type: ignore[override]  # records of its own
        """Return the records, ordered by batch, then by method; none of the burn-in."""
        setting = self.setting
        burn_in, stream = streams_of(self, points, n_threads)
        everybody = _everybody(self, setting.rho, self.seed_for("methods"), n_threads)
        since_drift: list[Batch] = []
        records: list[ContestantRecord] = []
        with threadpool_limits(n_threads):
            for batch in burn_in.batches():
                since_drift.append(batch)
                for model in everybody.values():
                    model.learn(batch)
            for batch in stream.batches(first_index=len(burn_in)):
                index = batch.index - len(burn_in)
                if stream.is_drift(index):
                    since_drift = []
                since_drift.append(batch)
                records += _recorded(
                    everybody,
                    batch,
                    _joined(since_drift),
                    {
                        "dataset": self.dataset,
                        "n_clusters": setting.n_clusters,
                        "epsilon": setting.epsilon,
                        "m": setting.m,
                        "repetition": self.repetition,
                        "batch": index,
                        "concept": stream.concept(index),
                        "since_drift": len(since_drift),
                    },
                )
        return records


@dataclass(frozen=True)
class _PlainCell:
    """A stream without concepts."""

    dataset: str
    n_clusters: int
    batch_size: int = 500
    repetition: int = 0
    seed: int = 0
    program: str = field(default_factory=lambda: program_digest(LEARNING))

    def _seed_for(self, purpose: str) -> int:
        return seed_of(self.seed, self.dataset, self.n_clusters, self.repetition, purpose)

    def _place(self, index: int) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "n_clusters": self.n_clusters,
            "epsilon": 0.0,
            "m": math.nan,
            "repetition": self.repetition,
            "batch": index,
            "concept": 0,
            "since_drift": index + 1,
        }


@dataclass(frozen=True)
class StillCell(_PlainCell):
    """Batches drawn from a dataset as it is: no drift, so no alarm is a true one."""

    n_batches: int = 200
    skm_every: int = 10

    @property
    def name(self) -> str:
        """What the cell's file is called, without its ending."""
        return f"still-{self.dataset}-K{self.n_clusters}-r{self.repetition}-{self.program[:8]}"

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch, in that order."""
        return ON_STILL

    def run(self, points: Points, n_threads: int | None = 1) -> list[ContestantRecord]:
        """Return the records; the SKM error grows dear, and is measured now and then."""
        check_enough(self.dataset, points, self.n_clusters)
        stream = DriftStream([points], self.batch_size, self.n_batches, self._seed_for("still"))
        everybody = _everybody(self, USUAL_RHO, self._seed_for("methods"), n_threads)
        seen: list[Batch] = []
        records: list[ContestantRecord] = []
        for batch in stream.batches():
            seen.append(batch)
            so_far = _joined(seen) if len(seen) % self.skm_every == 0 else None
            records += _recorded(
                everybody,
                batch,
                so_far,
                self._place(batch.index),
            )
        return records


@dataclass(frozen=True)
class OrderCell(_PlainCell):
    """A recording in the order of its rows, each column standardised over the whole of it."""

    river: bool = False

    @property
    def name(self) -> str:
        """What the cell's file is called, without its ending."""
        return f"order-{self.dataset}-K{self.n_clusters}-r{self.repetition}-{self.program[:8]}"

    @property
    def methods(self) -> tuple[str, ...]:
        """What is recorded of every batch, in that order."""
        return (*IN_ORDER, RIVER) if self.river else IN_ORDER

    def run(self, points: Points, n_threads: int | None = 1) -> list[ContestantRecord]:
        """Return the records of the batches that are full."""
        check_enough(self.dataset, points[: self.batch_size], self.n_clusters)
        rows = standardised(points)
        everybody = _everybody(self, USUAL_RHO, self._seed_for("methods"), n_threads)
        records: list[ContestantRecord] = []
        with threadpool_limits(n_threads):
            for index in range(len(rows) // self.batch_size):
                first = index * self.batch_size
                batch = Batch(index, rows[first : first + self.batch_size])
                records += _recorded(everybody, batch, None, self._place(index))
        return records


def standardised(points: Points) -> Points:
    """Return the points with mean 0 and deviation 1 in every column; equal values keep theirs."""
    deviation = points.std(axis=0)
    scaled: Points = (points - points.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return scaled


def cells_of(grid: Grid, datasets: Iterable[str], *, river: bool) -> list[AnyCell]:
    """Return every cell: the grid's with drifts, each dataset at rest, and recordings in order.

    Recordings take a moment and scatter, so they are learned with twenty seeds per repetition. A
    few clusters are too few for them.
    """
    keys = list(datasets)
    drifting = [
        DriftCell(cell.dataset, cell.setting, cell.repetition, cell.seed, river=river)
        for cell in grid.cells(keys)
    ]
    still = [
        StillCell(key, n_clusters, repetition=repetition, seed=grid.seed)
        for key in keys
        for n_clusters in grid.n_clusters
        for repetition in range(grid.repetitions)
    ]
    ordered = [
        OrderCell(key, n_clusters, repetition=repetition, seed=grid.seed, river=river)
        for key in keys
        if key in RECORDINGS
        for n_clusters in grid.n_clusters
        if n_clusters >= FEWEST_IN_ORDER
        for repetition in range(SEEDS_IN_ORDER * grid.repetitions)
    ]
    return [*drifting, *still, *ordered]


def _everybody(
    cell: AnyCell, rho: float, seed: int, n_threads: int | None
) -> dict[str, Contestant]:
    return {name: contestant(name, cell.n_clusters, rho, seed, n_threads) for name in cell.methods}


def _joined(batches: Sequence[Batch]) -> Points:
    points: Points = np.concatenate([batch.points for batch in batches])
    return points


def _recorded(
    everybody: dict[str, Contestant],
    batch: Batch,
    so_far: Points | None,
    place: dict[str, Any],
) -> list[ContestantRecord]:
    """Let everybody learn a batch; the SKM error is that over `so_far`."""
    records = []
    for method, model in everybody.items():
        learned = model.learn(batch)
        centroids = learned.centroids
        skm_error = math.nan if so_far is None else mean_error(so_far, None, centroids, 1)
        records.append(
            ContestantRecord(
                **place,
                method=method,
                prequential_error=learned.prequential_error,
                skm_error=skm_error,
                n_distances=learned.n_distances,
                n_distances_plain=learned.n_distances_plain,
                history_kept=learned.history_kept,
                seconds=learned.seconds,
            )
        )
    return records
