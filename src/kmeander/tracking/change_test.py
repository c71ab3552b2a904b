"""The change test: what a batch shows that is not usual for its stream, before it is learned.

The stream is cut into chapters, from one change to the next. A chapter is looked at in cells that
stand still: the nearest of the centroids with which it began. Shares, places and spreads of all
cells in the last 1, 4 and 12 batches are compared with the batches before these in the chapter,
and judged beside the noise between batches that each of them has shown so far, however rows depend
on one another. The kernel does it; kernel/tracking/change_test.hpp has the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple, Self

from kmeander import _kernel
from kmeander.arrays import Centroids, frozen
from kmeander.kmeans.window import Window
from kmeander.records import Batch, Ids, Noise

# Batches that are compared with those before them, as kernel/tracking/batch_noise.hpp has them.
SCALES = (1, 4, 12)
# Families of statistics that share the false alarms: shares, places, spreads, and all together.
_N_FAMILIES = 4


class ChangeKind(IntEnum):
    """What may be found, as kernel/tracking/change_test.hpp has it."""

    SHARE = 0  # of a cell: `value` now, `was` before
    PLACE = 1  # of a cell: its mean is `value` away, most of it along `column`
    COLUMN = 2  # all cells along one column, by `value` standard deviations
    SPREAD = 3  # of a cell, or of all (-1): `value` times what it was
    SHARES = 4  # all shares together
    PLACES = 5  # all places together
    SPREADS = 6  # all spreads together
    FAR = 7  # rows farther away than any before, `value` times as far
    TREND = 8  # of a cell: `value` standard deviations from where the chapter began
    ALL = 9  # all shares, places and spreads together


class Change(NamedTuple):
    """One statistic that is not what it was."""

    kind: ChangeKind
    n_batches: int  # over which it was found
    cell: int
    column: int
    value: float
    was: float
    z: float  # the normal deviate that is as rare on a stream that does not change


class BatchChanges(NamedTuple):
    """A batch beside those before it in its chapter."""

    chapter: Chapter
    changes: tuple[Change, ...]
    n_far: int

    @property
    def noise(self) -> Noise:
        """What is known of the noise, the batch included."""
        return self.chapter.noise


class Chapter(NamedTuple):
    """The part of a stream since its last change. Never changed: each batch makes a new one.

    Parameters
    ----------
    test : ChangeTest
        Cells, sums of the batches, noise.
    ids : ndarray of shape (n_clusters,)
        Id of the cluster in each cell when the chapter began.
    """

    test: _kernel.ChangeTest
    ids: Ids

    @classmethod
    def first(cls, window: Window, centroids: Centroids, ids: Ids, season: int | None) -> Chapter:
        """Return the first chapter of a stream, around `centroids`."""
        assert window.partition is not None
        test = _kernel.ChangeTest.begin(window.handle, window.partition, centroids, season or 0)
        return cls(test, ids)

    def next(self, window: Window, centroids: Centroids, ids: Ids, season: int | None) -> Chapter:
        """Return a new chapter around `centroids`; what is known of the noise stays."""
        assert window.partition is not None
        renewed = (ids != self.ids).nonzero()[0].tolist()
        test = self.test.in_chapter(
            window.handle, window.partition, centroids, renewed, season or 0
        )
        return Chapter(test, ids)

    @property
    def season(self) -> int | None:
        """Batches of the cycle whose phases are compared; None where there is none."""
        return self.test.period or None

    def after(self, batch: Batch, arrived: _kernel.Partition, alarm_rate: float) -> BatchChanges:
        """Compare a batch with those before it; `arrived` is its partition before it is learned."""
        n_features = batch.points.shape[1]
        levels = levels_for(len(self.ids), n_features, alarm_rate)
        # Time that passed without batches is part of the cycle, too.
        n_phases = 1 if batch.elapsed == 1.0 else round(batch.elapsed) % (self.test.period or 1)
        test, changes, n_far = self.test.after(batch.handle, arrived, levels, n_phases)
        found = tuple([Change(ChangeKind(change[0]), *change[1:]) for change in changes])
        return BatchChanges(Chapter(test, self.ids), found, n_far)

    @property
    def noise(self) -> Noise:
        """How much more statistics vary between batches than independent rows would make them."""
        share, place, spread, n_batches = self.test.noise
        return Noise(share, place, spread, n_batches)

    def state(self) -> dict[str, Any]:
        """Return everything as arrays and numbers."""
        counts, n_independent, arrays = self.test.saved
        return {
            "ids": self.ids,
            "counts": list(counts),
            "n_independent": n_independent,
            "arrays": list(arrays),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Make a chapter of what `state` returned."""
        test = _kernel.ChangeTest(state["counts"], state["n_independent"], state["arrays"])
        return cls(test, frozen(state["ids"]))


@lru_cache(maxsize=64)
def levels_for(
    n_clusters: int, n_features: int, alarm_rate: float
) -> tuple[float, float, float, float]:
    """Return how large z must be, for shares, places, spreads, and for all of a kind together.

    Each family gets a quarter of `alarm_rate`, divided equally among its statistics at each scale
    (Bonferroni); differences count in both directions, sums of squares in one.

    Examples
    --------
    >>> [round(level, 2) for level in levels_for(10, 8, 0.001)]
    [4.46, 4.9, 4.48, 4.1]
    """
    each = alarm_rate / _N_FAMILIES / len(SCALES)

    def level(n_statistics: int) -> float:
        return -NormalDist().inv_cdf(each / n_statistics)

    return (
        level(2 * n_clusters),
        level(2 * (n_clusters + 1) * n_features),
        level(2 * (n_clusters + 1)),
        level(_N_FAMILIES),
    )
