"""Clusters of another number: the lineage and the chapter once some were added or given up.

`origins` says for each cluster now in which row it was before, or `NEW`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kmeander import _kernel
from kmeander.arrays import frozen
from kmeander.kmeans.lloyd import WindowFit
from kmeander.tracking.change_test import SCALES, Chapter
from kmeander.tracking.lineage import LASTED, NOBODY, Lineage
from kmeander.tracking.tracker import variance_of

NEW = -1

Origins = NDArray[np.int64]


def resized_lineage(
    lineage: Lineage, origins: Origins, newborn: dict[int, tuple[int, int]], fit: WindowFit,
    index: int,
) -> Lineage:  # fmt: skip
    """Return the lineage of those that stay and of newborn clusters.

    Parameters
    ----------
    lineage : Lineage
        Before.
    origins : ndarray of shape (n_clusters,)
    newborn : dict
        By place now: the id, and that of the cluster it came from or -1.
    fit : WindowFit
        The clusters now.
    index : int
        Number of the batch.
    """

    def carried(before: NDArray[Any], default: Any) -> NDArray[Any]:
        now = np.full((len(origins), *before.shape[1:]), default, dtype=before.dtype)
        stay = origins != NEW
        now[stay] = before[origins[stay]]
        return now

    ids, parents = carried(lineage.ids, NOBODY), carried(lineage.parents, NOBODY)
    home = carried(lineage.home, 0.0)
    for place, (number, parent) in newborn.items():
        ids[place], parents[place], home[place] = number, parent, fit.centroids[place]
    alive = set(ids.tolist())
    numbers = [number for number, _ in newborn.values()]
    return lineage._replace(
        ids=frozen(ids),
        ended=tuple(pair for pair in lineage.ended if pair[0] not in alive),
        next_id=max([lineage.next_id, *(number + 1 for number in numbers)]),
        since=frozen(carried(lineage.since, index)),
        home=frozen(home),
        home_variance=frozen(carried(lineage.home_variance, np.inf)),
        home_share=frozen(carried(lineage.home_share, 0.0)),
        variance=frozen(variance_of(fit)),
        batches=frozen(carried(lineage.batches, LASTED)),
        held=frozen(carried(lineage.held, 0.0)),
        parents=frozen(parents),
    )


def resized_chapter(
    chapter: Chapter, origins: Origins, fit: WindowFit, lineage: Lineage
) -> Chapter:
    """Return a new chapter around the clusters of `fit`; what is known of the noise stays."""
    fresh = Chapter.first(fit.window.divided(fit.found), fit.centroids, lineage.ids, chapter.season)
    (k_before, d, _, _, phase, _, _, n_tested), _, before = chapter.test.saved
    counts, n_independent, arrays = fresh.test.saved
    squares, effects, families, together, totals = before[9:14]
    kept = _noise_of_cells(squares, effects, families, k_before, d, origins)
    counts = (*counts[:4], phase, *counts[5:7], n_tested)
    test = _kernel.ChangeTest(list(counts), n_independent, [*arrays[:9], *kept, together, totals])
    return Chapter(test, lineage.ids)


def _noise_of_cells(
    squares: NDArray[np.float64],
    counts: NDArray[np.float64],
    families: NDArray[np.float64],
    k: int,
    d: int,
    origins: Origins,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return what statistics of the cells have shown; what is gone stays with their family.

    The arrays are laid out as kernel/tracking/change_test_state.cpp has them.
    """
    # Numbers of each cell, and those of all cells together, by family: shares, places, spreads.
    shapes = [(1, 0), (d, d), (1, 1)]
    n_known = len(squares) // (len(SCALES) * sum(k * each + rest for each, rest in shapes))
    forgotten = families.reshape(n_known * len(shapes), -1, len(SCALES)).copy()
    gone = np.setdiff1d(np.arange(k), origins)
    now: tuple[list[NDArray[np.float64]], ...] = ([], [])
    at = 0
    for block in range(n_known * len(shapes)):
        each, rest = shapes[block % len(shapes)]
        size = k * each + rest
        for which, values in enumerate((squares, counts)):
            table = values[at : at + len(SCALES) * size].reshape(len(SCALES), size)
            cells = table[:, : k * each].reshape(len(SCALES), k, each)
            carried = np.where(
                (origins != NEW)[:, np.newaxis], cells[:, np.maximum(origins, 0)], 0.0
            ).reshape(len(SCALES), -1)
            now[which].append(np.concatenate([carried, table[:, k * each :]], axis=1).ravel())
            forgotten[block, 1 + which] += cells[:, gone].sum(axis=(1, 2))
        at += len(SCALES) * size
    return np.concatenate(now[0]), np.concatenate(now[1]), forgotten.ravel()
