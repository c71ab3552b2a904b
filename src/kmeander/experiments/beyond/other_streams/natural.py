"""Natural streams, in the order of their rows, each method forecasting the next batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq

from kmeander.arrays import Points
from kmeander.exceptions import InputError
from kmeander.experiments import readers
from kmeander.experiments.beyond.contestants import RIVER
from kmeander.experiments.beyond.other_streams.cells import Arrival, StreamCell, StreamRecord
from kmeander.records import Batch

FOLDER = "natural"
# Recordings and embeddings, beside that folder.
EMBEDDINGS, VECTOR = "commit_subjects", "vector"
BESIDE = ("gesture_raw", "anuran", EMBEDDINGS)
# The streams that the constants of the default were chosen on, and those beside them that were
# looked at; all others say how it does elsewhere.
CHOSEN_ON = ("moving_pair", "insects", "power_supply", "shuttle", "gesture_raw")
LOOKED_AT = (
    *CHOSEN_ON, "alternating_chessboard", "bike_hours", "bridge_at_dawn", "moving_squares",
    "anuran", EMBEDDINGS,
)  # fmt: skip
ALTERNATING = "alternating_chessboard"

N_ROWS, N_CLUSTERS = 500, 10
N_ROWS_OF_EMBEDDINGS, N_CLUSTERS_OF_EMBEDDINGS = 2000, 100
ROWS_OF_SCALING = 2000
# Batches in which every method is still new.
NOT_SCORED = 4
# river's KMeans takes a row at a time, 4 ms each of the embeddings: it sees the first rows alone.
ROWS_OF_RIVER = 20_000


@dataclass(frozen=True, eq=False)
class NaturalStream:
    """Rows in their order, scaled, with the size of batches and K."""

    points: Points
    batch_size: int = N_ROWS
    n_clusters: int = N_CLUSTERS

    @property
    def n_batches(self) -> int:
        """Batches that are full."""
        return len(self.points) // self.batch_size

    def arrivals(self, n_rows: int | None = None) -> Iterator[Arrival]:
        """Yield the batches that are full, of the first rows or of all."""
        n_batches = (
            self.n_batches if n_rows is None else min(n_rows, len(self.points)) // (self.batch_size)
        )
        for index in range(n_batches):
            first = index * self.batch_size
            yield Arrival(Batch(index, self.points[first : first + self.batch_size]), 0, index + 1)


def load_streams(folder: Path) -> dict[str, NaturalStream]:
    """Return every stream that the folder holds, by name: ``natural/*.parquet``, and `BESIDE`.

    All columns but `label` are features, of the embeddings `vector`. Columns are standardised by
    mean and spread of the first 2000 rows; embeddings are left as they are.
    """
    below = folder / FOLDER
    paths = sorted(below.glob("*.parquet")) if below.is_dir() else []
    paths += [path for name in BESIDE if (path := folder / f"{name}.parquet").exists()]
    return {path.stem: _stream(path) for path in paths}


def _stream(path: Path) -> NaturalStream:
    if path.stem == EMBEDDINGS:
        return NaturalStream(_vectors(path), N_ROWS_OF_EMBEDDINGS, N_CLUSTERS_OF_EMBEDDINGS)
    file = readers.DataFile(path)
    _, names = readers.parquet_columns(file)
    blocks = list(readers.parquet(names)(file))
    points = np.concatenate(blocks) if blocks else np.empty((0, len(names)))
    if len(points) < (NOT_SCORED + 1) * N_ROWS:
        raise InputError(
            f"{path} has {len(points)} rows; a stream needs {(NOT_SCORED + 1) * N_ROWS}, of which "
            f"the last {N_ROWS} are scored. Leave it out of the folder."
        )
    return NaturalStream(scaled(points))


def scaled(points: Points) -> Points:
    """Return the points by mean and spread of the first 2000 rows; without spread, by the mean."""
    first = points[:ROWS_OF_SCALING]
    spread = first.std(axis=0)
    found: Points = (points - first.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return found


def _vectors(path: Path) -> Points:
    file = readers.DataFile(path)
    _, names = readers.parquet_columns(file)
    if VECTOR not in names:
        raise InputError(
            f"{path} has no column {VECTOR}, which holds the embeddings. Leave it out of the "
            "folder."
        )
    column = pq.read_table(path, columns=[VECTOR]).column(VECTOR).combine_chunks()
    values = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    points: Points = values.reshape(len(column), -1)
    return points


@dataclass(frozen=True)
class NaturalCell(StreamCell):
    """One method on one natural stream: the error of each batch before it is learned."""

    panel: ClassVar[str] = "natural"

    batch_size: int

    @property
    def dataset(self) -> str:
        """Key of the points that it takes."""
        return key_of(self.stream)

    def run(self, points: Points, n_threads: int | None = 1) -> list[StreamRecord]:
        """Return a record per batch."""
        stream = NaturalStream(points, self.batch_size, self.n_clusters)
        n_rows = ROWS_OF_RIVER if self.method == RIVER else None
        return self.record(stream.arrivals(n_rows), n_threads)


def key_of(stream: str) -> str:
    """Return the key of a stream's points."""
    return f"natural, {stream}"


def points_by_key(streams: Mapping[str, NaturalStream]) -> dict[str, Points]:
    """Return the points of every stream, by their keys."""
    return {key_of(name): stream.points for name, stream in streams.items()}
