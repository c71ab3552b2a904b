"""The whole experiment: the grid, its figures, the numbers behind them, and the findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kmeander.experiments import figures, findings, storage, tables, theorem1
from kmeander.experiments.datasets import LoadedDataset, MissingDataset
from kmeander.experiments.grid import CellDone, Grid, run_grid


def run_experiment(
    found: Sequence[LoadedDataset],
    missing: Sequence[MissingDataset],
    grid: Grid,
    folder: Path,
    *,
    processes: int = 1,
    repetitions_of_figure1: int = 40,
    tell: Callable[[CellDone], None] = lambda _: None,
) -> Path:
    """Run what `folder` does not hold yet, then draw and write everything anew.

    Parameters
    ----------
    found, missing
        As from `load_datasets`.
    grid : Grid
    folder : Path
        Gets ``steps/`` (one Parquet file per cell), ``figures/`` (PDF, PNG and CSV), ``run.json``,
        ``medians.csv`` and ``FINDINGS.md``.
    processes : int, default=1
    repetitions_of_figure1 : int, default=40
    tell : callable
        Hears of every cell that is there.

    Returns
    -------
    Path
        Of ``FINDINGS.md``.
    """
    cells = grid.cells(dataset.key for dataset in found)
    data = {dataset.key: dataset.points for dataset in found}
    paths = run_grid(cells, data, folder / "steps", processes=processes, tell=tell)
    measured = {
        dataset.key: theorem1.measure(dataset.points, repetitions_of_figure1, grid.seed)
        for dataset in found
    }
    run = _facts(found, missing, grid, repetitions_of_figure1)
    (folder / "run.json").write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    drawn = folder / "figures"
    drawn.mkdir(exist_ok=True)
    rows = [row for key, gaps in measured.items() for row in theorem1.rows_of(key, gaps)]
    tables.write_csv(drawn / "theorem1.csv", rows)
    return report(folder, paths)


def report(folder: Path, paths: Sequence[Path]) -> Path:
    """Draw the figures and write the findings from the files of a run alone.

    The findings are those for m = 2, the paper's, where it is among several; the figures of the
    others lie in folders of their own.
    """
    drawn = folder / "figures"
    steps = tables.Steps.of(storage.load(paths))
    theorem1_rows = tables.read_csv(drawn / "theorem1.csv")
    figures.save(figures.draw_theorem1(narrowest_band(theorem1_rows)), drawn / "theorem1")
    shown = 2.0 if 2.0 in steps.ms else steps.ms[0]
    for m in steps.ms:
        _draw_scores(steps.only(m), drawn if m == shown else drawn / f"m{m:g}")
    steps = steps.only(shown)
    tables.write_csv(folder / "medians.csv", tables.medians(steps))
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    path = folder / "FINDINGS.md"
    path.write_text(findings.page(run, steps, theorem1_rows), encoding="utf-8")
    return path


def _draw_scores(steps: tables.Steps, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for score in tables.SCORES.values():
        rows = tables.boxes(steps, score)
        tables.write_csv(folder / f"{score.key}.csv", rows)
        figures.save(figures.draw_scores(rows, score), folder / score.key)


def narrowest_band(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the dataset for which Theorem 1 promises most: the one to draw."""
    key = min(rows, key=lambda row: row["band_95%"])["dataset"]
    return [row for row in rows if row["dataset"] == key]


def _facts(
    found: Sequence[LoadedDataset], missing: Sequence[MissingDataset], grid: Grid, repetitions: int
) -> dict[str, Any]:
    from kmeander import __version__, _kernel

    return {
        "kmeander": __version__,
        "instruction_set": _kernel.instruction_set(),
        "grid": asdict(grid),
        "repetitions_of_figure1": repetitions,
        "datasets": [
            {"key": entry.key, "title": entry.title, "note": entry.note} for entry in found
        ],
        "missing": [str(entry) for entry in missing],
    }
