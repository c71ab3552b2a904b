"""Cells of the grid in several processes; what is done already is not done again."""

from __future__ import annotations

import itertools
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from kmeander.arrays import Points
from kmeander.exceptions import KmeanderError, argument
from kmeander.experiments.protocol import Cell, Setting
from kmeander.experiments.storage import (
    AnyCell,
    fingerprint,
    identity_of,
    is_done,
    path_of,
    save,
)


@dataclass(frozen=True)
class Grid:
    """Which settings are run, how often, and on how much of each dataset.

    Parameters
    ----------
    n_clusters, epsilons, ms : tuple of numbers
        Every combination is a setting.
    repetitions : int, default=1
    n_concepts : int, default=10
        The data as they are and one less drifts.
    max_rows : int, default=100_000
        Larger datasets are sampled.
    seed : int, default=0
    """

    n_clusters: tuple[int, ...] = (5, 10, 25)
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0)
    ms: tuple[float, ...] = (2.0,)
    repetitions: int = 1
    n_concepts: int = 10
    max_rows: int = 100_000
    seed: int = 0

    def cells(self, datasets: Iterable[str]) -> list[Cell]:
        """Return every cell of the grid for these datasets, in a fixed order."""
        settings = [
            Setting(n_clusters, epsilon, m, n_concepts=self.n_concepts)
            for m, n_clusters, epsilon in itertools.product(self.ms, self.n_clusters, self.epsilons)
        ]
        return [
            Cell(dataset, setting, repetition, self.seed)
            for dataset in datasets
            for setting in settings
            for repetition in range(self.repetitions)
        ]


# The grid of the paper's section IV, the same on fewer rows, and one with the same settings that
# takes a minute or two.
FULL = Grid()
SHORTER = Grid(max_rows=20_000)
QUICK = Grid(n_concepts=4, max_rows=20_000)


@dataclass(frozen=True)
class CellDone:
    """One more cell is there: computed just now, in `seconds`, or found (None)."""

    cell: AnyCell
    seconds: float | None


def run_grid(
    cells: Sequence[AnyCell],
    data: Mapping[str, Points],
    folder: Path,
    *,
    processes: int = 1,
    tell: Callable[[CellDone], None] = lambda _: None,
) -> list[Path]:
    """Compute all cells that `folder` does not hold yet.

    Neither the number of processes nor an interruption changes a byte of the files.

    Returns
    -------
    list of Path
        The file of each cell, in the order of `cells`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prints = {name: fingerprint(points) for name, points in data.items()}
    paths = [path_of(cell, folder) for cell in cells]
    jobs = []
    for cell, path in zip(cells, paths, strict=True):
        identity = identity_of(cell, prints[cell.dataset])
        if is_done(path, identity):
            tell(CellDone(cell, None))
        else:
            jobs.append((cell, data[cell.dataset], path, identity))
    # The longest first, so that no process is left alone with one at the end.
    jobs.sort(key=lambda job: job[1].shape[1] * job[0].n_clusters, reverse=True)
    if processes == 1:
        for job in jobs:
            tell(_compute(*job))
    else:
        _compute_in_processes(jobs, processes, tell)
    return paths


def _compute(cell: AnyCell, points: Points, path: Path, identity: dict[str, Any]) -> CellDone:
    started = perf_counter()
    # The cores are shared out among processes; a thread team in each would only be in the way.
    save(cell.run(points, n_threads=1), path, identity)
    return CellDone(cell, perf_counter() - started)


def _compute_in_processes(
    jobs: Sequence[tuple[Any, ...]], processes: int, tell: Callable[[CellDone], None]
) -> None:
    # Not forked: a progress bar's thread, or a library's, may hold a lock at that moment.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_ignore_ctrl_c)
    try:
        waiting: list[Future[CellDone]] = [pool.submit(_compute, *job) for job in jobs]
        for done in as_completed(waiting):
            tell(done.result())
    except BrokenProcessPool as error:
        raise KmeanderError(
            "a process ended in the middle of a cell, perhaps for want of memory. Cells that were "
            f"finished are kept: run the same again, with fewer {argument('processes')}."
        ) from error
    finally:
        # After an error or Ctrl-C: the cells at work are finished, no others begun.
        pool.shutdown(cancel_futures=True)


def _ignore_ctrl_c() -> None:
    # It reaches all processes of a terminal; the first one sees to the end of the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
