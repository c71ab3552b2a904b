"""A file in, a changing stream out: Parquet with the truth in columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kmeander.arguments import one_of, whole_number
from kmeander.arrays import Points
from kmeander.drifts.concepts import DriftStream, simulate_drifts
from kmeander.drifts.magnitude import MAGNITUDES
from kmeander.drifts.scenarios import ClusterConcept, GradualStream, evolve_clusters
from kmeander.exceptions import InputError, argument
from kmeander.sources.files import read_file
from kmeander.storage import filesystem_of
from kmeander.storage.filesystem import is_one, joined

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of truth that are written beside the features.
TRUTH = ("batch", "concept", "drift", "cluster", "change")
# The least that each number may be, and what it is.
_NUMBERS = {
    "n_clusters": (1, "the number of clusters K"),
    "n_concepts": (1, "the number of concepts, the data included"),
    "batch_size": (1, "the rows of a batch"),
    "batches_per_concept": (1, "the number of batches drawn from each concept"),
    "transition": (0, "the number of batches with both concepts"),
    "seed": (0, "the seed of all random choices"),
}


@dataclass(frozen=True)
class Simulation:
    """A changing stream made from the rows of a file.

    Parameters
    ----------
    path : str
        A file in any format that `kmeander run` reads.
    columns : sequence of str, optional
    kind : {"drift", "gradual", "clusters"}
    n_clusters, epsilon, n_concepts, method
        As for `simulate_drifts`.
    changes : sequence of str
        As for `evolve_clusters`; for ``kind="clusters"``.
    batch_size, batches_per_concept, transition
        As for `DriftStream` and `GradualStream`.
    seed : int
    """

    path: str
    columns: Sequence[str] | None = None
    kind: str = "drift"
    n_clusters: int = 10
    epsilon: float = 1.0
    n_concepts: int = 10
    changes: tuple[str, ...] = ("appear", "split", "merge", "vanish")
    method: str = "root"
    batch_size: int = 500
    batches_per_concept: int = 10
    transition: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (least, meaning) in _NUMBERS.items():
            whole_number(name, getattr(self, name), at_least=least, meaning=meaning)
        one_of("method", self.method, MAGNITUDES)

    def write(self, out: str | os.PathLike[str], what: str = "stream") -> str:
        """Write the stream, or the concepts it is drawn from, and return the file's path.

        Beside the features stand, for each row: `batch` (of a stream), `concept`, `drift` (a new
        concept begins with its batch, or this is a concept after a drift); for
        ``kind="clusters"`` also `cluster`, its true id, and `change`, what led to its concept.
        """
        import pyarrow.parquet as pq

        folder = os.fspath(out)
        files = filesystem_of(folder)
        found = files.info(folder)
        if found is not None and found.kind != "folder":
            raise InputError(f"{argument('out', folder)} is a file; name a folder.")
        path = joined(folder, f"{what}.parquet")
        if is_one(path, os.fspath(self.path)):
            raise InputError(
                f"{argument('out', folder)} would overwrite the source, {path}. Name another "
                "folder."
            )
        tables = self._stream_tables() if what == "stream" else self._concept_tables()
        first = next(tables)  # whatever is wrong shows here, before anything is written
        files.make_folder(folder)
        with (
            files.written(path) as file,
            pq.ParquetWriter(file, first.schema, compression="zstd") as writer,
        ):
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)
        return path

    @property
    def features(self) -> list[str]:
        """The columns that are not truth."""
        return self._table[0]

    def describe(self, what: str) -> str:
        """Return what was written, in words."""
        n_concepts = len(self.concepts)
        if what == "concepts":
            return f"{n_concepts} concepts, {sum(map(len, self.concepts)):,} rows."
        return f"{len(self.stream)} batches of {self.batch_size:,} rows, {n_concepts} concepts."

    @cached_property
    def _table(self) -> tuple[list[str], Points]:
        names, points = read_file(self.path, self.columns)
        for name in names:
            if name in TRUTH:
                raise InputError(
                    f"{self.path} has a column {name!r}, which is where the truth is written. "
                    f"Rename it, or leave it out: {argument('columns', ...)} chooses others."
                )
        return names, points

    @cached_property
    def _evolved(self) -> list[ClusterConcept] | None:
        if self.kind != "clusters":
            return None
        return evolve_clusters(
            self._table[1], self.n_clusters, self.changes, random_state=self.seed
        )

    @cached_property
    def concepts(self) -> list[Points]:
        """The concepts, the first of which is the file."""
        if self._evolved is not None:
            return [concept.points for concept in self._evolved]
        return list(
            simulate_drifts(
                self._table[1],
                self.n_clusters,
                self.epsilon,
                self.n_concepts,
                method=self.method,
                random_state=self.seed,
            )
        )

    @cached_property
    def stream(self) -> DriftStream:
        """The batches."""
        sizes = (self.batch_size, self.batches_per_concept)
        if self.kind == "gradual":
            return GradualStream(self.concepts, *sizes, self.transition, random_state=self.seed)
        return DriftStream(self.concepts, *sizes, random_state=self.seed)

    def _stream_tables(self) -> Iterator[pa.Table]:
        for index in range(len(self.stream)):
            concepts, rows = self.stream.draw(index)
            truth = {
                "batch": np.full(len(rows), index),
                "concept": concepts,
                "drift": np.full(len(rows), self.stream.is_drift(index)),
            }
            # Only a gradual stream mixes concepts, and it knows no clusters.
            yield self._with_truth(
                self.stream.batch(index), truth, self.stream.concept(index), rows
            )

    def _concept_tables(self) -> Iterator[pa.Table]:
        for index, points in enumerate(self.concepts):
            truth = {
                "concept": np.full(len(points), index),
                "drift": np.full(len(points), index > 0),
            }
            yield self._with_truth(points, truth, index, np.arange(len(points)))

    def _with_truth(
        self, points: Points, truth: dict[str, Any], concept: int, rows: NDArray[np.int64]
    ) -> pa.Table:
        import pyarrow as pa

        if self._evolved is not None:
            truth["cluster"] = self._evolved[concept].clusters[rows]
            truth["change"] = [self._evolved[concept].change] * len(rows)
        features = {name: points[:, i] for i, name in enumerate(self._table[0])}
        return pa.table({**features, **truth})
