"""Clusters whose number changes: one is parted, two are joined, one is given up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import dist

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, frozen
from kmeander.events import KINDS, Event
from kmeander.kmeans.lloyd import WindowFit, fit_window
from kmeander.models.k_state import Places
from kmeander.models.settings import PrivilegedSettings
from kmeander.models.state import State
from kmeander.tracking.lineage import NOBODY, Lineage, Sleeper
from kmeander.tracking.number_of_clusters import are_apart, halves, holds_two, least_share
from kmeander.tracking.resized import NEW, Origins, resized_chapter, resized_lineage
from kmeander.tracking.tracker import Before, Tracked


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters in the midst of a change of their number. Never changed: a change makes a new one.

    Parameters
    ----------
    start : Tracked
        The clusters before any change.
    fit : WindowFit
        As they are now.
    lineage : Lineage
    origins : ndarray of shape (n_clusters,)
        Row in `start` of each, or -1.
    places : Places or None
    gone : tuple of Sleeper
        Clusters that ended lately.
    events : tuple of Event
    before : ndarray of shape (n_before, n_features)
        Centroids before the batch.
    settings : PrivilegedSettings
    index : int
        Number of the batch.
    """

    start: Tracked
    fit: WindowFit
    lineage: Lineage
    origins: Origins
    places: Places | None
    gone: tuple[Sleeper, ...]
    events: tuple[Event, ...]
    before: Centroids
    settings: PrivilegedSettings
    index: int

    @classmethod
    def of(
        cls,
        before: Before,
        tracked: Tracked,
        places: Places | None,
        gone: tuple[Sleeper, ...],
        settings: PrivilegedSettings,
        index: int,
    ) -> Clustering:
        """Return the clusters of a batch that was learned."""
        origins = np.arange(len(tracked.fit.centroids))
        return cls(
            tracked, tracked.fit, tracked.lineage, origins, places, gone, (), before.centroids,
            settings, index,
        )  # fmt: skip

    @classmethod
    def standing(cls, known: State, settings: PrivilegedSettings) -> Clustering:
        """Return the clusters between two batches."""
        assert known.centroids is not None
        assert known.lineage is not None
        assert known.chapter is not None
        fit = fit_window(known.window, known.centroids, settings.limits, only_assign=True)
        tracked = Tracked(known.lineage, fit, known.chapter)
        before = Before(known.lineage, known.centroids, known.window)
        choice = known.k_choice
        return cls.of(before, tracked, choice.places, choice.gone, settings, known.n_steps)

    @property
    def n_clusters(self) -> int:
        """How many there are now."""
        return len(self.fit.centroids)

    def parted(self, row: int, *, by_force: bool = False) -> Clustering | None:
        """Return them with a cluster in two; None where the parts would not be apart."""
        found = halves(self.fit.window.divided(self.fit.found), row)
        if found is None:
            return None
        two = found.means
        # The part that lies where the cluster was keeps its row and id.
        home = self.lineage.home[row].tolist()
        if dist(two[1].tolist(), home) < dist(two[0].tolist(), home):
            two = two[::-1]
        centroids = np.array(self.fit.centroids)
        centroids[row] = two[0]
        places, at = (self.places or Places.of(self.fit.centroids)).with_one(self.fit.centroids)
        fit = self._fitted(np.insert(centroids, at, two[1], axis=0))
        parent = row + (row >= at)
        window = fit.window.divided(fit.found)
        if not by_force:
            least = least_share(len(fit.masses)) * float(fit.masses.sum())
            if min(fit.masses[at], fit.masses[parent]) < least:
                return None
            if not are_apart(window, fit.centroids, fit.masses, (parent, at)):
                return None
        number, gone, parent_id = self.lineage.next_id, self.gone, self.lineage.ids.item(row)
        share = float(fit.sums.masses[-1, at] / fit.window.batches[-1].mass)
        event = Event("split", number, parent_id, value=share)
        alive = {*self.lineage.ids.tolist(), *(one.number for one in self.lineage.asleep)}
        returned = nearest_gone(
            tuple(one for one in gone if one.number not in alive), fit.centroids[at]
        )
        if returned is not None:
            number, gone = returned.number, tuple(one for one in gone if one is not returned)
            event = Event("returned", number, value=share)
        return self._with(
            fit, np.insert(np.arange(self.n_clusters), at, NEW), places, gone, event,
            {at: (number, parent_id)},
        )  # fmt: skip

    def joined(self, one: int, other: int) -> Clustering | None:
        """Return them with two as one; None where that one would hold two."""
        now = self.joined_by_force(one, other)
        row = now.lineage.ids.tolist().index(now.events[-1].other)
        window = now.fit.window.divided(now.fit.found)
        is_two = holds_two(window, now.fit.centroids, now.fit.masses, row)
        return None if is_two else now

    def joined_by_force(self, one: int, other: int) -> Clustering:
        """Return them with two as one, whatever they look like: the heavier goes on."""
        masses = self.fit.masses
        kept, ended = (one, other) if masses[one] >= masses[other] else (other, one)
        centroids = np.array(self.fit.centroids)
        share = float(masses[ended] / max(masses[kept] + masses[ended], 1e-300))
        centroids[kept] += share * (centroids[ended] - centroids[kept])
        return self._without(ended, centroids, self.lineage.ids.item(kept))

    def without(self, row: int) -> Clustering:
        """Return them with a cluster given up."""
        return self._without(row, np.array(self.fit.centroids), NOBODY)

    def cheapest_pair(self) -> tuple[int, int]:
        """Return the two whose mean costs least in the place of both (Ward)."""
        centroids, masses = self.fit.centroids, self.fit.masses
        squared = np.square(centroids[:, np.newaxis] - centroids).sum(axis=2)
        both = np.maximum(masses[:, np.newaxis] + masses, 1e-300)
        costs = masses[:, np.newaxis] * masses / both * squared
        costs[np.tril_indices(len(costs))] = np.inf
        one, other = np.unravel_index(int(np.argmin(costs)), costs.shape)
        return int(one), int(other)

    def tracked(self) -> Tracked:
        """Return them as the batch left them."""
        if not self.events:
            return self.start
        places = {origin: at for at, origin in enumerate(self.origins.tolist()) if origin != NEW}

        def still(rows: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(places[row] for row in rows if row in places)

        first = self.start.fit
        fit = self.fit._replace(
            moved=frozen(self._moved()),
            initial_error=first.initial_error,
            reseeded=tuple(sorted({*still(first.reseeded), *self.fit.reseeded})),
        )
        events = sorted(
            (*self.start.events, *self.events), key=lambda event: KINDS.index(event.kind)
        )
        return Tracked(
            self.lineage,
            fit,
            resized_chapter(self.start.chapter, self.origins, fit, self.lineage),
            still(self.start.swapped),
            tuple(events),
            self.start.why,
        )

    def _moved(self) -> NDArray[np.float64]:
        """Return how far each lies from its place before; a newborn from the nearest of those."""
        moved = np.empty(self.n_clusters)
        for at, origin in enumerate(self.origins.tolist()):
            others = self.before if origin == NEW else self.before[origin : origin + 1]
            here = self.fit.centroids[at].tolist()
            moved[at] = min(dist(here, other) for other in others.tolist())
        return moved

    def _fitted(self, centroids: NDArray[np.float64]) -> WindowFit:
        keep_sums = bool(self.settings.choices)
        start = self.settings.limits.metric.centroids(frozen(centroids))
        window = self.fit.window.divided(None)
        fit = fit_window(window, start, self.settings.limits, keep_sums=keep_sums)
        return fit._replace(
            n_iter=self.fit.n_iter + fit.n_iter,
            n_distances=self.fit.n_distances + fit.n_distances,
            n_distances_plain=self.fit.n_distances_plain + fit.n_distances_plain,
        )

    def _without(self, row: int, centroids: NDArray[np.float64], heir: int) -> Clustering:
        number = self.lineage.ids.item(row)
        event = Event("died", number) if heir == NOBODY else Event("absorbed", number, heir)
        sleeper = Sleeper(
            number, heir, self.index, self.fit.centroids[row], self.lineage.variance.item(row)
        )
        places = (self.places or Places.of(self.fit.centroids)).without(row, self.fit.centroids)
        fit = self._fitted(np.delete(centroids, row, axis=0))
        origins = np.delete(np.arange(self.n_clusters), row)
        lineage = self.lineage._replace(ended=(*self.lineage.ended, (number, heir)))
        return replace(self, lineage=lineage)._with(
            fit, origins, places, (*self.gone, sleeper), event, {}
        )

    def _with(
        self,
        fit: WindowFit,
        origins: Origins,
        places: Places,
        gone: tuple[Sleeper, ...],
        event: Event,
        newborn: dict[int, tuple[int, int]],
    ) -> Clustering:
        lineage = resized_lineage(self.lineage, origins, newborn, fit, self.index)
        stay = origins != NEW
        since_start = np.full(len(origins), NEW)
        since_start[stay] = self.origins[origins[stay]]
        return replace(
            self,
            fit=fit,
            lineage=lineage,
            origins=since_start,
            places=places if places.has_free else None,
            gone=gone,
            events=(*self.events, event),
        )


def nearest_gone(gone: tuple[Sleeper, ...], centroid: Centroids) -> Sleeper | None:
    """Return the cluster that ended where a centroid lies, within its spread."""
    place = centroid.tolist()
    near = [
        (gap, at)
        for at, one in enumerate(gone)
        if (gap := dist(one.home.tolist(), place) ** 2) <= one.variance
    ]
    return gone[min(near)[1]] if near else None


def most_gained(fit: WindowFit) -> int | None:
    """Return the cluster whose two parts save most of the error; None where none has two."""
    window, best = fit.window.divided(fit.found), (0.0, -1)
    for row in range(len(fit.centroids)):
        two = halves(window, row) if fit.masses[row] > 0 else None
        if two is not None:
            apart = float(np.square(two.means[0] - two.means[1]).sum())
            saved = float(fit.masses[row]) * two.share * (1.0 - two.share) * apart
            best = max(best, (saved, -row - 1))
    return -best[1] - 1 if best[0] > 0 else None
