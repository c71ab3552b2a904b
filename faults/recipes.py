"""Runs with every kind of source and output, small enough to be repeated thousands of times."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from faults.table import Row

N_ROWS = 600
BAD = range(50, N_ROWS, 97)
CHECKPOINT = "checkpoint"

Settings = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """One run: what it reads, and the arguments of `kmeander.run` for outputs in a folder.

    Parameters
    ----------
    name : str
    source : callable
        Writes the stream into a folder, and returns its path.
    settings : callable
        Arguments, given the folder for the outputs and the one for the checkpoint.
    rows : str
        The output that has every good row once.
    """

    name: str
    source: Callable[[Path], Path]
    settings: Callable[[Path, Path], Settings]
    rows: str

    def arguments(self, source: Path, out: Path, checkpoint: Path) -> Settings:
        """Return all arguments of `kmeander.run`."""
        settings = {
            "n_clusters": 4,
            "checkpoint": str(checkpoint),
            **self.settings(out, checkpoint),
        }
        return {"source": str(source), **settings}

    def count(self, out: Path) -> Counter[str]:
        """Return how often each row is in the output."""
        path = out / self.rows
        if path.is_dir():
            parts = (_keys(part) for part in sorted(path.glob("part-*.parquet")))
            return Counter(key for keys in parts for key in keys)
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(str(next(iter(json.loads(line).values()))) for line in lines)


def _keys(part: Path) -> list[str]:
    """Return what names the rows of a part; one that cannot be read has lost them all."""
    try:
        return [str(key) for key in pq.read_table(part).column(0).to_pylist()]
    except pa.ArrowInvalid:
        return []


def points(seed: int) -> list[list[float]]:
    """Clusters that jump elsewhere every 160 rows."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=5.0, size=(4, 4, 3))
    jumps = np.arange(N_ROWS) // 160
    members = rng.integers(4, size=N_ROWS)
    rows: list[list[float]] = (centres[jumps, members] + rng.normal(size=(N_ROWS, 3))).tolist()
    return rows


def csv_with_bad_rows(folder: Path) -> Path:
    """Rows with ids; some have text where a number should be."""
    text = [f"r{i},{a!r},{b!r},{c!r}" for i, (a, b, c) in enumerate(points(0))]
    for number in BAD:
        text[number] = f"r{number},1,n/a,3"
    path = folder / "readings.csv"
    path.write_text("id,a,b,c\n" + "\n".join(text) + "\n")
    return path


def ndjson(folder: Path) -> Path:
    """JSON lines without ids."""
    path = folder / "readings.ndjson"
    path.write_text("".join(f'{{"a":{a!r},"b":{b!r},"c":{c!r}}}\n' for a, b, c in points(1)))
    return path


def parquet_folder(folder: Path) -> Path:
    """Three files, one after the other."""
    path = folder / "files"
    path.mkdir()
    columns = np.array(points(2)).T
    table = pa.table(dict(zip("abc", columns, strict=True)))
    for index in range(3):
        pq.write_table(table.slice(index * 200, 200), path / f"{index}.parquet", row_group_size=64)
    return path


def timed_gzip(folder: Path) -> Path:
    """Compressed rows with times, a few of which come late."""
    path = folder / "timed.csv.gz"
    lines = ["time,a,b,c"]
    for index, (a, b, c) in enumerate(points(3)):
        second = 10 * (index - 40 if index % 89 == 88 else index)
        lines.append(
            f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02},{a},{b},{c}"
        )
    with path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(("\n".join(lines) + "\n").encode())
    return path


RECIPES = (
    Recipe(
        "CSV, Parquet parts, bad rows",
        csv_with_bad_rows,
        lambda out, _: {
            "batch_size": 25, "id_column": "id", "checkpoint_every": 5,
            "steps": str(out / "steps.jsonl"), "assignments": f"{out / 'rows'}/",
            "bad_rows": str(out / "bad.ndjson"), "centroids": str(out / "clusters.csv"),
            "model_out": str(out / "model.km"),
        },
        "rows",
    ),
    Recipe(
        "NDJSON, bounded window, commit at each batch",
        ndjson,
        lambda out, _: {
            "batch_size": 40, "max_points": 100, "checkpoint_every": 1,
            "steps": str(out / "steps.jsonl"), "assignments": str(out / "rows.ndjson"),
            "centroids": str(out / "clusters.parquet"),
        },
        "rows.ndjson",
    ),
    Recipe(
        "folder of Parquet, rho chosen",
        parquet_folder,
        lambda out, _: {
            "batch_size": 30, "rho": "auto", "checkpoint_every": 3,
            "steps": str(out / "steps.jsonl"), "assignments": f"{out / 'rows'}/",
        },
        "rows",
    ),
    Recipe(
        "compressed, by event time, late rows kept, parts of Steps",
        timed_gzip,
        lambda out, _: {
            "time_column": "time", "every": "5m", "checkpoint_every": 2,
            "steps": f"{out / 'steps'}/", "steps_part": "4kB",
            "assignments": str(out / "rows.ndjson"),
            "model_out": str(out / "model.km"),
        },
        "rows.ndjson",
    ),
    Recipe(
        "followed file, bad rows",
        csv_with_bad_rows,
        lambda out, _: {
            "batch_size": 25, "id_column": "id", "follow": True, "idle_exit": 0.2,
            "checkpoint_every": 4, "steps": str(out / "steps.jsonl"),
            "assignments": str(out / "rows.ndjson"), "bad_rows": str(out / "bad.ndjson"),
            "centroids": str(out / "clusters.csv"),
        },
        "rows.ndjson",
    ),
)  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file that a run wrote, but its checkpoints."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and CHECKPOINT not in file.relative_to(folder).parts
    }


def contents_without_borders(folder: Path) -> dict[str, bytes]:
    """Return what `contents` does, but the parts of a folder as one table, in order."""
    found, parts = contents(folder), list[pa.Table]()
    for name in [name for name in found if name.endswith(".parquet") and "part-" in name]:
        parts.append(pq.read_table(pa.BufferReader(found.pop(name))))
    if parts:
        found["parts"] = repr(pa.concat_tables(parts).to_pylist()).encode()
    return found


class Verdict:
    """What trials of one fault gave, compared with an undisturbed run.

    Parameters
    ----------
    recipe : Recipe
    undisturbed : Path
        The outputs of a run to which nothing happened.
    read : callable
        Returns what is compared of a folder with outputs.
    """

    def __init__(
        self,
        recipe: Recipe,
        undisturbed: Path,
        read: Callable[[Path], dict[str, bytes]] = contents,
    ) -> None:
        self._recipe = recipe
        self._read = read
        self._expected = read(undisturbed)
        self._rows = recipe.count(undisturbed)
        if not self._expected or not self._rows:
            raise AssertionError(f"{undisturbed} has no outputs: nothing would be compared.")
        self.n_trials = self.n_lost = self.n_duplicated = self.n_wrong = 0

    def add(self, out: Path, *, ended_well: bool = True) -> bool:
        """Count one trial by the outputs that it left; return whether all is well."""
        found = self._recipe.count(out)
        lost, duplicated = (self._rows - found).total(), (found - self._rows).total()
        is_right = ended_well and self._read(out) == self._expected
        self.n_trials += 1
        self.n_lost += lost
        self.n_duplicated += duplicated
        self.n_wrong += not is_right
        return is_right

    def row(self, fault: str) -> Row:
        """Return the row of the table."""
        return Row(fault, self.n_trials, self.n_lost, self.n_duplicated, self.n_wrong)
