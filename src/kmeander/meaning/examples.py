"""Examples: rows near the centroids, of the newest batch of each cluster and of older ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Labels
from kmeander.records import Captions, Ids
from kmeander.records.profile import ExampleRow

# Rows of one batch that are kept of each cluster, and batches of which there are any.
ROWS, BATCHES = 3, 3

Near = tuple[ExampleRow, ...]  # of one batch, the nearest first


class Examples(NamedTuple):
    """Of each cluster, by id, the rows nearest to its centroid in up to three batches.

    The newest batch that had rows of it, one about as old as the window, and one between that will
    take its place: so there are rows of then and of now in a space that does not grow.
    """

    by_cluster: Mapping[int, tuple[Near, ...]] = {}  # never changed

    def after(
        self,
        index: int,
        captions: Captions,
        ids: Ids,
        labels: Labels,
        distances: NDArray[np.float64],
        n_batches: int,
    ) -> Examples:
        """Return the examples after batch `index`, in a window of `n_batches`."""
        found = dict(self.by_cluster)
        numbers = ids.tolist()
        order = np.lexsort((distances, labels))  # the first of those that are equally near is first
        begins = np.searchsorted(labels[order], np.arange(len(numbers) + 1)).tolist()
        for row, number in enumerate(numbers):
            members = order[begins[row] : begins[row + 1]]
            near = _nearest(index, captions, members.tolist(), distances)
            if near:
                found[number] = _with(found.get(number, ()), near, n_batches)
        return Examples(dict(sorted(found.items())))

    def of(self, clusters: Iterable[int]) -> Examples:
        """Return the examples of these clusters alone."""
        return Examples({n: self.by_cluster[n] for n in sorted(clusters) if n in self.by_cluster})

    def recent(self, number: int) -> Near:
        """Return rows of the newest batch that had any of this cluster."""
        kept = self.by_cluster.get(number, ())
        return kept[-1] if kept else ()

    def old(self, number: int) -> Near:
        """Return rows of the oldest batch of which any are kept, where that is another one."""
        kept = self.by_cluster.get(number, ())
        return kept[0] if len(kept) > 1 else ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers."""
        return {
            str(number): [[row.to_dict() for row in near] for near in kept]
            for number, kept in self.by_cluster.items()
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make examples of what `to_dict` returned."""
        return cls(
            {
                int(number): tuple([tuple(map(ExampleRow.from_dict, near)) for near in kept])
                for number, kept in plain.items()
            }
        )


def _nearest(
    index: int, captions: Captions, members: list[int], distances: NDArray[np.float64]
) -> Near:
    """Return the nearest rows of one cluster; of rows that say the same, one."""
    found: dict[tuple[str | None, str | None], ExampleRow] = {}
    for row in members:
        if len(found) == ROWS:
            break
        said = (captions.id_of(row), captions.text_of(row))
        if any(said):
            found.setdefault(said, ExampleRow(index, float(distances[row]), *said))
    return tuple(found.values())


def _with(kept: tuple[Near, ...], newest: Near, n_batches: int) -> tuple[Near, ...]:
    """Return what is kept once rows of another batch are there.

    The newest before it stays only where it is half a window younger than the one before that.
    """
    batches = [near[0].batch for near in kept]
    if len(kept) > 1 and batches[-1] - batches[-2] < n_batches / 2:
        kept = kept[:-1]
    return (*kept, newest)[-BATCHES:]
