"""The whole measurement: streams, changes, rivals, numbers, figures, and the page of verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kmeander.arrays import Points
from kmeander.experiments import figures, storage
from kmeander.experiments.alarms import figure, page, tables
from kmeander.experiments.alarms.cells import Length, cells_of
from kmeander.experiments.alarms.changes import ABRUPT, BASES
from kmeander.experiments.alarms.pools import GAUSSIAN, gaussian_pool
from kmeander.experiments.alarms.rivals import RIVALS, has_river
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.experiments.alarms.verdicts import Verdict, verdicts_of
from kmeander.experiments.grid import CellDone, run_grid
from kmeander.experiments.tables import read_csv, write_csv
from kmeander.models.settings import DEFAULTS

# Seeds of each stream: of a run of about a minute, and of one that is long enough to judge. The
# first seed of a full run is one on which nothing was developed.
SHORT, FULL = 1, 10
FIRST_SEED, FIRST_SEED_FULL = 0, 1000


def run_alarms(
    length: Length,
    folder: Path,
    natural: dict[str, Points] | None = None,
    *,
    streams: Sequence[str] = tuple(STREAMS),
    bases: Sequence[str] = tuple(BASES),
    abrupt: Sequence[str] = tuple(ABRUPT),
    processes: int = 1,
    tell: Callable[[CellDone], None] = lambda _: None,
) -> Path:
    """Run what `folder` does not hold yet, then draw and write everything anew.

    Parameters
    ----------
    length : Length
    folder : Path
        Gets ``steps/`` (one Parquet file per stream and seed), ``figures/`` (PDF and PNG, the
        numbers as CSV), ``run.json``, ``ALARMS.md`` and ``alarms-table.md``.
    natural : dict of ndarray, optional
        Pools of real rows by name, as `pools.load_pools` returns; the Gaussian pool always takes
        part.
    streams, bases, abrupt : sequence of str, optional
        Names of the streams that do not change, of those that do once, and of those that do again
        and again; by default all.
    processes : int, default=1
    tell : callable
        Hears of every cell that is there.

    Returns
    -------
    Path
        Of ``ALARMS.md``.
    """
    pools = _with_gaussian(natural or {})
    cells = cells_of(length, pools, streams, bases, abrupt)
    # Streams other than pools make their own rows.
    data = {**pools, "": np.empty((0, 1))}
    paths = run_grid(cells, data, folder / "steps", processes=processes, tell=tell)
    run = _facts(length, pools, [path.name for path in paths])
    (folder / "run.json").write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    return report(folder)


def n_cells(length: Length, natural: dict[str, Points]) -> int:
    """Return the number of cells of a run of everything."""
    return len(cells_of(length, _with_gaussian(natural)))


def _with_gaussian(natural: dict[str, Points]) -> dict[str, Points]:
    return {**natural, GAUSSIAN: gaussian_pool()}


def verdicts_in(folder: Path) -> list[Verdict]:
    """Return a verdict for each promise, of the numbers that a run has written."""
    drawn = folder / "figures"
    numbers = {
        name: read_csv(drawn / f"{name}.csv") if (drawn / f"{name}.csv").exists() else []
        for name in tables.NAMES
    }
    return verdicts_of(numbers)


def report(folder: Path) -> Path:
    """Draw the figures and write the pages from the files of a run alone."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    numbers = tables.numbers_of(_records(folder, run))
    drawn = folder / "figures"
    drawn.mkdir(exist_ok=True)
    for name, rows in numbers.items():
        if rows:
            write_csv(drawn / f"{name}.csv", rows)
    figures.save(figure.draw_rates(numbers["alarms"]), drawn / "alarms")
    if numbers["power"]:
        figures.save(figure.draw_power(numbers["power"]), drawn / "power")
    (folder / "alarms-table.md").write_text(page.table(run, numbers), encoding="utf-8")
    path = folder / "ALARMS.md"
    path.write_text(page.page(run, numbers), encoding="utf-8")
    return path


def _records(folder: Path, run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    # File by file: those of a full run do not fit into memory as dicts.
    for name in run["files"]:
        yield from storage.load([folder / "steps" / name]).to_pylist()


def _facts(length: Length, pools: dict[str, Points], files: Sequence[str]) -> dict[str, Any]:
    from kmeander import __version__, _kernel

    return {
        "kmeander": __version__,
        "instruction_set": _kernel.instruction_set(),
        "defaults": DEFAULTS,
        **asdict(length),
        "seeds": list(length.seeds),
        "seeds_of_changes": list(length.seeds_of_changes),
        "pools": {name: list(points.shape) for name, points in pools.items()},
        "rivals": [key for key in RIVALS if has_river() or not key.startswith("adwin")],
        "files": list(files),
    }
