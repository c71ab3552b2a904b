"""The grid: any number of processes, stopped and resumed, gives the same files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kmeander import InputError, KmeanderError
from kmeander.experiments import grid as grid_module
from kmeander.experiments.grid import FULL, QUICK, CellDone, Grid, run_grid
from kmeander.experiments.protocol import METHODS, Cell, Setting
from kmeander.experiments.storage import load
from tests.experiments.test_protocol import TINY, tiny_datasets, tiny_grid

pytestmark = pytest.mark.slow  # whole runs, many of them in processes of their own

CELLS = [
    Cell(name, Setting(k, 1.0, 1.0, batch_size=40, n_concepts=3, batches_per_concept=4))
    for name in ("ring", "lumps")
    for k in (2, 3, 4)
]

SLOWLY = """
import sys, time
from pathlib import Path
from kmeander.experiments.grid import run_grid
from tests.experiments.test_grid import CELLS
from tests.experiments.test_protocol import tiny_datasets

if __name__ == "__main__":
    run_grid(CELLS, tiny_datasets(), Path(sys.argv[1]), tell=lambda done: time.sleep(1.0))
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run_grid(CELLS, tiny_datasets(), folder)
    return contents(folder)


def test_processes_do_not_change_a_byte(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    heard: list[CellDone] = []
    paths = run_grid(CELLS, tiny_datasets(), tmp_path, processes=2, tell=heard.append)
    assert contents(tmp_path) == undisturbed
    assert [path.name for path in paths] == [f"{cell.name}.parquet" for cell in CELLS]
    assert {progress.cell for progress in heard} == set(CELLS)
    assert all(progress.seconds is not None for progress in heard)


def test_a_killed_grid_goes_on_where_it_was(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOWLY, str(tmp_path)], cwd=Path(__file__).parents[2]
    )
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("*.parquet"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    done = {path.name for path in tmp_path.glob("*.parquet")}
    assert 0 < len(done) < len(CELLS)
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in done}
    (tmp_path / "left-behind.parquet.1.part").write_bytes(b"half a file")
    heard: list[CellDone] = []
    run_grid(CELLS, tiny_datasets(), tmp_path, tell=heard.append)
    (tmp_path / "left-behind.parquet.1.part").unlink()
    assert contents(tmp_path) == undisturbed
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in done} == times
    assert {p.cell.name + ".parquet" for p in heard if p.seconds is None} == done


def test_files_hold_the_records(tmp_path: Path) -> None:
    cells = [Cell(name, TINY) for name in tiny_datasets()]
    table = load(run_grid(cells, tiny_datasets(), tmp_path))
    expected = tiny_grid()
    assert table.num_rows == len(expected)
    for name in ("method", "batch", "surrogate_error", "skm_error", "n_distances", "converged"):
        assert table.column(name).to_pylist() == [getattr(record, name) for record in expected]


def test_files_of_another_run_are_not_taken_for_this_one(tmp_path: Path) -> None:
    cells = [Cell("ring", TINY)]
    (path,) = run_grid(cells, tiny_datasets(), tmp_path)
    before = path.read_bytes()

    def message(cells: list[Cell], **changed: float) -> str:
        data = {
            name: points * changed.get("factor", 1.0) for name, points in tiny_datasets().items()
        }
        with pytest.raises(InputError) as raised:
            run_grid(cells, data, tmp_path)
        return str(raised.value)

    advice = "Choose another folder with out, or delete this one to begin anew."
    assert message([Cell("ring", TINY, seed=1)]) == (
        f"{path} holds another run, which differs in seed. {advice}"
    )
    assert message(cells, factor=2.0) == (
        f"{path} holds another run, which differs in data. {advice}"
    )
    assert path.read_bytes() == before
    pq.write_table(pa.table({"a": [1]}), path)
    assert message(cells) == (
        f"{path} is not a cell of an experiment. Choose another folder with out."
    )
    path.write_bytes(before[:100])
    assert message(cells).startswith(f"{path} cannot be read (")
    assert message(cells).endswith("Delete it, and it will be computed anew.")


def test_a_cell_that_fails_says_why(tmp_path: Path) -> None:
    cells = [Cell("ring", Setting(200, 1.0))]
    for processes in (1, 2):
        with pytest.raises(InputError, match="ring has 150 rows, fewer than the 200 clusters"):
            run_grid(cells, tiny_datasets(), tmp_path, processes=processes)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_dies_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_module, "_compute", os._exit)
    with pytest.raises(KmeanderError, match="a process ended in the middle of a cell"):
        grid_module._compute_in_processes([(3,)], 2, lambda _: None)


def test_the_grids_are_the_papers() -> None:
    cells = FULL.cells(["a", "b"])
    assert len(cells) == 18
    assert {(c.setting.n_clusters, c.setting.epsilon) for c in cells} == {
        (k, e) for k in (5, 10, 25) for e in (0.5, 1.0, 2.0)
    }
    assert {(c.setting.m, c.setting.n_concepts, c.setting.batch_size) for c in cells} == {
        (2.0, 10, 500)
    }
    assert FULL.max_rows == 100_000
    assert {c.setting.n_concepts for c in QUICK.cells(["a"])} == {4}
    both = Grid(ms=(1.0, 3.0), repetitions=2).cells(["a"])
    assert len(both) == 36 and len({cell.name for cell in both}) == 36
    assert len(METHODS) == 5
